/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, inserting, finishing; prepared inserts. db_pages.c does what SQLite does not. */
#include "schema/db/db_write.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/db/db_internal.h"
#include "schema/db/db_writer.h"
#include "schema/sql/begin.sql.h"
#include "schema/sql/finish.sql.h"
#include "schema/sql/index.sql.h"
#include "schema/sql/insert.sql.h"
#include "schema/sql/schema.sql.h"
#include "schema/sql/views.sql.h"

const uint8_t lag_table_columns[LAG_TABLE_LIMIT] = {
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
		if (sqlite3_bind_parameter_count(w->insert[i]->sqlite) != lag_table_columns[i]) {
			return lag_err_set(err, LAG_ERR_USAGE, "insert %d has the wrong columns",
					   i);
		}
	}
	return LAG_OK;
}

enum lag_status lag_db_writer_begin(struct lag_db_writer *w, struct lag_err *err)
{
	enum lag_status st = prepare_all(w, err);

	return st == LAG_OK ? lag_db_exec(w->db, lag_sql_begin, err) : st;
}

static enum lag_status open_sql(struct lag_db_writer *w, struct lag_err *err)
{
	enum lag_status st = lag_db_create(w->path, &w->db, err);

	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_schema, err);
	return st == LAG_OK ? lag_db_writer_begin(w, err) : st;
}

static struct lag_db_writer *new_writer(const char *path, enum lag_db_writer_kind kind)
{
	struct lag_db_writer *w = lag_calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->kind = kind;
	w->file.fd = -1;
	w->path = strdup(path);
	(void)pthread_mutex_init(&w->lock, NULL);
	lag_row_log_init(&w->log, w->path);
	if (w->path)
		return w;
	lag_db_writer_close(w);
	return NULL;
}

enum lag_status lag_db_writer_open(const char *path, const struct lag_db_writer_opts *opts,
				   struct lag_db_writer **out, struct lag_err *err)
{
	struct lag_db_writer *w = new_writer(path, opts ? opts->writer : LAG_DB_WRITER_PAGES);
	enum lag_status st;

	*out = NULL;
	if (!w)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	if (w->kind == LAG_DB_WRITER_SQL) {
		st = open_sql(w, err);
	} else {
		st = lag_db_pages_open(w, err);
	}
	if (st != LAG_OK) {
		lag_db_writer_close(w);
		return st;
	}
	*out = w;
	return LAG_OK;
}

enum lag_status lag_db_writer_reopen(const char *path, struct lag_db_writer **out,
				     struct lag_err *err)
{
	struct lag_db_writer *w = new_writer(path, LAG_DB_WRITER_SQL);
	enum lag_status st;

	*out = NULL;
	if (!w)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	w->reopened = true;
	st = lag_db_open_rw(path, &w->db, err);
	if (st == LAG_OK && prepare_all(w, err) != LAG_OK) {
		st = lag_err_set(err, LAG_ERR_INPUT, "%s: merged by another laggard: merge again",
				 path);
	}
	if (st == LAG_OK)
		st = lag_db_exec(w->db, lag_sql_begin, err);
	if (st != LAG_OK) {
		lag_db_writer_close(w);
		return st;
	}
	*out = w;
	return LAG_OK;
}

enum lag_status lag_db_writer_prepare(struct lag_db_writer *w, const char *sql, const char **tail,
				      struct lag_stmt **out, struct lag_err *err)
{
	return lag_stmt_prepare(w->db, sql, tail, out, err);
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
	case LAG_V_BLOB:
		return lag_stmt_bind_blob(stmt, param, v->b, v->n, err);
	case LAG_V_TEXT:
		break;
	}
	return lag_stmt_bind_text(stmt, param, v->s ? clean(w, v->s) : NULL, err);
}

static enum lag_status execute(struct lag_stmt *stmt, struct lag_err *err)
{
	enum lag_status st = lag_stmt_step(stmt, err);

	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_db_insert_sql(struct lag_db_writer *w, enum lag_table table,
				  const struct lag_value *values, size_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	(void)pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < n && st == LAG_OK; i++)
		st = bind(w, w->insert[table], (int)i + 1, &values[i], err);
	if (st == LAG_OK)
		st = execute(w->insert[table], err);
	(void)pthread_mutex_unlock(&w->lock);
	return st;
}

enum lag_status lag_db_insert_ints_sql(struct lag_db_writer *w, enum lag_table table,
				       const int64_t *values, size_t n, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	(void)pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < n && st == LAG_OK; i++)
		st = lag_stmt_bind_int(w->insert[table], (int)i + 1, values[i], err);
	if (st == LAG_OK)
		st = execute(w->insert[table], err);
	(void)pthread_mutex_unlock(&w->lock);
	return st;
}

static enum lag_status check_columns(enum lag_table table, size_t n, struct lag_err *err)
{
	if (n == lag_table_columns[table])
		return LAG_OK;
	return lag_err_set(err, LAG_ERR_USAGE, "table %d has %u columns, not %zu", (int)table,
			   lag_table_columns[table], n);
}

enum lag_status lag_db_insert(struct lag_db_writer *w, enum lag_table table,
			      const struct lag_value *values, size_t n, struct lag_err *err)
{
	enum lag_status st = check_columns(table, n, err);
	int64_t ints[LAG_TABLE_COLUMNS_MAX];

	if (st != LAG_OK)
		return st;
	if (w->kind == LAG_DB_WRITER_SQL)
		return lag_db_insert_sql(w, table, values, n, err);
	if (!w->set[table])
		return lag_row_log_add(&w->log, table, values, n, err);
	for (size_t i = 0; i < n; i++) {
		if (values[i].type != LAG_V_INT) {
			return lag_err_set(err, LAG_ERR_USAGE, "table %d holds integers only",
					   (int)table);
		}
		ints[i] = values[i].i;
	}
	return lag_db_pages_insert(w, table, ints, err);
}

enum lag_status lag_db_insert_ints(struct lag_db_writer *w, enum lag_table table,
				   const int64_t *values, size_t n, struct lag_err *err)
{
	enum lag_status st = check_columns(table, n, err);
	struct lag_value row[LAG_TABLE_COLUMNS_MAX];

	if (st != LAG_OK)
		return st;
	if (w->kind == LAG_DB_WRITER_SQL)
		return lag_db_insert_ints_sql(w, table, values, n, err);
	if (w->set[table])
		return lag_db_pages_insert(w, table, values, err);
	for (size_t i = 0; i < n; i++)
		row[i] = LAG_INT(values[i]);
	return lag_row_log_add(&w->log, table, row, n, err);
}

enum lag_status lag_db_writer_finish(struct lag_db_writer *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (w->kind == LAG_DB_WRITER_PAGES) {
		st = lag_db_pages_finish(w, err);
	} else if (!w->reopened) {
		st = lag_db_exec(w->db, lag_sql_index, err);
	}
	if (st == LAG_OK && !w->reopened)
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
	lag_db_pages_close(w);
	lag_row_log_release(&w->log);
	lag_buf_release(&w->text);
	lag_db_close(w->db);
	(void)pthread_mutex_destroy(&w->lock);
	free(w->path);
	free(w);
}
