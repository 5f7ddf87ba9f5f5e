/* SPDX-License-Identifier: Apache-2.0 */
/* See merged.h. */
#include "tests/unit/unit.h"

#include "tests/unit/merged.h"

#include <stdio.h>
#include <string.h>

enum lag_status merge_dir(struct merged *mg, const char *dir, const char *align)
{
	struct lag_merge_opts opts = {
		.inputs = &dir, .n_inputs = 1, .output = mg->db_path, .force = true, .align = align
	};
	enum lag_status st;

	memset(mg, 0, sizeof(*mg));
	(void)snprintf(mg->db_path, sizeof(mg->db_path), "%s/out.db", dir);
	st = lag_merge_run(&opts, &mg->receipt, &mg->err);
	if (!lag_failed(st) && lag_failed(lag_db_open(mg->db_path, &mg->db, &mg->err)))
		fail_msg("%s", mg->err.text);
	return st;
}

static struct lag_stmt *first_row(struct merged *mg, const char *sql)
{
	struct lag_stmt *stmt = NULL;
	struct lag_err err = { 0 };

	if (lag_stmt_prepare(mg->db, sql, NULL, &stmt, &err) != LAG_OK ||
	    lag_stmt_step(stmt, &err) != LAG_OK)
		fail_msg("no row: %s %s", sql, err.text);
	return stmt;
}

int64_t ask(struct merged *mg, const char *sql)
{
	struct lag_stmt *stmt = first_row(mg, sql);
	int64_t value = lag_stmt_int(stmt, 0);

	lag_stmt_free(stmt);
	return value;
}

void expect_text(struct merged *mg, const char *sql, const char *text)
{
	struct lag_stmt *stmt = first_row(mg, sql);

	assert_string_equal(lag_stmt_text(stmt, 0), text);
	lag_stmt_free(stmt);
}

void merged_close(struct merged *mg)
{
	lag_db_close(mg->db);
	mg->db = NULL;
}
