/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be true is put aside with its reason, and what looks odd but can be is kept: the same from
 * our recordings and from a profiler's. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/lag_builder.h"
#include "tests/unit/merged.h"
#include "tests/unit/reported.h"

#define T0     INT64_C(1700000000000000000)
#define US     INT64_C(1000)
#define MS     INT64_C(1000000)
#define PLAIN  200 /* kernels that nothing is wrong with */
#define STREAM 7

struct odd {
	int64_t start_ns, length_ns, stream, graph; /* graph 0: none */
	const char *name, *reason;                  /* NULL: it is kept */
};

static const struct odd odd[] = {
	{ T0 + 5 * MS, -3 * US, 20, 0, "negative", "ends before it starts" },
	{ T0 + 6 * MS, INT64_C(236) * 365 * 86400 * 1000000000, 20, 0, "centuries", "impossible" },
	{ 0, 10 * US, 20, 0, "no start", "no start time" },
	{ T0 + 2 * MS + 50 * US, 9 * MS, STREAM, 0, "swallows", "overruns its stream" },
	/* Whole microseconds make many of these. */
	{ T0 + 7 * MS, 0, 20, 0, "empty", NULL },
	{ T0 + 7 * MS, 0, 20, 0, "empty too", NULL },
	/* A dependent launch begins in the prologue of its successor, or long before its predecessor ends. */
	{ T0 + 3 * MS + 60 * US, 90 * US, STREAM, 0, "dependent launch", NULL },
	{ T0 + 4 * MS + 10 * US, 1500 * US, STREAM, 0, "long and overlapped", NULL },
	/* Nodes of one graph run side by side under one stream. */
	{ T0 + 8 * MS + 10 * US, 9 * MS, STREAM, 4, "node", NULL },
};

#define N_ODD (sizeof(odd) / sizeof(odd[0]))

static void ours(void)
{
	struct lag_builder lb;

	lb_open(&lb, lb_dir(), "r0", LB_WHO(0, 1, "node"), T0 - MS);
	for (int i = 0; i < PLAIN; i++) {
		int64_t at = T0 + (int64_t)i * 120 * US;

		(void)lb_kernel(&lb, at - 10 * US, at, at + 100 * US, STREAM, "plain");
	}
	for (size_t i = 0; i < N_ODD; i++) {
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_kernel);
		rec.kernel.start_ns = odd[i].start_ns;
		rec.kernel.end_ns = odd[i].start_ns + odd[i].length_ns;
		rec.kernel.device = 0;
		rec.kernel.context = 1;
		rec.kernel.stream = odd[i].stream;
		rec.kernel.correlation = 5000 + (int64_t)i;
		rec.kernel.name = lb_text(&lb, odd[i].name);
		if (odd[i].graph)
			rec.kernel.graph_id = odd[i].graph;
		lb_add(&lb, &rec);
	}
	lb_close(&lb);
}

static void kernel(FILE *f, const char *name, int64_t start_ns, int64_t length_ns, int64_t stream,
		   int64_t graph, int id)
{
	fprintf(f,
		",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": "
		"%lld, "
		"\"ts\": %lld.%03lld, \"dur\": %s%lld.%03lld, \"args\": {\"device\": 0, "
		"\"context\": 1, "
		"\"stream\": %lld, \"graph id\": %lld, \"correlation\": %d}}",
		name, (long long)stream, (long long)(start_ns / 1000), (long long)(start_ns % 1000),
		length_ns < 0 ? "-" : "", (long long)(llabs(length_ns) / 1000),
		(long long)(llabs(length_ns) % 1000), (long long)stream, (long long)graph, id);
}

static void kinetos(void)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/rank0.json", lb_dir());
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 1},\n\"traceEvents\": [\n"
		   "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {}}");
	for (int i = 0; i < PLAIN; i++)
		kernel(f, "plain", T0 + (int64_t)i * 120 * US, 100 * US, STREAM, 0, i + 1);
	for (size_t i = 0; i < N_ODD; i++) {
		kernel(f, odd[i].name, odd[i].start_ns, odd[i].length_ns, odd[i].stream,
		       odd[i].graph, 5000 + (int)i);
	}
	fprintf(f, "\n]}\n");
	(void)fclose(f);
}

/* The reports say of each what the table has. */
static void check_reports(const char *path, size_t n)
{
	assert_int_equal(reported(path, "quarantine", NULL, NULL), n);
	assert_int_equal(reported(path, "quarantine", "rank", "0"), n);
	assert_int_equal(reported(path, "quarantine", "record", "kernel"), n);
	assert_int_equal(reported(path, "quarantine", "count", "1"), n);
	/* One of 209. */
	assert_int_equal(reported(path, "quarantine", "share", "0.5 %"), n);
	for (size_t i = 0; i < N_ODD; i++) {
		assert_int_equal(reported(path, "quarantine", "first_name", odd[i].name),
				 odd[i].reason != NULL);
	}
	assert_int_equal(reported(path, "trust", "kind", "quarantined"), n);
}

static void check_all(void)
{
	struct merged mg;
	char sql[400];
	int64_t n = 0;

	assert_false(lag_failed(merge_dir(&mg, lb_dir(), NULL)));
	for (size_t i = 0; i < N_ODD; i++) {
		(void)snprintf(sql, sizeof(sql),
			       "SELECT count(*) FROM quarantine AS q JOIN string AS s ON s.id = "
			       "q.name_id WHERE s.value = '%s' AND q.reason LIKE '%s%%'",
			       odd[i].name, odd[i].reason ? odd[i].reason : "");
		if (ask(&mg, sql) != (odd[i].reason != NULL))
			print_error("%s\n", odd[i].name);
		assert_int_equal(ask(&mg, sql), odd[i].reason != NULL);
		n += odd[i].reason != NULL;
	}
	assert_int_equal(ask(&mg, "SELECT count(*) FROM quarantine"), n);
	assert_int_equal(ask(&mg, "SELECT count(*) FROM gpu_event"), PLAIN + (int64_t)N_ODD - n);
	expect_text(&mg, "SELECT value FROM source_fact WHERE key = 'put aside'", "4");
	expect_text(&mg, "SELECT value FROM source_fact WHERE key = 'records: kernel'", "209");
	check_reports(mg.db_path, (size_t)n);
	merged_close(&mg);
}

static void in_our_recordings(void **state)
{
	(void)state;
	ours();
	check_all();
}

static void in_a_profilers_trace(void **state)
{
	(void)state;
	kinetos();
	check_all();
}

#define QUARANTINE_TEST(name) cmocka_unit_test_setup_teardown(name, lb_setup, lb_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		QUARANTINE_TEST(in_our_recordings),
		QUARANTINE_TEST(in_a_profilers_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
