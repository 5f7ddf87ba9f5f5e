/* SPDX-License-Identifier: Apache-2.0 */
/* Matched instances, clock readings and what time daemons say become the aligner's observations. */
#include "merge/clock_observe.h"

const struct lag_instance_member *lag_observe_member(const struct lag_merge *m, uint32_t ref)
{
	return ref ? &LAG_VEC_AT(&m->members, struct lag_instance_member, ref - 1) : NULL;
}

const struct lag_launch *lag_observe_launch(const struct lag_merge *m,
					    const struct lag_instance_member *at)
{
	struct lag_proc *p = LAG_PROC_AT(m, at->proc);

	return LAG_LAUNCH_AT(p, LAG_OP_LINK_AT(p, at->op)->launch_ref - 1);
}

static bool observe(const struct lag_merge *m, const struct lag_instance_member *at,
		    struct lag_align_member *out)
{
	const struct lag_launch *launch = lag_observe_launch(m, at);

	if (!launch->n_gpu || launch->end_ns == LAG_NONE)
		return false;
	*out = (struct lag_align_member){ .host = LAG_PROC_AT(m, at->proc)->host,
					  .device = launch->device,
					  .start_ns = launch->start_ns,
					  .end_ns = launch->end_ns };
	return true;
}

static enum lag_status add_collective(struct lag_observations *o,
				      const struct lag_instance_row *row)
{
	struct lag_align_collective c = { .func = (enum lag_func)row->func,
					  .bytes = row->bytes == LAG_NONE ? -1 : row->bytes,
					  .comm = row->comm,
					  .first_member = (uint32_t)o->members.n,
					  .n_ranks = (uint32_t)row->n_members,
					  .complete = row->n_recorded == row->n_members,
					  .fused = row->flags & LAG_INSTANCE_SHARED };
	struct lag_align_collective *slot;

	for (const struct lag_instance_member *at = lag_observe_member(o->m, row->first_ref); at;
	     at = lag_observe_member(o->m, at->next_ref)) {
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

static enum lag_status add_message(struct lag_observations *o, const struct lag_instance_row *row)
{
	const struct lag_instance_member *a = lag_observe_member(o->m, row->first_ref);
	const struct lag_instance_member *b = a ? lag_observe_member(o->m, a->next_ref) : NULL;
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

static enum lag_status add_instances(struct lag_observations *o)
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

static enum lag_status add_brackets(struct lag_observations *o)
{
	for (size_t i = 0; i < o->m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(o->m, i);

		for (size_t c = 0; c < LAG_PART_COUNT(&p->part, clock) && !p->unused; c++) {
			const struct lag_rec_clock *r = &LAG_PART_AT(&p->part, clock, c);
			struct lag_align_bracket *slot;

			if (r->bracket_ns == LAG_NONE)
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

static enum lag_status add_states(struct lag_observations *o, const struct lag_proc *p)
{
	for (size_t c = 0; c < LAG_PART_COUNT(&p->part, clock_state); c++) {
		const struct lag_rec_clock_state *r = &LAG_PART_AT(&p->part, clock_state, c);
		struct lag_align_state *slot;

		if (r->source != LAG_CLOCK_ADJTIMEX || r->synchronised != 1 ||
		    r->max_error_ns == LAG_NONE || r->max_error_ns < 0)
			continue;
		slot = lag_vec_push(&o->states);
		if (!slot)
			return LAG_ERR_SYSTEM;
		*slot = (struct lag_align_state){ p->host, r->at_ns, r->max_error_ns };
	}
	for (size_t c = 0; c < LAG_PART_COUNT(&p->part, clock_step); c++) {
		const struct lag_rec_clock_step *r = &LAG_PART_AT(&p->part, clock_step, c);
		struct lag_align_step *slot = lag_vec_push(&o->steps);

		if (!slot)
			return LAG_ERR_SYSTEM;
		*slot = (struct lag_align_step){ p->host, r->at_ns, r->step_ns };
	}
	return LAG_OK;
}

enum lag_status lag_observe(struct lag_merge *m, struct lag_observations *o, struct lag_err *err)
{
	enum lag_status st;

	*o = (struct lag_observations){
		.m = m,
		.members = LAG_VEC_SPILLED(struct lag_align_member, m->spill),
		.collectives = LAG_VEC_SPILLED(struct lag_align_collective, m->spill),
		.messages = LAG_VEC_SPILLED(struct lag_align_message, m->spill),
		.brackets = LAG_VEC_INIT(struct lag_align_bracket),
		.states = LAG_VEC_INIT(struct lag_align_state),
		.steps = LAG_VEC_INIT(struct lag_align_step)
	};
	o->members.max = UINT32_MAX - 1;
	st = add_instances(o);
	if (st == LAG_OK)
		st = add_brackets(o);
	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		if (!LAG_PROC_AT(m, i)->unused)
			st = add_states(o, LAG_PROC_AT(m, i));
	}
	if (st != LAG_OK) {
		lag_observations_release(o);
		return lag_err_set(err, st, "no memory for the clock's observations");
	}
	o->in = (struct lag_align_input){ .n_hosts = (uint32_t)m->n_clocks,
					  .n_devices = m->n_devices,
					  .device_host = m->device_host.items,
					  .members = o->members.items,
					  .n_members = o->members.n,
					  .collectives = o->collectives.items,
					  .n_collectives = o->collectives.n,
					  .messages = o->messages.items,
					  .n_messages = o->messages.n,
					  .brackets = o->brackets.items,
					  .n_brackets = o->brackets.n,
					  .states = o->states.items,
					  .n_states = o->states.n,
					  .steps = o->steps.items,
					  .n_steps = o->steps.n };
	return LAG_OK;
}

void lag_observations_release(struct lag_observations *o)
{
	lag_vec_release(&o->members);
	lag_vec_release(&o->collectives);
	lag_vec_release(&o->messages);
	lag_vec_release(&o->brackets);
	lag_vec_release(&o->states);
	lag_vec_release(&o->steps);
}
