/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace JSON of all ranks, as Perfetto and the readers of PyTorch's traces take it: metadata
 * first, one process a rank, sorted and non-overlapping lanes, times in microseconds after one base.
 * Memory does not grow with what is written. */
#include <stdlib.h>
#include <string.h>

#include "viz/export/chrome.h"

#define TIED_MAX   64 /* events that start at one instant and are put in order */
#define META_BYTES 110

int64_t lag_chrome_end(const struct lag_chrome *c, int64_t start_ns, int64_t end_ns)
{
	if (end_ns != LAG_NONE)
		return end_ns > start_ns ? end_ns : start_ns;
	return c->trace->span_ns > start_ns ? c->trace->span_ns : start_ns;
}

bool lag_chrome_in_steps(const struct lag_chrome *c, int64_t start_ns, int64_t end_ns)
{
	size_t lo = 0, hi = c->windows.n;

	if (c->all_steps)
		return true;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->windows.at[mid].end_ns <= start_ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo < c->windows.n && c->windows.at[lo].start_ns <= end_ns;
}

/* The chosen steps of rank r, host ranges and GPU work together. */
static void find_windows(struct lag_chrome *c, uint32_t r)
{
	lag_intervals_release(&c->windows);
	for (size_t s = 0; s < c->steps->n_steps && !c->all_steps; s++) {
		const struct lag_step_span *p = lag_steps_span(c->steps, s, r);
		int64_t start = p->start_ns, end = p->end_ns;

		if (!c->chosen[s] || start == LAG_NONE)
			continue;
		if (p->host_start_ns != LAG_NONE && p->host_start_ns < start)
			start = p->host_start_ns;
		if (p->host_end_ns != LAG_NONE && p->host_end_ns > end)
			end = p->host_end_ns;
		lag_chrome_fail(c, lag_intervals_add(&c->windows, start, end));
	}
	lag_intervals_normalize(&c->windows);
}

/* Writes the events from `first` on that start together, at most TIED_MAX; returns what follows them. */
static size_t write_tied(struct lag_chrome *c, const struct lag_chrome_order *order, size_t first,
			 size_t last)
{
	size_t n = 0, at[TIED_MAX];
	int64_t start = order->start(c, first);

	for (; n < TIED_MAX && first + n < last && order->start(c, first + n) == start; n++) {
		size_t k = n;
		int64_t end = order->end(c, first + n);

		/* Insertion keeps the order of equals. */
		while (k > 0 && (order->longest_first ? order->end(c, at[k - 1]) < end
						      : order->end(c, at[k - 1]) > end)) {
			at[k] = at[k - 1];
			k--;
		}
		at[k] = first + n;
	}
	for (size_t k = 0; k < n; k++)
		order->write(c, at[k]);
	return first + n;
}

void lag_chrome_in_order(struct lag_chrome *c, const struct lag_chrome_order *order, size_t first,
			 size_t last)
{
	while (first < last && !lag_failed(c->status)) {
		if (first + 1 < last && order->start(c, first) == order->start(c, first + 1)) {
			first = write_tied(c, order, first, last);
		} else {
			order->write(c, first++);
		}
	}
}

static void write_sections(struct lag_chrome *c)
{
	c->n_events = c->n_bytes = 0;
	c->next_flow = 0;
	for (uint32_t r = 0; r < c->trace->n_ranks && !lag_failed(c->status); r++) {
		if (!c->exported[r])
			continue;
		find_windows(c, r);
		lag_chrome_time(c, r);
		lag_chrome_host(c, r);
		lag_chrome_gpu(c, r);
		free(c->api_tid);
		c->api_tid = NULL;
		c->api_near = 0;
	}
	lag_chrome_flows_between_ranks(c);
}

/* The host of all exported ranks; NULL when they have several. */
static const char *one_host(const struct lag_chrome *c)
{
	int32_t host = -1;

	for (size_t r = 0; r < c->trace->n_ranks; r++) {
		if (!c->exported[r])
			continue;
		if (host >= 0 && c->trace->ranks[r].host != host)
			return NULL;
		host = c->trace->ranks[r].host;
	}
	return host >= 0 ? c->trace->hosts[host].name : NULL;
}

