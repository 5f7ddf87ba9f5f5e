/* SPDX-License-Identifier: Apache-2.0 */
/* Plain memory by whole pages. What is given back is kept for whoever asks next, since the first touch
 * of a new page costs more than most of what is done with it; what grows is moved by its addresses where
 * nothing that is kept will do. Its owner's lock is held. */
#ifndef SCHEMA_BASE_PAGES_H
#define SCHEMA_BASE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/mem.h"

struct lag_pages {
	struct lag_vec kept; /* struct lag_page_range */
	size_t kept_bytes;
};

struct lag_page_range {
	void *at;
	size_t bytes;
};

void lag_pages_init(struct lag_pages *pages);
void lag_pages_release(struct lag_pages *pages);

/* Makes *range (at NULL: a new one) hold at least `bytes`, of which what it had stays; it may hold more.
 * False without memory, then it is as it was. */
bool lag_pages_grow(struct lag_pages *pages, struct lag_page_range *range,
		    size_t bytes) LAG_MUST_USE;

void lag_pages_give(struct lag_pages *pages, struct lag_page_range range);

/* Returns kept memory to the system until no more than `bytes` are kept. */
void lag_pages_trim(struct lag_pages *pages, size_t bytes);

#endif
