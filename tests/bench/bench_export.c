/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a Chrome trace: the exporter, its planning included, against one snprintf an event that gives the
 * same bytes from fields at hand; and a compressed export against zlib's level 1 on those bytes alone.
 * Prints "name ours reference unit target of" lines.
 *
 *   bench_export TRACE.db DIR */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "schema/base/buf.h"
#include "viz/export/export.h"

#define BLOCK   ((size_t)1 << 20)
#define LONGEST ((size_t)1 << 14) /* more than one event takes */
#define ROUNDS  5

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "bench_export: %s\n", what);
	exit(2);
}

/* Of the clock on the wall, or of this process alone, which is fairer on a busy machine. */
static double now(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- the same events as fields -------------------------------------------------------------------- */

struct slice {
	const char *at;
	int n;
};

enum shape {
	SHAPE_TEXT, /* rarer ones: copied as they are, which flatters the reference */
	SHAPE_KERNEL,
	SHAPE_ONE, /* argument: calls, lost time */
	SHAPE_FLOW
};

struct event {
	enum shape shape;
	bool last_half; /* of a flow */
	struct slice text, cat, name, key, full;
	long long pid, tid, id, ts_ns, dur_ns;
	long long args[12];
};

struct events {
	struct event *at;
	size_t n, cap;
};

static bool literal(const char **p, const char *expected)
{
	size_t n = strlen(expected);
	bool same = strncmp(*p, expected, n) == 0;

	*p += same ? n : 0;
	return same;
}

static bool number(const char **p, const char *before, long long *value)
{
	char *end;

	if (!literal(p, before))
		return false;
	*value = strtoll(*p, &end, 10);
	*p = end;
	return true;
}

/* Microseconds with three decimals. */
static bool micros(const char **p, const char *before, long long *ns)
{
	long long rest;

	if (!number(p, before, ns) || !number(p, ".", &rest))
		return false;
	*ns = *ns * 1000 + rest;
	return true;
}

static bool string(const char **p, const char *before, struct slice *s)
{
	if (!literal(p, before))
		return false;
	s->at = *p;
	while (**p && **p != '"')
		*p += **p == '\\' ? 2 : 1;
	s->n = (int)(*p - s->at);
	return literal(p, "\"");
}

static bool parse_slice(const char *p, struct event *e)
{
	static const char *const before[] = { "",
					      ",\"context\":",
					      ",\"stream\":",
					      ",\"correlation\":",
					      ",\"registers per thread\":",
					      ",\"shared memory\":",
					      ",\"grid\":[",
					      ",",
					      ",",
					      "],\"block\":[",
					      ",",
					      "," };

	const char *one;

	if (!literal(&p, "{\"ph\":\"X\"") || !string(&p, ",\"cat\":\"", &e->cat) ||
	    !string(&p, ",\"name\":\"", &e->name) || !number(&p, ",\"pid\":", &e->pid) ||
	    !number(&p, ",\"tid\":", &e->tid) || !micros(&p, ",\"ts\":", &e->ts_ns) ||
	    !micros(&p, ",\"dur\":", &e->dur_ns))
		return false;
	one = p;
	e->shape = SHAPE_ONE;
	if (string(&one, ",\"args\":{\"", &e->key) && number(&one, ":", &e->args[0]) &&
	    literal(&one, "}}"))
		return true;
	e->shape = SHAPE_KERNEL;
	if (!literal(&p, ",\"args\":{\"device\":"))
		return false;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		if (!number(&p, before[i], &e->args[i]))
			return false;
	}
	return string(&p, "],\"kernel\":\"", &e->full) && literal(&p, "}}");
}

static bool parse_flow(const char *p, struct event *e)
{
	struct slice again;

	e->shape = SHAPE_FLOW;
	e->last_half = strncmp(p, "{\"ph\":\"f\"", 9) == 0;
	return (literal(&p, "{\"ph\":\"f\"") || literal(&p, "{\"ph\":\"s\"")) &&
	       number(&p, ",\"id\":", &e->id) && number(&p, ",\"pid\":", &e->pid) &&
	       number(&p, ",\"tid\":", &e->tid) && micros(&p, ",\"ts\":", &e->ts_ns) &&
	       string(&p, ",\"cat\":\"", &e->cat) && string(&p, ",\"name\":\"", &again) &&
	       literal(&p, e->last_half ? ",\"bp\":\"e\"}" : "}");
}

/* Each line with its end; the comma is the event's. */
static void parse(const char *text, struct events *events)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		struct event e = { 0 }, *grown;

		n += text[n] == '\n';
		if (!parse_slice(text, &e) && !parse_flow(text, &e))
			e = (struct event){ .shape = SHAPE_TEXT };
		/* The last of all has no comma behind it. */
		if (n < 2 || text[n - 2] != ',')
			e.shape = SHAPE_TEXT;
		e.text = (struct slice){ text, (int)n };
		if (events->n == events->cap) {
			events->cap = events->cap ? events->cap * 2 : 4096;
			grown = realloc(events->at, events->cap * sizeof(e));
			if (!grown)
				die("out of memory");
			events->at = grown;
		}
		events->at[events->n++] = e;
		text += n;
	}
}

