/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks from annotations: "forward mb 3", "backward_step", "fwd 2", ... A kernel belongs to the range
 * that was open when it was launched, on whatever thread. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "viz/model/pipeline_internal.h"

/* -1: not a block. */
static int kind_of(const char *name)
{
	static const struct {
		const char *beginning;
		int kind;
	} known[] = {
		{ "forward", LAG_BLOCK_FORWARD },   { "fwd", LAG_BLOCK_FORWARD },
		{ "backward_w", LAG_BLOCK_WEIGHT }, { "wgrad", LAG_BLOCK_WEIGHT },
		{ "backward", LAG_BLOCK_BACKWARD }, { "bwd", LAG_BLOCK_BACKWARD },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strncasecmp(name, known[i].beginning, strlen(known[i].beginning)) == 0)
			return known[i].kind;
	}
	return -1;
}

/* The last number in the name, -1 without one. */
static int32_t number_in(const char *name)
{
	size_t n = strlen(name);
	long v;

	while (n && !isdigit((unsigned char)name[n - 1]))
		n--;
	if (!n)
		return -1;
	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	v = strtol(name + n, NULL, 10);
	return v >= 0 && v < 1 << 24 ? (int32_t)v : -1;
}

static size_t lower_bound(const struct lag_vec *launched, int64_t ns)
{
	size_t lo = 0, hi = launched->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (LAG_VEC_AT(launched, struct lag_launched, mid).at_ns < ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* How often (kind, microbatch) came before in this step: the chunk, counted as executed. */
static int32_t occurrence(const struct lag_vec *blocks, size_t from, const struct lag_block *b)
{
	int32_t n = 0;

	for (size_t i = from; i < blocks->n; i++) {
		const struct lag_block *o = &LAG_VEC_AT(blocks, struct lag_block, i);

		n += o->kind == b->kind && (b->microbatch < 0 || o->microbatch == b->microbatch);
	}
	return n;
}

/* Backwards visit the chunks from the last to the first: turn their count of occurrences around. */
static void turn_backwards(struct lag_vec *blocks, size_t from)
{
	int32_t n_chunks = 1;

	for (size_t i = from; i < blocks->n; i++) {
		const struct lag_block *b = &LAG_VEC_AT(blocks, struct lag_block, i);

		n_chunks = b->chunk + 1 > n_chunks ? b->chunk + 1 : n_chunks;
	}
	for (size_t i = from; i < blocks->n; i++) {
		struct lag_block *b = &LAG_VEC_AT(blocks, struct lag_block, i);

		if (b->kind != LAG_BLOCK_FORWARD)
			b->chunk = n_chunks - 1 - b->chunk;
	}
}

static enum lag_status add_range(const struct lag_trace *trace, const struct lag_steps *steps,
				 const struct lag_range *range, const struct lag_vec *launched,
				 struct lag_vec *blocks, size_t *step_from)
{
	const char *name = lag_trace_text(trace, range->name);
	size_t first = lower_bound(launched, range->start_ns),
	       last = lower_bound(launched, range->end_ns);
	struct lag_block like = { .r = range->r,
				  .kind = (uint8_t)kind_of(name),
				  .microbatch = number_in(name) };

	if (first >= last)
		return LAG_OK;
	like.step = steps->of_gpu[LAG_VEC_AT(launched, struct lag_launched, first).gpu];
	if (like.step < 0)
		return LAG_OK;
	if (blocks->n > *step_from &&
	    LAG_VEC_AT(blocks, struct lag_block, blocks->n - 1).step != like.step) {
		turn_backwards(blocks, *step_from);
		*step_from = blocks->n;
	}
	if (like.microbatch < 0) {
		like.microbatch = occurrence(blocks, *step_from, &like);
	} else {
		like.chunk = occurrence(blocks, *step_from, &like);
	}
	return lag_pipeline_add(trace, launched, first, last, &like, blocks);
}

enum lag_status lag_pipeline_from_ranges(const struct lag_trace *trace,
					 const struct lag_steps *steps, size_t r,
					 struct lag_vec *blocks)
{
	const struct lag_rank *rank = &trace->ranks[r];
	struct lag_vec launched = LAG_VEC_INIT(struct lag_launched);
	enum lag_status status = lag_pipeline_launched(trace, r, &launched);
	size_t step_from = blocks->n;
	int64_t last_end = INT64_MIN;

	for (size_t i = rank->range_begin; i < rank->range_end && !lag_failed(status); i++) {
		const struct lag_range *range = &trace->ranges[i];

		/* Ranges inside a block (a layer's "forward") are not blocks. */
		if (range->end_ns == LAG_NONE || range->start_ns < last_end ||
		    range->kind == LAG_RANGE_GPU || range->kind == LAG_RANGE_MARK ||
		    kind_of(lag_trace_text(trace, range->name)) < 0)
			continue;
		status = add_range(trace, steps, range, &launched, blocks, &step_from);
		last_end = range->end_ns;
	}
	turn_backwards(blocks, step_from);
	lag_vec_release(&launched);
	return status;
}
