/* SPDX-License-Identifier: Apache-2.0 */
/* The Nsight Systems importer on any database: it ends, gives parts or one message, and what it gives is
 * consistent. */
#include "tests/fuzz/nsys.h"

#ifdef LAG_FUZZ_MUTATOR
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max_n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_n, unsigned int seed);

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Where the cells of a leaf of a table begin, from the page's header; page_n where it is none. */
static size_t content_at(const uint8_t *page, size_t page_n)
{
	size_t at = (size_t)page[5] << 8 | page[6];

	return page[0] == 13 && at >= 8 && at < page_n ? at : page_n;
}

/* Most mutations of a database's bytes end in its structure. Of each eight, six change what rows hold. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max_n, unsigned int seed)
{
	uint32_t s = seed;
	size_t page_n = n > 100 ? (size_t)data[16] << 8 | data[17] : 0;
	size_t n_pages = page_n >= 512 ? n / page_n : 0;
	bool changed = false;

	for (size_t tries = 0; n_pages > 1 && next(&s) % 4 && tries < 8; tries++) {
		uint8_t *page = data + (1 + next(&s) % (n_pages - 1)) * page_n;
		size_t at = content_at(page, page_n), room = page_n - at, some;

		if (!room)
			continue;
		at += next(&s) % room;
		some = 1 + next(&s) % (page_n - at < 8 ? page_n - at : 8);
		(void)LLVMFuzzerMutate(page + at, some, some);
		changed = true;
	}
	return changed ? n : LLVMFuzzerMutate(data, n, max_n);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* The importer spools what is no file on disk. */
	lag_fuzz_require(setenv("TMPDIR", "/dev/shm", 0) == 0);
	lag_fuzz_import(&lag_importer_nsys, "fuzz.sqlite", data, n, lag_fuzz_check_nsys);
	return 0;
}
