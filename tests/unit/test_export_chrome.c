/* SPDX-License-Identifier: Apache-2.0 */
/* The Chrome export as its readers see it: read back by the strict reader, then checked for what
 * Perfetto asks for: metadata first, lanes without overlap, arrows with two ends. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/json_read.h"
#include "tests/unit/trace_builder.h"
#include "viz/export/export.h"

#define US ((int64_t)1000)

struct event {
	char phase, cat[24], name[64];
	int64_t pid, tid, ts, dur, id; /* ns */
	int64_t last_rank, seq;
	char collective[24], ranks[24], meta[64];
};

struct parsed {
	struct event *events;
	size_t n;
	int64_t base, rank, world;
	struct lag_forecast forecast;
};

static enum lag_status collect(struct lag_export_out *out, const char *bytes, size_t n,
			       struct lag_err *err)
{
	(void)err;
	lag_buf_add(out->state, bytes, n);
	return LAG_OK;
}

static enum lag_status keep_forecast(void *state, const struct lag_forecast *forecast,
				     struct lag_err *err)
{
	(void)err;
	*(struct lag_forecast *)state = *forecast;
	return LAG_OK;
}

static void copy_text(char *to, size_t room, const struct lag_json_reader *r)
{
	size_t n = r->n < room ? r->n : room - 1;

	memcpy(to, r->text, n);
	to[n] = '\0';
}

static void set_field(struct event *e, const char *key, const struct lag_json_reader *r)
{
	int64_t whole = 0, scaled = 0;

	(void)lag_json_to_fixed(r->text, r->n, 0, &whole);
	(void)lag_json_to_fixed(r->text, r->n, 3, &scaled);
	if (strcmp(key, "ph") == 0)
		e->phase = r->text[0];
	else if (strcmp(key, "cat") == 0)
		copy_text(e->cat, sizeof(e->cat), r);
	else if (strcmp(key, "name") == 0 && !e->name[0])
		copy_text(e->name, sizeof(e->name), r);
	else if (strcmp(key, "name") == 0)
		copy_text(e->meta, sizeof(e->meta), r);
	else if (strcmp(key, "pid") == 0)
		e->pid = whole;
	else if (strcmp(key, "tid") == 0)
		e->tid = whole;
	else if (strcmp(key, "id") == 0)
		e->id = whole;
	else if (strcmp(key, "ts") == 0)
		e->ts = scaled;
	else if (strcmp(key, "dur") == 0)
		e->dur = scaled;
	else if (strcmp(key, "last rank") == 0)
		e->last_rank = whole;
	else if (strcmp(key, "Seq") == 0)
		e->seq = whole;
	else if (strcmp(key, "Collective name") == 0)
		copy_text(e->collective, sizeof(e->collective), r);
	else if (strcmp(key, "Process Group Ranks") == 0)
		copy_text(e->ranks, sizeof(e->ranks), r);
}

/* Strictly: any defect of the document fails the test. */
static void parse(struct parsed *p, const struct lag_buf *json)
{
	struct lag_json_reader r;
	struct lag_err err = { 0 };
	enum lag_status st;
	char key[64] = "";

	lag_json_init_bytes(&r, json->text, json->n, false);
	while ((st = lag_json_next(&r, &err)) == LAG_OK) {
		if (r.kind == LAG_JSON_KEY) {
			copy_text(key, sizeof(key), &r);
		} else if (r.kind == LAG_JSON_OBJECT && r.depth == 3) {
			p->events = realloc(p->events, (p->n + 1) * sizeof(*p->events));
			assert_non_null(p->events);
			p->events[p->n++] = (struct event){ .last_rank = -1, .seq = -1, .dur = -1 };
		} else if (r.kind != LAG_JSON_STRING && r.kind != LAG_JSON_NUMBER) {
			continue;
		} else if (r.depth >= 3 && p->n) {
			set_field(&p->events[p->n - 1], key, &r);
		} else if (strcmp(key, "baseTimeNanoseconds") == 0) {
			(void)lag_json_to_fixed(r.text, r.n, 0, &p->base);
		} else if (strcmp(key, "rank") == 0) {
			(void)lag_json_to_fixed(r.text, r.n, 0, &p->rank);
		} else if (strcmp(key, "world_size") == 0) {
			(void)lag_json_to_fixed(r.text, r.n, 0, &p->world);
		}
	}
	assert_string_equal(err.text, "");
	assert_int_equal(st, LAG_END);
	lag_json_release(&r);
}

