/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of comma-separated values out of chunks of bytes. */
#include "schema/base/csv.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#ifndef LAG_CSV_WINDOW /* smaller where its ends are to be met in short inputs */
#define LAG_CSV_WINDOW ((size_t)1 << 16)
#endif
#define AT_END (-1)

enum lag_status lag_csv_init(struct lag_csv *r, lag_csv_fill fill, void *state, char separator)
{
	memset(r, 0, sizeof(*r));
	r->fill = fill;
	r->fill_state = state;
	r->separator = separator;
	r->window = lag_calloc(LAG_CSV_WINDOW, 1);
	return r->window ? LAG_OK : LAG_ERR_SYSTEM;
}

void lag_csv_release(struct lag_csv *r)
{
	free(r->window);
	lag_buf_release(&r->row);
}

/* False on error; at the end r->eof is set. */
static bool refill(struct lag_csv *r, struct lag_err *err)
{
	long n;

	if (r->pos < r->end || r->eof)
		return true;
	r->base += r->end;
	n = r->fill(r->fill_state, r->window, LAG_CSV_WINDOW, err);
	r->pos = 0;
	r->end = n > 0 ? (size_t)n : 0;
	r->eof = n == 0;
	return n >= 0;
}

/* The next byte without taking it; AT_END at the end or after an error. */
static int peek(struct lag_csv *r, struct lag_err *err)
{
	if (!refill(r, err) || r->eof)
		return AT_END;
	return (unsigned char)r->window[r->pos];
}

static void begin_field(struct lag_csv *r)
{
	if (r->n_fields < LAG_CSV_FIELDS_MAX) {
		r->starts[r->n_fields++] = r->row.n;
	} else {
		r->n_cut++;
		r->n_fields = LAG_CSV_FIELDS_MAX + 1;
	}
}

/* Keeps a byte of the field at hand, unless it has enough or the row has. */
static void keep(struct lag_csv *r, char c)
{
	if (r->n_fields > LAG_CSV_FIELDS_MAX)
		return;
	if (r->row.n - r->starts[r->n_fields - 1] >= LAG_CSV_FIELD_MAX) {
		r->n_cut += r->row.n - r->starts[r->n_fields - 1] == LAG_CSV_FIELD_MAX;
		return;
	}
	lag_buf_putc(&r->row, c ? c : ' ');
}

static void end_field(struct lag_csv *r)
{
	if (r->n_fields <= LAG_CSV_FIELDS_MAX)
		lag_buf_add(&r->row, "", 1);
}

/* Inside quotes: up to the closing one. Two quotes are one. */
static void read_quoted(struct lag_csv *r, struct lag_err *err)
{
	int c;

	for (r->pos++; (c = peek(r, err)) != AT_END; r->pos++) {
		if (c == '"') {
			r->pos++;
			if (peek(r, err) != '"')
				return;
		}
		keep(r, (char)c);
	}
	r->unclosed = true;
}

/* One field; the separator or line end behind it is left. */
static void read_field(struct lag_csv *r, struct lag_err *err)
{
	int c;

	begin_field(r);
	if (peek(r, err) == '"')
		read_quoted(r, err);
	while ((c = peek(r, err)) != AT_END && c != r->separator && c != '\n' && c != '\r') {
		keep(r, (char)c);
		r->pos++;
	}
	end_field(r);
}

static void skip_line_end(struct lag_csv *r, struct lag_err *err)
{
	int c = peek(r, err);

	if (c != AT_END)
		r->pos++;
	if (c == '\r' && peek(r, err) == '\n')
		r->pos++;
}

/* Passes a byte order mark at the input's beginning. False on error. */
static bool skip_mark(struct lag_csv *r, struct lag_err *err)
{
	long n = 1;

	while (r->end < 3 && n > 0) {
		n = r->fill(r->fill_state, r->window + r->end, LAG_CSV_WINDOW - r->end, err);
		r->end += n > 0 ? (size_t)n : 0;
	}
	if (r->end - r->pos >= 3 && memcmp(r->window + r->pos, "\xef\xbb\xbf", 3) == 0)
		r->pos += 3;
	return n >= 0;
}

enum lag_status lag_csv_next(struct lag_csv *r, struct lag_err *err)
{
	struct lag_err own = { 0 };
	int c;

	err = err ? err : &own;
	err->status = LAG_OK;
	if (!r->begun && !skip_mark(r, err))
		return err->status;
	r->begun = true;
	while ((c = peek(r, err)) == '\n' || c == '\r')
		r->pos++;
	r->at = r->base + r->pos;
	r->n_fields = 0;
	lag_buf_clear(&r->row);
	while (c != AT_END) {
		read_field(r, err);
		c = peek(r, err);
		if (c != r->separator) {
			skip_line_end(r, err);
			break;
		}
		r->pos++;
		if ((c = peek(r, err)) == AT_END) {
			begin_field(r);
			end_field(r);
		}
	}
	if (lag_failed(err->status))
		return err->status;
	if (r->row.failed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for a row");
	if (!r->n_fields)
		return LAG_END;
	r->n_fields = r->n_fields > LAG_CSV_FIELDS_MAX ? LAG_CSV_FIELDS_MAX : r->n_fields;
	for (size_t i = 0; i < r->n_fields; i++)
		r->field[i] = r->row.text + r->starts[i];
	return LAG_OK;
}
