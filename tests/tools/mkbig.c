/* SPDX-License-Identifier: Apache-2.0 */
/* mkbig DIR RANKS EVENTS: rank files of any size, written as a stream, for what only shows with very many
 * events. Each rank launches kernels on two streams and collectives on a third; its GPU reports them
 * slightly out of order, its host's clock is off, and its file is made from the rank's number alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/mem.h"
#include "schema/trace/trace_writer.h"

#define T0        INT64_C(1790000000000000000)
#define STEP_NS   25000 /* from one launch to the next */
#define N_KERNELS 40
#define N_CONFIGS 60
#define OPS_EVERY 12
#define PER_HOST  4
#define HELD      8 /* kernels that wait to be reported */

struct rank {
	int rank, n_ranks;
	int64_t offset_ns; /* of the host's clock */
	uint64_t seed;
	struct lag_trace_file file;
	struct lag_trace_producer *host, *gpu;
	int64_t calls[3], kernels[N_KERNELS], configs[N_CONFIGS], nccl;
	struct lag_record held[HELD];
	size_t n_held;
	uint64_t n_events, n_ops;
};

static uint64_t draw(struct rank *r, uint64_t below)
{
	r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
	return (r->seed >> 33) % below;
}

static void append(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	if (!lag_trace_append(prod, rec)) {
		(void)fprintf(stderr, "mkbig: a record was lost: is the disk full?\n");
		exit(2);
	}
}

static int64_t string(struct lag_trace_producer *prod, const char *text)
{
	return lag_trace_string(prod, text, strlen(text));
}

static void put_process(struct rank *r)
{
	struct lag_record rec;
	char text[64];

	lag_record_init(&rec, LAG_REC_process);
	rec.process.start_ns = T0 + r->offset_ns - 2000000000;
	rec.process.pid = 4000 + r->rank;
	rec.process.rank = r->rank;
	rec.process.world_size = r->n_ranks;
	(void)snprintf(text, sizeof(text), "node%d", r->rank / PER_HOST);
	rec.process.host = string(r->host, text);
	(void)snprintf(text, sizeof(text), "boot%d", r->rank / PER_HOST);
	rec.process.boot_id = string(r->host, text);
	rec.process.run_id = string(r->host, "mkbig");
	append(r->host, &rec);
	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.created_ns = T0 + r->offset_ns - 1000000000;
	rec.comm.comm_id = 1;
	rec.comm.hash = 77;
	rec.comm.n_ranks = r->n_ranks;
	rec.comm.comm_rank = r->rank;
	append(r->host, &rec);
}

static void put_names(struct rank *r)
{
	static const char *const calls[3] = { "cudaLaunchKernel", "cuLaunchKernelEx",
					      "cudaMemcpyAsync" };
	char text[200];

	for (int i = 0; i < 3; i++)
		r->calls[i] = string(r->gpu, calls[i]);
	for (int i = 0; i < N_KERNELS; i++) {
		(void)snprintf(text, sizeof(text),
			       "void at::native::kernel_%d<4, float, at::native::Op<float> >(int, "
			       "at::native::Op<float>, float*)",
			       i);
		r->kernels[i] = string(r->gpu, text);
	}
	r->nccl = string(r->gpu, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)");
	for (int i = 0; i < N_CONFIGS; i++) {
		struct lag_rec_launch_config c = { .grid_x = 128 + i,
						   .grid_y = 1,
						   .grid_z = 1,
						   .block_x = 256,
						   .block_y = 1,
						   .block_z = 1,
						   .registers = 40 + i % 8 };

		r->configs[i] = lag_trace_config(r->gpu, &c);
	}
}

/* CUPTI reports by completion: an event may come after some that start later. */
static void report(struct rank *r, const struct lag_record *rec)
{
	size_t out = draw(r, HELD);

	if (r->n_held < HELD) {
		r->held[r->n_held++] = *rec;
		return;
	}
	/* Mostly the oldest. */
	out = out < HELD - 1 ? 0 : 1;
	append(r->gpu, &r->held[out]);
	memmove(&r->held[out], &r->held[out + 1], (HELD - 1 - out) * sizeof(*rec));
	r->held[HELD - 1] = *rec;
}

static void put_call(struct rank *r, int64_t at, int64_t correlation, int call)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = at;
	rec.api.end_ns = at + 3000 + (int64_t)draw(r, 4000);
	rec.api.tid = 100 + r->rank;
	rec.api.domain = call == 1 ? LAG_API_DRIVER : LAG_API_RUNTIME;
	rec.api.correlation = correlation;
	rec.api.name = r->calls[call];
	rec.api.result = 0;
	append(r->gpu, &rec);
	r->n_events++;
}

static void put_kernel(struct rank *r, int64_t at, int64_t correlation)
{
	struct lag_record rec;
	uint64_t which = draw(r, N_KERNELS);

	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = at + 6000 + (int64_t)draw(r, 2000);
	rec.kernel.end_ns = rec.kernel.start_ns + 4000 + (int64_t)draw(r, 12000);
	rec.kernel.device = r->rank % PER_HOST;
	rec.kernel.context = 1;
	rec.kernel.stream = 7 + (int64_t)(correlation & 1);
	rec.kernel.correlation = correlation;
	rec.kernel.name = r->kernels[which];
	rec.kernel.config = r->configs[(which * 7) % N_CONFIGS];
	report(r, &rec);
	r->n_events++;
}

