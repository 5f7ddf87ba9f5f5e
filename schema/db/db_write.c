/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk load by prepared inserts. */
#include "schema/db/db_write.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/buf.h"
#include "schema/base/mem.h"
#include "schema/db/db_internal.h"
#include "schema/sql/begin.sql.h"
#include "schema/sql/finish.sql.h"
#include "schema/sql/index.sql.h"
#include "schema/sql/insert.sql.h"
#include "schema/sql/schema.sql.h"
#include "schema/sql/views.sql.h"

struct lag_db_writer {
	struct lag_db *db;
	struct lag_stmt *insert[LAG_TABLE_LIMIT];
	struct lag_buf text; /* cleaned copy of a value */
};

static const size_t n_columns[LAG_TABLE_LIMIT] = {
#define LAG_TABLE(name, columns) [LAG_TABLE_##name] = (columns),
#include "schema/db/tables.def"
};

_Static_assert(LAG_TABLE_LIMIT < 64, "every table has a statement kept open");

static enum lag_status prepare_all(struct lag_db_writer *w, struct lag_err *err)
{
	const char *sql = lag_sql_insert;

	for (int i = 0; i < LAG_TABLE_LIMIT; i++) {
		enum lag_status st = lag_stmt_prepare(w->db, sql, &sql, &w->insert[i], err);

		if (st == LAG_END)
			return lag_err_set(err, LAG_ERR_USAGE, "table %d has no insert", i);
		if (st != LAG_OK)
			return st;
		if ((size_t)sqlite3_bind_parameter_count(w->insert[i]->sqlite) != n_columns[i]) {
			return lag_err_set(err, LAG_ERR_USAGE, "insert %d has the wrong columns",
					   i);
		}
	}
	return LAG_OK;
}

enum lag_status lag_db_writer_open(const char *path, struct lag_db_writer **out,
				   struct lag_err *err)
{
	struct lag_db_writer *w = lag_calloc(1, sizeof(*w));
	enum lag_status st;

	*out = NULL;
	if (!w)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	st = lag_db_create(path, &w->db, err);
	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_schema, err);
	if (st == LAG_OK)
		st = prepare_all(w, err);
	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_begin, err);
	if (st != LAG_OK) {
		lag_db_writer_close(w);
		return st;
	}
	*out = w;
	return LAG_OK;
}

/* Length of the well-formed UTF-8 character at p, 0 when there is none. */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] < 0x80                   ? 1
		   : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		   : (p[0] & 0xf0) == 0xe0       ? 3
						 : 4;

	if (n == 4 && (p[0] < 0xf0 || p[0] > 0xf4))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* Readers may rely on text being UTF-8. */
static const char *clean(struct lag_db_writer *w, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = 1;

	while (*p && (n = utf8_length(p)) > 0)
		p += n;
	if (n)
		return text;
	lag_buf_clear(&w->text);
	for (p = (const unsigned char *)text; *p; p += n ? n : 1) {
		n = utf8_length(p);
		lag_buf_add(&w->text, n ? (const char *)p : "\xef\xbf\xbd", n ? n : 3);
	}
	return lag_buf_text(&w->text);
}

static enum lag_status bind(struct lag_db_writer *w, struct lag_stmt *stmt, int param,
			    const struct lag_value *v, struct lag_err *err)
{
	switch (v->type) {
	case LAG_V_INT:
		return lag_stmt_bind_int(stmt, param, v->i, err);
	case LAG_V_REAL:
		return lag_stmt_bind_real(stmt, param, v->r, err);
	case LAG_V_TEXT:
		break;
	}
	return lag_stmt_bind_text(stmt, param, v->s ? clean(w, v->s) : NULL, err);
}

static enum lag_status run(struct lag_stmt *stmt, struct lag_err *err)
{
	enum lag_status st = lag_stmt_step(stmt, err);

	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_db_insert(struct lag_db_writer *w, enum lag_table table,
			      const struct lag_value *values, size_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (n != n_columns[table]) {
		return lag_err_set(err, LAG_ERR_USAGE, "table %d has %zu columns, not %zu",
				   (int)table, n_columns[table], n);
	}
	for (size_t i = 0; i < n && st == LAG_OK; i++)
		st = bind(w, w->insert[table], (int)i + 1, &values[i], err);
	return st == LAG_OK ? run(w->insert[table], err) : st;
}

enum lag_status lag_db_insert_ints(struct lag_db_writer *w, enum lag_table table,
				   const int64_t *values, size_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (n != n_columns[table]) {
		return lag_err_set(err, LAG_ERR_USAGE, "table %d has %zu columns, not %zu",
				   (int)table, n_columns[table], n);
	}
	for (size_t i = 0; i < n && st == LAG_OK; i++)
		st = lag_stmt_bind_int(w->insert[table], (int)i + 1, values[i], err);
	return st == LAG_OK ? run(w->insert[table], err) : st;
}

enum lag_status lag_db_writer_finish(struct lag_db_writer *w, struct lag_err *err)
{
	enum lag_status st = lag_db_exec(w->db, lag_sql_index, err);

	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_views, err);
	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_finish, err);
	return st;
}

void lag_db_writer_close(struct lag_db_writer *w)
{
	if (!w)
		return;
	for (int i = 0; i < LAG_TABLE_LIMIT; i++)
		lag_stmt_free(w->insert[i]);
	lag_buf_release(&w->text);
	lag_db_close(w->db);
	free(w);
}
