/* SPDX-License-Identifier: Apache-2.0 */
/* Reading databases of other tools. The only statements are walks over real tables, made of a template
 * and the columns that are there; what they may cost is bounded by the size of the file. */
#include "schema/db/foreign.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/buf.h"
#include "schema/base/mem.h"
#include "schema/base/parse.h"
#include "schema/db/db_internal.h"
#include "schema/sql/foreign_columns.sql.h"
#include "schema/sql/foreign_open.sql.h"
#include "schema/sql/foreign_rows.sql.h"
#include "schema/sql/foreign_tables.sql.h"

#define TABLES_MAX 4096
#define NAME_MAX_N 128
#define ROW_LEAST  4 /* bytes of file that a row takes at least */
/* Rows may share the pages of a long value, if somebody so arranges it: reading costs no more than this
 * many times the file. */
#define TEXT_TIMES 16
#define TEXT_FREE  ((uint64_t)1 << 26)

enum walk {
	WALK_ON,
	WALK_BACK,
	WALK_FIND
};

struct table_name {
	char text[NAME_MAX_N];
	bool view;
};

struct lag_foreign {
	struct lag_db *db;
	struct lag_vec tables;  /* struct table_name */
	struct lag_vec refused; /* struct table_name, what is none and has a table's place */
	uint64_t size, text_left;
};

struct lag_foreign_rows {
	struct lag_foreign *f;
	char table[NAME_MAX_N];
	const char *const *columns; /* borrowed */
	size_t n;
	bool have[LAG_FOREIGN_COLUMNS_MAX], key[LAG_FOREIGN_COLUMNS_MAX];
	struct lag_stmt *stmt; /* a walk under way */
	struct lag_stmt *find;
	/* Of the current row, NULL for columns that the table lacks. */
	sqlite3_value *values[LAG_FOREIGN_COLUMNS_MAX];
	enum walk walk;
	int64_t last; /* number of the last row read on the way on */
	uint64_t rows_left;
	bool damaged, done, unfindable;
};

static uint32_t big_endian(const uint8_t *at, size_t n)
{
	uint32_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | at[i];
	return v;
}

