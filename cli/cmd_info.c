/* SPDX-License-Identifier: Apache-2.0 */
/* laggard info FILE...: what is in a trace, and what is wrong with it. Recordings are merged into a
 * temporary file first, so that both are described in the same words. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "merge/merge.h"
#include "schema/base/fmt.h"
#include "schema/base/json_write.h"
#include "schema/base/mem.h"
#include "schema/base/outfile.h"
#include "schema/db/db.h"
#include "schema/sql/info.sql.h"

#define TEXT_ROWS_MAX  64 /* of a section; JSON has them all */
#define CELL_WIDTH_MAX 60
#define COLUMNS_MAX    16

/* Sections of schema/sql/info.sql. */
static const char *const sections[] = { "trace",         "events", "detail",   "ranks",
					"communicators", "clock",  "versions", "files",
					"receipts",      "losses", "gaps",     "quarantine",
					"findings" };

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static bool ends_with(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);

	return n > m && strcmp(name + n - m, ending) == 0;
}

static void format_cell(const struct lag_stmt *stmt, int column, struct lag_buf *out)
{
	const char *name = lag_stmt_column_name(stmt, column);

	if (lag_stmt_is_null(stmt, column)) {
		lag_buf_putc(out, '-');
	} else if (lag_stmt_is_int(stmt, column) && ends_with(name, "_ns")) {
		lag_fmt_ns(out, lag_stmt_int(stmt, column));
	} else if (lag_stmt_is_real(stmt, column)) {
		lag_buf_printf(out, "%.3f", lag_stmt_real(stmt, column));
	} else {
		const char *text = lag_stmt_text(stmt, column);

		lag_fmt_name(out, text && *text ? text : "-");
	}
}

/* "recorded_ns" is a header "recorded". */
static void format_header(const struct lag_stmt *stmt, int column, struct lag_buf *out)
{
	const char *name = lag_stmt_column_name(stmt, column);
	size_t n = strlen(name) - (ends_with(name, "_ns") ? 3 : 0);

	for (size_t i = 0; i < n; i++)
		lag_buf_putc(out, (char)(name[i] == '_' ? ' ' : name[i]));
}

struct grid {
	struct lag_vec cells; /* struct lag_buf, row after row, headers first */
	size_t n_columns, n_rows, width[COLUMNS_MAX];
	bool right[COLUMNS_MAX];
};

static struct lag_buf *new_cell(struct grid *g)
{
	return lag_vec_push(&g->cells);
}

static void measure(struct grid *g, size_t column, const struct lag_buf *cell)
{
	size_t width = lag_fmt_width(lag_buf_text(cell));

	if (column + 1 < g->n_columns && width > CELL_WIDTH_MAX)
		width = CELL_WIDTH_MAX;
	if (width > g->width[column])
		g->width[column] = width;
}

static bool add_row(struct grid *g, const struct lag_stmt *stmt, bool header)
{
	for (size_t c = 0; c < g->n_columns; c++) {
		struct lag_buf *cell = new_cell(g);

		if (!cell)
			return false;
		if (header) {
			format_header(stmt, (int)c, cell);
		} else {
			format_cell(stmt, (int)c, cell);
		}
		measure(g, c, cell);
		if (!header) {
			g->right[c] = lag_stmt_is_int(stmt, (int)c) ||
				      lag_stmt_is_real(stmt, (int)c) ||
				      (g->right[c] && lag_stmt_is_null(stmt, (int)c));
		}
	}
	g->n_rows++;
	return true;
}

static void pad(struct lag_buf *out, size_t n)
{
	while (n--)
		lag_buf_putc(out, ' ');
}

static void print_cell(const struct grid *g, size_t row, size_t column, struct lag_buf *out)
{
	const char *text =
		lag_buf_text(&LAG_VEC_AT(&g->cells, struct lag_buf, row * g->n_columns + column));
	bool last = column + 1 == g->n_columns;
	size_t width = lag_fmt_width(text);
	bool cut = !last && width > g->width[column];
	size_t n = cut ? lag_fmt_prefix(text, g->width[column] - 2) : strlen(text);
	size_t space = width < g->width[column] ? g->width[column] - width : 0;

	lag_buf_puts(out, "  ");
	if (g->right[column])
		pad(out, space);
	lag_buf_add(out, text, n);
	if (cut)
		lag_buf_puts(out, "..");
	if (!g->right[column] && !last)
		pad(out, space);
}