static void put_copy(struct rank *r, int64_t at, int64_t correlation)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_memcpy);
	rec.memcpy.start_ns = at + 5000;
	rec.memcpy.end_ns = at + 9000 + (int64_t)draw(r, 5000);
	rec.memcpy.device = r->rank % PER_HOST;
	rec.memcpy.context = 1;
	rec.memcpy.stream = 9;
	rec.memcpy.correlation = correlation;
	rec.memcpy.bytes = 4096 * (1 + (int64_t)draw(r, 9));
	rec.memcpy.copy_kind = 1;
	report(r, &rec);
	r->n_events++;
}

/* All ranks leave it at one moment, and come when they do. */
static void put_op(struct rank *r, int64_t at, int64_t ends_at, int64_t correlation)
{
	struct lag_record rec;
	int64_t id = (int64_t)++r->n_ops;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = at - 1000;
	rec.op.leave_ns = at + 9000;
	rec.op.tid = 100 + r->rank;
	rec.op.op_id = id;
	rec.op.comm_id = 1;
	rec.op.func = LAG_FUNC_ALL_REDUCE;
	rec.op.seq = id - 1;
	rec.op.count = 1 << 20;
	rec.op.datatype = 9;
	rec.op.redop = 0;
	rec.op.stream = 20;
	rec.op.sources = LAG_OP_FROM_CALL;
	append(r->host, &rec);
	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = 5;
	rec.external.id = id;
	rec.external.correlation = correlation;
	append(r->gpu, &rec);
	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = at + 7000 + (int64_t)draw(r, 9000);
	rec.kernel.end_ns = ends_at + (int64_t)draw(r, 800);
	rec.kernel.device = r->rank % PER_HOST;
	rec.kernel.context = 1;
	rec.kernel.stream = 20;
	rec.kernel.correlation = correlation;
	rec.kernel.name = r->nccl;
	rec.kernel.config = r->configs[0];
	report(r, &rec);
	r->n_events += 2;
}

static void put_events(struct rank *r, uint64_t n_events)
{
	for (int64_t i = 1; r->n_events < n_events; i++) {
		int64_t step = T0 + r->offset_ns + i * STEP_NS;
		int64_t at = step + (int64_t)draw(r, STEP_NS / 4);

		if (i % OPS_EVERY == 0) {
			put_call(r, at, i, 1);
			put_op(r, at, step + 60000, i);
		} else if (i % 41 == 0) {
			put_call(r, at, i, 2);
			put_copy(r, at, i);
		} else {
			put_call(r, at, i, 0);
			put_kernel(r, at, i);
		}
	}
	for (size_t i = 0; i < r->n_held; i++)
		append(r->gpu, &r->held[i]);
}

static enum lag_status write_rank(struct rank *r, const char *dir, uint64_t n_events,
				  struct lag_err *err)
{
	struct lag_trace_header head = { .pid = (uint64_t)(4000 + r->rank), .start_ns = T0 };
	char path[4096];
	enum lag_status st;

	(void)snprintf(head.host, sizeof(head.host), "node%d", r->rank / PER_HOST);
	(void)snprintf(path, sizeof(path), "%s/rank%04d.lag", dir, r->rank);
	if (remove(path) && errno != ENOENT)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	st = lag_trace_file_create(&r->file, path, 0644, &head, err);
	if (st != LAG_OK)
		return st;
	lag_trace_producer_init(r->host, &r->file, 1);
	lag_trace_producer_init(r->gpu, &r->file, 2);
	put_process(r);
	put_names(r);
	put_events(r, n_events);
	lag_trace_producer_close(r->host);
	lag_trace_producer_close(r->gpu);
	lag_trace_file_close(&r->file);
	return LAG_OK;
}

int main(int argc, char **argv)
{
	int n_ranks = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
	uint64_t n_events = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

	if (n_ranks < 1 || n_events < 1) {
		(void)fprintf(stderr, "usage: mkbig DIR RANKS EVENTS\n");
		return 2;
	}
	if (mkdir(argv[1], 0777) && errno != EEXIST) {
		perror(argv[1]);
		return 2;
	}
	for (int i = 0; i < n_ranks; i++) {
		struct rank *r = lag_calloc(1, sizeof(*r));
		struct lag_err err = { 0 };

		if (r) {
			r->rank = i;
			r->n_ranks = n_ranks;
			r->seed = (uint64_t)i + 1;
			r->offset_ns = i / PER_HOST * INT64_C(3000000);
			r->host = lag_calloc(1, sizeof(*r->host));
			r->gpu = lag_calloc(1, sizeof(*r->gpu));
		}
		if (!r || !r->host || !r->gpu ||
		    lag_failed(write_rank(r, argv[1], n_events / (uint64_t)n_ranks, &err))) {
			(void)fprintf(stderr, "mkbig: %s\n", err.text);
			return 2;
		}
		free(r->host);
		free(r->gpu);
		free(r);
	}
	return 0;
}
