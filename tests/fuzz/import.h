/* SPDX-License-Identifier: Apache-2.0 */
/* An importer on bytes in memory: it fails with a message, or what it gives is checked. Several parts of
 * one input are checked each. */
#ifndef TESTS_FUZZ_IMPORT_H
#define TESTS_FUZZ_IMPORT_H

#include <stdlib.h>
#include <string.h>

#include "merge/importer.h"

struct lag_fuzz_bytes {
	const uint8_t *data;
	size_t n, at;
};

static inline void lag_fuzz_require(bool ok)
{
	if (!ok)
		abort();
}

static inline long lag_fuzz_read(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct lag_fuzz_bytes *b = in->state;
	size_t n = b->n - b->at;

	(void)err;
	n = n < room ? n : room;
	if (n)
		memcpy(buf, b->data + b->at, n);
	b->at += n;
	return (long)n;
}

struct lag_fuzz_check {
	void (*check)(const struct lag_part *part, const struct lag_pool *pool);
	struct lag_pool pool;
};

static inline enum lag_status lag_fuzz_take(struct lag_part_sink *sink, struct lag_part *part,
					    struct lag_err *err)
{
	struct lag_fuzz_check *state = sink->state;

	(void)err;
	state->check(part, &state->pool);
	lag_part_release(part);
	return LAG_OK;
}

typedef void (*lag_fuzz_checker)(const struct lag_part *part, const struct lag_pool *pool);

static inline void lag_fuzz_run(const struct lag_importer *importer, struct lag_input *in,
				lag_fuzz_checker check)
{
	static const struct lag_import_opts opts = { .cpu_ops = true };
	const struct lag_fuzz_bytes *b = in->state;
	struct lag_fuzz_check state = { .check = check };
	struct lag_part_sink sink = { .take = lag_fuzz_take, .state = &state };
	struct lag_err err = { 0 };

	lag_fuzz_require(lag_pool_init(&state.pool) == LAG_OK);
	(void)importer->probe(b->data, b->n < 4096 ? b->n : 4096);
	lag_fuzz_require(!lag_failed(importer->import(in, &state.pool, &opts, &sink, &err)) ||
			 err.text[0]);
	lag_pool_release(&state.pool);
}

static inline void lag_fuzz_import(const struct lag_importer *importer, const char *path,
				   const uint8_t *data, size_t n, lag_fuzz_checker check)
{
	struct lag_fuzz_bytes b = { data, n, 0 };
	struct lag_input in = { .path = path, .read = lag_fuzz_read, .state = &b };

	lag_fuzz_run(importer, &in, check);
}

/* As if the bytes were those of the file at path, mapped. */
static inline void lag_fuzz_import_mapped(const struct lag_importer *importer, const char *path,
					  const uint8_t *data, size_t n, lag_fuzz_checker check)
{
	struct lag_fuzz_bytes b = { data, n, 0 };
	struct lag_input in = {
		.path = path, .bytes = data, .n = n, .read = lag_fuzz_read, .state = &b
	};

	lag_fuzz_run(importer, &in, check);
}

#endif
