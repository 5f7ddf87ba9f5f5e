/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings find their ends, times that cannot be true go into quarantine, and each recording is given
 * to the right rank: duplicates, restarts, other runs and helpers are named. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"

#define T0 INT64_C(1700000000000000000)
#define US INT64_C(1000)

static void add_range(struct lag_builder *lb, enum lag_range_kind kind, int64_t id, int64_t tid,
		      const char *name, int64_t at)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_range);
	rec.range.start_ns = at;
	rec.range.tid = tid;
	rec.range.kind = kind;
	rec.range.id = id;
	rec.range.name = lb_text(lb, name);
	lb_add(lb, &rec);
}

static void end_range(struct lag_builder *lb, enum lag_range_kind kind, int64_t id, int64_t tid,
		      int64_t at)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_range_end);
	rec.range_end.end_ns = at;
	rec.range_end.tid = tid;
	rec.range_end.kind = kind;
	rec.range_end.id = id;
	lb_add(lb, &rec);
}

static int64_t length(struct merged *mg, const char *name)
{
	char sql[256];

	(void)snprintf(sql, sizeof(sql),
		       "SELECT end_ns - start_ns FROM nvtx_range WHERE name_id = "
		       "(SELECT id FROM string WHERE value = '%s')",
		       name);
	return ask(mg, sql);
}

static void ranges_nest_and_the_open_ones_end_with_the_recording(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	end_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, T0); /* began before the recording */
	add_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, "step", T0 + 1000);
	add_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, "forward", T0 + 2000);
	add_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 8, "loader", T0 + 2500);
	add_range(&lb, LAG_RANGE_START, 5, 7, "free", T0 + 2600);
	end_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, T0 + 3000);
	/* One range ends and the next begins at the same moment. */
	add_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, "backward", T0 + 3000);
	end_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, T0 + 4500);
	end_range(&lb, LAG_RANGE_START, 5, 8, T0 + 4600);
	end_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, T0 + 5000);
	add_range(&lb, LAG_RANGE_MARK, LAG_NONE, 7, "mark", T0 + 5500);
	(void)lb_kernel(&lb, T0 + 100, T0 + 6000, T0 + 9000, 7, "k");
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(length(&mg, "step"), 4000);
	assert_int_equal(length(&mg, "forward"), 1000);
	assert_int_equal(length(&mg, "backward"), 1500);
	assert_int_equal(length(&mg, "free"), 2000);
	assert_int_equal(length(&mg, "loader"), 6500);
	assert_int_equal(length(&mg, "mark"), LAG_NONE);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range WHERE flags = 1"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range WHERE depth = 1"), 2);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unclosed_range'"), 1);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'unopened_range'"), 1);
	merged_close(&mg);
}

static void kernel_seen_running_and_done_is_one_kernel(void **state)
{
	struct lag_record rec;
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	for (int i = 0; i < 3; i++) {
		lag_record_init(&rec, LAG_REC_kernel);
		rec.kernel.start_ns = T0 + 1000;
		rec.kernel.device = 0;
		rec.kernel.context = 1;
		rec.kernel.stream = 7;
		rec.kernel.correlation = i == 2 ? 12 : 11;
		rec.kernel.name = lb_text(&lb, "k");
		if (i == 1)
			rec.kernel.end_ns = T0 + 3000;
		lb_add(&lb, &rec);
	}
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), 2);
	assert_int_equal(ask(&mg, "SELECT end_ns - start_ns FROM gpu_event WHERE correlation = 11"),
			 2000);
	assert_int_equal(ask(&mg, "SELECT end_ns FROM gpu_event WHERE correlation = 12"), LAG_NONE);
	merged_close(&mg);
}

static void impossible_times_are_put_aside(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	for (int i = 0; i < 40; i++) {
		(void)lb_kernel(&lb, T0 + i * (100 * US), T0 + i * (100 * US),
				T0 + i * (100 * US) + 50, 7, "good");
	}
	(void)lb_kernel(&lb, T0, T0 + 500, T0 + 400, 7, "backwards");
	(void)lb_kernel(&lb, T0, 0, 0, 7, "zero");
	(void)lb_kernel(&lb, T0, INT64_MAX, INT64_MAX, 7, "far");
	(void)lb_kernel(&lb, T0, -5, 5, 7, "negative");
	(void)lb_kernel(&lb, T0, T0, T0 + INT64_C(200000) * 1000000000, 7, "two days");
	(void)lb_kernel(&lb, T0, T0 + 10, T0 + 3900 * US, 7, "swallows its stream");
	(void)lb_kernel(&lb, T0, T0 + 10, T0 + 3900 * US, 20, "long on its own stream");
	lb_close(&lb);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), 41);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM quarantine"), 6);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM quarantine WHERE reason = "
				  "'ends before it starts'"),
			 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM quarantine WHERE reason = 'no start time'"),
			 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM quarantine WHERE reason = "
				  "'overruns its stream'"),
			 1);
	assert_int_equal(ask(&mg, "SELECT max(end_ns) - min(start_ns) FROM gpu_event"),
			 3900 * US + 50);
	merged_close(&mg);
}