/* --- the reference -------------------------------------------------------------------------------- */

static int print_kernel(char *to, size_t room, const struct event *e)
{
	const long long *a = e->args;

	return snprintf(
		to, room,
		"{\"ph\":\"X\",\"cat\":\"%.*s\",\"name\":\"%.*s\",\"pid\":%lld,\"tid\":%lld,"
		"\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,\"args\":{\"device\":%lld,"
		"\"context\":%lld,\"stream\":%lld,\"correlation\":%lld,"
		"\"registers per thread\":%lld,\"shared memory\":%lld,"
		"\"grid\":[%lld,%lld,%lld],\"block\":[%lld,%lld,%lld],\"kernel\":\"%.*s\"}},\n",
		e->cat.n, e->cat.at, e->name.n, e->name.at, e->pid, e->tid, e->ts_ns / 1000,
		e->ts_ns % 1000, e->dur_ns / 1000, e->dur_ns % 1000, a[0], a[1], a[2], a[3], a[4],
		a[5], a[6], a[7], a[8], a[9], a[10], a[11], e->full.n, e->full.at);
}

static int print_event(char *to, size_t room, const struct event *e)
{
	switch (e->shape) {
	case SHAPE_KERNEL:
		return print_kernel(to, room, e);
	case SHAPE_ONE:
		return snprintf(to, room,
				"{\"ph\":\"X\",\"cat\":\"%.*s\",\"name\":\"%.*s\",\"pid\":%lld,"
				"\"tid\":%lld,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,"
				"\"args\":{\"%.*s\":%lld}},\n",
				e->cat.n, e->cat.at, e->name.n, e->name.at, e->pid, e->tid,
				e->ts_ns / 1000, e->ts_ns % 1000, e->dur_ns / 1000,
				e->dur_ns % 1000, e->key.n, e->key.at, e->args[0]);
	case SHAPE_FLOW:
		return snprintf(to, room,
				"{\"ph\":\"%c\",\"id\":%lld,\"pid\":%lld,\"tid\":%lld,"
				"\"ts\":%lld.%03lld,\"cat\":\"%.*s\",\"name\":\"%.*s\"%s},\n",
				e->last_half ? 'f' : 's', e->id, e->pid, e->tid, e->ts_ns / 1000,
				e->ts_ns % 1000, e->cat.n, e->cat.at, e->cat.n, e->cat.at,
				e->last_half ? ",\"bp\":\"e\"" : "");
	case SHAPE_TEXT:
		break;
	}
	if ((size_t)e->text.n >= room)
		die("an event is too long for the reference");
	memcpy(to, e->text.at, (size_t)e->text.n);
	return e->text.n;
}

static void print_all(const struct events *events, struct lag_export_out *out)
{
	char *block = malloc(BLOCK + LONGEST);
	struct lag_err err;
	size_t n = 0;

	if (!block)
		die("out of memory");
	for (size_t i = 0; i < events->n; i++) {
		n += (size_t)print_event(block + n, LONGEST, &events->at[i]);
		if (n >= BLOCK || i + 1 == events->n) {
			if (lag_failed(out->write(out, block, n, &err)))
				die(err.text);
			n = 0;
		}
	}
	free(block);
}

/* --- where both write ----------------------------------------------------------------------------- */

static enum lag_status keep(struct lag_export_out *out, const char *bytes, size_t n,
			    struct lag_err *err)
{
	lag_buf_add(out->state, bytes, n);
	return ((struct lag_buf *)out->state)->failed
		       ? lag_err_set(err, LAG_ERR_SYSTEM, "out of memory")
		       : LAG_OK;
}

static enum lag_status to_descriptor(struct lag_export_out *out, const char *bytes, size_t n,
				     struct lag_err *err)
{
	return write(*(int *)out->state, bytes, n) == (ssize_t)n
		       ? LAG_OK
		       : lag_err_set(err, LAG_ERR_SYSTEM, "cannot write");
}

static void export_to(struct lag_context *ctx, struct lag_export_out *out)
{
	struct lag_export_opts opts = { .kinds = LAG_EXPORT_ALL, .until_ns = INT64_MAX };
	struct lag_err err;

	if (lag_failed(lag_exporter_chrome.write(ctx, &opts, NULL, NULL, out, &err)))
		die(err.text);
}

/* --- what is compared ----------------------------------------------------------------------------- */

