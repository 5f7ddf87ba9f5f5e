/* SPDX-License-Identifier: Apache-2.0 */
/* One rank that two tools recorded is one process, where that can be known, and nothing of it counts
 * twice. */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0    INT64_C(1700000000000000000)
#define US    INT64_C(1000)
#define MS    INT64_C(1000000)
#define CALLS 40 /* communication calls in a recording of ours */
#define FROM  5  /* those that the profiler saw, too */
#define UNTIL 35

/* Steps of a run are never equally long. */
static int64_t call_at(int i)
{
	return T0 + (int64_t)i * 5 * MS + ((int64_t)i * i * 37 % 700) * US;
}

/* What a recording holds beside communication calls. */
enum {
	WITH_RANGES = 1,
	WITH_GPU = 2,
	WITHOUT_CALLS = 4,
	OTHER_PID = 8
};

static void ours(int rank, int what)
{
	struct lag_builder lb;
	char name[16];

	(void)snprintf(name, sizeof(name), "r%d", rank);
	lb_open(&lb, lb_dir(), name, LB_WHO(rank, 2, "node"), T0 - 10 * MS);
	lb_comm(&lb, 1, 99, 2, rank);
	for (int i = 0; i < CALLS; i++) {
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_op);
		rec.op.enter_ns = call_at(i);
		rec.op.leave_ns = call_at(i) + 12 * US;
		rec.op.tid = 7;
		rec.op.op_id = 1000 + i;
		rec.op.comm_id = 1;
		rec.op.func = LAG_FUNC_ALL_REDUCE;
		rec.op.seq = 500 + i;
		rec.op.count = 1024;
		rec.op.datatype = LAG_DT_FLOAT32;
		rec.op.stream = 20;
		rec.op.sources = LAG_OP_FROM_CALL;
		if (!(what & WITHOUT_CALLS))
			lb_add(&lb, &rec);
		lag_record_init(&rec, LAG_REC_range);
		rec.range.start_ns = call_at(i) - 500 * US;
		rec.range.end_ns = call_at(i) + 2 * MS;
		rec.range.tid = 7;
		rec.range.kind = LAG_RANGE_PUSH;
		rec.range.name = lb_text(&lb, "work");
		if (what & WITH_RANGES)
			lb_add(&lb, &rec);
		if (what & WITH_GPU) {
			(void)lb_kernel(&lb, call_at(i) + MS, call_at(i) + MS + 10 * US,
					call_at(i) + 2 * MS, 7, "gemm");
		}
	}
	lb_close(&lb);
}

static double us(int64_t ns)
{
	return (double)(ns - T0) / 1e3;
}

static void event(FILE *f, int pid, const char *cat, const char *name, int64_t start_ns,
		  int64_t end_ns, const char *args)
{
	bool gpu = cat[0] == 'k';

	fprintf(f,
		",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, "
		"\"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
		cat, name, gpu ? 0 : pid, gpu ? 20 : 7, us(start_ns),
		(double)(end_ns - start_ns) / 1e3, args);
}

/* Its clock shows off_ns too much, and wanders by up to wander_ns. */
static void kinetos(int rank, int64_t off_ns, int64_t wander_ns, int what)
{
	char path[128], args[128];
	FILE *f;
	int id = 1, pid = what & OTHER_PID ? 7 : 1000 + rank;

	(void)snprintf(path, sizeof(path), "%s/rank%d.json", lb_dir(), rank);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, "
		"\"world_size\": 2}, \"baseTimeNanoseconds\": %lld,\n\"traceEvents\": [\n"
		"{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {}}",
		rank, (long long)T0);
	for (int i = FROM; i < UNTIL; i++) {
		int64_t at = call_at(i) + off_ns + wander_ns * (i * 7 % 11 - 5) / 5;

		(void)snprintf(args, sizeof(args), "\"correlation\": %d", id);
		if (!(what & WITHOUT_CALLS)) {
			event(f, pid, "cuda_runtime", "cudaLaunchKernelExC", at + 3 * US,
			      at + 9 * US, args);
			(void)snprintf(args, sizeof(args),
				       "\"device\": 0, \"stream\": 20, \"correlation\": %d", id);
			event(f, pid, "kernel",
			      "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", at + 20 * US,
			      at + 320 * US, args);
			id++;
		}
		(void)snprintf(args, sizeof(args), "\"correlation\": %d", id);
		event(f, pid, "cuda_runtime", "cudaLaunchKernel", at + MS, at + MS + 5 * US, args);
		(void)snprintf(args, sizeof(args),
			       "\"device\": 0, \"stream\": 7, \"correlation\": %d", id++);
		event(f, pid, "kernel", "gemm", at + MS + 10 * US, at + 2 * MS, args);
		if (what & WITH_RANGES)
			event(f, pid, "user_annotation", "work", at - 500 * US, at + 2 * MS, "");
	}
	fprintf(f, "\n]}\n");
	(void)fclose(f);
}

