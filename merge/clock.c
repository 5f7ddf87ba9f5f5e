/* SPDX-License-Identifier: Apache-2.0 */
/* Matched instances become the aligner's observations; its answer gives every instance its starts,
 * ends and last arriver on one clock. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "merge/state.h"

struct observer {
	struct lag_merge *m;
	struct lag_vec members, collectives, messages, brackets;
};

static const struct lag_instance_member *member_at(const struct lag_merge *m, uint32_t ref)
{
	return ref ? &LAG_VEC_AT(&m->members, struct lag_instance_member, ref - 1) : NULL;
}

static const struct lag_launch *launch_of(const struct lag_merge *m,
					  const struct lag_instance_member *at)
{
	struct lag_proc *p = LAG_PROC_AT(m, at->proc);

	return LAG_LAUNCH_AT(p, LAG_OP_LINK_AT(p, at->op)->launch_ref - 1);
}

static bool observe(const struct lag_merge *m, const struct lag_instance_member *at,
		    struct lag_align_member *out)
{
	const struct lag_launch *launch = launch_of(m, at);

	if (!launch->n_gpu || launch->end_ns == LAG_NONE)
		return false;
	*out = (struct lag_align_member){ .host = LAG_PROC_AT(m, at->proc)->host,
					  .device = launch->device,
					  .start_ns = launch->start_ns,
					  .end_ns = launch->end_ns };
	return true;
}

static enum lag_status add_collective(struct observer *o, const struct lag_instance_row *row)
{
	struct lag_align_collective c = { .func = (enum lag_func)row->func,
					  .bytes = row->bytes == LAG_NONE ? -1 : row->bytes,
					  .comm = row->comm,
					  .first_member = (uint32_t)o->members.n,
					  .complete = row->n_recorded == row->n_members,
					  .fused = row->flags & LAG_INSTANCE_SHARED };
	struct lag_align_collective *slot;

	for (const struct lag_instance_member *at = member_at(o->m, row->first_ref); at;
	     at = member_at(o->m, at->next_ref)) {
		struct lag_align_member member, *room;

		if (!observe(o->m, at, &member)) {
			c.complete = false;
			continue;
		}
		room = lag_vec_push(&o->members);
		if (!room)
			return LAG_ERR_SYSTEM;
		*room = member;
		c.n_members++;
	}
	if (c.n_members < 2) {
		o->members.n = c.first_member;
		return LAG_OK;
	}
	slot = lag_vec_push(&o->collectives);
	if (!slot)
		return LAG_ERR_SYSTEM;
	*slot = c;
	return LAG_OK;
}

static enum lag_status add_message(struct observer *o, const struct lag_instance_row *row)
{
	const struct lag_instance_member *a = member_at(o->m, row->first_ref);
	const struct lag_instance_member *b = a ? member_at(o->m, a->next_ref) : NULL;
	struct lag_align_message msg = { .bytes = row->bytes == LAG_NONE ? -1 : row->bytes,
					 .grouped = row->flags & LAG_INSTANCE_SHARED },
				 *slot;
	struct lag_proc *p;

	if (!b)
		return LAG_OK;
	p = LAG_PROC_AT(o->m, a->proc);
	if (LAG_PART_AT(&p->part, op, a->op).func != LAG_FUNC_SEND) {
		const struct lag_instance_member *swap = a;

		a = b;
		b = swap;
	}
	if (!observe(o->m, a, &msg.send) || !observe(o->m, b, &msg.recv))
		return LAG_OK;
	slot = lag_vec_push(&o->messages);
	if (!slot)
		return LAG_ERR_SYSTEM;
	*slot = msg;
	return LAG_OK;
}

/* Matches by order and mismatched ones may be no matches at all: no clock is built on them, unless
 * order is all there is. */
static bool usable(const struct lag_instance_row *row, bool orders)
{
	return !(row->flags & LAG_INSTANCE_MISMATCH) &&
	       (orders || !(row->flags & LAG_INSTANCE_BY_ORDER));
}

static enum lag_status add_instances(struct observer *o)
{
	enum lag_status st = LAG_OK;
	bool numbered = false;

	for (size_t i = 0; i < o->m->instances.n; i++) {
		numbered = numbered || (LAG_INSTANCE_AT(o->m, i)->n_recorded > 1 &&
					!(LAG_INSTANCE_AT(o->m, i)->flags & LAG_INSTANCE_BY_ORDER));
	}
	for (size_t i = 0; i < o->m->instances.n && st == LAG_OK; i++) {
		const struct lag_instance_row *row = LAG_INSTANCE_AT(o->m, i);

		if (row->n_recorded < 2 || !usable(row, !numbered))
			continue;
		st = row->src == LAG_NONE ? add_collective(o, row) : add_message(o, row);
	}
	return st;
}

