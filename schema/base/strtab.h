/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings: equal bytes get equal ids, ids count up from 0, and id 0 is always "". */
#ifndef SCHEMA_BASE_STRTAB_H
#define SCHEMA_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/map.h"
#include "schema/base/mem.h"

struct lag_strtab {
	struct lag_vec entries; /* struct lag_strtab_entry */
	struct lag_map by_hash; /* hash -> 1 + last id with it */
};

struct lag_strtab_entry {
	char *text; /* NUL-terminated, owned; may hold NULs inside, n says how long it is */
	size_t n;
	uint64_t next_same_hash; /* 1 + id, 0 = none */
};

#define LAG_STR_NONE ((uint32_t)-1)

enum lag_status lag_strtab_init(struct lag_strtab *tab) LAG_MUST_USE;
void lag_strtab_release(struct lag_strtab *tab);

/* Id of the n bytes at text; LAG_STR_NONE when memory is exhausted. Bytes are copied. */
uint32_t lag_strtab_add(struct lag_strtab *tab, const char *text, size_t n);

/* The text of an id; "" for an unknown id. Borrowed until release. */
const char *lag_strtab_get(const struct lag_strtab *tab, uint32_t id);

static inline size_t lag_strtab_count(const struct lag_strtab *tab)
{
	return tab->entries.n;
}

#endif
