/* SPDX-License-Identifier: Apache-2.0 */
/* Asks an analysis of a merged file, for tests whose other half speaks to the database (both have a
 * table). */
#ifndef TESTS_UNIT_REPORTED_H
#define TESTS_UNIT_REPORTED_H

#include <stddef.h>

/* Rows of the analysis whose column is this text as reports print it; NULL: all rows. Anything that goes
 * wrong fails the test. */
size_t reported(const char *path, const char *analysis, const char *column, const char *text);

#endif
