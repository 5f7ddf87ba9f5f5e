/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of late ranks. All hosts of the trace are one host to the aligner, which is the reference: their
 * times are on the common clock already, and rows that are written carry them. New hosts are put on it; a
 * new process on an old host has that host's map. How far the old hosts' own clocks may be off is part of
 * what is said of the new ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/clock_observe.h"

struct joining {
	struct lag_merge *m;
	struct lag_align_result maps; /* of old hosts; borrows old->segments */
	bool *silent;                 /* by old host: nothing says where its clock is */
	uint32_t *device_host;        /* by device, as the aligner sees it */
	double worst_ns;              /* uncertainty of the old hosts that are heard */
	struct lag_align_input in;
};

/* Whether a member, bracket, ... of this host is of the trace's common clock; new hosts count from 1. */
static uint32_t heard_as(const struct joining *j, uint32_t host)
{
	return host < j->m->old.n_hosts ? 0 : host - j->m->old.n_hosts + 1;
}

static bool is_silent(const struct joining *j, uint32_t host)
{
	return host < j->m->old.n_hosts && j->silent[host];
}

static bool find_silent(struct joining *j)
{
	const struct lag_old *old = &j->m->old;
	bool measured = strcmp(old->method, "collective") == 0;

	j->silent = lag_calloc(old->n_hosts, sizeof(*j->silent));
	/* A host that only helpers ran on has no clock on record. */
	for (uint32_t h = 0; j->silent && h < old->n_hosts; h++)
		j->silent[h] = measured && h != old->reference_host;
	for (size_t i = 0; j->silent && i < old->segments.n; i++) {
		const struct lag_align_segment *s =
			&LAG_VEC_AT(&old->segments, struct lag_align_segment, i);

		if (s->host == old->reference_host || !measured)
			continue;
		if (!i || s[-1].host != s->host)
			j->silent[s->host] = false;
		if (s->basis == LAG_ALIGN_NOTHING || s->basis == LAG_ALIGN_WALL ||
		    s->uncertainty_ns < 0) {
			j->silent[s->host] = true;
		} else {
			j->worst_ns = fmax(j->worst_ns, s->uncertainty_ns);
		}
	}
	return j->silent != NULL;
}

/* Times of old processes are on the common clock, those of a new one of an old host not yet. */
static int64_t common(const struct joining *j, uint32_t host, int64_t raw_ns)
{
	return lag_align_apply(&j->maps, host, LAG_HOST_CLOCK, raw_ns);
}

static void place_member(const struct joining *j, struct lag_align_member *at)
{
	uint32_t host = at->host;
	bool old = LAG_PROC_AT(j->m, LAG_VEC_AT(&j->m->device_proc, uint32_t, at->device))->old;

	at->host = heard_as(j, host);
	if (is_silent(j, host)) {
		at->start_ns = at->end_ns = INT64_MIN;
	} else if (host < j->m->old.n_hosts && !old) {
		at->start_ns = common(j, host, at->start_ns);
		at->end_ns = common(j, host, at->end_ns);
	}
}

static void place_observations(const struct joining *j, struct lag_observations *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->members.n; i++)
		place_member(j, &LAG_VEC_AT(&o->members, struct lag_align_member, i));
	for (size_t i = 0; i < o->messages.n; i++) {
		struct lag_align_message *msg =
			&LAG_VEC_AT(&o->messages, struct lag_align_message, i);

		place_member(j, &msg->send);
		place_member(j, &msg->recv);
	}
	for (size_t i = 0; i < o->brackets.n; i++) {
		struct lag_align_bracket *b =
			&LAG_VEC_AT(&o->brackets, struct lag_align_bracket, i);
		uint32_t host = b->host;

		b->host = heard_as(j, host);
		if (host >= j->m->old.n_hosts)
			continue;
		b->realtime_ns = common(j, host, b->realtime_ns);
		b->cupti_ns = common(j, host, b->cupti_ns);
		/* Where that clock was set is in its map. */
		b->monotonic_ns = b->realtime_ns;
	}
	/* What time daemons said of the old hosts is not in the trace. */
	for (size_t i = 0; i < o->states.n; i++) {
		struct lag_align_state s = LAG_VEC_AT(&o->states, struct lag_align_state, i);

		if (s.host < j->m->old.n_hosts)
			continue;
		s.host = heard_as(j, s.host);
		LAG_VEC_AT(&o->states, struct lag_align_state, n++) = s;
	}
	o->states.n = n;
	n = 0;
	for (size_t i = 0; i < o->steps.n; i++) {
		struct lag_align_step s = LAG_VEC_AT(&o->steps, struct lag_align_step, i);

		if (s.host < j->m->old.n_hosts)
			continue;
		s.host = heard_as(j, s.host);
		LAG_VEC_AT(&o->steps, struct lag_align_step, n++) = s;
	}
	o->steps.n = n;
}

static double both(double a, double b)
{
	return a < 0 || b < 0 ? -1 : hypot(a, b);
}

/* The raw time that a host's map brings to a common one: maps are nearly straight. */
static int64_t raw_time(const struct joining *j, uint32_t host, int64_t common_ns)
{
	int64_t raw = common_ns;

	for (int i = 0; i < 3; i++)
		raw += common_ns - common(j, host, raw);
	return raw;
}

