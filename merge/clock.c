/* SPDX-License-Identifier: Apache-2.0 */
/* The aligner's answer gives every instance its starts, ends and last arriver on one clock. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "merge/clock_observe.h"
#include "merge/clock_order.h"
#include "schema/base/buf.h"
#include "schema/base/fmt.h"

static const struct lag_aligner *aligner_of(const char *name)
{
	for (size_t i = 0; lag_aligners[i]; i++) {
		if (strcmp(lag_aligners[i]->name, name) == 0)
			return lag_aligners[i];
	}
	return NULL;
}

/* Device rows outside the time in which the device worked say nothing about any event. */
static void clip_rows(struct lag_merge *m)
{
	struct lag_align_result *clock = &m->clock;
	size_t kept = 0;

	for (size_t i = 0; i < clock->n_devices; i++) {
		const struct lag_align_device *row = &clock->devices[i];
		const struct lag_proc *p =
			LAG_PROC_AT(m, LAG_VEC_AT(&m->device_proc, uint32_t, row->device));
		int64_t first = p->gpu.n ? LAG_GPU_AT(p, 0)->start_ns : p->first_ns;
		int64_t last = p->gpu.n ? LAG_GPU_AT(p, p->gpu.n - 1)->start_ns : p->last_ns;
		bool same = kept && clock->devices[kept - 1].device == row->device;

		if (!p->old && i + 1 < clock->n_devices && row[1].device == row->device &&
		    row[1].from_ns <= first)
			continue;
		if (!p->old && same && row->from_ns > last)
			continue;
		clock->devices[kept++] = *row;
	}
	clock->n_devices = kept;
}

/* "host a", "3 hosts (a, ...)" */
static void name_hosts(const struct lag_merge *m, size_t n, uint32_t first, struct lag_buf *out)
{
	char room[LAG_HOST_NAME_MAX];
	const char *name = lag_merge_host_name(m, first, room);

	if (n == 1) {
		lag_buf_printf(out, "the clock of host %.100s", name);
	} else {
		lag_buf_printf(out, "the clocks of %zu hosts (%.100s, ...)", n, name);
	}
}

static void report_unjoined(struct lag_merge *m)
{
	const struct lag_align_result *clock = &m->clock;
	size_t silent = 0, wall = 0;
	uint32_t first_silent = 0, first_wall = 0;
	struct lag_buf of = { 0 };

	for (size_t i = 0; i < clock->n_segments; i++) {
		const struct lag_align_segment *s = &clock->segments[i];

		if (i && clock->segments[i - 1].host == s->host)
			continue;
		if (s->basis == LAG_ALIGN_NOTHING && !silent++)
			first_silent = s->host;
		if (s->basis == LAG_ALIGN_WALL && !wall++)
			first_wall = s->host;
	}
	if (silent) {
		name_hosts(m, silent, first_silent, &of);
		lag_merge_find(
			m, 1, "clock_unjoined", LAG_ABOUT(LAG_NONE, LAG_NONE, silent),
			"no operation joins %s to the others: nothing is claimed about order and "
			"waiting between them",
			lag_buf_text(&of));
		lag_buf_release(&of);
	}
	if (wall) {
		name_hosts(m, wall, first_wall, &of);
		lag_merge_find(m, 1, "clock_wall", LAG_ABOUT(LAG_NONE, LAG_NONE, wall),
			       "%s: only known by what the time daemon%s", lag_buf_text(&of),
			       wall == 1 ? " says of it" : "s say of them");
		lag_buf_release(&of);
	}
	if (clock->n_contradicted) {
		lag_merge_find(m, 1, "clock_state",
			       LAG_ABOUT(LAG_NONE, LAG_NONE, clock->n_contradicted),
			       "%u host%s: the clock is said to be nearer to UTC than it is, by up "
			       "to %.3f ms",
			       clock->n_contradicted, LAG_PLURAL(clock->n_contradicted, "", "s"),
			       clock->contradicted_ns / 1e6);
	}
}

static void report(struct lag_merge *m)
{
	const struct lag_align_result *clock = &m->clock;

	if (clock->n_violations) {
		lag_merge_find(
			m, 1, "clock_violation", LAG_ABOUT(LAG_NONE, LAG_NONE, clock->n_violations),
			"%" PRIu64 " of %" PRIu64 " checked pairs still contradict cause and "
			"effect on the common clock",
			clock->n_violations, clock->n_pairs);
	}
	if (clock->n_repairs) {
		lag_merge_find(
			m, 1, "clock_repaired", LAG_ABOUT(LAG_NONE, LAG_NONE, clock->n_repaired),
			"%" PRIu64 " of %" PRIu64 " checked pairs contradicted cause and effect: "
			"times around them were moved by up to %.1f us (--repair-order)",
			clock->n_repaired, clock->n_pairs, clock->repair_max_ns / 1e3);
	}
	if (m->n_clocks > 1 && strncmp(clock->method, "collective", 10) != 0) {
		lag_merge_find(m, 1, "clock_unaligned", LAG_ABOUT(LAG_NONE, LAG_NONE, m->n_clocks),
			       "the clocks of %zu %s were not aligned (method %s): order and "
			       "waiting between hosts mean little",
			       m->n_clocks, LAG_PLURAL(m->n_clocks, "host", "hosts"),
			       clock->method);
	}
}