bool lag_foreign_probe(const uint8_t *head, size_t n)
{
	static const char magic[16] = "SQLite format 3";

	return n >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

bool lag_foreign_is_ours(const uint8_t *head, size_t n)
{
	static const size_t at = 68; /* of the application's id in the header, big-endian */

	return n >= at + 4 && lag_foreign_probe(head, n) &&
	       big_endian(head + at, 4) == LAG_DB_APPLICATION_ID;
}

/* Only the machine's refusals end an import; all else is the file's. */
static bool is_systems(const struct lag_foreign *f)
{
	int code = sqlite3_errcode(f->db->sqlite) & 0xff;

	return code == SQLITE_NOMEM || code == SQLITE_INTERRUPT;
}

static void harden(sqlite3 *sqlite, bool damaged)
{
	static const struct {
		int limit, value;
	} limits[] = { { SQLITE_LIMIT_LENGTH, LAG_FOREIGN_VALUE_MAX },
		       { SQLITE_LIMIT_SQL_LENGTH, 1 << 18 },
		       { SQLITE_LIMIT_COLUMN, 512 },
		       { SQLITE_LIMIT_EXPR_DEPTH, 100 },
		       { SQLITE_LIMIT_COMPOUND_SELECT, 4 },
		       { SQLITE_LIMIT_VDBE_OP, 20000 },
		       { SQLITE_LIMIT_FUNCTION_ARG, 8 },
		       { SQLITE_LIMIT_ATTACHED, 0 },
		       { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		       { SQLITE_LIMIT_WORKER_THREADS, 0 } };

	static const struct {
		int option, value;
	} options[] = {
		{ SQLITE_DBCONFIG_ENABLE_VIEW, 0 },    { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
		{ SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 }, { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
		{ SQLITE_DBCONFIG_DQS_DML, 0 },        { SQLITE_DBCONFIG_DQS_DDL, 0 }
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		(void)sqlite3_limit(sqlite, limits[i].limit, limits[i].value);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)sqlite3_db_config(sqlite, options[i].option, options[i].value, NULL);
	/* A file shorter than its header says, or with a table that cannot be parsed, opens only when the
	 * schema counts as writable; the connection itself cannot write in any case. */
	(void)sqlite3_db_config(
		sqlite, damaged ? SQLITE_DBCONFIG_WRITABLE_SCHEMA : SQLITE_DBCONFIG_DEFENSIVE, 1,
		NULL);
}

static enum lag_status list_tables(struct lag_foreign *f, struct lag_err *err)
{
	struct lag_stmt *stmt = NULL;
	enum lag_status st;

	f->tables.n = f->refused.n = 0;
	st = lag_db_exec(f->db, lag_sql_foreign_open, err);
	if (st == LAG_OK)
		st = lag_stmt_prepare(f->db, lag_sql_foreign_tables, NULL, &stmt, err);
	while (st == LAG_OK && (st = lag_stmt_step(stmt, err)) == LAG_OK) {
		const char *name = lag_stmt_text(stmt, 0);
		bool real = lag_stmt_int(stmt, 1) == 1;
		struct table_name *slot;

		if (strlen(name) >= sizeof(slot->text))
			continue;
		slot = lag_vec_push(real ? &f->tables : &f->refused);
		if (!slot && real)
			break;
		if (!slot)
			continue;
		memcpy(slot->text, name, strlen(name) + 1);
		slot->view = lag_stmt_int(stmt, 2) == 1;
	}
	lag_stmt_free(stmt);
	return st == LAG_END ? LAG_OK : st;
}

/* Whether the file is shorter than its header says, or ends inside a page: SQLite takes what is missing of
 * a page for zeros, and says nothing. */
static bool is_cut(const char *path, uint64_t size)
{
	uint8_t head[100];
	FILE *file = fopen(path, "rbe");
	uint64_t page, pages;
	bool whole;

	if (!file)
		return false;
	whole = fread(head, 1, sizeof(head), file) == sizeof(head);
	(void)fclose(file);
	if (!whole)
		return true;
	page = big_endian(head + 16, 2);
	page = page == 1 ? 65536 : page;
	/* The number of pages counts only where the last writer knew of it. */
	pages = memcmp(head + 24, head + 92, 4) == 0 ? big_endian(head + 28, 4) : 0;
	return page < 512 || size % page || size / page < pages;
}

enum lag_status lag_foreign_open(const char *path, struct lag_foreign **out, struct lag_err *err)
{
	struct lag_foreign *f = lag_calloc(1, sizeof(*f));
	enum lag_status st = LAG_ERR_INPUT;
	struct stat sb;

	*out = NULL;
	if (!f)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	if (stat(path, &sb) != 0) {
		free(f);
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	}
	f->size = (uint64_t)sb.st_size;
	f->text_left = f->size * TEXT_TIMES + TEXT_FREE;
	f->tables = (struct lag_vec)LAG_VEC_INIT(struct table_name);
	f->refused = (struct lag_vec)LAG_VEC_INIT(struct table_name);
	f->tables.max = f->refused.max = TABLES_MAX;
	for (int damaged = 0; damaged < 2; damaged++) {
		st = lag_db_connect_readonly(path, &f->db, err);
		if (st == LAG_OK) {
			harden(f->db->sqlite, damaged);
			st = list_tables(f, err);
		}
		/* Of a broken schema some tables may be known. */
		if (st == LAG_OK || (damaged && f->tables.n && !is_systems(f))) {
			*out = f;
			return damaged || is_cut(path, f->size) ? LAG_WARN : LAG_OK;
		}
		if (f->db && is_systems(f))
			break;
		lag_db_close(f->db);
		f->db = NULL;
	}
	lag_foreign_close(f);
	return st == LAG_ERR_SYSTEM
		       ? lag_err_set(err, LAG_ERR_INPUT, "%s", err ? err->text : "not readable")
		       : st;
}

void lag_foreign_close(struct lag_foreign *f)
{
	if (!f)
		return;
	lag_vec_release(&f->tables);
	lag_vec_release(&f->refused);
	lag_db_close(f->db);
	free(f);
}

static const struct table_name *find_name(const struct lag_vec *names, const char *table)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct table_name *t = &LAG_VEC_AT(names, struct table_name, i);

		if (strcmp(t->text, table) == 0)
			return t;
	}
	return NULL;
}

bool lag_foreign_has(const struct lag_foreign *f, const char *table)
{
	return find_name(&f->tables, table);
}

const char *lag_foreign_refused(const struct lag_foreign *f, const char *table)
{
	const struct table_name *t = find_name(&f->refused, table);

	if (!t)
		return NULL;
	return t->view ? "a view" : "a virtual table";
}

/* ---- rows ---- */

static void add_columns(struct lag_buf *sql, const struct lag_foreign_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->have[i]) {
			lag_buf_printf(sql, "\"%s\", ", rows->columns[i]);
		} else {
			lag_buf_puts(sql, "NULL, ");
		}
	}
}

