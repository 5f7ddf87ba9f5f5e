/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting and transfer: the rules for collectives, send/receive, grouped exchanges and clock error. */
#include "tests/unit/trace_builder.h"
#include "tests/unit/unit.h"
#include "viz/model/waits.h"

#define US 1000

static struct lag_waits waits_of(struct trace_builder *tb, struct lag_trace **trace)
{
	struct lag_waits waits;
	struct lag_err err;

	*trace = tb_finish(tb);
	assert_int_equal(lag_waits_compute(*trace, &waits, &err), LAG_OK);
	return waits;
}

static const struct lag_wait *wait_of(const struct lag_trace *trace, const struct lag_waits *waits,
				      uint32_t r)
{
	for (size_t i = 0; i < trace->n_launches; i++) {
		if (trace->launches[i].r == r)
			return &waits->launch[i];
	}
	fail();
	return NULL;
}

static void in_a_collective_all_wait_for_the_last_to_arrive(void **state)
{
	const int both[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 1);
	comm = tb_comm(&tb, "dp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 160 * US, 192 * US);
	tb_uncertainty(&tb, 5 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, 60 * US);
	assert_int_equal(wait_of(trace, &waits, 0)->transfer_ns, 30 * US);
	assert_int_equal(wait_of(trace, &waits, 0)->last, 1);
	assert_int_equal(wait_of(trace, &waits, 1)->wait_ns, 0);
	assert_int_equal(wait_of(trace, &waits, 1)->last, -1);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

/* Rank 1's profiler began with this operation: that rank 0 waited for the rank is not known. */
static void what_began_before_a_member_recorded_names_nobody(void **state)
{
	const int both[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	for (int all = 0; all < 2; all++) {
		tb_init(&tb, 2, 2);
		tb.trace->ranks[1].started_ns = 150 * US;
		comm = tb_comm(&tb, "dp", both, 2);
		tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
		tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 160 * US, 192 * US);
		trace = tb_finish(&tb);
		assert_int_equal(trace->window.from_ns, 50 * US);
		assert_int_equal(trace->window.late, 1);
		if (all)
			lag_window_widen(trace);
		assert_int_equal(lag_waits_compute(trace, &waits, NULL), LAG_OK);
		assert_int_equal(waits.n_outside, all ? 0 : 2);
		assert_int_equal(wait_of(trace, &waits, 0)->lower_bound, !all);
		assert_int_equal(wait_of(trace, &waits, 0)->last, all ? 1 : -1);
		assert_int_equal(waits.n_incomplete, 0);
		lag_waits_release(&waits);
		lag_trace_close(trace);
	}
}

static void nobody_is_named_within_the_clock_error(void **state)
{
	const int both[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 1);
	comm = tb_comm(&tb, "dp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 110 * US, 190 * US);
	tb_uncertainty(&tb, 8 * US); /* two hosts: 11.3 us together */
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->last, -1);
	assert_int_equal(waits.n_within_error, 1);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

static void clocks_that_cannot_be_compared_name_nobody(void **state)
{
	const int both[] = { 0, 1 };
	const int64_t apart = INT64_C(1700000000000000000); /* one clock stands in 1970 */
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 1);
	comm = tb_comm(&tb, "dp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, apart, apart + 90 * US);
	tb_uncertainty(&tb, 5 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, LAG_NONE);
	assert_int_equal(wait_of(trace, &waits, 0)->last, -1);
	lag_waits_release(&waits);
	lag_trace_close(trace);

	/* Apart by more than the widest error that is kept, and nothing is known of the error. */
	tb_init(&tb, 2, 1);
	comm = tb_comm(&tb, "dp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, INT64_C(9000000000),
	      INT64_C(9000090000));
	tb_uncertainty(&tb, INT64_MAX);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->last, -1);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, LAG_NONE);
	assert_int_equal(waits.n_contradicted, 1);
	lag_waits_release(&waits);
	lag_trace_close(trace);

	/* The last came 50 us after the other had ended, the clocks are off by 5: no wait at all; were
	 * they off by 100, it might have been so. */
	for (int known = 0; known < 2; known++) {
		tb_init(&tb, 2, 2);
		comm = tb_comm(&tb, "dp", both, 2);
		tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
		tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 240 * US, 300 * US);
		tb_uncertainty(&tb, known ? 5 * US : 100 * US);
		waits = waits_of(&tb, &trace);
		assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, known ? LAG_NONE : 140 * US);
		assert_int_equal(waits.n_contradicted, known);
		lag_waits_release(&waits);
		lag_trace_close(trace);
	}
}

static void a_member_without_record_withholds_who_was_last(void **state)
{
	const int all[] = { 0, 1, 2 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 3, 1);
	tb_missing(&tb, 2);
	comm = tb_comm(&tb, "dp", all, 3);
	tb_op(&tb, comm, 0, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 100 * US, 190 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_ALL_REDUCE, 0, -1, 1024, 160 * US, 190 * US);
	waits = waits_of(&tb, &trace);
	assert_true(wait_of(trace, &waits, 0)->lower_bound);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, 60 * US);
	assert_int_equal(wait_of(trace, &waits, 0)->transfer_ns, LAG_NONE);
	assert_int_equal(wait_of(trace, &waits, 0)->last, -1);
	assert_int_equal(waits.n_incomplete, 2);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

