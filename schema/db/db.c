/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and making database files. */
#include "schema/db/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/buf.h"
#include "schema/base/mem.h"
#include "schema/db/db_internal.h"
#include "schema/sql/change.sql.h"
#include "schema/sql/create.sql.h"
#include "schema/sql/identity.sql.h"

enum lag_status lag_db_fail(sqlite3 *sqlite, const char *what, struct lag_err *err)
{
	int code = sqlite3_errcode(sqlite) & 0xff;
	bool input = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT;
	bool refused = code == SQLITE_IOERR || code == SQLITE_FULL || code == SQLITE_CANTOPEN;
	int number = refused ? sqlite3_system_errno(sqlite) : 0;

	if (refused && !number)
		(void)sqlite3_file_control(sqlite, NULL, SQLITE_FCNTL_LAST_ERRNO, &number);
	/* What the system said is more than "disk I/O error". */
	return lag_err_set(err, input ? LAG_ERR_INPUT : LAG_ERR_SYSTEM, "%s: %s%s", what,
			   number ? strerror(number) : sqlite3_errmsg(sqlite),
			   code == SQLITE_CORRUPT
				   ? ": the file is damaged; make it again from what it was made of"
				   : "");
}

/* A connection is never shared between threads, so its mutexes are pure cost; both settings can only
 * be made before SQLite's first use in the process, and later attempts are refused harmlessly. */
static void configure(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static enum lag_status connect(const char *name, int flags, struct lag_db **out,
			       struct lag_err *err)
{
	struct lag_db *db = lag_calloc(1, sizeof(*db));
	enum lag_status st;

	*out = NULL;
	if (!db)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	configure();
	if (sqlite3_open_v2(name, &db->sqlite, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		st = db->sqlite ? lag_db_fail(db->sqlite, "cannot open", err)
				: lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
		lag_db_close(db);
		return st;
	}
	*out = db;
	return LAG_OK;
}

void lag_db_close(struct lag_db *db)
{
	if (!db)
		return;
	(void)sqlite3_close_v2(db->sqlite);
	free(db);
}

enum lag_status lag_db_exec(struct lag_db *db, const char *sql, struct lag_err *err)
{
	if (sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		return lag_db_fail(db->sqlite, "database", err);
	return LAG_OK;
}

/* A "file:" URI of path, in which '?', '#', '%' and control bytes stand for themselves. */
static void uri_of(struct lag_buf *uri, const char *path)
{
	lag_buf_puts(uri, "file:");
	/* Two leading slashes would be read as a host name. */
	if (path[0] == '/' && path[1] == '/')
		lag_buf_puts(uri, "//");
	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		if (*p < ' ' || strchr("?#%", *p)) {
			lag_buf_printf(uri, "%%%02x", *p);
		} else {
			lag_buf_putc(uri, (char)*p);
		}
	}
	lag_buf_puts(uri, "?immutable=1");
}

/* zstd, gzip, zip, 7z, xz: what archives come in. */
static bool is_packed(const unsigned char head[16])
{
	static const char *const magics[] = { "\x28\xb5\x2f\xfd", "\x1f\x8b\x08", "PK\x03\x04",
					      "7z\xbc\xaf", "\xfd\x37zXZ" };

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		if (memcmp(head, magics[i], strlen(magics[i])) == 0)
			return true;
	}
	return false;
}

/* What is most often given in place of a merged trace: the recordings themselves. SQLite's own words
 * for these would not say what to do. */
static enum lag_status check_is_sqlite(const char *path, struct lag_err *err)
{
	static const char magic[16] = "SQLite format 3";
	char head[sizeof(magic)] = "";
	struct stat info;
	FILE *file;
	size_t n;

	if (stat(path, &info) != 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	if (S_ISDIR(info.st_mode)) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "%s is a directory: `laggard merge` makes the trace of a run's "
				   "recordings",
				   path);
	}
	/* Opening a pipe would wait for somebody to write into it. */
	if (!S_ISREG(info.st_mode))
		return lag_err_set(err, LAG_ERR_INPUT, "%s is no regular file", path);
	file = fopen(path, "rbe");
	if (!file)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	n = fread(head, 1, sizeof(head), file);
	(void)fclose(file);
	if (n < sizeof(head) && n == (size_t)info.st_size) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s is %s: `laggard merge` makes a trace",
				   path, n ? "no merged trace" : "empty");
	}
	if (is_packed((const unsigned char *)head)) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "%s is packed: `laggard unpack` gives the merged trace in it, "
				   "`laggard merge` makes one of recordings in it",
				   path);
	}
	if (n < sizeof(head) || memcmp(head, magic, sizeof(magic)) != 0) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "%s is not a merged trace: `laggard merge` makes one", path);
	}
	return LAG_OK;
}

