/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of a database. */
#ifndef TESTS_UNIT_DB_CHECK_H
#define TESTS_UNIT_DB_CHECK_H

#include "schema/db/db.h"

/* The test fails with err's text unless st is LAG_OK. */
void dbc_ok(enum lag_status st, const struct lag_err *err);

/* SQLite finds nothing wrong with the file. */
void dbc_sound(struct lag_db *db);

/* The integer that a query gives. */
int64_t dbc_int(struct lag_db *db, const char *sql);

#endif