static enum lag_status export(struct lag_trace *trace, const struct lag_model_opts *model,
			      unsigned kinds, struct parsed *p) {
	struct lag_export_opts opts = { .kinds = kinds, .until_ns = INT64_MAX };
		struct lag_buf json = { 0 };
		struct lag_export_out out = { .write = collect, .state = &json };
		struct lag_context * ctx; struct lag_err err = { 0 }; enum lag_status st;

		*p = (struct parsed){ .rank = -1 };
		assert_int_equal(lag_context_new(trace, model, &ctx, &err), LAG_OK);
		st = lag_exporter_chrome.write(ctx, &opts, keep_forecast, &p->forecast, &out, &err);
		if (st == LAG_OK){ parse(p, &json);
				   /* A forecast that is off by a factor of two helps nobody. */
				   assert_true(json.n < 2 * p->forecast.n_bytes);
				   assert_true(p->forecast.n_bytes < 2 * json.n);
				   /* The reason for "on a line of its own". */
				   assert_non_null(strstr(json.text, "\n\"rank\": "));
}
lag_buf_release(&json);
lag_context_free(ctx);
return st;
}

/* What holds for every export. */
static void check(const struct parsed *p)
{
	size_t n_meta = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct event *e = &p->events[i];
		int halves = 0;

		if (e->phase == 'M')
			assert_int_equal(i, n_meta++); /* before all else */
		assert_true(e->pid >= 1);
		for (size_t j = 0; j < i && e->phase == 'X'; j++) {
			const struct event *b = &p->events[j];

			if (b->phase != 'X' || b->tid != e->tid)
				continue;
			assert_int_equal(b->pid, e->pid);
			assert_true(b->ts <= e->ts);
			/* Behind it or inside it. */
			assert_true(b->ts + b->dur <= e->ts || b->ts + b->dur >= e->ts + e->dur);
		}
		for (size_t j = 0; j < p->n && (e->phase == 's' || e->phase == 'f'); j++)
			halves += p->events[j].id == e->id && p->events[j].phase != 'M' &&
				  p->events[j].phase != 'X';
		assert_true(halves == 0 || halves == 2);
		/* An arrow begins and ends on a slice. */
		for (size_t j = 0; j < p->n && halves; j++) {
			const struct event *b = &p->events[j];

			if (b->phase == 'X' && b->tid == e->tid && b->ts <= e->ts &&
			    e->ts <= b->ts + b->dur)
				halves = 0;
		}
		assert_int_equal(halves, 0);
	}
}

static const struct event *find(const struct parsed *p, const char *name, int64_t pid)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->events[i].phase == 'X' && strcmp(p->events[i].name, name) == 0 &&
		    p->events[i].pid == pid)
			return &p->events[i];
	}
	return NULL;
}

static size_t count(const struct parsed *p, char phase, const char *cat)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->events[i].phase == phase && strcmp(p->events[i].cat, cat) == 0;
	return n;
}

static bool has_track(const struct parsed *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->events[i].phase == 'M' && strcmp(p->events[i].meta, name) == 0)
			return true;
	}
	return false;
}

/* Two ranks that compute and then all-reduce; rank 1 comes 100 us late. */
static struct lag_trace *late_pair(void)
{
	static const int both[] = { 0, 1 };
	struct trace_builder tb;
	uint32_t comm;

	tb_init(&tb, 2, 1);
	comm = tb_comm(&tb, "world", both, 2);
	for (int rank = 0; rank < 2; rank++) {
		int64_t start = 1000 * US, end = (rank ? 1300 : 1200) * US;
		size_t k = tb_kernel(&tb, rank, 7, "gemm", start, end);

		tb_launched(&tb, k, 42, start - 20 * US, start - 10 * US);
		(void)tb_op(&tb, comm, rank, LAG_FUNC_ALL_REDUCE, 0, -1, 4096, end, 1350 * US);
		tb_range(&tb, rank, 42, "step 0", start - 30 * US, 1400 * US);
		tb_range(&tb, rank, 42, "forward", start - 25 * US, end);
	}
	return tb_finish(&tb);
}

