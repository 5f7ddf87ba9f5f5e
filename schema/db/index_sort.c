/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort in memory, a heap over blocks on disk. */
#include "schema/db/index_sort.h"

#include <stdlib.h>
#include <string.h>

#define READ_ROOM    ((size_t)32 << 20) /* bytes to read blocks through, of all together */
#define READ_AT_MOST 8192               /* entries of one block at a time */

struct block {
	uint64_t at, n; /* offset in the file, entries left there */
	int64_t *entries;
	size_t i, n_read;
};

void lag_index_sort_init(struct lag_index_sort *sort, const char *path, size_t n_values,
			 size_t room)
{
	*sort = (struct lag_index_sort){ .path = path,
					 .n_values = n_values,
					 .room = room,
					 .file = { .fd = -1 },
					 .entries = { .item_size = n_values * sizeof(int64_t) },
					 .blocks = LAG_VEC_INIT(struct block) };
}

void lag_index_sort_release(struct lag_index_sort *sort)
{
	for (size_t i = 0; i < sort->blocks.n; i++)
		free(LAG_VEC_AT(&sort->blocks, struct block, i).entries);
	lag_vec_release(&sort->blocks);
	lag_vec_release(&sort->entries);
	free(sort->spare);
	sort->spare = NULL;
	lag_temp_file_close(&sort->file);
}

static enum lag_status no_memory(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to sort an index");
}

/* Byte b of a value such that bytes compare as signed values do. */
static unsigned byte_of(int64_t value, unsigned b)
{
	return (unsigned)(((uint64_t)value ^ UINT64_C(0x8000000000000000)) >> (8 * b)) & 0xff;
}

/* One pass from `from` to `to` by byte b of value v; `count` says how often each byte occurs. */
static void pass(const struct lag_index_sort *sort, const int64_t *from, int64_t *to, size_t v,
		 unsigned b, const size_t *count)
{
	size_t n_values = sort->n_values, start[256], sum = 0;

	for (size_t i = 0; i < 256; i++) {
		start[i] = sum;
		sum += count[i];
	}
	for (const int64_t *end = from + sort->entries.n * n_values; from < end; from += n_values) {
		memcpy(to + start[byte_of(from[v], b)]++ * n_values, from,
		       n_values * sizeof(*from));
	}
}

static void count_bytes(const struct lag_index_sort *sort, const int64_t *from, size_t v,
			size_t count[8][256])
{
	memset(count, 0, 8 * sizeof(*count));
	for (size_t i = 0; i < sort->entries.n; i++) {
		for (unsigned b = 0; b < 8; b++)
			count[b][byte_of(from[i * sort->n_values + v], b)]++;
	}
}

static enum lag_status sort_block(struct lag_index_sort *sort, struct lag_err *err)
{
	size_t n = sort->entries.n, words = n * sort->n_values, count[8][256];
	int64_t *from = sort->entries.items, *to;

	if (n > sort->n_spare) {
		free(sort->spare);
		sort->n_spare = 0;
		sort->spare = lag_calloc(words, sizeof(*sort->spare));
		if (!sort->spare)
			return no_memory(err);
		sort->n_spare = n;
	}
	to = sort->spare;
	for (size_t v = sort->n_values; v--;) {
		count_bytes(sort, from, v, count);
		for (unsigned b = 0; b < 8 && n; b++) {
			int64_t *swap = from;

			if (count[b][byte_of(from[v], b)] == n)
				continue;
			pass(sort, from, to, v, b, count[b]);
			from = to;
			to = swap;
		}
	}
	if (n && from != sort->entries.items)
		memcpy(sort->entries.items, from, words * sizeof(*from));
	return LAG_OK;
}

static enum lag_status write_block(struct lag_index_sort *sort, struct lag_err *err)
{
	enum lag_status st = sort_block(sort, err);
	struct block *block;

