/* SPDX-License-Identifier: Apache-2.0 */
/* The Nsight Systems importer on any database: it ends, gives parts or one message, and what it gives is
 * consistent: names and configurations are of the pool, operations have a communicator. */
#include <stdlib.h>
#include <string.h>

#include "merge/importer.h"

struct bytes {
	const uint8_t *data;
	size_t n, at;
};

static long read_some(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct bytes *b = in->state;
	size_t n = b->n - b->at;

	(void)err;
	n = n < room ? n : room;
	if (n)
		memcpy(buf, b->data + b->at, n);
	b->at += n;
	return (long)n;
}

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_names = lag_strtab_count(&pool->strings);
	size_t n_comms = LAG_PART_COUNT(p, comm);

	for (size_t i = 0; i < LAG_PART_COUNT(p, op); i++) {
		struct lag_rec_op op = LAG_PART_GET(p, op, i);

		require(op.comm_id >= 1 && (size_t)op.comm_id <= n_comms);
		require(op.op_id >= 1 && op.func >= 0 && op.func < LAG_FUNC_LIMIT);
		require(op.count == LAG_NONE || op.datatype != LAG_NONE);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		require(k.start_ns != LAG_NONE);
		require(k.name >= 0 && (size_t)k.name < n_names);
		require(k.config == LAG_NONE ||
			(k.config >= 0 && (size_t)k.config < pool->configs.n));
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, range); i++) {
		struct lag_rec_range r = LAG_PART_GET(p, range, i);

		require((size_t)r.name < n_names && (size_t)r.domain < n_names &&
			(size_t)r.category < n_names);
	}
}

static enum lag_status take(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	(void)err;
	check(part, sink->state);
	lag_part_release(part);
	return LAG_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct lag_import_opts opts = { 0 };
	struct bytes b = { data, n, 0 };
	struct lag_input in = { .path = "fuzz.sqlite", .read = read_some, .state = &b };
	struct lag_pool pool;
	struct lag_part_sink sink = { .take = take, .state = &pool };
	struct lag_err err = { 0 };

	/* The importer spools what is no file on disk. */
	require(setenv("TMPDIR", "/dev/shm", 0) == 0);
	require(lag_pool_init(&pool) == LAG_OK);
	(void)lag_importer_nsys.probe(data, n);
	require(!lag_failed(lag_importer_nsys.import(&in, &pool, &opts, &sink, &err)) ||
		err.text[0]);
	lag_pool_release(&pool);
	return 0;
}