static void expect_one_process(struct merged *mg)
{
	assert_false(lag_failed(merge_dir(mg, lb_dir(), NULL)));
	assert_int_equal(ask(mg, "SELECT count(*) FROM rank WHERE process_id IS NOT NULL"), 2);
	assert_int_equal(ask(mg, "SELECT count(*) FROM finding WHERE kind = 'combined' AND text "
				 "LIKE '%.lag%' AND text LIKE '%.json%'"),
			 2);
	assert_int_equal(ask(mg, "SELECT count(*) FROM finding WHERE kind = 'rank_twice'"), 0);
	assert_int_equal(ask(mg, "SELECT count(*) FROM host"), 1);
	/* The profiler's GPU work, once. */
	assert_int_equal(ask(mg, "SELECT count(*) FROM gpu_event"), 2 * 2 * (UNTIL - FROM));
	/* Our calls with their own numbers, each with the profiler's kernel. */
	assert_int_equal(ask(mg, "SELECT count(*) FROM nccl_op"), 2 * (UNTIL - FROM));
	assert_int_equal(ask(mg, "SELECT min(seq) FROM nccl_op"), 500 + FROM);
	assert_int_equal(ask(mg, "SELECT count(*) FROM instance WHERE n_started = 2 AND n_finished "
				 "= 2 AND NOT flags & 2"),
			 UNTIL - FROM);
	assert_int_equal(
		ask(mg, "SELECT count(*) FROM nccl_op AS o JOIN nccl_launch AS l ON l.id = "
			"o.launch_id WHERE l.start_ns - o.enter_ns NOT BETWEEN 15000 AND 25000"),
		0);
}

static void our_calls_get_the_profilers_kernels(void **state)
{
	struct merged mg;

	(void)state;
	for (int r = 0; r < 2; r++) {
		ours(r, WITH_RANGES);
		kinetos(r, 0, 0, 0);
	}
	expect_one_process(&mg);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range"), 2 * CALLS);
	/* Outside the profiler's time nothing of the GPU is known, which is said. */
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gap WHERE what = 'CUPTI'"), 4);
	assert_int_equal(ask(&mg,
			     "SELECT count(*) FROM finding WHERE kind = 'combined' AND text LIKE "
			     "'%10 calls made while no GPU work was recorded%'"),
			 2);
	merged_close(&mg);
}

static void a_clock_that_is_off_is_found_and_taken_off(void **state)
{
	struct merged mg;

	(void)state;
	for (int r = 0; r < 2; r++) {
		ours(r, 0);
		kinetos(r, (r ? -300 : 450) * US, 0, WITH_RANGES);
	}
	expect_one_process(&mg);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range"), 2 * (UNTIL - FROM));
	assert_int_equal(ask(&mg,
			     "SELECT count(*) FROM finding WHERE kind = 'combined' AND text LIKE "
			     "'%clocks differ by%'"),
			 2);
	merged_close(&mg);
}

static void of_what_both_have_the_longer_is_used_and_never_both(void **state)
{
	struct merged mg;

	(void)state;
	ours(0, WITH_RANGES | WITH_GPU);
	kinetos(0, 0, 0, WITH_RANGES);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'combined'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), CALLS);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range"), CALLS);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nccl_op"), CALLS);
	merged_close(&mg);
}

static void annotations_of_both_tell_the_clock_too(void **state)
{
	struct merged mg;

	(void)state;
	ours(0, WITH_RANGES | WITHOUT_CALLS);
	kinetos(0, 40 * US, 0, WITH_RANGES | WITHOUT_CALLS);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg,
			     "SELECT count(*) FROM finding WHERE kind = 'combined' AND text LIKE "
			     "'%annotations that both recorded%'"),
			 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), UNTIL - FROM);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range"), CALLS);
	merged_close(&mg);
}

/* Refused, with the reason; one of the two is used, whole. */
static void expect_refused(const char *reason)
{
	struct merged mg;
	char sql[256];

	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'combined'"), 0);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'rank_twice'"), 1);
	(void)snprintf(sql, sizeof(sql),
		       "SELECT count(*) FROM finding WHERE kind = 'not_combined' AND text LIKE "
		       "'%%%s%%'",
		       reason);
	assert_int_equal(ask(&mg, sql), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM rank WHERE process_id IS NOT NULL"), 1);
	merged_close(&mg);
}

static void clocks_that_do_not_agree_are_not_combined(void **state)
{
	(void)state;
	ours(0, 0);
	kinetos(0, 0, 3 * MS, 0);
	expect_refused("does not agree on one clock");
}

static void nothing_in_common_is_not_combined(void **state)
{
	(void)state;
	ours(0, WITH_RANGES);
	kinetos(0, 0, 0, WITHOUT_CALLS);
	expect_refused("nothing that both saw");
}

/* A restart, or another job: the last recording of the rank is used, as ever. */
static void another_process_is_another_recording(void **state)
{
	struct merged mg;

	(void)state;
	ours(0, 0);
	kinetos(0, 0, 0, OTHER_PID);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind LIKE '%combined'"), 0);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'rank_twice'"), 1);
	merged_close(&mg);
}

#define COMBINE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COMBINE_TEST(our_calls_get_the_profilers_kernels),
		COMBINE_TEST(a_clock_that_is_off_is_found_and_taken_off),
		COMBINE_TEST(of_what_both_have_the_longer_is_used_and_never_both),
		COMBINE_TEST(annotations_of_both_tell_the_clock_too),
		COMBINE_TEST(clocks_that_do_not_agree_are_not_combined),
		COMBINE_TEST(nothing_in_common_is_not_combined),
		COMBINE_TEST(another_process_is_another_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
