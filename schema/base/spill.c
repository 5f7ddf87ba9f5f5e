/* SPDX-License-Identifier: Apache-2.0 */
/* A block in the file is a reserved range of addresses, into which extents of the file are mapped one
 * behind the other; when the range is full, the same extents are mapped into a larger one. */
#include "schema/base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/io.h"
#include "schema/base/mem.h"
#include "schema/base/pages.h"

#define MIB ((size_t)1 << 20)
/* Extents are multiples of this, and grow with their block up to the most. */
#define EXTENT_MIN  MIB
#define EXTENT_MOST (16 * MIB)
#define RANGE_MIN   (64 * MIB)
/* Smaller blocks are not worth an extent, or pages of their own. */
#define FILE_MIN   ((size_t)1 << 16)
#define PAGES_MIN  ((size_t)1 << 18)
#define BYTES_MOST ((size_t)1 << 46)

struct extent {
	uint64_t offset, bytes;
};

struct lag_spill {
	pthread_mutex_t lock;
	const char *folder;
	size_t budget, used;    /* of plain memory */
	struct lag_pages pages; /* of larger plain blocks; what is kept there is not used */
	int fd;                 /* -1 until the file is needed */
	uint64_t end;           /* of the file */
	struct lag_vec free;    /* struct extent, by offset, none touching the next */
	struct lag_err failure;
};

struct lag_spill_block {
	char *at;
	size_t bytes;
	size_t range;       /* bytes of reserved addresses; 0: plain memory */
	struct lag_vec map; /* struct extent */
};

enum lag_status lag_spill_new(const char *folder, size_t budget_bytes, struct lag_spill **out,
			      struct lag_err *err)
{
	struct lag_spill *spill = lag_calloc(1, sizeof(*spill));

	*out = spill;
	if (!spill)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	spill->folder = folder;
	spill->budget = budget_bytes;
	spill->fd = -1;
	spill->free = (struct lag_vec)LAG_VEC_INIT(struct extent);
	lag_pages_init(&spill->pages);
	(void)pthread_mutex_init(&spill->lock, NULL);
	return LAG_OK;
}

void lag_spill_free(struct lag_spill *spill)
{
	if (!spill)
		return;
	if (spill->fd >= 0)
		(void)close(spill->fd);
	lag_vec_release(&spill->free);
	lag_pages_release(&spill->pages);
	(void)pthread_mutex_destroy(&spill->lock);
	free(spill);
}

/* ---- the file; the lock is held ---- */

static bool fail(struct lag_spill *spill, const char *what)
{
	if (spill->failure.status == LAG_OK) {
		(void)lag_err_errno(&spill->failure, LAG_ERR_SYSTEM,
				    "%s: %s after %" PRIu64 " MiB of temporary data", spill->folder,
				    what, spill->end / MIB);
	}
	return false;
}

static bool open_file(struct lag_spill *spill)
{
	if (spill->fd < 0)
		spill->fd = lag_io_nameless(spill->folder);
	return spill->fd >= 0 || fail(spill, "no temporary file");
}

/* Some file systems cannot allocate: written zeros are as good. */
static bool write_zeros(int fd, uint64_t offset, uint64_t bytes)
{
	static const char zeros[1 << 16];

	while (bytes) {
		size_t n = bytes < sizeof(zeros) ? (size_t)bytes : sizeof(zeros);

		if (!lag_io_write_at(fd, zeros, n, offset))
			return false;
		offset += n;
		bytes -= n;
	}
	return true;
}

static bool extend_file(struct lag_spill *spill, uint64_t bytes)
{
	int rc;

	do {
		rc = fallocate(spill->fd, 0, (off_t)spill->end, (off_t)bytes);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0 && (errno != EOPNOTSUPP || !write_zeros(spill->fd, spill->end, bytes)))
		return fail(spill, "cannot grow the temporary file");
	spill->end += bytes;
	return true;
}

static bool take_extent(struct lag_spill *spill, uint64_t bytes, struct extent *out)
{
	struct extent *best = NULL;

	if (!open_file(spill))
		return false;
	for (size_t i = 0; i < spill->free.n; i++) {
		struct extent *e = &LAG_VEC_AT(&spill->free, struct extent, i);

		if (e->bytes >= bytes && (!best || e->bytes < best->bytes))
			best = e;
	}
	if (!best) {
		*out = (struct extent){ spill->end, bytes };
		return extend_file(spill, bytes);
	}
	*out = (struct extent){ best->offset, bytes };
	best->offset += bytes;
	best->bytes -= bytes;
	if (!best->bytes) {
		size_t at = (size_t)(best - (struct extent *)spill->free.items);

		memmove(best, best + 1, (--spill->free.n - at) * sizeof(*best));
	}
	return true;
}

