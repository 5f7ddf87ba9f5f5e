/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: hand-made cases of each class, and on random traces that it is gapless, adds up exactly
 * to the step, and agrees with a bitmap painted from the rules. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/model/context.h"

static struct lag_context *context(struct trace_builder *tb)
{
	struct lag_context *ctx;
	struct lag_err err;

	assert_int_equal(lag_context_new(tb_finish(tb), NULL, &ctx, &err), LAG_OK);
	return ctx;
}

/* Time of rank index r in each class over [from, to). */
static int64_t in_class(const struct lag_ledger *ledger, size_t r, enum lag_time_class class,
			int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = ledger->first[r]; i < ledger->first[r + 1]; i++) {
		const struct lag_time_slice *s = &ledger->slices[i];
		int64_t a = s->start_ns > from ? s->start_ns : from;
		int64_t b = s->end_ns < to ? s->end_ns : to;

		if (s->class == class && b > a)
			sum += b - a;
	}
	return sum;
}

static void compute_hides_communication_and_copies(void **state)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	const struct lag_ledger *ledger;
	struct lag_context *ctx;
	struct lag_err err;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "dp", pair, 2);
	tb_kernel(&tb, 0, 7, "gemm", 0, 100);
	tb_kernel(&tb, 1, 7, "gemm", 0, 160);
	tb_copy(&tb, 0, 8, 1 << 20, 90, 120);
	/* Rank 0 waits from 110 to 160, then 40 of transfer; the copy covers its first 10. */
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1 << 20, 110, 200);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1 << 20, 160, 200);
	ctx = context(&tb);
	ledger = lag_context_ledger(ctx, &err);
	assert_non_null(ledger);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_COMPUTE, 0, 200), 100);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_COPY, 0, 200), 20);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_EXPOSED_WAIT, 0, 200), 40);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_EXPOSED_TRANSFER, 0, 200), 40);
	assert_int_equal(in_class(ledger, 1, LAG_TIME_EXPOSED_WAIT, 0, 200), 0);
	assert_int_equal(in_class(ledger, 1, LAG_TIME_EXPOSED_TRANSFER, 0, 200), 40);
	lag_context_free(ctx);
}

static void a_late_launch_is_the_hosts_and_a_queued_one_is_not(void **state)
{
	struct trace_builder tb;
	const struct lag_ledger *ledger;
	struct lag_context *ctx;
	struct lag_err err;

	(void)state;
	tb_init(&tb, 1, 1);
	tb_launched(&tb, tb_kernel(&tb, 0, 7, "a", 1000, 2000), 1, 900, 910);
	/* Queued long before: a gap of the GPU. */
	tb_launched(&tb, tb_kernel(&tb, 0, 7, "b", 2100, 3000), 1, 920, 930);
	/* Launched at 3500, 500 after the GPU ran dry. */
	tb_launched(&tb, tb_kernel(&tb, 0, 7, "c", 3600, 4000), 1, 3500, 3510);
	/* The host sat in a synchronise until 4200, another thread's does not count. */
	tb_api(&tb, 0, 1, "cudaStreamSynchronize", 3700, 4200);
	tb_api(&tb, 0, 2, "cudaStreamSynchronize", 3700, 4400);
	tb_launched(&tb, tb_kernel(&tb, 0, 7, "d", 5000, 6000), 1, 4500, 4510);
	ctx = context(&tb);
	ledger = lag_context_ledger(ctx, &err);
	assert_non_null(ledger);
	/* Times are relative to the first event, the launch at 900. */
	assert_int_equal(in_class(ledger, 0, LAG_TIME_HOST, 1100, 1200), 0);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_IDLE, 1100, 1200), 100);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_HOST, 2100, 2700), 600);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_IDLE, 3100, 4100), 200);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_HOST, 3100, 4100), 800);
	lag_context_free(ctx);
}

static void a_missing_member_leaves_communication_unsplit(void **state)
{
	static const int three[] = { 0, 1, 2 };
	struct trace_builder tb;
	const struct lag_ledger *ledger;
	struct lag_context *ctx;
	struct lag_err err;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 3, 3);
	tb_missing(&tb, 2);
	comm = tb_comm(&tb, "dp", three, 3);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1 << 20, 0, 100);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1 << 20, 30, 100);
	ctx = context(&tb);
	ledger = lag_context_ledger(ctx, &err);
	assert_non_null(ledger);
	/* At least 30 are waiting; nothing says who was last of the three. */
	assert_int_equal(in_class(ledger, 0, LAG_TIME_EXPOSED_WAIT, 0, 100), 30);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_EXPOSED_TRANSFER, 0, 100), 70);
	assert_int_equal(ledger->first[2], ledger->first[3]);
	lag_context_free(ctx);
}