static void all_ranks_stand_in_one_file(void **state)
{
	struct parsed p;
	const struct event *a, *b;

	(void)state;
	assert_int_equal(export(late_pair(), NULL, LAG_EXPORT_ALL, &p), LAG_OK);
	check(&p);
	assert_int_equal(p.rank, 0);
	assert_int_equal(p.world, 2);
	a = find(&p, "gemm", 1);
	b = find(&p, "gemm", 2);
	assert_non_null(a);
	assert_non_null(b);
	assert_int_not_equal(a->tid, b->tid);
	assert_int_equal(a->dur, 200 * US);
	assert_int_equal(b->dur, 300 * US);
	assert_int_equal(a->ts, b->ts);
	assert_non_null(find(&p, "forward", 1));
	assert_int_equal(count(&p, 's', "ac2g"), 2);
	assert_int_equal(count(&p, 'f', "ac2g"), 2);
	assert_true(has_track(&p, "NVTX of thread 42"));
	assert_true(has_track(&p, "CUDA calls of thread 42"));
	free(p.events);
}

static void collectives_carry_kinetos_names_and_who_was_late(void **state)
{
	struct parsed p;
	const struct event *nccl = NULL, *wait;

	(void)state;
	assert_int_equal(export(late_pair(), NULL, LAG_EXPORT_ALL, &p), LAG_OK);
	for (size_t i = 0; i < p.n; i++) {
		if (p.events[i].collective[0] && p.events[i].pid == 1)
			nccl = &p.events[i];
	}
	assert_non_null(nccl);
	assert_string_equal(nccl->collective, "allreduce");
	assert_string_equal(nccl->ranks, "[0, 1]");
	assert_int_equal(nccl->seq, 0);
	assert_int_equal(nccl->last_rank, 1);
	wait = find(&p, "wait for rank 1", 1);
	assert_non_null(wait);
	assert_int_equal(wait->dur, 100 * US);
	assert_int_equal(wait->ts, nccl->ts);
	assert_null(find(&p, "wait for rank 1", 2));
	/* One arrow, from the late one to the one that waited. */
	assert_int_equal(count(&p, 's', "nccl"), 1);
	for (size_t i = 0; i < p.n; i++) {
		if (p.events[i].phase == 's' && strcmp(p.events[i].cat, "nccl") == 0)
			assert_int_equal(p.events[i].pid, 2);
		if (p.events[i].phase == 'f' && strcmp(p.events[i].cat, "nccl") == 0)
			assert_int_equal(p.events[i].pid, 1);
	}
	free(p.events);
}

static void overlap_goes_to_a_lane_of_its_own(void **state)
{
	struct trace_builder tb;
	struct parsed p;

	(void)state;
	tb_init(&tb, 1, 1);
	(void)tb_kernel(&tb, 0, 7, "a", 0, 100);
	(void)tb_kernel(&tb, 0, 7, "b", 50, 150);  /* overlaps a */
	(void)tb_kernel(&tb, 0, 7, "c", 60, 80);   /* inside both: no child on a stream */
	(void)tb_kernel(&tb, 0, 7, "d", 150, 150); /* no length, at another's start */
	(void)tb_kernel(&tb, 0, 7, "e", 150, 200);
	tb_range(&tb, 0, 9, "outer", 0, 100);
	tb_range(&tb, 0, 9, "inner", 10, 100);
	tb_range(&tb, 0, 9, "crossing", 50, 120);
	assert_int_equal(export(tb_finish(&tb), NULL, LAG_EXPORT_ALL, &p), LAG_OK);
	check(&p);
	assert_int_equal(find(&p, "b", 1)->tid, find(&p, "a", 1)->tid + 1);
	assert_int_equal(find(&p, "c", 1)->tid, find(&p, "a", 1)->tid + 2);
	assert_int_equal(find(&p, "d", 1)->tid, find(&p, "a", 1)->tid);
	assert_int_equal(find(&p, "e", 1)->tid, find(&p, "a", 1)->tid);
	assert_int_equal(find(&p, "inner", 1)->tid, find(&p, "outer", 1)->tid);
	assert_int_equal(find(&p, "crossing", 1)->tid, find(&p, "outer", 1)->tid + 1);
	assert_true(has_track(&p, "GPU 0 stream 7 (overlap 2)"));
	assert_true(has_track(&p, "NVTX of thread 9 (overlap 1)"));
	free(p.events);
}

