/* SPDX-License-Identifier: Apache-2.0 */
/* One map from hash to an entry, entries of one hash chained: collisions are compared, not trusted. */
#include "schema/base/strtab.h"

#include <stdlib.h>
#include <string.h>

enum lag_status lag_strtab_init(struct lag_strtab *tab)
{
	*tab = (struct lag_strtab){ .entries = LAG_VEC_INIT(struct lag_strtab_entry) };
	tab->entries.max = LAG_STR_NONE;
	return lag_strtab_add(tab, "", 0) == 0 ? LAG_OK : LAG_ERR_SYSTEM;
}

void lag_strtab_release(struct lag_strtab *tab)
{
	for (size_t i = 0; i < tab->entries.n; i++)
		free(LAG_VEC_AT(&tab->entries, struct lag_strtab_entry, i).text);
	lag_vec_release(&tab->entries);
	lag_map_release(&tab->by_hash);
}

static uint32_t append(struct lag_strtab *tab, const char *text, size_t n, uint64_t chain)
{
	struct lag_strtab_entry *e = lag_vec_push(&tab->entries);

	if (!e)
		return LAG_STR_NONE;
	e->text = malloc(n + 1);
	if (!e->text) {
		tab->entries.n--;
		return LAG_STR_NONE;
	}
	if (n)
		memcpy(e->text, text, n);
	e->text[n] = '\0';
	e->n = n;
	e->next_same_hash = chain;
	return (uint32_t)(tab->entries.n - 1);
}

uint32_t lag_strtab_add(struct lag_strtab *tab, const char *text, size_t n)
{
	uint64_t hash = lag_hash_bytes(text, n);
	uint64_t first = 0;
	uint32_t id;

	(void)lag_map_find(&tab->by_hash, hash, &first);
	for (uint64_t at = first; at;) {
		const struct lag_strtab_entry *e =
			&LAG_VEC_AT(&tab->entries, struct lag_strtab_entry, at - 1);

		if (e->n == n && (n == 0 || memcmp(e->text, text, n) == 0))
			return (uint32_t)(at - 1);
		at = e->next_same_hash;
	}
	id = append(tab, text, n, first);
	if (id != LAG_STR_NONE && lag_failed(lag_map_set(&tab->by_hash, hash, (uint64_t)id + 1)))
		return LAG_STR_NONE;
	return id;
}

const char *lag_strtab_get(const struct lag_strtab *tab, uint32_t id)
{
	if (id >= tab->entries.n)
		return "";
	return LAG_VEC_AT(&tab->entries, struct lag_strtab_entry, id).text;
}