	if (st != LAG_OK)
		return st;
	block = lag_vec_push(&sort->blocks);
	if (!block)
		return no_memory(err);
	block->n = sort->entries.n;
	block->at = sort->file.fd < 0 ? 0 : sort->file.size;
	st = lag_temp_file_add(&sort->file, sort->path, sort->entries.items,
			       sort->entries.n * sort->entries.item_size, err);
	sort->entries.n = 0;
	return st;
}

enum lag_status lag_index_sort_add(struct lag_index_sort *sort, const int64_t *entries, size_t n,
				   struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	while (n && st == LAG_OK) {
		size_t some = sort->room - sort->entries.n;

		some = some < n ? some : n;
		if (lag_failed(lag_vec_reserve(&sort->entries, some)))
			return no_memory(err);
		memcpy((int64_t *)sort->entries.items + sort->entries.n * sort->n_values, entries,
		       some * sort->entries.item_size);
		sort->entries.n += some;
		entries += some * sort->n_values;
		n -= some;
		if (sort->entries.n == sort->room)
			st = write_block(sort, err);
	}
	return st;
}

/* The next entry of a block; LAG_END behind the last. */
static enum lag_status advance(struct lag_index_sort *sort, struct block *block, size_t room,
			       struct lag_err *err)
{
	size_t size = sort->entries.item_size, n = block->n < room ? block->n : room;
	enum lag_status st;

	if (++block->i < block->n_read)
		return LAG_OK;
	if (!n)
		return LAG_END;
	st = lag_temp_file_read(&sort->file, block->at, block->entries, n * size, err);
	block->at += n * size;
	block->n -= n;
	block->n_read = n;
	block->i = 0;
	return st;
}

static bool before(const struct lag_index_sort *sort, const struct block *a, const struct block *b)
{
	const int64_t *x = a->entries + a->i * sort->n_values;
	const int64_t *y = b->entries + b->i * sort->n_values;
	size_t i = 0;

	while (i + 1 < sort->n_values && x[i] == y[i])
		i++;
	return x[i] < y[i];
}

static void sift(const struct lag_index_sort *sort, struct block *heap, size_t n, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		struct block block = heap[i];

		if (child + 1 < n && before(sort, &heap[child + 1], &heap[child]))
			child++;
		if (!before(sort, &heap[child], &block))
			return;
		heap[i] = heap[child];
		heap[child] = block;
	}
}

typedef enum lag_status (*each_fn)(void *state, const int64_t *entry, struct lag_err *err);

static enum lag_status merge_blocks(struct lag_index_sort *sort, each_fn each, void *state,
				    struct lag_err *err)
{
	struct block *heap = sort->blocks.items, done;
	size_t n = sort->blocks.n, room = READ_ROOM / sort->entries.item_size / n;
	enum lag_status st = LAG_OK;

	room = room < 64 ? 64 : room > READ_AT_MOST ? READ_AT_MOST : room;
	for (size_t i = 0; i < n && st == LAG_OK; i++) {
		heap[i].entries = lag_calloc(room, sort->entries.item_size);
		if (!heap[i].entries)
			return no_memory(err);
		st = advance(sort, &heap[i], room, err);
	}
	for (size_t i = n / 2; i-- && st == LAG_OK;)
		sift(sort, heap, n, i);
	while (n && st == LAG_OK) {
		st = each(state, heap[0].entries + heap[0].i * sort->n_values, err);
		if (st == LAG_OK)
			st = advance(sort, &heap[0], room, err);
		if (st == LAG_END) {
			done = heap[0];
			heap[0] = heap[--n];
			heap[n] = done;
			st = LAG_OK;
		}
		sift(sort, heap, n, 0);
	}
	return st;
}

enum lag_status lag_index_sort_each(struct lag_index_sort *sort, each_fn each, void *state,
				    struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	const int64_t *at;

	if (sort->blocks.n) {
		if (sort->entries.n)
			st = write_block(sort, err);
		return st == LAG_OK ? merge_blocks(sort, each, state, err) : st;
	}
	st = sort_block(sort, err);
	at = sort->entries.items;
	for (size_t i = 0; i < sort->entries.n && st == LAG_OK; i++)
		st = each(state, at + i * sort->n_values, err);
	return st;
}