static size_t work(struct trace_builder *tb, int rank, int64_t start, int64_t end,
		   const char *range)
{
	size_t k = tb_kernel(tb, rank, 7, "gemm", start, end);

	tb_range(tb, rank, 1, range, start - 4, start - 1);
	tb_launched(tb, k, 1, start - 3, start - 2);
	return k;
}

/* Two stages, one microbatch, one step:
 *   rank 0  F 1000-1100 | send .. | waits in recv 1110-1300, 10 of transfer | B 1310-1500 | DP wait
 *   rank 1  sits in its DP group's collective until 1110 | recv | F 1120-1200 | B 1210-1290 | send */
static void a_bubble_is_inside_the_window_and_nowhere_else(void **state)
{
	static const int pipe[] = { 0, 1 }, alone[] = { 1 }, first[] = { 0 };
	const struct lag_model_opts opts = { .layout = "pp=2" };
	struct trace_builder tb;
	const struct lag_ledger *ledger;
	struct lag_context *ctx;
	struct lag_err err;
	uint32_t pp, dp0, dp1;

	(void)state;
	tb_init(&tb, 2, 2);
	pp = tb_comm(&tb, "pp", pipe, 2);
	dp0 = tb_comm(&tb, "dp0", first, 1);
	dp1 = tb_comm(&tb, "dp1", alone, 1);
	for (int r = 0; r < 2; r++)
		tb_range(&tb, r, 1, "step 0", 500, 1400);
	work(&tb, 0, 1000, 1100, "forward 0");
	tb_op(&tb, pp, 0, LAG_FUNC_SEND, 0, 1, 4096, 1100, 1120);
	tb_op(&tb, pp, 0, LAG_FUNC_RECV, 0, 1, 4096, 1120, 1310);
	work(&tb, 0, 1310, 1500, "backward 0");
	tb_op(&tb, dp0, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, 1500, 1550);
	tb_op(&tb, dp1, 1, LAG_FUNC_ALL_GATHER, 0, -1, 4096, 600, 1090);
	tb_op(&tb, pp, 1, LAG_FUNC_RECV, 0, 0, 4096, 1090, 1120);
	work(&tb, 1, 1120, 1200, "forward 0");
	work(&tb, 1, 1210, 1290, "backward 0");
	tb_op(&tb, pp, 1, LAG_FUNC_SEND, 0, 0, 4096, 1290, 1310);
	assert_int_equal(lag_context_new(tb_finish(&tb), &opts, &ctx, &err), LAG_OK);
	ledger = lag_context_ledger(ctx, &err);
	assert_non_null(ledger);
	/* Times are relative to 500. The window is 500..1000 (1000 to 1500 as written above). */
	assert_int_equal(in_class(ledger, 0, LAG_TIME_COMPUTE, 0, 1100), 290);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_BUBBLE, 0, 1100), 1290 - 1120);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_EXPOSED_TRANSFER, 500, 1000), 20 + 20);
	/* Before its first forward rank 1 is in the bubble even inside the all-gather and the receive;
	 * before the window it is not. */
	assert_int_equal(in_class(ledger, 1, LAG_TIME_BUBBLE, 0, 500), 0);
	assert_int_equal(in_class(ledger, 1, LAG_TIME_EXPOSED_TRANSFER, 0, 500), 400);
	assert_int_equal(in_class(ledger, 1, LAG_TIME_BUBBLE, 500, 620), 120);
	/* After its last backward too, until the window ends; what the send does then is no matter. */
	assert_int_equal(in_class(ledger, 1, LAG_TIME_BUBBLE, 790, 1100), 210);
	assert_int_equal(in_class(ledger, 0, LAG_TIME_BUBBLE, 1000, 1100), 0);
	lag_context_free(ctx);
}

#define SPACE 600

/* Random compute, copies, all-reduces and step ranges on two ranks. */
static struct lag_context *random_trace(unsigned *seed)
{
	static const int pair[] = { 0, 1 };
	struct trace_builder tb;
	uint32_t comm;
	int n;