static void compare_text(struct lag_context *ctx, const struct events *events, size_t n_bytes)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct lag_export_out out = { to_descriptor, &fd };
	double best[2] = { 1e9, 1e9 };

	/* In turn, so that both meet the same machine. */
	for (int round = 0; round < ROUNDS; round++) {
		double start = now(CLOCK_PROCESS_CPUTIME_ID), middle, end;

		export_to(ctx, &out);
		middle = now(CLOCK_PROCESS_CPUTIME_ID);
		print_all(events, &out);
		end = now(CLOCK_PROCESS_CPUTIME_ID);
		best[0] = middle - start < best[0] ? middle - start : best[0];
		best[1] = end - middle < best[1] ? end - middle : best[1];
	}
	(void)close(fd);
	printf("Chrome JSON to /dev/null\t%.0f\t%.0f\tMB/s\t3\tone snprintf an event, same bytes\n",
	       (double)n_bytes / best[0] / 1e6, (double)n_bytes / best[1] / 1e6);
	(void)fflush(stdout);
}

/* Seconds by the clock and of the processor, and bytes of the file. */
struct packed {
	double clock_s, cpu_s, n_bytes;
};

static struct packed begin_packed(void)
{
	return (struct packed){ now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID), 0 };
}

static void end_packed(struct packed *run, struct packed *best, const char *path)
{
	struct stat sb;

	run->clock_s = now(CLOCK_MONOTONIC) - run->clock_s;
	run->cpu_s = now(CLOCK_PROCESS_CPUTIME_ID) - run->cpu_s;
	if (stat(path, &sb) != 0)
		die("no file was written");
	best->n_bytes = (double)sb.st_size;
	best->clock_s = run->clock_s < best->clock_s ? run->clock_s : best->clock_s;
	best->cpu_s = run->cpu_s < best->cpu_s ? run->cpu_s : best->cpu_s;
}

static void pack_ours(struct lag_context *ctx, const char *path, struct packed *best)
{
	struct packed packed = begin_packed();
	struct lag_export_file *file;
	struct lag_export_out out;
	struct lag_err err;

	if (lag_failed(lag_export_file_open(path, true, &file, &out, &err)))
		die(err.text);
	export_to(ctx, &out);
	if (lag_failed(lag_export_file_close(file, true, &err)))
		die(err.text);
	end_packed(&packed, best, path);
}

static void pack_zlib(const struct lag_buf *text, const char *path, struct packed *best)
{
	struct packed packed = begin_packed();
	gzFile gz = gzopen(path, "wb1");

	if (!gz || gzbuffer(gz, 1u << 18) != 0)
		die("cannot write with zlib");
	for (size_t at = 0, n; at < text->n; at += n) {
		n = text->n - at < BLOCK ? text->n - at : BLOCK;
		if (gzwrite(gz, text->text + at, (unsigned)n) != (int)n)
			die("cannot write with zlib");
	}
	if (gzclose(gz) != Z_OK)
		die("cannot write with zlib");
	end_packed(&packed, best, path);
}

static void compare_packed(struct lag_context *ctx, const struct lag_buf *text, const char *folder)
{
	struct packed ours = { 1e9, 1e9, 1 }, theirs = { 1e9, 1e9, 1 };
	double mb = (double)text->n / 1e6;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/bench-export.json.gz", folder);
	for (int round = 0; round < ROUNDS; round++) {
		pack_ours(ctx, path, &ours);
		pack_zlib(text, path, &theirs);
	}
	(void)unlink(path);
	printf("Chrome JSON to .gz\t%.0f\t%.0f\tMB/s\t3\tzlib level 1 of the finished bytes\n",
	       mb / ours.clock_s, mb / theirs.clock_s);
	printf("  per second of both threads\t%.0f\t%.0f\tMB/s\t2\tzlib level 1 of the finished "
	       "bytes\n",
	       mb / ours.cpu_s, mb / theirs.cpu_s);
	printf("  JSON bytes a byte of the file\t%.2f\t%.2f\tB/B\t0.91\tzlib level 1\n",
	       (double)text->n / ours.n_bytes, (double)text->n / theirs.n_bytes);
}

int main(int argc, char **argv)
{
	struct lag_model_opts opts = { 0 };
	struct lag_trace *trace = NULL;
	struct lag_context *ctx = NULL;
	struct events events = { 0 };
	struct lag_buf text = { 0 }, again = { 0 };
	struct lag_export_out whole = { keep, &text }, reference = { keep, &again };
	struct lag_err err;

	if (argc != 3)
		die("usage: bench_export TRACE.db DIR");
	if (lag_failed(lag_trace_open(argv[1], &trace, &err)) ||
	    lag_failed(lag_context_new(trace, &opts, &ctx, &err)))
		die(err.text);
	export_to(ctx, &whole);
	parse(lag_buf_text(&text), &events);
	print_all(&events, &reference);
	if (again.n != text.n || memcmp(lag_buf_text(&again), lag_buf_text(&text), text.n) != 0)
		die("the reference gives other bytes");
	lag_buf_release(&again);
	compare_text(ctx, &events, text.n);
	compare_packed(ctx, &text, argv[2]);
	free(events.at);
	lag_buf_release(&text);
	lag_context_free(ctx);
	return 0;
}