static void release_grid(struct grid *g)
{
	for (size_t i = 0; i < g->cells.n; i++)
		lag_buf_release(&LAG_VEC_AT(&g->cells, struct lag_buf, i));
	lag_vec_release(&g->cells);
}

static void print_grid(const struct grid *g, const char *title, size_t more, struct lag_buf *out)
{
	lag_buf_printf(out, "\n%s\n", title);
	for (size_t r = 0; r < g->n_rows; r++) {
		for (size_t c = 0; c < g->n_columns; c++)
			print_cell(g, r, c, out);
		lag_buf_putc(out, '\n');
	}
	if (more)
		lag_buf_printf(out, "  ... and %zu more (--format json has all)\n", more);
}

static enum lag_status text_table(struct lag_stmt *stmt, const char *title, struct lag_buf *out,
				  struct lag_err *err)
{
	struct grid g = { .cells = LAG_VEC_INIT(struct lag_buf),
			  .n_columns = (size_t)lag_stmt_columns(stmt) };
	enum lag_status st;
	size_t more = 0;

	if (!add_row(&g, stmt, true)) {
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	} else {
		st = LAG_OK;
	}
	while (st == LAG_OK && (st = lag_stmt_step(stmt, err)) == LAG_OK) {
		if (g.n_rows > TEXT_ROWS_MAX) {
			more++;
		} else if (!add_row(&g, stmt, false)) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
		}
	}
	if (st == LAG_END && g.n_rows > 1)
		print_grid(&g, title, more, out);
	release_grid(&g);
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status text_facts(struct lag_stmt *stmt, struct lag_buf *out, struct lag_err *err)
{
	enum lag_status st = lag_stmt_step(stmt, err);

	for (int c = 0; st == LAG_OK && c < lag_stmt_columns(stmt); c++) {
		struct lag_buf name = { 0 };

		format_header(stmt, c, &name);
		lag_buf_printf(out, "  %-20s  ", lag_buf_text(&name));
		format_cell(stmt, c, out);
		lag_buf_putc(out, '\n');
		lag_buf_release(&name);
	}
	return st;
}

static void json_row(const struct lag_stmt *stmt, struct lag_json *json)
{
	lag_json_begin(json, '{');
	for (int c = 0; c < lag_stmt_columns(stmt); c++) {
		lag_json_key(json, lag_stmt_column_name(stmt, c));
		if (lag_stmt_is_null(stmt, c)) {
			lag_json_null(json);
		} else if (lag_stmt_is_int(stmt, c)) {
			lag_json_int(json, lag_stmt_int(stmt, c));
		} else if (lag_stmt_is_real(stmt, c)) {
			lag_json_real(json, lag_stmt_real(stmt, c));
		} else {
			lag_json_text(json, lag_stmt_text(stmt, c));
		}
	}
	lag_json_end(json, '}');
}

static enum lag_status json_section(struct lag_stmt *stmt, const char *name, bool single,
				    struct lag_json *json, struct lag_err *err)
{
	enum lag_status st;

	lag_json_key(json, name);
	if (!single)
		lag_json_begin(json, '[');
	while ((st = lag_stmt_step(stmt, err)) == LAG_OK)
		json_row(stmt, json);
	if (!single)
		lag_json_end(json, ']');
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status describe(struct lag_db *db, const char *name, bool as_json,
				struct lag_buf *out, struct lag_err *err)
{
	struct lag_json json = { .out = out, .spaced = true };
	const char *sql = lag_sql_info;
	enum lag_status st = LAG_OK;

