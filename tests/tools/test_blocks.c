/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward blocks, schedules and shapes as the model finds them, against what the engine
 * did: with annotations, and from sends, receives, threads and kernel names alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/tools/mkt_memory.h"
#include "tests/tools/mkt_truth.h"
#include "viz/model/context.h"

static struct mkt_options options(const char *line)
{
	struct mkt_options opt;
	char text[512], self[] = "test", *argv[48] = { self };
	int argc = 1;

	(void)snprintf(text, sizeof(text), "--out none --blocks --steps 4 %s", line);
	for (char *word = strtok(text, " "); word && argc < 47; word = strtok(NULL, " "))
		argv[argc++] = word;
	assert_int_equal(mkt_options_read(&opt, argc, argv), -1);
	opt.out = "none";
	return opt;
}

static void simulate(const struct mkt_options *opt, struct mkt_truth *truth, int64_t *origin_ns)
{
	struct mkt_run run;
	struct lag_err err;

	mkt_truth_init(truth);
	assert_int_equal(mkt_run_init(&run, opt, true, &err), LAG_OK);
	*origin_ns = INT64_MAX;
	for (int s = 0; s < opt->steps; s++) {
		assert_int_equal(mkt_run_step(&run, &err), LAG_OK);
		assert_int_equal(mkt_truth_add(truth, &run), LAG_OK);
		/* The model's time 0 is the earliest event. */
		for (int r = 0; r < run.n_ranks && s == 0; r++) {
			if (mkt_item_at(&run.ranks[r], 0)->call_ns < *origin_ns)
				*origin_ns = mkt_item_at(&run.ranks[r], 0)->call_ns;
		}
	}
	mkt_run_release(&run);
}

static const struct lag_block *find(const struct lag_pipeline *p, const struct mkt_truth_block *t)
{
	for (size_t i = p->first_block[t->rank]; i < p->first_block[t->rank + 1]; i++) {
		const struct lag_block *b = &p->blocks[i];

		if (b->step == t->step && b->microbatch == t->mb && b->chunk == t->chunk &&
		    (b->kind == LAG_BLOCK_BACKWARD) == t->backward)
			return b;
	}
	return NULL;
}

static void check(const char *line, enum lag_schedule schedule)
{
	struct mkt_options opt = options(line);
	struct mkt_truth truth;
	struct lag_trace *trace;
	struct lag_context *ctx;
	const struct lag_pipeline *p;
	struct lag_err err;
	int64_t origin_ns, off = 0;

	simulate(&opt, &truth, &origin_ns);
	assert_int_equal(mkt_memory_trace(&opt, true, &trace, NULL, &err), LAG_OK);
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	p = lag_context_pipeline(ctx, &err);
	assert_non_null(p);
	assert_int_equal(p->n_groups, opt.dp * opt.tp);
	for (size_t g = 0; g < p->n_groups; g++) {
		assert_int_equal(p->groups[g].schedule, schedule);
		assert_int_equal(p->groups[g].n_stages, opt.pp);
		assert_int_equal(p->groups[g].n_chunks, opt.chunks);
		assert_int_equal(p->groups[g].n_microbatches, opt.microbatches);
	}
	assert_int_equal(p->n_blocks, truth.blocks.n);
	for (size_t i = 0; i < truth.blocks.n; i++) {
		const struct mkt_truth_block *t =
			&LAG_VEC_AT(&truth.blocks, struct mkt_truth_block, i);
		const struct lag_block *b = find(p, t);

		assert_non_null(b);
		off += b->busy_ns > t->busy_ns ? b->busy_ns - t->busy_ns : t->busy_ns - b->busy_ns;
		/* Without annotations a loss kernel may fall on the other side of its boundary. */
		assert_true(b->start_ns + origin_ns >= t->start_ns - 500000 &&
			    b->start_ns + origin_ns <= t->start_ns + 500000);
		if (opt.nvtx)
			assert_int_equal(b->end_ns - b->start_ns, t->end_ns - t->start_ns);
	}
	if (opt.nvtx)
		assert_int_equal(off, 0);
	mkt_truth_release(&truth);
	lag_context_free(ctx);
}

/* Each shape with annotations, without, and without and all launches from one thread. */
static void check_all(const char *shape, enum lag_schedule schedule)
{
	static const char *const more[] = { "", "--no-nvtx", "--no-nvtx --one-thread" };
	char line[256];

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		(void)snprintf(line, sizeof(line), "%s %s", shape, more[i]);
		check(line, schedule);
	}
}

static void test_gpipe(void **state)
{
	(void)state;
	check_all("--schedule gpipe --pp 2 --dp 1 --microbatches 4", LAG_SCHEDULE_GPIPE);
	check_all("--schedule gpipe --pp 4 --dp 2 --microbatches 8 --tp 2", LAG_SCHEDULE_GPIPE);
}

static void test_1f1b(void **state)
{
	(void)state;
	check_all("--pp 2 --dp 1 --microbatches 4", LAG_SCHEDULE_1F1B);
	check_all("--pp 4 --dp 2 --microbatches 8", LAG_SCHEDULE_1F1B);
	check_all("--pp 4 --dp 2 --microbatches 6 --layers 2,4,4,6", LAG_SCHEDULE_1F1B);
	check_all("--pp 3 --dp 1 --microbatches 5 --grad-allreduce", LAG_SCHEDULE_1F1B);
}

static void test_interleaved(void **state)
{
	(void)state;
	check_all("--schedule interleaved --chunks 2 --pp 2 --dp 1 --microbatches 4",
		  LAG_SCHEDULE_INTERLEAVED);
	check_all("--schedule interleaved --chunks 2 --pp 4 --dp 2 --microbatches 8",
		  LAG_SCHEDULE_INTERLEAVED);
}

static void test_messages_in_groups_and_pairs(void **state)
{
	(void)state;
	check_all("--pp 4 --dp 2 --microbatches 8 --batch-p2p", LAG_SCHEDULE_1F1B);
	check_all("--pp 2 --dp 2 --microbatches 4 --batch-p2p --schedule gpipe",
		  LAG_SCHEDULE_GPIPE);
	check_all("--pp 4 --dp 1 --microbatches 8 --pair-comms", LAG_SCHEDULE_1F1B);
}

static void test_without_a_pipeline_there_is_none(void **state)
{
	struct mkt_options opt = options("--pp 1 --dp 4");
	struct lag_trace *trace;
	struct lag_context *ctx;
	struct lag_err err;

	(void)state;
	assert_int_equal(mkt_memory_trace(&opt, true, &trace, NULL, &err), LAG_OK);
	assert_int_equal(lag_context_new(trace, NULL, &ctx, &err), LAG_OK);
	assert_int_equal(lag_context_pipeline(ctx, &err)->n_groups, 0);
	lag_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpipe),
		cmocka_unit_test(test_1f1b),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_messages_in_groups_and_pairs),
		cmocka_unit_test(test_without_a_pipeline_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