static enum lag_status join_segments(const struct joining *j, const struct lag_align_result *got,
				     struct lag_align_result *out)
{
	const struct lag_old *old = &j->m->old;

	out->segments = lag_calloc(old->segments.n + got->n_segments, sizeof(*out->segments));
	if (!out->segments)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < old->segments.n; i++) {
		out->segments[out->n_segments++] =
			LAG_VEC_AT(&old->segments, struct lag_align_segment, i);
	}
	for (size_t i = 0; i < got->n_segments; i++) {
		struct lag_align_segment s = got->segments[i];

		if (s.host == 0)
			continue;
		s.host += old->n_hosts - 1;
		s.uncertainty_ns = both(s.uncertainty_ns, j->worst_ns);
		s.bound_lo_ns -= j->worst_ns;
		s.bound_hi_ns += j->worst_ns;
		out->segments[out->n_segments++] = s;
	}
	return LAG_OK;
}

/* A row of a new device, as the aligner gave it for the host that it saw. */
static struct lag_align_device device_row(const struct joining *j, struct lag_align_device row)
{
	uint32_t host = LAG_VEC_AT(&j->m->device_host, uint32_t, row.device);
	double host_ns = j->worst_ns;

	if (host < j->m->old.n_hosts) {
		int64_t u;

		row.from_ns = raw_time(j, host, row.from_ns);
		u = lag_align_uncertainty(&j->maps, host, LAG_HOST_CLOCK, row.from_ns);
		host_ns = u == INT64_MAX ? -1 : (double)u;
		if (host_ns < 0 && host == j->m->old.reference_host)
			host_ns = 0;
		if (is_silent(j, host))
			host_ns = -1;
	}
	row.uncertainty_ns = both(row.uncertainty_ns, host_ns);
	return row;
}

static int by_device(const void *left, const void *right)
{
	const struct lag_align_device *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static enum lag_status join_devices(const struct joining *j, const struct lag_align_result *got,
				    struct lag_align_result *out)
{
	const struct lag_old *old = &j->m->old;

	out->devices = lag_calloc(old->devices.n + got->n_devices, sizeof(*out->devices));
	if (!out->devices)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < old->devices.n; i++) {
		const struct lag_old_device *d =
			&LAG_VEC_AT(&old->devices, struct lag_old_device, i);
		const struct lag_proc *proc = LAG_PROC_AT(j->m, d->proc);
		struct lag_align_device *row = &out->devices[out->n_devices++];

		*row = d->row;
		row->device = LAG_VEC_AT(&proc->devices, struct lag_device_row, 0).dense;
		row->from_ns = common(j, proc->host, row->from_ns);
		/* Its times have it already. */
		row->offset_ns = 0;
	}
	for (size_t i = 0; i < got->n_devices; i++) {
		uint32_t proc = LAG_VEC_AT(&j->m->device_proc, uint32_t, got->devices[i].device);

		if (!LAG_PROC_AT(j->m, proc)->old)
			out->devices[out->n_devices++] = device_row(j, got->devices[i]);
	}
	if (out->n_devices)
		qsort(out->devices, out->n_devices, sizeof(*out->devices), by_device);
	return LAG_OK;
}

static enum lag_status align(struct joining *j, const struct lag_aligner *aligner,
			     struct lag_observations *o, struct lag_err *err)
{
	struct lag_merge *m = j->m;
	struct lag_align_result got = { 0 };
	enum lag_status st;

	for (uint32_t d = 0; d < m->n_devices; d++)
		j->device_host[d] = heard_as(j, LAG_VEC_AT(&m->device_host, uint32_t, d));
	place_observations(j, o);
	j->in = o->in;
	j->in.n_states = o->states.n;
	j->in.n_steps = o->steps.n;
	j->in.n_hosts = 1 + (uint32_t)m->n_clocks - m->old.n_hosts;
	j->in.device_host = j->device_host;
	j->in.reference_ref = 1;
	st = aligner->align(&j->in, &got, err);
	if (lag_failed(st))
		return st;
	m->clock = got;
	m->clock.segments = NULL;
	m->clock.devices = NULL;
	m->clock.n_segments = m->clock.n_devices = 0;
	m->clock.reference_host = m->old.reference_host;
	st = join_segments(j, &got, &m->clock);
	if (st == LAG_OK)
		st = join_devices(j, &got, &m->clock);
	lag_align_release(&got);
	return st == LAG_OK ? st : lag_err_set(err, st, "no memory for clocks");
}

enum lag_status lag_append_align(struct lag_merge *m, const struct lag_aligner *aligner,
				 struct lag_observations *o, struct lag_err *err)
{
	struct joining j = { .m = m,
			     .maps = { .segments = m->old.segments.items,
				       .n_segments = m->old.segments.n },
			     .device_host = lag_calloc(m->n_devices, sizeof(uint32_t)) };
	enum lag_status st = LAG_ERR_SYSTEM;

	if (j.device_host && find_silent(&j)) {
		st = align(&j, aligner, o, err);
	} else {
		(void)lag_err_set(err, st, "no memory for clocks");
	}
	free(j.silent);
	free(j.device_host);
	return st;
}