/* What a reader should know before believing the picture. */
static void write_trust(struct lag_chrome *c)
{
	const struct lag_trace *t = c->trace;
	struct lag_json *j = &c->json;
	int64_t clock_ns = lag_trace_clock_error(t), lost = 0;

	lag_json_key(j, "ranks not on record");
	lag_json_begin(j, '[');
	for (size_t r = 0; r < t->n_ranks; r++) {
		if (!t->ranks[r].recorded)
			lag_json_int(j, t->ranks[r].rank);
		lost += (int64_t)t->ranks[r].lost;
	}
	lag_json_end(j, ']');
	lag_json_key(j, "records lost");
	lag_json_int(j, lost);
	lag_json_key(j, "events with impossible times left out");
	lag_json_int(j, t->n_quarantined);
	lag_json_key(j, "clock error (us)");
	if (clock_ns == LAG_NONE) {
		lag_json_null(j);
	} else {
		lag_json_us(j, clock_ns);
	}
}

/* Which process of the file is which rank, for whoever reads it back. */
static void write_processes(struct lag_chrome *c)
{
	struct lag_json *j = &c->json;

	lag_json_key(j, "processes");
	lag_json_begin(j, '[');
	for (uint32_t r = 0; r < c->trace->n_ranks; r++) {
		const struct lag_rank *rank = &c->trace->ranks[r];

		if (!c->exported[r])
			continue;
		lag_json_begin(j, '{');
		lag_json_key(j, "pid");
		lag_json_int(j, lag_chrome_pid(r));
		lag_json_key(j, "job rank"); /* not "rank": some readers look for that */
		lag_json_int(j, rank->rank);
		if (rank->host >= 0) {
			lag_json_key(j, "host");
			lag_json_text(j, c->trace->hosts[rank->host].name);
		}
		lag_json_end(j, '}');
	}
	lag_json_end(j, ']');
}

static void write_head(struct lag_chrome *c)
{
	struct lag_json *j = &c->json;
	const char *host = one_host(c);
	int64_t first = LAG_NONE;

	for (size_t r = 0; r < c->trace->n_ranks && first == LAG_NONE; r++) {
		if (c->exported[r])
			first = c->trace->ranks[r].rank;
	}
	/* Some readers look for `"rank": 3` with a pattern, on a line of its own near the top. */
	lag_buf_puts(&c->buf, "{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\n\"backend\": "
			      "\"nccl\",\n\"rank\": ");
	lag_json_int(j, first == LAG_NONE ? 0 : first);
	j->comma = false;
	lag_buf_puts(&c->buf, ",\n\"world_size\": ");
	lag_json_int(j, c->trace->world_size != LAG_NONE ? c->trace->world_size
							 : (int64_t)c->trace->n_ranks);
	j->comma = false;
	lag_buf_puts(&c->buf, "\n},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ");
	j->exact = false; /* a number, as its readers expect */
	lag_json_int(j, c->trace->origin_ns);
	j->exact = true;
	j->comma = false;
	if (host) {
		lag_buf_puts(&c->buf, ",\n\"host_name\": ");
		lag_json_text(j, host);
		j->comma = false;
	}
	lag_buf_puts(&c->buf, ",\n\"traceName\": ");
	lag_json_text(j, c->trace->path);
	j->comma = false;
	lag_buf_puts(&c->buf, ",\n\"laggard\": ");
	j->spaced = true;
	lag_json_begin(j, '{');
	lag_json_key(j, "version");
	lag_json_text(j, LAG_VERSION);
	lag_json_key(j, "steps");
	lag_json_text(j, c->steps->label);
	lag_json_key(j, "parallelism");
	lag_json_text(j, c->roles->shape);
	write_processes(c);
	write_trust(c);
	lag_json_end(j, '}');
	j->spaced = false;
	j->comma = false;
	lag_buf_puts(&c->buf, ",\n\"traceEvents\": [");
}

static enum lag_status choose_ranks(struct lag_chrome *c, uint64_t *n)
{
	*n = 0;
	for (size_t r = 0; r < c->trace->n_ranks; r++) {
		const struct lag_rank *rank = &c->trace->ranks[r];

		c->exported[r] = rank->recorded && lag_context_has_rank(c->ctx, rank->rank);
		*n += c->exported[r];
	}
	if (!*n)
		return lag_err_set(c->err, LAG_ERR_USAGE, "none of these ranks is on record");
	return LAG_OK;
}