static void add_moment(struct lag_builder *lb, enum lag_record_kind kind, int64_t first,
		       int64_t second, int64_t third)
{
	struct lag_record rec;

	lag_record_init(&rec, kind);
	rec.field[0] = first;
	rec.field[1] = second;
	rec.field[2] = third;
	if (kind == LAG_REC_clock) {
		rec.clock.cupti_ns = first;
		rec.clock.bracket_ns = third;
	}
	if (kind == LAG_REC_op_end)
		rec.op_end.op_id = 1;
	lb_add(lb, &rec);
}

/* Ends, clock readings, losses and gaps carry times too. */
static void times_that_cannot_be_true_reach_nothing_else(void **state)
{
	static const int64_t wild[] = { 0,
					1,
					-1,
					INT64_MAX,
					INT64_MIN + 1,
					INT64_C(4199999999999999999),
					T0 - INT64_C(40) * 86400 * 1000000000,
					T0 + INT64_C(40) * 86400 * 1000000000 };

	static const enum lag_record_kind kinds[] = { LAG_REC_range_end,  LAG_REC_op_end,
						      LAG_REC_comm_event, LAG_REC_clock,
						      LAG_REC_clock_step, LAG_REC_receipt,
						      LAG_REC_loss,       LAG_REC_gap,
						      LAG_REC_clock_state };
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	lb_open(&lb, lb_dir(), "a", LB_WHO(0, 1, "node"), T0);
	for (int64_t at = T0; at < T0 + 4000 * US; at += 100 * US)
		(void)lb_kernel(&lb, at, at, at + 50, 7, "good");
	add_range(&lb, LAG_RANGE_PUSH, LAG_NONE, 7, "open", T0);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
			add_moment(&lb, kinds[k], wild[i], wild[(i + 1) % 8], 3);
			add_moment(&lb, kinds[k], wild[i], 3, INT64_MAX);
			add_moment(&lb, kinds[k], T0, wild[i], wild[i]);
		}
	}
	lb_close(&lb);
	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), 40);
	assert_int_equal(ask(&mg, "SELECT last_ns - first_ns FROM process"), 3900 * US + 100);
	assert_int_equal(ask(&mg, "SELECT end_ns - start_ns FROM nvtx_range"), 3900 * US + 100);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM loss"), 24);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gap"), 24);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM (SELECT from_ns AS t FROM loss UNION ALL "
				  "SELECT until_ns FROM loss UNION ALL SELECT from_ns FROM gap "
				  "UNION ALL SELECT until_ns FROM gap) "
				  "WHERE t IS NOT NULL AND abs(t - 1700000000000000000) > 1000000"),
			 0);
	merged_close(&mg);
}

static void one_kernel_on(const char *host, const char *name, int rank, int world, int64_t at,
			  int64_t restart, const char *run)
{
	struct lag_record rec;
	struct lag_builder lb;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s.lag", lb_dir(), name);
	(void)unlink(path);
	lb_open(&lb, lb_dir(), name, LB_WHO(rank, world, host), at);
	lag_record_init(&rec, LAG_REC_process);
	rec.process.start_ns = at;
	rec.process.restart = restart;
	rec.process.run_id = lb_text(&lb, run);
	lb_add(&lb, &rec);
	(void)lb_kernel(&lb, at, at + 10, at + 20, 7, name);
	lb_close(&lb);
}

static void one_kernel(const char *name, int rank, int world, int64_t at, int64_t restart,
		       const char *run)
{
	one_kernel_on("node", name, rank, world, at, restart, run);
}