	if (as_json) {
		lag_json_begin(&json, '{');
		lag_json_key(&json, "schema_version");
		lag_json_int(&json, 1);
		lag_json_key(&json, "file");
		lag_json_text(&json, name);
	} else {
		lag_fmt_name(out, name);
		lag_buf_putc(out, '\n');
	}
	for (size_t i = 0; i < N_SECTIONS && st == LAG_OK; i++) {
		struct lag_stmt *stmt = NULL;

		st = lag_stmt_prepare(db, sql, &sql, &stmt, err);
		if (st == LAG_OK && as_json) {
			st = json_section(stmt, sections[i], i == 0, &json, err);
		} else if (st == LAG_OK && i == 0) {
			st = text_facts(stmt, out, err);
		} else if (st == LAG_OK) {
			st = text_table(stmt, sections[i], out, err);
		}
		lag_stmt_free(stmt);
	}
	if (as_json) {
		lag_json_end(&json, '}');
		lag_buf_putc(out, '\n');
	}
	return st == LAG_OK && out->failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory") : st;
}

static bool is_database(const char *path)
{
	char head[16] = "";
	struct stat sb;
	FILE *file;
	bool yes;

	/* Opening a pipe would wait for somebody to write into it. */
	if (stat(path, &sb) != 0 || !S_ISREG(sb.st_mode))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	yes = fread(head, 1, sizeof(head), file) == sizeof(head) &&
	      memcmp(head, "SQLite format 3", sizeof(head)) == 0;
	(void)fclose(file);
	return yes;
}

/* A trace of the recordings in a temporary file, scratch->partial. */
static enum lag_status merge_for_info(const struct lag_args *args, struct lag_outfile *scratch,
				      struct lag_err *err)
{
	struct lag_merge_opts opts = { .inputs = (const char *const *)args->operands,
				       .n_inputs = (size_t)args->n_operands,
				       .scratch = scratch,
				       .keep_empty = true };
	struct lag_merge_receipt receipt;
	char path[4096];
	enum lag_status st;

	(void)snprintf(path, sizeof(path), "%s/laggard-info", lag_outfile_tmp());
	st = lag_outfile_make(scratch, path, err);
	if (st != LAG_OK)
		return st;
	lag_say_cleared("info", scratch->n_cleared, path);
	return lag_merge_run(&opts, &receipt, err);
}

static int run(const struct lag_args *args)
{
	const char *format = lag_args_get(args, "format"), *name = args->operands[0];
	bool merged = args->n_operands == 1 && is_database(name);
	bool as_json = format && strcmp(format, "json") == 0;
	struct lag_buf out = { 0 }, shown = { 0 };
	struct lag_db *db = NULL;
	struct lag_err err = { 0 };
	struct lag_outfile scratch = { .fd = -1, .lock = -1 };
	enum lag_status st = LAG_OK;

	lag_ending_begin("info");
	if (!merged)
		st = merge_for_info(args, &scratch, &err);
	if (!lag_failed(st))
		st = lag_db_open(merged ? name : scratch.partial, &db, &err);
	if (!lag_failed(st))
		st = describe(db, name, as_json, &out, &err);
	lag_db_close(db);
	if (lag_failed(lag_outfile_close(&scratch, false, NULL)) && !lag_failed(st))
		st = lag_err_set(&err, LAG_ERR_SYSTEM, "cannot close a temporary file");
	if (!lag_failed(st)) {
		lag_fmt_units(&shown, lag_buf_text(&out), !as_json && lag_cmd_utf8());
		(void)fwrite(lag_buf_text(&shown), 1, shown.n, stdout);
	}
	lag_buf_release(&shown);
	lag_buf_release(&out);
	return lag_failed(st) ? lag_cmd_fail("info", &err) : LAG_EXIT_OK;
}

static const struct lag_opt options[] = {
	{ 'F', "format", "FORMAT", "how to print (default: text)", "text json" },
};

const struct lag_cmd lag_cmd_info = {
	.name = "info",
	.summary = "Say what is in a trace or recording, and what is wrong with it",
	.operands = "FILE...",
	.details = "FILE is a merged trace, or anything that merge takes.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