static enum lag_status prepare(struct lag_chrome *c)
{
	c->roles = lag_context_roles(c->ctx, c->err);
	c->steps = c->roles ? lag_context_steps(c->ctx, c->err) : NULL;
	c->waits = c->steps ? lag_context_waits(c->ctx, c->err) : NULL;
	if (c->waits && lag_chrome_wants(c, LAG_EXPORT_TIME))
		c->ledger = lag_context_ledger(c->ctx, c->err);
	if (!c->waits || (lag_chrome_wants(c, LAG_EXPORT_TIME) && !c->ledger))
		return lag_failed(c->err->status) ? c->err->status : LAG_ERR_SYSTEM;
	c->exported = lag_calloc(c->trace->n_ranks, sizeof(*c->exported));
	c->launch_tid = lag_calloc(c->trace->n_launches, sizeof(*c->launch_tid));
	c->lane_comm = lag_calloc(c->trace->n_lanes, sizeof(*c->lane_comm));
	c->chosen = lag_calloc(c->steps->n_steps, sizeof(*c->chosen));
	if (!c->chosen || !c->exported || !c->launch_tid || !c->lane_comm ||
	    !lag_buf_reserve(&c->buf, LAG_CHROME_BLOCK + LAG_CHROME_BLOCK / 16) ||
	    lag_failed(lag_chrome_init_texts(c)))
		return lag_err_set(c->err, LAG_ERR_SYSTEM, "no memory");
	for (size_t i = 0; i < c->trace->n_lanes; i++)
		c->lane_comm[i] = -1;
	for (size_t s = 0; s < c->steps->n_steps; s++)
		c->chosen[s] = lag_context_has_step(c->ctx, c->steps->steps[s].number);
	return LAG_OK;
}

static uint64_t count_lanes(const struct lag_chrome *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->tracks.n; i++)
		n += LAG_VEC_AT(&c->tracks, struct lag_chrome_track, i).n_lanes;
	return n;
}

static void write_document(struct lag_chrome *c)
{
	write_head(c);
	lag_chrome_write_names(c);
	write_sections(c);
	lag_buf_puts(&c->buf, "\n]\n}\n");
	lag_chrome_flush(c, 0);
}

static enum lag_status write_chrome(struct lag_context *ctx, const struct lag_export_opts *opts,
				    enum lag_status (*before)(void *state,
							      const struct lag_forecast *forecast,
							      struct lag_err *err),
				    void *state, struct lag_export_out *out, struct lag_err *err)
{
	struct lag_chrome c = { .ctx = ctx,
				.trace = lag_context_trace(ctx),
				.opts = opts,
				.out = out,
				.err = err,
				.tracks = LAG_VEC_INIT(struct lag_chrome_track),
				.all_steps = lag_context_has_all_steps(ctx),
				.planning = true };
	struct lag_forecast forecast = { 0 };

	c.json.out = &c.buf;
	c.json.exact = true;
	c.status = prepare(&c);
	if (!lag_failed(c.status))
		c.status = choose_ranks(&c, &forecast.n_ranks);
	if (!lag_failed(c.status)) {
		write_sections(&c);
		lag_chrome_number_tracks(&c);
		forecast.n_events = c.n_events;
		forecast.n_bytes = c.n_bytes + (uint64_t)META_BYTES * 2 * count_lanes(&c) + 500;
	}
	if (!lag_failed(c.status) && before)
		c.status = before(state, &forecast, err);
	if (c.status == LAG_OK) {
		c.planning = false;
		write_document(&c);
	}
	lag_chrome_release_tracks(&c);
	lag_chrome_release_texts(&c);
	lag_intervals_release(&c.windows);
	lag_buf_release(&c.buf);
	lag_buf_release(&c.quoted);
	free(c.api_tid);
	free(c.exported);
	free(c.chosen);
	free(c.launch_tid);
	free(c.lane_comm);
	return c.status;
}

const struct lag_exporter lag_exporter_chrome = {
	.name = "chrome",
	.summary = "Chrome trace JSON for Perfetto, chrome://tracing and readers of PyTorch traces",
	.write = write_chrome,
};
