/* SPDX-License-Identifier: Apache-2.0 */
/* Small known values at the head of every message and block, and the sums they must give: a library
 * that matches the wrong operations, or a tracer that disturbs them, shows as a wrong value. */
#include "tests/apps/pt_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CELL = 32, /* bytes that are checked of a message */
	CELLS = 8, /* a step sends the cell of its number, so that last step's message differs */
	HEAD = 16  /* elements that are checked of a block */
};

static uint16_t to_bf16(float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

const char *pt_payload_message(const struct pt_train *t, bool backward, int slot, int step)
{
	return t->buf.send[backward] + (size_t)slot * CELL * CELLS + (size_t)(step % CELLS) * CELL;
}

/* Names a message by where it is going: the chunk of the model, counted along it, and microbatch. */
static uint32_t tag(const struct pt_train *t, bool backward, int part, int mb, int cell)
{
	return (uint32_t)cell << 28 | (uint32_t)backward << 27 | (uint32_t)(t->at.tp & 63) << 21 |
	       (uint32_t)(part * t->opt->microbatches + mb);
}

static void fill_messages(struct pt_train *t, bool backward)
{
	const struct pt_options *opt = t->opt;
	size_t n_slots = (size_t)(opt->chunks * opt->microbatches);
	uint32_t *cells = malloc(n_slots * CELLS * CELL);
	if (!cells)
		return;
	size_t n = 0;
	for (int chunk = 0; chunk < opt->chunks; chunk++) {
		int part = chunk * opt->pp + t->at.stage + (backward ? -1 : 1);
		for (int mb = 0; mb < opt->microbatches; mb++) {
			for (int cell = 0; cell < CELLS; cell++) {
				for (int k = 0; k < CELL / 4; k++)
					cells[n++] = tag(t, backward, part, mb, cell);
			}
		}
	}
	pt_gpu_put(t->buf.send[backward], cells, n * sizeof(*cells), t->streams[PT_COMPUTE]);
	free(cells);
}

static void put_f32(struct pt_train *t, char *at, float v)
{
	float head[HEAD];
	for (int i = 0; i < HEAD; i++)
		head[i] = v;
	pt_gpu_put(at, head, sizeof(head), t->streams[PT_COMPUTE]);
}

static void put_bf16(struct pt_train *t, char *at, float v)
{
	uint16_t head[HEAD];
	for (int i = 0; i < HEAD; i++)
		head[i] = to_bf16(v);
	pt_gpu_put(at, head, sizeof(head), t->streams[PT_COMPUTE]);
}

/* bf16 holds whole numbers exactly up to 256 only. */
static float tp_value(int tp)
{
	return (float)(1 + tp % 4);
}

static float shard_value(int dp)
{
	return (float)(1 + dp % 200);
}

static float grad_value(int dp, int block)
{
	return (float)(1 + dp + 10 * block);
}

static float norm_value(int rank, int step)
{
	return (float)(1 + rank + step % 7);
}

static size_t block_bytes(const struct pt_train *t)
{
	return t->buf.bucket_bytes / (size_t)t->opt->dp;
}

void pt_payload_put(struct pt_train *t)
{
	const struct pt_options *opt = t->opt;
	float *norm = malloc((size_t)opt->steps * sizeof(*norm));
	for (int step = 0; norm && step < opt->steps; step++)
		norm[step] = norm_value(opt->rank, step);
	if (norm)
		pt_gpu_put(t->buf.norm_in, norm, (size_t)opt->steps * sizeof(*norm),
			   t->streams[PT_COMPUTE]);
	free(norm);
	if (opt->pp > 1) {
		fill_messages(t, false);
		fill_messages(t, true);
	}
	if (opt->tp > 1)
		put_bf16(t, t->buf.tp_in, tp_value(t->at.tp));
	if (opt->dp > 1) {
		put_bf16(t, t->buf.shard, shard_value(t->at.dp));
		for (int b = 0; b < opt->dp; b++)
			put_f32(t, t->buf.grads + (size_t)b * block_bytes(t),
				grad_value(t->at.dp, b));
	}
}

static int wrong(const struct pt_train *t, const char *what, int which, double got, double want)
{
	fprintf(stderr, "pipetrain: rank %d: %s %d: got %g, expected %g\n", t->opt->rank, what,
		which, got, want);
	return 1;
}

static int check_f32(struct pt_train *t, const char *what, int which, const char *at, float want)
{
	float head[HEAD];
	pt_gpu_fetch(head, at, sizeof(head), t->streams[PT_COMPUTE]);
	for (int i = 0; i < HEAD; i++) {
		if (head[i] < want || head[i] > want)
			return wrong(t, what, which, (double)head[i], (double)want);
	}
	return 0;
}

static int check_bf16(struct pt_train *t, const char *what, int which, const char *at, float want)
{
	uint16_t head[HEAD];
	pt_gpu_fetch(head, at, sizeof(head), t->streams[PT_COMPUTE]);
	for (int i = 0; i < HEAD; i++) {
		if (head[i] != to_bf16(want))
			return wrong(t, what, which, (double)from_bf16(head[i]), (double)want);
	}
	return 0;
}

static int check_messages(struct pt_train *t, bool backward, int last_step)
{
	const struct pt_options *opt = t->opt;
	uint32_t head[CELL / 4];
	int bad = 0;
	for (int i = 0; i < t->n_acts; i++) {
		struct pt_act act = t->acts[i];
		if (act.backward != backward || pt_act_source(opt, t->at.stage, act) < 0)
			continue;
		int slot = pt_act_slot(opt, act);
		uint32_t want = tag(t, backward, act.chunk * opt->pp + t->at.stage, act.mb,
				    last_step % CELLS);
		pt_gpu_fetch(head, t->buf.recv[backward] + opt->act_bytes * (size_t)slot,
			     sizeof(head), t->streams[PT_COMPUTE]);
		for (int k = 0; k < CELL / 4; k++) {
			if (head[k] != want) {
				bad += wrong(t, backward ? "backward message" : "forward message",
					     slot, head[k], want);
				break;
			}
		}
	}
	return bad;
}

static int check_dp(struct pt_train *t)
{
	int dp = t->opt->dp;
	int bad = 0;
	for (int b = 0; b < dp; b++) {
		float sum = 0;
		for (int i = 0; i < dp; i++)
			sum += grad_value(i, b);
		if (t->opt->grad_allreduce)
			bad += check_f32(t, "gradient block", b,
					 t->buf.reduced + (size_t)b * block_bytes(t), sum);
		else if (b == t->at.dp)
			bad += check_f32(t, "gradient shard", b, t->buf.reduced, sum);
		if (!t->opt->grad_allreduce)
			bad += check_bf16(t, "parameter shard", b,
					  t->buf.params + (size_t)b * t->buf.shard_bytes,
					  shard_value(b));
	}
	return bad;
}

int pt_payload_check_norm(struct pt_train *t, int step, float norm)
{
	double want = 0;
	for (int r = 0; r < t->opt->world; r++)
		want += (double)norm_value(r, step);
	if ((double)norm < want || (double)norm > want)
		return wrong(t, "gradient norm of step", step, (double)norm, want);
	return 0;
}

int pt_payload_check(struct pt_train *t, int last_step)
{
	int bad = 0;
	if (t->opt->pp > 1)
		bad += check_messages(t, false, last_step) + check_messages(t, true, last_step);
	if (t->opt->tp > 1) {
		float sum = 0;
		for (int i = 0; i < t->opt->tp; i++)
			sum += tp_value(i);
		bad += check_bf16(t, "tensor-parallel sum", 0, t->buf.tp_out, sum);
	}
	if (t->opt->dp > 1)
		bad += check_dp(t);
	return bad;
}