static enum lag_status add_brackets(struct observer *o)
{
	for (size_t i = 0; i < o->m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(o->m, i);

		for (size_t c = 0; c < LAG_PART_COUNT(&p->part, clock) && !p->unused; c++) {
			const struct lag_rec_clock *r = &LAG_PART_AT(&p->part, clock, c);
			struct lag_align_bracket *slot;

			if (r->cupti_ns == LAG_NONE || r->bracket_ns == LAG_NONE)
				continue;
			slot = lag_vec_push(&o->brackets);
			if (!slot)
				return LAG_ERR_SYSTEM;
			*slot = (struct lag_align_bracket){
				.host = p->host,
				.device = lag_merge_device(p, r->device),
				.own = r->device != LAG_NONE,
				.realtime_ns = r->realtime_ns,
				.cupti_ns = r->cupti_ns,
				.monotonic_ns = r->monotonic_ns == LAG_NONE ? 0 : r->monotonic_ns,
				.bracket_ns = r->bracket_ns,
			};
		}
	}
	return LAG_OK;
}

static const struct lag_aligner *aligner_of(const char *name)
{
	for (size_t i = 0; lag_aligners[i]; i++) {
		if (strcmp(lag_aligners[i]->name, name) == 0)
			return lag_aligners[i];
	}
	return NULL;
}

static enum lag_status run_aligner(struct observer *o, struct lag_err *err)
{
	struct lag_merge *m = o->m;
	const char *name = m->opts->align ? m->opts->align : "collective";
	const struct lag_aligner *aligner = aligner_of(name);
	struct lag_align_input in = { .n_hosts = (uint32_t)m->hosts.n,
				      .n_devices = m->n_devices,
				      .device_host = m->device_host.items,
				      .members = o->members.items,
				      .n_members = o->members.n,
				      .collectives = o->collectives.items,
				      .n_collectives = o->collectives.n,
				      .messages = o->messages.items,
				      .n_messages = o->messages.n,
				      .brackets = o->brackets.items,
				      .n_brackets = o->brackets.n };

	if (!aligner)
		return lag_err_set(err, LAG_ERR_USAGE, "no alignment method '%s'", name);
	return aligner->align(&in, &m->clock, err);
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
	if (m->hosts.n > 1 && strcmp(clock->method, "collective") != 0) {
		lag_merge_find(m, 1, "clock_unaligned", LAG_ABOUT(LAG_NONE, LAG_NONE, m->hosts.n),
			       "the clocks of %zu hosts were not aligned (method %s): order and "
			       "waiting between hosts mean little",
			       m->hosts.n, clock->method);
	}
}

enum lag_status lag_merge_align(struct lag_merge *m, struct lag_err *err)
{
	struct observer o = { .m = m,
			      .members = LAG_VEC_SPILLED(struct lag_align_member, m->spill),
			      .collectives = LAG_VEC_SPILLED(struct lag_align_collective, m->spill),
			      .messages = LAG_VEC_SPILLED(struct lag_align_message, m->spill),
			      .brackets = LAG_VEC_INIT(struct lag_align_bracket) };
	enum lag_status st;

	o.members.max = UINT32_MAX - 1;
	st = add_instances(&o);
	if (st == LAG_OK)
		st = add_brackets(&o);
	if (st != LAG_OK) {
		(void)lag_err_set(err, st, "no memory for the clock's observations");
	} else {
		st = run_aligner(&o, err);
	}
	lag_vec_release(&o.members);
	lag_vec_release(&o.collectives);
	lag_vec_release(&o.messages);
	lag_vec_release(&o.brackets);
	if (!lag_failed(st))
		report(m);
	return lag_failed(st) ? st : LAG_OK;
}

/* ---- instances on the common clock ---- */

struct arrival {
	int64_t start_ns, raw_ns;
	uint32_t proc, device;
};

/* Whether one start is known to come before another: by more than both ends' uncertainty. Two devices
 * of one host share its clock and its error. */
static bool known_later(const struct lag_merge *m, const struct arrival *last,
			const struct arrival *before)
{
	const struct lag_proc *p = LAG_PROC_AT(m, last->proc), *q = LAG_PROC_AT(m, before->proc);
	int64_t u = lag_align_uncertainty(&m->clock, p->host, last->device, last->raw_ns);
	int64_t v = lag_align_uncertainty(&m->clock, q->host, before->device, before->raw_ns);
	double both;

	if (last->device == before->device)
		return last->start_ns > before->start_ns;
	if (u == INT64_MAX || v == INT64_MAX)
		return false;
	both = p->host == q->host ? (double)(u > v ? u : v) : hypot((double)u, (double)v);
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
	for (const struct lag_instance_member *at = member_at(m, row->first_ref); at;
	     at = member_at(m, at->next_ref)) {
		const struct lag_launch *launch = launch_of(m, at);
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
	for (size_t i = 0; i < m->instances.n; i++)
		time_instance(m, LAG_INSTANCE_AT(m, i));
}
