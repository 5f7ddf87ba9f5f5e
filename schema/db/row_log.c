/* SPDX-License-Identifier: Apache-2.0 */
/* A row is a head, its values, and its texts (with their NUL) and blobs one behind the other. */
#include "schema/db/row_log.h"

#include <stdlib.h>
#include <string.h>

#define ROOM   ((size_t)4 << 20) /* bytes in memory */
#define WINDOW ((size_t)1 << 18)

struct head {
	uint64_t text_bytes; /* of blobs, too */
	uint32_t table, n;
};

typedef enum lag_status (*each_fn)(void *state, enum lag_table table,
				   const struct lag_value *values, size_t n, struct lag_err *err);

void lag_row_log_init(struct lag_row_log *log, const char *path)
{
	*log = (struct lag_row_log){ .path = path, .file = { .fd = -1 } };
}

void lag_row_log_release(struct lag_row_log *log)
{
	lag_buf_release(&log->rows);
	lag_temp_file_close(&log->file);
}

/* Bytes that a value points to. */
static size_t pointed(const struct lag_value *value)
{
	if (value->type == LAG_V_BLOB)
		return value->n;
	return value->type == LAG_V_TEXT && value->s ? strlen(value->s) + 1 : 0;
}

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for rows of the trace");
}

enum lag_status lag_row_log_add(struct lag_row_log *log, enum lag_table table,
				const struct lag_value *values, size_t n, struct lag_err *err)
{
	struct head head = { .table = table, .n = (uint32_t)n };
	enum lag_status st;

	for (size_t i = 0; i < n; i++)
		head.text_bytes += pointed(&values[i]);
	lag_buf_add(&log->rows, (const char *)&head, sizeof(head));
	lag_buf_add(&log->rows, (const char *)values, n * sizeof(*values));
	for (size_t i = 0; i < n; i++) {
		size_t bytes = pointed(&values[i]);

		if (bytes)
			lag_buf_add(&log->rows, values[i].s, bytes);
	}
	if (log->rows.failed)
		return no_memory(err);
	if (log->rows.n < ROOM)
		return LAG_OK;
	st = lag_temp_file_add(&log->file, log->path, log->rows.text, log->rows.n, err);
	lag_buf_clear(&log->rows);
	return st;
}

/* Pointers of a row that was copied away point to its own texts again. */
static void point_to(struct lag_value *values, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		if (values[i].type == LAG_V_BLOB) {
			values[i].b = text;
			text += values[i].n;
		} else if (values[i].type == LAG_V_TEXT && values[i].s) {
			values[i].s = text;
			text += strlen(text) + 1;
		}
	}
}

/* Where rows are read from: the file first, through a window, then memory. */
struct reader {
	struct lag_row_log *log;
	uint64_t file_at;
	char *window;
	size_t n_window, window_at;
	size_t memory_at;
	char *text; /* of the current row */
	size_t text_room;
};

static uint64_t in_file(const struct reader *r)
{
	return r->log->file.fd < 0 ? 0 : r->log->file.size;
}

static enum lag_status fill_window(struct reader *r, struct lag_err *err)
{
	uint64_t left = in_file(r) - r->file_at;
	enum lag_status st;

	if (!r->window)
		r->window = malloc(WINDOW);
	if (!r->window)
		return no_memory(err);
	r->n_window = left < WINDOW ? (size_t)left : WINDOW;
	r->window_at = 0;
	st = lag_temp_file_read(&r->log->file, r->file_at, r->window, r->n_window, err);
	r->file_at += r->n_window;
	return st;
}

static enum lag_status read_bytes(struct reader *r, void *to, size_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	char *at = to;

	while (n && st == LAG_OK) {
		size_t some = r->n_window - r->window_at;

		if (!some && r->file_at == in_file(r))
			break;
		if (!some) {
			st = fill_window(r, err);
			continue;
		}
		some = some < n ? some : n;
		memcpy(at, r->window + r->window_at, some);
		r->window_at += some;
		at += some;
		n -= some;
	}
	if (n && st == LAG_OK)
		memcpy(at, r->log->rows.text + r->memory_at, n);
	r->memory_at += n;
	return st;
}

static bool at_end(const struct reader *r)
{
	return r->file_at >= in_file(r) && r->window_at >= r->n_window &&
	       r->memory_at >= r->log->rows.n;
}

static enum lag_status read_row(struct reader *r, struct head *head, struct lag_value *values,
				struct lag_err *err)
{
	enum lag_status st = read_bytes(r, head, sizeof(*head), err);

	if (st == LAG_OK)
		st = read_bytes(r, values, head->n * sizeof(*values), err);
	if (st != LAG_OK || !head->text_bytes)
		return st;
	if (head->text_bytes > r->text_room) {
		free(r->text);
		r->text_room = 0;
		r->text = malloc(head->text_bytes);
		if (!r->text)
			return no_memory(err);
		r->text_room = head->text_bytes;
	}
	st = read_bytes(r, r->text, head->text_bytes, err);
	if (st == LAG_OK)
		point_to(values, head->n, r->text);
	return st;
}

enum lag_status lag_row_log_each(struct lag_row_log *log, each_fn each, void *state,
				 struct lag_err *err)
{
	struct lag_value values[LAG_TABLE_COLUMNS_MAX] = { 0 };
	struct reader reader = { .log = log };
	enum lag_status st = LAG_OK;
	struct head head;

	while (st == LAG_OK && !at_end(&reader)) {
		st = read_row(&reader, &head, values, err);
		if (st == LAG_OK)
			st = each(state, (enum lag_table)head.table, values, head.n, err);
	}
	free(reader.text);
	free(reader.window);
	return st;
}