/* The method's name says that times are no longer the clocks' alone. */
static enum lag_status repair(const struct lag_align_input *in, struct lag_align_result *clock,
			      struct lag_err *err)
{
	static const char *const names[][2] = { { "none", "none, order repaired" },
						{ "wall", "wall, order repaired" },
						{ "collective", "collective, order repaired" } };
	enum lag_status st = lag_clock_order(in, clock, err);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && clock->n_repairs; i++) {
		if (strcmp(clock->method, names[i][0]) == 0)
			clock->method = names[i][1];
	}
	return st;
}

enum lag_status lag_merge_align(struct lag_merge *m, struct lag_err *err)
{
	const char *name = m->old.is        ? m->old.method
			   : m->opts->align ? m->opts->align
					    : "collective";
	const struct lag_aligner *aligner = aligner_of(name);
	struct lag_observations o;
	enum lag_status st;

	if (!aligner)
		return lag_err_set(err, LAG_ERR_USAGE, "no alignment method '%s'", name);
	st = lag_observe(m, &o, err);
	if (st == LAG_OK) {
		st = m->old.is ? lag_append_align(m, aligner, &o, err)
			       : aligner->align(&o.in, &m->clock, err);
		if (!lag_failed(st) && m->opts->repair_order)
			st = repair(&o.in, &m->clock, err);
		lag_observations_release(&o);
	}
	if (lag_failed(st))
		return st;
	clip_rows(m);
	report(m);
	if (m->n_clocks > 1 && aligner == &lag_aligner_collective)
		report_unjoined(m);
	return LAG_OK;
}

/* ---- instances on the common clock ---- */

struct arrival {
	int64_t start_ns, raw_ns;
	uint32_t proc, device;
};

/* Whether one start is known to come before another: by more than both ends' uncertainty. Two devices
 * of one host share its clock and its error; what is their own adds up, for if one is early among them
 * the other is late. */
static bool known_later(const struct lag_merge *m, const struct arrival *last,
			const struct arrival *before)
{
	const struct lag_proc *p = LAG_PROC_AT(m, last->proc), *q = LAG_PROC_AT(m, before->proc);
	int64_t u = lag_align_uncertainty(&m->clock, p->host, last->device, last->raw_ns);
	int64_t v = lag_align_uncertainty(&m->clock, q->host, before->device, before->raw_ns);
	double both;

	if (last->device == before->device)
		return last->start_ns > before->start_ns;
	if (p->host == q->host) {
		u = lag_align_own(&m->clock, last->device, last->raw_ns);
		v = lag_align_own(&m->clock, before->device, before->raw_ns);
	}
	if (u == INT64_MAX || v == INT64_MAX)
		return false;
	both = p->host == q->host ? (double)u + (double)v : hypot((double)u, (double)v);
	return (double)(last->start_ns - before->start_ns) > both;
}

static void add_arrival(struct lag_instance_row *row, struct arrival *last, struct arrival *before,
			const struct arrival *now, int64_t end_ns)
{
	row->n_started++;
	if (row->n_started == 1 || now->start_ns < row->first_start_ns)
		row->first_start_ns = now->start_ns;
	if (row->n_started == 1 || now->start_ns > last->start_ns) {
		*before = *last;
		*last = *now;
	} else if (row->n_started == 2 || now->start_ns > before->start_ns) {
		*before = *now;
	}
	if (end_ns == LAG_NONE)
		return;
	row->n_finished++;
	if (row->n_finished == 1 || end_ns < row->first_end_ns)
		row->first_end_ns = end_ns;
	if (row->n_finished == 1 || end_ns > row->last_end_ns)
		row->last_end_ns = end_ns;
}

static void time_instance(struct lag_merge *m, struct lag_instance_row *row)
{
	struct arrival last = { 0 }, before = { 0 };

	row->first_start_ns = row->last_start_ns = row->first_end_ns = row->last_end_ns = LAG_NONE;
	row->lead_ns = row->last_rank = LAG_NONE;
	for (const struct lag_instance_member *at = lag_observe_member(m, row->first_ref); at;
	     at = lag_observe_member(m, at->next_ref)) {
		const struct lag_launch *launch = lag_observe_launch(m, at);
		const struct lag_proc *p = LAG_PROC_AT(m, at->proc);
		struct arrival now;

		if (!launch->n_gpu)
			continue;
		now = (struct arrival){ lag_merge_corrected(m, p, launch->device, launch->start_ns),
					launch->start_ns, at->proc, launch->device };
		add_arrival(row, &last, &before, &now,
			    lag_merge_corrected(m, p, launch->device, launch->end_ns));
	}
	if (!row->n_started)
		return;
	row->last_start_ns = last.start_ns;
	if (row->n_started < 2)
		return;
	row->lead_ns = last.start_ns - before.start_ns;
	if (row->n_started == row->n_members && !(row->flags & LAG_INSTANCE_MISMATCH) &&
	    known_later(m, &last, &before))
		row->last_rank = LAG_PROC_AT(m, last.proc)->rank;
}

void lag_merge_waits(struct lag_merge *m)
{
	for (size_t i = 0; i < m->instances.n; i++) {
		if (lag_append_changed(m, i))
			time_instance(m, LAG_INSTANCE_AT(m, i));
	}
}