/* An extent that no memory is left to note is lost until the end. */
static void give_extent(struct lag_spill *spill, struct extent e)
{
	struct extent *at;
	size_t i = 0;

	while (i < spill->free.n && LAG_VEC_AT(&spill->free, struct extent, i).offset < e.offset)
		i++;
	if (lag_failed(lag_vec_reserve(&spill->free, 1)))
		return;
	at = spill->free.items;
	memmove(&at[i + 1], &at[i], (spill->free.n++ - i) * sizeof(*at));
	at[i] = e;
	if (i + 1 < spill->free.n && e.offset + e.bytes == at[i + 1].offset) {
		at[i].bytes += at[i + 1].bytes;
		memmove(&at[i + 1], &at[i + 2], (--spill->free.n - i - 1) * sizeof(*at));
	}
	if (i && at[i - 1].offset + at[i - 1].bytes == at[i].offset) {
		at[i - 1].bytes += at[i].bytes;
		memmove(&at[i], &at[i + 1], (--spill->free.n - i) * sizeof(*at));
	}
}

/* ---- blocks ---- */

static bool map_extent(const struct lag_spill *spill, char *at, const struct extent *e)
{
	return mmap(at, e->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, spill->fd,
		    (off_t)e->offset) != MAP_FAILED;
}