	tb_init(&tb, 2, 2);
	tb_uncertainty(&tb, rand_r(seed) % 20);
	comm = tb_comm(&tb, "dp", pair, 2);
	for (int r = 0; r < 2; r++) {
		for (n = rand_r(seed) % 8; n >= 0; n--) {
			int a = rand_r(seed) % SPACE;
			size_t k = tb_kernel(&tb, r, 7 + rand_r(seed) % 2, "gemm", a,
					     a + 1 + rand_r(seed) % 60);

			if (rand_r(seed) % 4)
				tb_launched(&tb, k, 1, a - rand_r(seed) % 40, a);
		}
		for (n = rand_r(seed) % 3; n > 0; n--) {
			int a = rand_r(seed) % SPACE;

			tb_copy(&tb, r, 9, 4096, a, a + rand_r(seed) % 30);
		}
		for (n = rand_r(seed) % 3; n > 0; n--) {
			int a = rand_r(seed) % SPACE;

			tb_api(&tb, r, 1, "cudaStreamSynchronize", a, a + rand_r(seed) % 50);
		}
		for (n = 0; n < 3; n++) {
			tb_range(&tb, r, 1,
				 n == 0   ? "step 0"
				 : n == 1 ? "step 1"
					  : "step 2",
				 n * SPACE / 3, (n + 1) * SPACE / 3);
		}
	}
	for (n = rand_r(seed) % 6; n > 0; n--) {
		int a = rand_r(seed) % SPACE, b = a + rand_r(seed) % 80,
		    end = b + rand_r(seed) % 40;

		tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, n, -1, 4096, a, end);
		tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, n, -1, 4096, b, end);
	}
	return context(&tb);
}

/* Recomputes from the rules which class a painted moment has; LAG_TIME_IDLE stands for any gap. */
static enum lag_time_class class_at(const struct lag_trace *t, const struct lag_waits *waits,
				    size_t r, int64_t at)
{
	enum lag_time_class best = LAG_TIME_IDLE;

	for (size_t i = t->ranks[r].gpu_begin; i < t->ranks[r].gpu_end; i++) {
		const struct lag_gpu_event *ev = &t->gpu[i];
		enum lag_time_class class =
			ev->class == LAG_CLASS_COPY ? LAG_TIME_COPY : LAG_TIME_COMPUTE;

		if (at < ev->start_ns || at >= ev->end_ns)
			continue;
		if (ev->class == LAG_CLASS_COMM) {
			class = at < ev->start_ns + waits->launch[ev->launch].wait_ns
					? LAG_TIME_EXPOSED_WAIT
					: LAG_TIME_EXPOSED_TRANSFER;
		}
		if (class < best)
			best = class;
	}
	return best;
}

static void check_rank(struct lag_context *ctx, const struct lag_ledger *ledger, size_t r)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_waits *waits = lag_context_waits(ctx, NULL);
	const struct lag_steps *steps = lag_context_steps(ctx, NULL);

	for (size_t i = ledger->first[r]; i < ledger->first[r + 1]; i++) {
		const struct lag_time_slice *s = &ledger->slices[i];

		assert_true(s->end_ns > s->start_ns);
		if (i > ledger->first[r])
			assert_int_equal(s->start_ns, ledger->slices[i - 1].end_ns);
		for (int64_t at = s->start_ns; at < s->end_ns; at++) {
			enum lag_time_class want = class_at(t, waits, r, at);

			if (want == LAG_TIME_IDLE) {
				assert_true(s->class == LAG_TIME_IDLE || s->class == LAG_TIME_HOST);
			} else {
				assert_int_equal(s->class, want);
			}
		}
	}
	for (size_t s = 0; s < steps->n_steps; s++) {
		const struct lag_step_span *span = lag_steps_span(steps, s, r);
		int64_t sum = 0;

		for (int c = 0; c < LAG_TIME_LIMIT; c++) {
			sum += ledger->by_step[(s * ledger->n_ranks + r) * LAG_TIME_LIMIT +
					       (size_t)c];
		}
		assert_int_equal(sum,
				 span->start_ns == LAG_NONE ? 0 : span->end_ns - span->start_ns);
	}
}

static void random_traces_add_up_and_follow_the_precedence(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		unsigned seed = round;
		struct lag_context *ctx = random_trace(&seed);
		struct lag_err err;
		const struct lag_ledger *ledger = lag_context_ledger(ctx, &err);

		assert_non_null(ledger);
		check_rank(ctx, ledger, 0);
		check_rank(ctx, ledger, 1);
		lag_context_free(ctx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compute_hides_communication_and_copies),
		cmocka_unit_test(a_late_launch_is_the_hosts_and_a_queued_one_is_not),
		cmocka_unit_test(a_missing_member_leaves_communication_unsplit),
		cmocka_unit_test(a_bubble_is_inside_the_window_and_nowhere_else),
		cmocka_unit_test(random_traces_add_up_and_follow_the_precedence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