/* The statement of that number in the templates, with columns and table put in. */
static void compose(struct lag_buf *sql, const struct lag_foreign_rows *rows, enum walk walk)
{
	static const char columns[] = "/*columns*/", table[] = "/*table*/ sqlite_master";
	const char *at = strstr(lag_sql_foreign_rows, "SELECT"), *end, *mark;

	for (int i = 0; i < (int)walk; i++)
		at = strchr(at, ';') + 1;
	end = strchr(at, ';');
	mark = strstr(at, columns);
	lag_buf_add(sql, at, (size_t)(mark - at));
	add_columns(sql, rows);
	at = mark + sizeof(columns) - 1;
	mark = strstr(at, table);
	lag_buf_add(sql, at, (size_t)(mark - at));
	lag_buf_printf(sql, "\"%s\"", rows->table);
	at = mark + sizeof(table) - 1;
	lag_buf_add(sql, at, (size_t)(end - at));
}

static enum lag_status prepare(struct lag_foreign_rows *rows, enum walk walk,
			       struct lag_stmt **stmt, struct lag_err *err)
{
	struct lag_buf sql = { 0 };
	enum lag_status st = LAG_ERR_SYSTEM;

	compose(&sql, rows, walk);
	if (!sql.failed)
		st = lag_stmt_prepare(rows->f->db, lag_buf_text(&sql), NULL, stmt, err);
	lag_buf_release(&sql);
	if (st == LAG_OK && walk != WALK_FIND)
		st = lag_stmt_bind_int(*stmt, 1, rows->last, err);
	return st;
}

static enum lag_status look_columns_up(struct lag_foreign_rows *rows, struct lag_err *err)
{
	struct lag_stmt *stmt = NULL;
	enum lag_status st =
		lag_stmt_prepare(rows->f->db, lag_sql_foreign_columns, NULL, &stmt, err);

	if (st == LAG_OK)
		st = lag_stmt_bind_text(stmt, 1, rows->table, err);
	while (st == LAG_OK && (st = lag_stmt_step(stmt, err)) == LAG_OK) {
		const char *name = lag_stmt_text(stmt, 0);

		for (size_t i = 0; i < rows->n; i++) {
			if (strcmp(rows->columns[i], name) != 0)
				continue;
			rows->have[i] = true;
			rows->key[i] = lag_stmt_int(stmt, 1) == 1;
		}
	}
	lag_stmt_free(stmt);
	return st == LAG_END ? LAG_OK : st;
}

/* A statement failed: memory ends the import, all else is damage to this table. */
static enum lag_status note_damage(struct lag_foreign_rows *rows, struct lag_err *err)
{
	if (is_systems(rows->f))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to read %s", rows->table);
	rows->damaged = true;
	return LAG_OK;
}

enum lag_status lag_foreign_rows_open(struct lag_foreign *f, const char *table,
				      const char *const *columns, size_t n,
				      struct lag_foreign_rows **out, struct lag_err *err)
{
	struct lag_foreign_rows *rows;
	enum lag_status st;

	*out = NULL;
	if (n > LAG_FOREIGN_COLUMNS_MAX || strlen(table) >= sizeof(rows->table))
		return lag_err_set(err, LAG_ERR_USAGE, "%s: too many columns", table);
	if (!lag_foreign_has(f, table))
		return LAG_END;
	rows = lag_calloc(1, sizeof(*rows));
	if (!rows)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	rows->f = f;
	memcpy(rows->table, table, strlen(table) + 1);
	rows->columns = columns;
	rows->n = n;
	rows->last = -INT64_MAX;
	rows->rows_left = f->size / ROW_LEAST + 1;
	st = look_columns_up(rows, err);
	if (lag_failed(st)) {
		rows->done = true;
		st = note_damage(rows, err);
	}
	if (lag_failed(st)) {
		lag_foreign_rows_close(rows);
		return st;
	}
	*out = rows;
	return LAG_OK;
}

void lag_foreign_rows_close(struct lag_foreign_rows *rows)
{
	if (!rows)
		return;
	lag_stmt_free(rows->stmt);
	lag_stmt_free(rows->find);
	free(rows);
}

bool lag_foreign_rows_have(const struct lag_foreign_rows *rows, size_t column)
{
	return rows->have[column];
}

bool lag_foreign_rows_keyed(const struct lag_foreign_rows *rows, size_t column)
{
	return rows->key[column];
}