/* Reserves addresses for `bytes`, and maps there what the block has. */
static bool widen_range(struct lag_spill *spill, struct lag_spill_block *b, size_t bytes)
{
	size_t range = RANGE_MIN, at = 0;
	char *fresh;

	while (range < bytes)
		range *= 4;
	fresh = mmap(NULL, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return fail(spill, "no addresses");
	for (size_t i = 0; i < b->map.n; i++) {
		const struct extent *e = &LAG_VEC_AT(&b->map, struct extent, i);

		if (!map_extent(spill, fresh + at, e)) {
			(void)munmap(fresh, range);
			return fail(spill, "cannot map the temporary file");
		}
		at += e->bytes;
	}
	if (b->range)
		(void)munmap(b->at, b->range);
	b->at = fresh;
	b->range = range;
	return true;
}

/* A new extent has nothing yet that could be read ahead; and pages that come one by one cost the system
 * less to write to than those that come many together. The one before is full. */
static void advise(const struct lag_spill_block *b, size_t mapped, size_t step)
{
	size_t before = b->map.n ? LAG_VEC_AT(&b->map, struct extent, b->map.n - 1).bytes : 0;

	if (before)
		(void)madvise(b->at + mapped - before, before, MADV_NORMAL);
	(void)madvise(b->at + mapped, step, MADV_RANDOM);
}

/* One more extent at the block's end. */
static bool add_extent(struct lag_spill *spill, struct lag_spill_block *b, size_t mapped,
		       size_t bytes)
{
	size_t step = mapped / 2 < EXTENT_MOST ? mapped / 2 : EXTENT_MOST;
	struct extent e, *slot;

	step = step > bytes - mapped ? step : bytes - mapped;
	step = (step + EXTENT_MIN - 1) / EXTENT_MIN * EXTENT_MIN;
	if (lag_failed(lag_vec_reserve(&b->map, 1)) || !take_extent(spill, step, &e))
		return false;
	/* Last, since it may move the block: what failed until here leaves it where it was. */
	if (mapped + step > b->range && !widen_range(spill, b, mapped + step)) {
		give_extent(spill, e);
		return false;
	}
	if (!map_extent(spill, b->at + mapped, &e)) {
		give_extent(spill, e);
		return fail(spill, "cannot map the temporary file");
	}
	advise(b, mapped, step);
	slot = lag_vec_push(&b->map);
	if (slot)
		*slot = e;
	b->bytes = mapped + step;
	return true;
}

/* The block's plain memory, which is pages of its own where it is large, becomes another's. */
static void give_plain(struct lag_spill *spill, char *at, size_t bytes)
{
	if (bytes >= PAGES_MIN) {
		lag_pages_give(&spill->pages, (struct lag_page_range){ at, bytes });
	} else {
		free(at);
	}
	spill->used -= bytes;
}

/* From plain memory into the file. */
static bool move_to_file(struct lag_spill *spill, struct lag_spill_block *b, size_t bytes)
{
	char *plain = b->at;
	size_t n = b->bytes;

	b->at = NULL;
	b->bytes = 0;
	if (!add_extent(spill, b, 0, bytes)) {
		if (b->range)
			(void)munmap(b->at, b->range);
		b->range = 0;
		b->at = plain;
		b->bytes = n;
		return false;
	}
	if (n)
		memcpy(b->at, plain, n);
	give_plain(spill, plain, n);
	return true;
}

/* From a block that malloc made, or for one that has pages, to pages for so many bytes. */
static bool grow_pages(struct lag_spill *spill, struct lag_spill_block *b, size_t *bytes)
{
	bool had = b->bytes >= PAGES_MIN;
	struct lag_page_range range = { had ? b->at : NULL, had ? b->bytes : 0 };

	if (!lag_pages_grow(&spill->pages, &range, *bytes))
		return false;
	if (!had && b->bytes)
		memcpy(range.at, b->at, b->bytes);
	if (!had)
		free(b->at);
	b->at = range.at;
	*bytes = range.bytes;
	return true;
}

static bool grow_plain(struct lag_spill *spill, struct lag_spill_block *b, size_t bytes)
{
	size_t ahead = b->bytes + b->bytes / 2, room;
	char *at;

	/* At the end of the budget all that is left of it, not an item at a time: what is grown next goes
	 * to the file. */
	room = spill->used < spill->budget ? spill->budget - spill->used : 0;
	if (ahead >= FILE_MIN && ahead - b->bytes > room)
		ahead = b->bytes + room;
	if (ahead > bytes)
		bytes = ahead;
	if (bytes >= PAGES_MIN) {
		if (!grow_pages(spill, b, &bytes))
			return false;
	} else {
		at = realloc(b->at, bytes);
		if (!at)
			return false;
		b->at = at;
	}
	spill->used += bytes - b->bytes;
	b->bytes = bytes;
	/* Memory that is kept is within the budget, too. */
	room = spill->used < spill->budget ? spill->budget - spill->used : 0;
	lag_pages_trim(&spill->pages, room);
	return true;
}

enum lag_status lag_spill_grow(struct lag_spill *spill, struct lag_spill_block **block,
			       size_t bytes, void **at)
{
	struct lag_spill_block *b = *block;
	bool made = !b, done;

	if (b && b->bytes >= bytes) {
		*at = b->at;
		return LAG_OK;
	}
	if (bytes > BYTES_MOST)
		return LAG_ERR_LIMIT;
	if (made)
		b = lag_calloc(1, sizeof(*b));
	if (!b)
		return LAG_ERR_SYSTEM;
	if (made)
		b->map.item_size = sizeof(struct extent);
	(void)pthread_mutex_lock(&spill->lock);
	if (b->range) {
		done = add_extent(spill, b, b->bytes, bytes);
	} else if (bytes < FILE_MIN || spill->used + (bytes - b->bytes) <= spill->budget) {
		done = grow_plain(spill, b, bytes);
	} else {
		done = move_to_file(spill, b, bytes);
	}
	(void)pthread_mutex_unlock(&spill->lock);
	if (done || !made)
		*at = b->at;
	if (done) {
		*block = b;
	} else if (made) {
		lag_vec_release(&b->map);
		free(b);
	}
	return done ? LAG_OK : LAG_ERR_SYSTEM;
}

size_t lag_spill_capacity(const struct lag_spill_block *block)
{
	return block ? block->bytes : 0;
}

void lag_spill_drop(struct lag_spill *spill, struct lag_spill_block *block)
{
	if (!block)
		return;
	if (block->range)
		(void)munmap(block->at, block->range);
	(void)pthread_mutex_lock(&spill->lock);
	if (!block->range)
		give_plain(spill, block->at, block->bytes);
	for (size_t i = 0; i < block->map.n; i++)
		give_extent(spill, LAG_VEC_AT(&block->map, struct extent, i));
	(void)pthread_mutex_unlock(&spill->lock);
	lag_vec_release(&block->map);
	free(block);
}

uint64_t lag_spill_bytes(struct lag_spill *spill)
{
	uint64_t bytes;

	(void)pthread_mutex_lock(&spill->lock);
	bytes = spill->end;
	(void)pthread_mutex_unlock(&spill->lock);
	return bytes;
}

enum lag_status lag_spill_failure(struct lag_spill *spill, struct lag_err *err)
{
	enum lag_status st;

	(void)pthread_mutex_lock(&spill->lock);
	st = spill->failure.status;
	if (st != LAG_OK && err)
		*err = spill->failure;
	(void)pthread_mutex_unlock(&spill->lock);
	return st;
}