static void a_receiver_waits_for_the_send_and_an_eager_sender_for_nobody(void **state)
{
	const int both[] = { 0, 1 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "pp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND, 0, 1, 1024, 100 * US,
	      120 * US); /* gone before the receive */
	tb_op(&tb, comm, 1, LAG_FUNC_RECV, 0, 0, 1024, 150 * US, 155 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, 0);
	assert_int_equal(wait_of(trace, &waits, 0)->transfer_ns, 20 * US);
	assert_int_equal(wait_of(trace, &waits, 1)->wait_ns, 0);
	lag_waits_release(&waits);
	lag_trace_close(trace);

	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "pp", both, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND, 0, 1, 1024, 100 * US,
	      170 * US); /* held up by the receiver */
	tb_op(&tb, comm, 1, LAG_FUNC_RECV, 0, 0, 1024, 150 * US, 172 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, 50 * US);
	assert_int_equal(wait_of(trace, &waits, 0)->last, 1);
	assert_int_equal(wait_of(trace, &waits, 1)->transfer_ns, 22 * US);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

/* Kernels' names tell that there were messages, not who sent. */
static void of_two_ranks_who_still_ran_waited_for_the_other(void **state)
{
	const int all[] = { 0, 1, 2 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;

	(void)state;
	tb_init(&tb, 2, 2);
	comm = tb_comm(&tb, "", all, 2);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND_RECV, 0, -1, LAG_NONE, 100 * US, 170 * US);
	tb_op(&tb, comm, 1, LAG_FUNC_SEND_RECV, 0, -1, LAG_NONE, 150 * US, 172 * US);
	/* A sender that had gone before the other came. */
	tb_op(&tb, comm, 1, LAG_FUNC_SEND_RECV, 1, -1, LAG_NONE, 200 * US, 210 * US);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND_RECV, 1, -1, LAG_NONE, 250 * US, 260 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(waits.n_incomplete + waits.n_undirected, 0);
	assert_int_equal(wait_of(trace, &waits, 0)->wait_ns, 50 * US);
	assert_int_equal(wait_of(trace, &waits, 0)->last, 1);
	assert_int_equal(wait_of(trace, &waits, 0)->transfer_ns, 20 * US);
	assert_int_equal(wait_of(trace, &waits, 1)->wait_ns, 0);
	assert_int_equal(wait_of(trace, &waits, 1)->transfer_ns, 22 * US);
	for (size_t i = 0; i < waits.n; i++) {
		if (trace->launches[i].start_ns == 100 * US) /* relative to the first */
			assert_int_equal(waits.launch[i].wait_ns, 0);
	}
	lag_waits_release(&waits);
	lag_trace_close(trace);

	tb_init(&tb, 3, 3);
	comm = tb_comm(&tb, "", all, 3);
	for (int r = 0; r < 3; r++) {
		tb_op(&tb, comm, r, LAG_FUNC_SEND_RECV, 0, -1, LAG_NONE, (100 + 10 * r) * US,
		      170 * US);
	}
	waits = waits_of(&tb, &trace);
	assert_int_equal(waits.n_undirected, 3);
	assert_int_equal(waits.n_incomplete, 0);
	assert_int_equal(wait_of(trace, &waits, 0)->last, -1);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

static void a_grouped_exchange_arrives_with_its_latest_peer(void **state)
{
	const int all[] = { 0, 1, 2 };
	struct trace_builder tb;
	struct lag_trace *trace;
	struct lag_waits waits;
	uint32_t comm;
	int32_t middle;

	(void)state;
	tb_init(&tb, 3, 3);
	comm = tb_comm(&tb, "pp", all, 3);
	middle = tb_op(&tb, comm, 1, LAG_FUNC_RECV, 0, 0, 1024, 100 * US, 200 * US);
	tb_op_more(&tb, middle, LAG_FUNC_SEND, 0, 2, 1024);
	tb_op(&tb, comm, 0, LAG_FUNC_SEND, 0, 1, 1024, 130 * US, 200 * US);
	tb_op(&tb, comm, 2, LAG_FUNC_RECV, 0, 1, 1024, 180 * US, 200 * US);
	waits = waits_of(&tb, &trace);
	assert_int_equal(wait_of(trace, &waits, 1)->wait_ns, 80 * US);
	assert_int_equal(wait_of(trace, &waits, 1)->last, 2);
	assert_int_equal(wait_of(trace, &waits, 1)->transfer_ns, 20 * US);
	lag_waits_release(&waits);
	lag_trace_close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_a_collective_all_wait_for_the_last_to_arrive),
		cmocka_unit_test(nobody_is_named_within_the_clock_error),
		cmocka_unit_test(clocks_that_cannot_be_compared_name_nobody),
		cmocka_unit_test(what_began_before_a_member_recorded_names_nobody),
		cmocka_unit_test(a_member_without_record_withholds_who_was_last),
		cmocka_unit_test(a_receiver_waits_for_the_send_and_an_eager_sender_for_nobody),
		cmocka_unit_test(of_two_ranks_who_still_ran_waited_for_the_other),
		cmocka_unit_test(a_grouped_exchange_arrives_with_its_latest_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