static void choices_leave_out_the_rest(void **state)
{
	static const struct lag_model_opts only_1 = { .ranks = "1" }, none = { .ranks = "5" };
	struct parsed p;

	(void)state;
	assert_int_equal(export(late_pair(), &only_1, LAG_EXPORT_ALL, &p), LAG_OK);
	check(&p);
	assert_int_equal(p.rank, 1);
	for (size_t i = 0; i < p.n; i++)
		assert_int_equal(p.events[i].pid, 2);
	assert_int_equal(count(&p, 's', "nccl"), 0);
	free(p.events);
	assert_int_equal(export(late_pair(), NULL, LAG_EXPORT_KERNELS | LAG_EXPORT_FLOWS, &p),
			 LAG_OK);
	check(&p);
	assert_int_equal(count(&p, 'X', "kernel"), 2);
	assert_int_equal(count(&p, 's', "ac2g"), 0); /* no launch calls to begin at */
	free(p.events);
	assert_int_equal(export(late_pair(), &none, LAG_EXPORT_ALL, &p), LAG_ERR_USAGE);
}

static void a_kernel_that_never_ended_reaches_the_end(void **state)
{
	struct trace_builder tb;
	struct parsed p;

	(void)state;
	tb_init(&tb, 1, 1);
	(void)tb_kernel(&tb, 0, 7, "hangs", 100, LAG_NONE);
	(void)tb_kernel(&tb, 0, 8, "other", 0, 900);
	assert_int_equal(export(tb_finish(&tb), NULL, LAG_EXPORT_ALL, &p), LAG_OK);
	check(&p);
	assert_int_equal(find(&p, "hangs", 1)->dur, 800);
	free(p.events);
}

static void option_texts_are_read_or_refused(void **state)
{
	static const char *const bad_times[] = { "", "5", "5s", "x-y", "2s-1s", "1s-1s" };
	struct lag_err err;
	unsigned kinds;
	int64_t from, until;

	(void)state;
	assert_int_equal(lag_export_kinds_parse("nccl,flows", &kinds, &err), LAG_OK);
	assert_int_equal(kinds, LAG_EXPORT_NCCL | LAG_EXPORT_FLOWS);
	assert_int_equal(
		lag_export_kinds_parse("kernels,copies,nccl,nvtx,api,waits,time,steps,flows",
				       &kinds, &err),
		LAG_OK);
	assert_int_equal(kinds, LAG_EXPORT_ALL);
	assert_int_equal(lag_export_kinds_parse("kernel", &kinds, &err), LAG_ERR_USAGE);
	assert_int_equal(lag_export_kinds_parse("", &kinds, &err), LAG_ERR_USAGE);
	assert_int_equal(lag_export_time_parse("10ms-20ms", &from, &until, &err), LAG_OK);
	assert_int_equal(from, 10000 * US);
	assert_int_equal(until, 20000 * US);
	assert_int_equal(lag_export_time_parse("1.5s-", &from, &until, &err), LAG_OK);
	assert_int_equal(until, INT64_MAX);
	assert_int_equal(lag_export_time_parse("-2s", &from, &until, &err), LAG_OK);
	assert_int_equal(from, 0);
	for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++)
		assert_int_equal(lag_export_time_parse(bad_times[i], &from, &until, &err),
				 LAG_ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_stand_in_one_file),
		cmocka_unit_test(collectives_carry_kinetos_names_and_who_was_late),
		cmocka_unit_test(overlap_goes_to_a_lane_of_its_own),
		cmocka_unit_test(choices_leave_out_the_rest),
		cmocka_unit_test(a_kernel_that_never_ended_reaches_the_end),
		cmocka_unit_test(option_texts_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
