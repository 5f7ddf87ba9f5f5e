/* SPDX-License-Identifier: Apache-2.0 */
/* The same job by yajl's callbacks: bench_yajl FILE [ROUNDS]. */
#include "tests/bench/kineto_job.h"

#include <math.h>
#include <stdbool.h>
#include <yajl/yajl_parse.h>

enum target {
	T_NONE,
	T_PHASE,
	T_CAT,
	T_NAME,
	T_PID,
	T_TID,
	T_TS,
	T_DUR,
	T_EXTERNAL,
	T_CORRELATION,
	T_STREAM,
	T_DEVICE
};

struct state {
	struct kineto_sum sum;
	struct kineto_fields event;
	char cat[256], name[8192]; /* callbacks' text does not outlive them */
	int depth;                 /* 3: an event's members, 4: its arguments' */
	enum target target;
	bool in_events, in_args;
};

static bool is(const unsigned char *key, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(key, name, n) == 0;
}

static enum target find(const char *const names[], size_t n_names, enum target first,
			const unsigned char *key, size_t n)
{
	for (size_t i = 0; i < n_names; i++) {
		if (is(key, n, names[i]))
			return (enum target)(first + i);
	}
	return T_NONE;
}

static int on_key(void *ctx, const unsigned char *key, size_t n)
{
	static const char *const members[] = { "ph", "cat", "name", "pid", "tid", "ts", "dur" };
	static const char *const args[] = { "External id", "correlation", "stream", "device" };
	struct state *s = ctx;

	s->target = T_NONE;
	if (s->depth == 1) {
		s->in_events = is(key, n, "traceEvents");
	} else if (s->in_events && s->depth == 3) {
		s->in_args = is(key, n, "args");
		s->target = find(members, 7, T_PHASE, key, n);
	} else if (s->in_args && s->depth == 4) {
		s->target = find(args, 4, T_EXTERNAL, key, n);
	}
	return 1;
}

static size_t keep(char *to, size_t room, const unsigned char *text, size_t n)
{
	n = n < room ? n : room;
	memcpy(to, text, n);
	return n;
}

static int on_string(void *ctx, const unsigned char *text, size_t n)
{
	struct state *s = ctx;

	if (s->target == T_PHASE) {
		s->event.phase = n == 1 ? text[0] : '?';
	} else if (s->target == T_CAT) {
		s->event.n_cat = keep(s->cat, sizeof(s->cat), text, n);
		s->event.cat = s->cat;
	} else if (s->target == T_NAME) {
		s->event.n_name = keep(s->name, sizeof(s->name), text, n);
		s->event.name = s->name;
	}
	return 1;
}

static int on_integer(void *ctx, long long v)
{
	struct state *s = ctx;
	int64_t *to[] = {
		[T_PID] = &s->event.pid,           [T_TID] = &s->event.tid,
		[T_EXTERNAL] = &s->event.external, [T_CORRELATION] = &s->event.correlation,
		[T_STREAM] = &s->event.stream,     [T_DEVICE] = &s->event.device
	};

	if (s->target == T_TS) {
		s->event.ts_ns = v * 1000;
	} else if (s->target == T_DUR) {
		s->event.dur_ns = v * 1000;
	} else if (to[s->target]) {
		*to[s->target] = v;
	}
	return 1;
}

static int on_double(void *ctx, double v)
{
	struct state *s = ctx;

	if (s->target == T_TS)
		s->event.ts_ns = llround(v * 1000);
	if (s->target == T_DUR)
		s->event.dur_ns = llround(v * 1000);
	return 1;
}

static int on_open(void *ctx)
{
	struct state *s = ctx;

	s->target = T_NONE;
	if (++s->depth == 3 && s->in_events)
		s->event = (struct kineto_fields){ 0 };
	return 1;
}

static int on_close(void *ctx)
{
	struct state *s = ctx;

	if (s->depth == 3 && s->in_events)
		kineto_add(&s->sum, &s->event);
	if (--s->depth == 3)
		s->in_args = false;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_integer = on_integer,
	.yajl_double = on_double,
	.yajl_string = on_string,
	.yajl_start_map = on_open,
	.yajl_map_key = on_key,
	.yajl_end_map = on_close,
	.yajl_start_array = on_open,
	.yajl_end_array = on_close,
};

int main(int argc, char **argv)
{
	static struct state s;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	double best = 1e9;
	size_t n;
	char *bytes;
	long before, kib = 0;

	if (argc < 2)
		return 2;
	bytes = kineto_load(argv[1], &n);
	before = kineto_private_kib();
	for (int i = 0; i < rounds; i++) {
		double start = kineto_now(CLOCK_THREAD_CPUTIME_ID), took;
		yajl_handle h;

		memset(&s, 0, sizeof(s));
		h = yajl_alloc(&callbacks, NULL, &s);
		if (!h || yajl_parse(h, (const unsigned char *)bytes, n) != yajl_status_ok ||
		    yajl_complete_parse(h) != yajl_status_ok)
			exit(2);
		took = kineto_now(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
		kib = kineto_private_kib() - before;
		yajl_free(h);
	}
	free(bytes);
	kineto_print(&s.sum, best, n, kib);
	return 0;
}
