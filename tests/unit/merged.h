/* SPDX-License-Identifier: Apache-2.0 */
/* Merges a folder of made recordings and asks the result questions in SQL. */
#ifndef TESTS_UNIT_MERGED_H
#define TESTS_UNIT_MERGED_H

#include "merge/merge.h"
#include "schema/db/db.h"

struct merged {
	char db_path[512];
	struct lag_db *db;
	struct lag_merge_receipt receipt;
	struct lag_err err;
};

/* Merges everything in dir with the aligner (NULL = default). The status is lag_merge_run's; db is open
 * unless that failed. */
enum lag_status merge_dir(struct merged *mg, const char *dir, const char *align);

/* First column of the first row; LAG_NONE for NULL. No row, or an error, fails the test. */
int64_t ask(struct merged *mg, const char *sql);

/* Fails the test unless the first row's first column is this text. */
void expect_text(struct merged *mg, const char *sql, const char *text);

void merged_close(struct merged *mg);

#endif