static void copy_file(const char *from, const char *to)
{
	char path[256];
	size_t n;
	uint8_t *bytes;
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%s", lb_dir(), from);
	bytes = lb_read(path, &n);
	(void)snprintf(path, sizeof(path), "%s/%s", lb_dir(), to);
	out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	(void)fclose(out);
	free(bytes);
}

static void last_restart_of_a_rank_is_used(void **state)
{
	struct merged mg;

	(void)state;
	one_kernel("late", 1, 2, T0 + 1000 * US, 1, "run");
	one_kernel("early", 1, 2, T0, 0, "run");
	one_kernel("other", 0, 2, T0, 0, "run");
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(mg.receipt.n_ranks, 2);
	expect_text(&mg,
		    "SELECT value FROM gpu_event JOIN string ON string.id = name_id WHERE "
		    "rank = 1",
		    "late");
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'rank_twice'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM process WHERE rank IS NULL"), 1);
	merged_close(&mg);
}

static void same_process_twice_is_used_once(void **state)
{
	struct merged mg;

	(void)state;
	one_kernel("a", 0, 1, T0, 0, "run");
	copy_file("a.lag", "b.lag");
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM source WHERE status = 'duplicate'"), 1);
	merged_close(&mg);
}

static void another_run_is_named_and_left_out(void **state)
{
	struct merged mg;

	(void)state;
	one_kernel("r0", 0, 4, T0, 0, "monday");
	one_kernel("r1", 1, 4, T0, 0, "monday");
	/* The same time and a free rank: started one by one. */
	one_kernel("r2", 2, 4, T0 + 5 * US, 0, "monday too");
	/* A day later, whatever its rank. */
	one_kernel("r3", 3, 4, T0 + INT64_C(86400000000000), 0, "tuesday");
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(mg.receipt.n_ranks, 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'mixed_runs' AND "
				  "rank = 3"),
			 1);
	expect_text(&mg, "SELECT text FROM finding WHERE kind = 'missing_rank'",
		    "no recording of 1 of 4 ranks: 3");
	merged_close(&mg);
}

#define DAY INT64_C(86400000000000)

static void expect_other_run(const char *file, const char *why, uint64_t n_ranks, uint64_t n_others)
{
	struct merged mg;
	char sql[256];

	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(*) FROM finding WHERE kind = 'mixed_runs' AND severity = 1 AND "
		"text LIKE '%%/%s.lag: of another run, not used: %s'",
		file, why);
	assert_int_equal(ask(&mg, sql), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind IN ('rank_twice', "
				  "'world_size')"),
			 0);
	assert_int_equal(mg.receipt.n_ranks, n_ranks);
	assert_int_equal(mg.receipt.n_other_runs, n_others);
	merged_close(&mg);
}

static void recordings_that_contradict_each_other_are_of_two_runs(void **state)
{
	struct merged mg;

	(void)state;
	one_kernel("a", 0, 4, T0, 0, "");
	one_kernel("b", 1, 4, T0, 0, "");
	one_kernel("c", 1, 2, T0 + 5 * US, 0, "");
	expect_other_run("c", "its job has 2 ranks, that of the others 4", 2, 1);
	one_kernel("c", 5, 0, T0, 0, "");
	expect_other_run("c", "rank 5, and the job of the others has 4 ranks", 2, 1);
	/* One rank, at another time, and in another process by its host. */
	one_kernel("c", 1, 4, T0 - 3 * DAY, 0, "");
	expect_other_run("c", "recorded 3 days earlier than the others", 2, 1);
	/* A free rank, however: its clock may be wrong. */
	one_kernel("c", 2, 4, T0 - 3 * DAY, 0, "");
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(mg.receipt.n_ranks, 3);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'apart' AND rank = 2"),
			 1);
	merged_close(&mg);
	one_kernel("c", -1, 0, T0 + 3 * DAY, 0, "");
	expect_other_run("c", "recorded 3 days later than the others", 2, 1);
	one_kernel("c", 1, 4, 1000, 0, "");
	expect_other_run("c", "its times have no date, those of the others have", 2, 1);
	one_kernel_on("elsewhere", "c", 1, 4, T0 + 5, 0, "");
	expect_other_run("c", "rank 1 ran on elsewhere while that of the others ran on node", 2, 1);
}

