/* SPDX-License-Identifier: Apache-2.0 */
/* laggard's reader of Kineto traces: bench_kineto memory|stream|import FILE [ROUNDS]. memory: the file
 * lies in memory; stream: from the file, also .gz; import: to records, which are thrown away. */
#include "tests/bench/kineto_job.h"

#include "merge/kineto_event.h"
#include "merge/source.h"

struct bench {
	struct kineto_sum sum;
	struct lag_pool pool;
	long kib;
	bool import;
	uint64_t n_records;
};

static int64_t or_zero(int64_t v)
{
	return v == LAG_NONE ? 0 : v;
}

static enum lag_status read_all(struct lag_kineto_scan *s, struct kineto_sum *sum,
				struct lag_err *err)
{
	enum lag_status st;

	do {
		st = lag_json_next(&s->json, err);
	} while (st == LAG_OK && !(s->json.kind == LAG_JSON_KEY && s->json.n == 11 &&
				   memcmp(s->json.text, "traceEvents", 11) == 0));
	if (st == LAG_OK)
		st = lag_json_next(&s->json, err);
	while (st == LAG_OK && (st = lag_kineto_next(s, err)) == LAG_OK) {
		const struct lag_kineto_event *e = &s->event;
		struct kineto_fields f = { .cat = e->category.text,
					   .n_cat = e->category.n,
					   .name = e->text[LAG_KT_NAME].text,
					   .n_name = e->text[LAG_KT_NAME].n,
					   .phase = e->phase,
					   .pid = or_zero(e->pid),
					   .tid = or_zero(e->tid),
					   .ts_ns = or_zero(e->ts_ns),
					   .dur_ns = or_zero(e->dur_ns),
					   .external = or_zero(e->i[LAG_KI_EXTERNAL]),
					   .correlation = or_zero(e->i[LAG_KI_CORRELATION]),
					   .stream = or_zero(e->i[LAG_KI_STREAM]),
					   .device = or_zero(e->i[LAG_KI_DEVICE]) };

		kineto_add(sum, &f);
	}
	return st;
}

static int in_memory(const char *path, int rounds)
{
	static struct lag_kineto_scan scan;
	struct kineto_sum sum = { 0 };
	double best = 1e9;
	size_t n;
	char *bytes = kineto_load(path, &n);
	long before = kineto_private_kib(), kib = 0;

	for (int i = 0; i < rounds; i++) {
		struct lag_err err = { 0 };
		double start = kineto_now(CLOCK_THREAD_CPUTIME_ID), took;

		lag_kineto_scan_init(&scan);
		scan.all_args = true;
		sum = (struct kineto_sum){ 0 };
		lag_json_init_bytes(&scan.json, bytes, n, true);
		if (lag_failed(read_all(&scan, &sum, &err)))
			(void)fprintf(stderr, "%s\n", err.text);
		took = kineto_now(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
		kib = kineto_private_kib() - before;
		lag_json_release(&scan.json);
		lag_kineto_scan_release(&scan);
	}
	free(bytes);
	kineto_print(&sum, best, n, kib);
	return 0;
}

static long fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct lag_input *in = state;

	return in->read(in, buf, room, err);
}

static enum lag_status drop(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	struct bench *b = sink->state;

	(void)err;
	b->n_records += part->n_records;
	lag_part_release(part);
	return LAG_OK;
}

static enum lag_status visit(struct lag_source_visitor *visitor, struct lag_input *in,
			     const uint8_t *head, size_t n_head, struct lag_err *err)
{
	static struct lag_kineto_scan scan;
	static const struct lag_import_opts opts = { 0 };
	struct bench *b = visitor->state;
	struct lag_part_sink sink = { drop, b };
	enum lag_status st;

	(void)head;
	(void)n_head;
	if (b->import)
		return lag_importer_kineto.import(in, &b->pool, &opts, &sink, err);
	lag_kineto_scan_init(&scan);
	scan.all_args = true;
	st = lag_json_init_fill(&scan.json, fill, in, true);
	if (!lag_failed(st))
		st = read_all(&scan, &b->sum, err);
	b->kib = kineto_private_kib();
	lag_json_release(&scan.json);
	lag_kineto_scan_release(&scan);
	return lag_failed(st) ? st : LAG_OK;
}

static int from_file(const char *path, bool import, int rounds)
{
	struct bench b = { .import = import };
	struct lag_source_visitor visitor = { visit, &b };
	/* Streams are measured with what a second thread inflates. */
	clockid_t clock = import ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	struct lag_err err = { 0 };
	struct stat st;
	double best = 1e9;

	if (stat(path, &st) != 0 || lag_pool_init(&b.pool) != LAG_OK)
		return 2;
	for (int i = 0; i < rounds; i++) {
		double start = kineto_now(clock), took;

		b.sum = (struct kineto_sum){ 0 };
		b.n_records = 0;
		if (lag_failed(lag_source_each(path, &visitor, &err))) {
			(void)fprintf(stderr, "%s\n", err.text);
			return 2;
		}
		took = kineto_now(clock) - start;
		best = took < best ? took : best;
	}
	if (import)
		b.sum.n_events = b.n_records;
	lag_pool_release(&b.pool);
	kineto_print(&b.sum, best, (size_t)st.st_size, b.kib);
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;

	if (argc < 3) {
		(void)fputs("usage: bench_kineto memory|stream|import FILE [ROUNDS]\n", stderr);
		return 2;
	}
	if (strcmp(argv[1], "memory") == 0)
		return in_memory(argv[2], rounds);
	return from_file(argv[2], strcmp(argv[1], "import") == 0, rounds);
}
