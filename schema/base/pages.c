/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings without a file; kept ones in no order, of which there are few. */
#include "schema/base/pages.h"

#include <string.h>
#include <sys/mman.h>

#define GRAIN ((size_t)1 << 16)
/* A kept range may be so many times larger than what is asked for. */
#define TOO_LARGE 4

void lag_pages_init(struct lag_pages *pages)
{
	*pages = (struct lag_pages){ .kept = LAG_VEC_INIT(struct lag_page_range) };
}

void lag_pages_release(struct lag_pages *pages)
{
	lag_pages_trim(pages, 0);
	lag_vec_release(&pages->kept);
}

static struct lag_page_range *kept_at(const struct lag_pages *pages, size_t i)
{
	return &LAG_VEC_AT(&pages->kept, struct lag_page_range, i);
}

static struct lag_page_range take(struct lag_pages *pages, size_t i)
{
	struct lag_page_range range = *kept_at(pages, i);

	*kept_at(pages, i) = *kept_at(pages, --pages->kept.n);
	pages->kept_bytes -= range.bytes;
	return range;
}

/* The smallest kept range that will do; false: there is none. */
static bool find(const struct lag_pages *pages, size_t bytes, size_t *best)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < pages->kept.n; i++) {
		size_t has = kept_at(pages, i)->bytes;

		if (has < bytes || has / TOO_LARGE > bytes || has >= least)
			continue;
		least = has;
		*best = i;
	}
	return least < SIZE_MAX;
}

bool lag_pages_grow(struct lag_pages *pages, struct lag_page_range *range, size_t bytes)
{
	size_t i = 0;
	void *at;

	if (find(pages, bytes, &i)) {
		struct lag_page_range old = *range;

		*range = take(pages, i);
		if (old.at) {
			memcpy(range->at, old.at, old.bytes);
			lag_pages_give(pages, old);
		}
		return true;
	}
	bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
	if (range->at) {
		at = mremap(range->at, range->bytes, bytes, MREMAP_MAYMOVE);
	} else {
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (at == MAP_FAILED)
		return false;
	*range = (struct lag_page_range){ at, bytes };
	return true;
}

void lag_pages_give(struct lag_pages *pages, struct lag_page_range range)
{
	struct lag_page_range *slot = lag_vec_add(&pages->kept);

	if (slot) {
		*slot = range;
		pages->kept_bytes += range.bytes;
	} else {
		(void)munmap(range.at, range.bytes);
	}
}

void lag_pages_trim(struct lag_pages *pages, size_t bytes)
{
	while (pages->kept_bytes > bytes) {
		struct lag_page_range range = take(pages, 0);

		(void)munmap(range.at, range.bytes);
	}
}
