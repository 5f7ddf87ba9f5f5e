/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations and lists as people type them. All return false on anything else,
 * trailing text included. */
#ifndef SCHEMA_BASE_PARSE_H
#define SCHEMA_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool lag_parse_i64(const char *text, int64_t *value);

/* 4096, 64K, 4G, 1.5GiB: powers of 1024. */
bool lag_parse_size(const char *text, int64_t *bytes);

/* 10s, 3ms, 1.5s, 250us, 7ns, 2m, 1h; a bare number is seconds. */
bool lag_parse_duration(const char *text, int64_t *ns);

/* Is `value` in "0,4-7,12-,every:8"? Open ends and every:N are allowed. */
bool lag_list_has(const char *list, int64_t value);

/* Is it such a list? */
bool lag_list_valid(const char *list);

#endif