static void of_two_runs_of_a_job_the_later_is_used_unless_it_has_fewer_ranks(void **state)
{
	char path[256];

	(void)state;
	for (int r = 0; r < 2; r++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "a%d", r);
		one_kernel(name, r, 2, T0 + 3 * DAY, 0, "");
		(void)snprintf(name, sizeof(name), "b%d", r);
		one_kernel(name, r, 2, T0, 0, "");
	}
	expect_other_run("b0", "recorded 3 days earlier than the others", 2, 2);
	(void)snprintf(path, sizeof(path), "%s/a0.lag", lb_dir());
	assert_int_equal(unlink(path), 0);
	expect_other_run("a1", "recorded 3 days later than the others", 2, 1);
}

static void unknown_ranks_are_numbered_in_order_of_paths(void **state)
{
	struct merged mg;

	(void)state;
	one_kernel("node10", -1, 0, T0, 0, "");
	one_kernel("node9", -1, 0, T0 + 7, 0, "");
	one_kernel("node1", 1, 3, T0 + 9, 0, "");
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	expect_text(&mg,
		    "SELECT value FROM gpu_event JOIN string ON string.id = name_id WHERE "
		    "rank = 0",
		    "node9");
	expect_text(&mg,
		    "SELECT value FROM gpu_event JOIN string ON string.id = name_id WHERE "
		    "rank = 2",
		    "node10");
	assert_int_equal(ask(&mg, "SELECT count(*) FROM finding WHERE kind = 'rank_assigned'"), 2);
	merged_close(&mg);
}

static void helpers_are_listed_without_a_rank(void **state)
{
	struct lag_builder lb;
	struct merged mg;

	(void)state;
	one_kernel("worker", 0, 1, T0, 0, "run");
	/* Where no rank ran: its clock is nobody's matter. */
	lb_open(&lb, lb_dir(), "helper", LB_WHO(-1, 0, "elsewhere"), T0);
	add_range(&lb, LAG_RANGE_MARK, LAG_NONE, 7, "m", T0 + 5);
	lb_close(&lb);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_OK);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM process"), 2);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM rank"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM nvtx_range"), 0);
	assert_int_equal(ask(&mg, "SELECT count FROM finding WHERE kind = 'helper'"), 1);
	merged_close(&mg);
}

static void cut_empty_and_foreign_files_do_not_stop_the_rest(void **state)
{
	char path[256];
	struct merged mg;
	FILE *out;

	(void)state;
	one_kernel("a", 0, 3, T0, 0, "run");
	one_kernel("b", 1, 3, T0, 0, "run");
	copy_file("b.lag", "c.lag");
	(void)snprintf(path, sizeof(path), "%s/b.lag", lb_dir());
	assert_int_equal(truncate(path, 8192 + 64 + 60), 0);
	(void)snprintf(path, sizeof(path), "%s/c.lag", lb_dir());
	assert_int_equal(truncate(path, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/d.lag", lb_dir());
	out = fopen(path, "wb");
	assert_non_null(out);
	(void)fputs("this is no trace", out);
	(void)fclose(out);
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_WARN);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM source WHERE status = 'damaged'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM source WHERE status = 'empty'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM source WHERE status = 'refused'"), 1);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM source WHERE status = 'ok'"), 1);
	assert_true(mg.receipt.n_ranks >= 1);
	merged_close(&mg);
}

static void nothing_usable_leaves_no_file(void **state)
{
	struct merged mg;

	(void)state;
	assert_int_equal(merge_dir(&mg, lb_dir(), NULL), LAG_ERR_INPUT);
	assert_non_null(strstr(mg.err.text, "no trace files in it"));
	assert_int_equal(access(mg.db_path, F_OK), -1);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(ranges_nest_and_the_open_ones_end_with_the_recording),
		MERGE_TEST(kernel_seen_running_and_done_is_one_kernel),
		MERGE_TEST(impossible_times_are_put_aside),
		MERGE_TEST(times_that_cannot_be_true_reach_nothing_else),
		MERGE_TEST(last_restart_of_a_rank_is_used),
		MERGE_TEST(same_process_twice_is_used_once),
		MERGE_TEST(another_run_is_named_and_left_out),
		MERGE_TEST(recordings_that_contradict_each_other_are_of_two_runs),
		MERGE_TEST(of_two_runs_of_a_job_the_later_is_used_unless_it_has_fewer_ranks),
		MERGE_TEST(unknown_ranks_are_numbered_in_order_of_paths),
		MERGE_TEST(helpers_are_listed_without_a_rank),
		MERGE_TEST(cut_empty_and_foreign_files_do_not_stop_the_rest),
		MERGE_TEST(nothing_usable_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