/* Views are for people and change nothing that is read here; in a file that somebody has prepared, one
 * in a table's place could run for ever. */
static void trust_tables_only(sqlite3 *sqlite)
{
	(void)sqlite3_db_config(sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_db_config(sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
}

static enum lag_status check_identity(struct lag_db *db, struct lag_err *err)
{
	struct lag_stmt *stmt = NULL;
	enum lag_status st = lag_stmt_prepare(db, lag_sql_identity, NULL, &stmt, err);

	if (st == LAG_OK)
		st = lag_stmt_step(stmt, err);
	if (st == LAG_OK && lag_stmt_int(stmt, 0) != LAG_DB_APPLICATION_ID)
		st = lag_err_set(err, LAG_ERR_INPUT, "not a trace merged by laggard");
	if (st == LAG_OK && lag_stmt_int(stmt, 1) > LAG_DB_VERSION) {
		st = lag_err_set(err, LAG_ERR_INPUT,
				 "made by a newer laggard (schema version %lld; this one reads "
				 "%d): use that one",
				 (long long)lag_stmt_int(stmt, 1), LAG_DB_VERSION);
	} else if (st == LAG_OK && lag_stmt_int(stmt, 1) != LAG_DB_VERSION) {
		st = lag_err_set(err, LAG_ERR_INPUT,
				 "schema version %lld, this laggard reads version %d: merge again",
				 (long long)lag_stmt_int(stmt, 1), LAG_DB_VERSION);
	}
	lag_stmt_free(stmt);
	return st;
}

enum lag_status lag_db_connect_readonly(const char *path, struct lag_db **out, struct lag_err *err)
{
	struct lag_buf uri = { 0 };
	enum lag_status st;

	*out = NULL;
	uri_of(&uri, path);
	st = uri.failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory")
			: connect(lag_buf_text(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, out,
				  err);
	lag_buf_release(&uri);
	return st;
}

/* What a connection to a file that came from anywhere goes through, or ends with. */
static enum lag_status admit(const char *path, struct lag_db **out, enum lag_status st,
			     struct lag_err *err)
{
	if (st == LAG_OK && *out)
		trust_tables_only((*out)->sqlite);
	if (st == LAG_OK)
		st = check_identity(*out, err);
	if (st == LAG_OK)
		return LAG_OK;
	lag_db_close(*out);
	*out = NULL;
	return lag_err_wrap(err, "%s", path);
}

enum lag_status lag_db_open(const char *path, struct lag_db **out, struct lag_err *err)
{
	enum lag_status st;

	*out = NULL;
	st = check_is_sqlite(path, err);
	if (lag_failed(st))
		return st;
	return admit(path, out, lag_db_connect_readonly(path, out, err), err);
}

enum lag_status lag_db_open_rw(const char *path, struct lag_db **out, struct lag_err *err)
{
	enum lag_status st;

	*out = NULL;
	st = check_is_sqlite(path, err);
	if (lag_failed(st))
		return st;
	st = connect(path, SQLITE_OPEN_READWRITE, out, err);
	if (st == LAG_OK && *out)
		st = lag_db_exec(*out, lag_sql_change, err);
	return admit(path, out, st, err);
}

enum lag_status lag_db_create(const char *path, struct lag_db **out, struct lag_err *err)
{
	enum lag_status st;

	st = connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, out, err);
	if (*out)
		st = lag_db_exec(*out, lag_sql_create, err);
	if (st == LAG_OK)
		return LAG_OK;
	lag_db_close(*out);
	*out = NULL;
	return lag_err_wrap(err, "%s", path);
}
