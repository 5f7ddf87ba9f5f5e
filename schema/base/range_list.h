/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers as people type them: "0,4-7", "12", "3-". */
#ifndef SCHEMA_BASE_RANGE_LIST_H
#define SCHEMA_BASE_RANGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define LAG_RANGE_LIST_MAX 256 /* pieces between commas */

struct lag_range_list {
	struct {
		int64_t from, to; /* inclusive */
	} at[LAG_RANGE_LIST_MAX];

	size_t n; /* 0: everything */
};

/* text NULL or "": everything. LAG_ERR_USAGE names what could not be read. */
enum lag_status lag_range_list_parse(struct lag_range_list *list, const char *text,
				     struct lag_err *err) LAG_MUST_USE;

bool lag_range_list_has(const struct lag_range_list *list, int64_t number);

#endif