bool lag_foreign_rows_damaged(const struct lag_foreign_rows *rows)
{
	return rows->damaged;
}

static void forget(struct lag_foreign_rows *rows)
{
	memset(rows->values, 0, sizeof(rows->values));
}

/* Takes hold of the statement's row. False when the rows so far cost more than any honest file of this
 * size could. */
static bool take(struct lag_foreign_rows *rows, const struct lag_stmt *stmt)
{
	struct lag_foreign *f = rows->f;

	for (size_t i = 0; i < rows->n; i++) {
		sqlite3_value *v;
		uint64_t n;
		int type;

		if (!rows->have[i])
			continue;
		v = rows->values[i] = sqlite3_column_value(stmt->sqlite, (int)i);
		type = sqlite3_value_type(v);
		if (type != SQLITE_TEXT && type != SQLITE_BLOB)
			continue;
		n = (uint64_t)sqlite3_value_bytes(v);
		if (n > f->text_left)
			return false;
		f->text_left -= n;
	}
	return rows->rows_left && rows->rows_left--;
}

/* One statement's next row; LAG_WARN when it breaks off there. */
static enum lag_status step(struct lag_foreign_rows *rows, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (!rows->stmt)
		st = prepare(rows, rows->walk, &rows->stmt, err);
	if (st == LAG_OK)
		st = lag_stmt_step(rows->stmt, err);
	if (st == LAG_OK && take(rows, rows->stmt))
		return LAG_OK;
	if (st == LAG_END)
		return LAG_END;
	if (lag_failed(st)) {
		st = note_damage(rows, err);
		if (lag_failed(st))
			return st;
	}
	rows->damaged = true;
	return LAG_WARN;
}

enum lag_status lag_foreign_rows_next(struct lag_foreign_rows *rows, struct lag_err *err)
{
	while (!rows->done) {
		enum lag_status st = step(rows, err);

		if (st == LAG_OK && rows->walk == WALK_ON)
			rows->last = lag_stmt_int(rows->stmt, (int)rows->n);
		if (st == LAG_OK)
			return LAG_OK;
		if (lag_failed(st))
			return st;
		rows->done = st == LAG_END || rows->walk == WALK_BACK;
		forget(rows);
		lag_stmt_free(rows->stmt);
		rows->stmt = NULL;
		rows->walk = WALK_BACK;
	}
	return LAG_END;
}

enum lag_status lag_foreign_rows_find(struct lag_foreign_rows *rows, int64_t number,
				      struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (!rows->find && !rows->unfindable)
		st = prepare(rows, WALK_FIND, &rows->find, err);
	if (!rows->find) {
		rows->unfindable = true;
		st = lag_failed(st) ? note_damage(rows, err) : st;
		return lag_failed(st) ? st : LAG_END;
	}
	forget(rows);
	lag_stmt_reset(rows->find);
	st = lag_stmt_bind_int(rows->find, 1, number, err);
	if (st == LAG_OK)
		st = lag_stmt_step(rows->find, err);
	if (lag_failed(st)) {
		st = note_damage(rows, err);
		return lag_failed(st) ? st : LAG_END;
	}
	if (st == LAG_OK && !take(rows, rows->find)) {
		rows->damaged = true;
		return LAG_END;
	}
	return st;
}

int64_t lag_foreign_int(const struct lag_foreign_rows *rows, size_t column)
{
	sqlite3_value *value = rows->values[column];
	int64_t v = LAG_NONE;
	double d;

	switch (value ? sqlite3_value_type(value) : SQLITE_NULL) {
	case SQLITE_INTEGER:
		return sqlite3_value_int64(value);
	case SQLITE_FLOAT:
		d = sqlite3_value_double(value);
		return d > -9e18 && d < 9e18 && floor(d) == d ? (int64_t)d : LAG_NONE;
	case SQLITE_TEXT:
		return lag_parse_i64((const char *)sqlite3_value_text(value), &v) ? v : LAG_NONE;
	default:
		return LAG_NONE;
	}
}

const char *lag_foreign_text(const struct lag_foreign_rows *rows, size_t column, size_t *n)
{
	sqlite3_value *value = rows->values[column];
	int type = value ? sqlite3_value_type(value) : SQLITE_NULL;
	const char *text = NULL;

	*n = 0;
	if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
		text = type == SQLITE_TEXT ? (const char *)sqlite3_value_text(value)
					   : (const char *)sqlite3_value_blob(value);
		*n = text ? (size_t)sqlite3_value_bytes(value) : 0;
	}
	return text;
}
