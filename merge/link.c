/* SPDX-License-Identifier: Apache-2.0 */
/* Ties each communication operation to what executes it on the GPU: by external id (the operation's or
 * its group's), by the source's own word, else by launch calls made inside the operation's call. */
#include "merge/names.h"
#include "merge/state.h"
#include "schema/base/sort.h"

#define OUR_EXTERNAL_KIND 5

/* An event that carries an operation's or a group's id. */
struct keyed {
	int64_t key;
	uint32_t gpu;
};

/* A launch call of a communication kernel, for sources without ids. */
struct nested {
	int64_t tid, start_ns;
	uint32_t gpu;
};

struct linker {
	struct lag_merge *m;
	struct lag_proc *p;
	uint32_t proc;
	struct lag_vec keyed;   /* struct keyed, sorted, each once */
	struct lag_vec nested;  /* struct nested, sorted; only when nothing is keyed */
	struct lag_vec grouped; /* struct keyed: (group_id, op index) */
	struct lag_vec events;  /* uint32_t gpu indices of the operation at hand */
	struct lag_vec comms;   /* struct group_comm of the group at hand */
};

struct group_comm {
	uint32_t comm, n_ops, launch_ref;
	int64_t stream;
};

static int by_key(const void *left, const void *right, void *state)
{
	const struct keyed *a = left, *b = right;

	(void)state;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->gpu < b->gpu ? -1 : a->gpu > b->gpu;
}

static int by_thread(const void *left, const void *right, void *state)
{
	const struct nested *a = left, *b = right;

	(void)state;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->gpu < b->gpu ? -1 : a->gpu > b->gpu;
}

static size_t first_of(const struct lag_vec *keyed, int64_t key)
{
	size_t lo = 0, hi = keyed->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (LAG_VEC_AT(keyed, struct keyed, mid).key < key) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static enum lag_status push_keyed(struct lag_vec *vec, int64_t key, uint32_t gpu)
{
	struct keyed *k = lag_vec_push(vec);

	if (!k)
		return LAG_ERR_SYSTEM;
	*k = (struct keyed){ key, gpu };
	return LAG_OK;
}

static enum lag_status sort_keyed(struct lag_vec *vec)
{
	enum lag_status st = lag_vec_sort(vec, by_key, NULL);
	struct keyed *at = vec->items;
	size_t kept = 0;

	for (size_t i = 0; i < vec->n; i++) {
		if (!kept || at[kept - 1].key != at[i].key || at[kept - 1].gpu != at[i].gpu)
			at[kept++] = at[i];
	}
	vec->n = kept;
	return st;
}

static enum lag_status key_events(struct linker *l)
{
	const struct lag_part *part = &l->p->part;
	struct lag_vec by_corr = LAG_VEC_SPILLED(struct keyed, l->m->spill);
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; i < l->p->gpu.n && st == LAG_OK; i++) {
		const struct lag_gpu *g = LAG_GPU_AT(l->p, i);
		int64_t op_id = LAG_GPU_SLOT(l->p, g, op_id);
		int64_t correlation = LAG_GPU_SLOT(l->p, g, correlation);

		if (op_id != LAG_NONE)
			st = push_keyed(&l->keyed, op_id, i);
		if (st == LAG_OK && correlation > 0 && LAG_PART_COUNT(part, external))
			st = push_keyed(&by_corr, correlation, i);
	}
	if (st == LAG_OK)
		st = sort_keyed(&by_corr);
	for (size_t i = 0; i < LAG_PART_COUNT(part, external) && st == LAG_OK; i++) {
		const struct lag_rec_external *e = &LAG_PART_AT(part, external, i);

		if (e->kind != OUR_EXTERNAL_KIND)
			continue;
		for (size_t at = first_of(&by_corr, e->correlation);
		     at < by_corr.n && st == LAG_OK &&
		     LAG_VEC_AT(&by_corr, struct keyed, at).key == e->correlation;
		     at++) {
			st = push_keyed(&l->keyed, e->id,
					LAG_VEC_AT(&by_corr, struct keyed, at).gpu);
		}
	}
	if (st == LAG_OK)
		st = sort_keyed(&l->keyed);
	lag_vec_release(&by_corr);
	return st;
}

static enum lag_status nest_events(struct linker *l)
{
	struct lag_proc *p = l->p;

	if (l->keyed.n || !LAG_PART_COUNT(&p->part, op))
		return LAG_OK;
	for (uint32_t i = 0; i < p->gpu.n; i++) {
		const struct lag_gpu *g = LAG_GPU_AT(p, i);
		struct lag_rec_api call;
		struct nested *n;

		if (!g->api_ref || LAG_GPU_SHAPE_AT(p, g)->kind != LAG_GPU_KERNEL ||
		    !lag_name_is_communication(lag_merge_text(l->m, LAG_GPU_SLOT(p, g, name))))
			continue;
		call = LAG_PART_GET(&p->part, api, g->api_ref - 1);
		n = lag_vec_push(&l->nested);
		if (!n)
			return LAG_ERR_SYSTEM;
		*n = (struct nested){ call.tid, call.start_ns, i };
	}
	return lag_vec_sort(&l->nested, by_thread, NULL);
}

static enum lag_status take_event(struct linker *l, uint32_t gpu)
{
	uint32_t *slot = lag_vec_push(&l->events);

	if (!slot)
		return LAG_ERR_SYSTEM;
	*slot = gpu;
	return LAG_OK;
}

/* Events of an id; without any ids in the recording, those launched in [from, until] on the thread. */
static enum lag_status find_events(struct linker *l, int64_t key, int64_t tid, int64_t from,
				   int64_t until)
{
	enum lag_status st = LAG_OK;

	l->events.n = 0;
	for (size_t at = first_of(&l->keyed, key);
	     at < l->keyed.n && st == LAG_OK && LAG_VEC_AT(&l->keyed, struct keyed, at).key == key;
	     at++)
		st = take_event(l, LAG_VEC_AT(&l->keyed, struct keyed, at).gpu);
	if (!l->nested.n || from == LAG_NONE || until == LAG_NONE)
		return st;
	for (size_t lo = 0, hi = l->nested.n; lo <= hi;) {
		size_t mid = lo + (hi - lo) / 2;
		const struct nested *n;

		if (lo < hi) {
			n = &LAG_VEC_AT(&l->nested, struct nested, mid);
			if (n->tid < tid || (n->tid == tid && n->start_ns < from)) {
				lo = mid + 1;
			} else {
				hi = mid;
			}
			continue;
		}
		for (; lo < l->nested.n && st == LAG_OK; lo++) {
			n = &LAG_VEC_AT(&l->nested, struct nested, lo);
			if (n->tid != tid || n->start_ns > until)
				break;
			st = take_event(l, n->gpu);
		}
		break;
	}
	return st;
}

/* Makes the launch that executes n_ops operations of comm; events may be none. */
static uint32_t add_launch(struct linker *l, uint32_t comm, int64_t group, uint32_t n_ops,
			   int64_t stream)
{
	struct lag_launch *launch = lag_vec_push(&l->p->launches);

	if (!launch)
		return 0;
	*launch = (struct lag_launch){ .start_ns = LAG_NONE,
				       .end_ns = LAG_NONE,
				       .group_id = group,
				       .stream = stream,
				       .comm = comm,
				       .device = LAG_HOST_CLOCK,
				       .n_ops = n_ops };
	return (uint32_t)l->p->launches.n;
}

/* Start of the first event, end of the last; unfinished as long as one is. */
static void add_event(struct linker *l, uint32_t launch_ref, uint32_t gpu)
{
	struct lag_launch *launch = LAG_LAUNCH_AT(l->p, launch_ref - 1);
	struct lag_gpu *g = LAG_GPU_AT(l->p, gpu);
	const struct lag_gpu_shape *shape = LAG_GPU_SHAPE_AT(l->p, g);
	int64_t end_ns = LAG_GPU_END(l->p, g);

	if (!g->launch_ref)
		g->launch_ref = launch_ref;
	if (!launch->n_gpu++) {
		launch->gpu_ref = gpu + 1;
		launch->start_ns = g->start_ns;
		launch->end_ns = end_ns;
		launch->stream = shape->stream;
		launch->device = shape->dense;
		return;
	}
	if (g->start_ns < launch->start_ns) {
		launch->start_ns = g->start_ns;
		launch->gpu_ref = gpu + 1;
	}
	if (end_ns == LAG_NONE || launch->end_ns == LAG_NONE) {
		launch->end_ns = LAG_NONE;
	} else if (end_ns > launch->end_ns) {
		launch->end_ns = end_ns;
	}
}

static enum lag_status link_single(struct linker *l, uint32_t op)
{
	const struct lag_rec_op *o = &LAG_PART_AT(&l->p->part, op, op);
	struct lag_op_link *link = LAG_OP_LINK_AT(l->p, op);
	enum lag_status st = find_events(l, o->op_id, o->tid, o->enter_ns, o->leave_ns);

	if (st != LAG_OK)
		return st;
	link->launch_ref = add_launch(l, link->comm, o->group_id, 1, o->stream);
	if (!link->launch_ref)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < l->events.n; i++)
		add_event(l, link->launch_ref, LAG_VEC_AT(&l->events, uint32_t, i));
	return LAG_OK;
}

static struct group_comm *group_comm(struct linker *l, uint32_t comm, int64_t stream)
{
	struct group_comm *c;

	for (size_t i = 0; i < l->comms.n; i++) {
		c = &LAG_VEC_AT(&l->comms, struct group_comm, i);
		if (c->comm == comm)
			return c;
	}
	c = lag_vec_push(&l->comms);
	if (c) {
		c->comm = comm;
		c->stream = stream;
	}
	return c;
}

static int64_t stream_of(const struct linker *l, uint32_t gpu)
{
	return LAG_GPU_SHAPE_AT(l->p, LAG_GPU_AT(l->p, gpu))->stream;
}

/* Which communicators of the group an event can belong to: those on its stream, in order of first
 * use; when there are as many events as communicators there, the k-th event is the k-th's. An event
 * that cannot be told apart counts for each. */
static void share_event(struct linker *l, size_t event)
{
	uint32_t gpu = LAG_VEC_AT(&l->events, uint32_t, event);
	int64_t stream = stream_of(l, gpu);
	size_t on_stream = 0, events = 0, place = 0, k = 0;
	bool any;

	for (size_t i = 0; i < l->comms.n; i++)
		on_stream += LAG_VEC_AT(&l->comms, struct group_comm, i).stream == stream;
	any = on_stream == 0;
	for (size_t i = 0; i < l->events.n; i++) {
		uint32_t other = LAG_VEC_AT(&l->events, uint32_t, i);

		if (!any && stream_of(l, other) != stream)
			continue;
		place += i < event;
		events++;
	}
	for (size_t i = 0; i < l->comms.n; i++) {
		const struct group_comm *c = &LAG_VEC_AT(&l->comms, struct group_comm, i);

		if (!any && c->stream != stream)
			continue;
		if (events != (any ? l->comms.n : on_stream) || k == place)
			add_event(l, c->launch_ref, gpu);
		k++;
	}
}

static const struct lag_rec_group *group_record(const struct linker *l, int64_t id, size_t *hint)
{
	const struct lag_part *part = &l->p->part;
	size_t n = LAG_PART_COUNT(part, group);

	/* Groups are mostly written in order of their ids. */
	for (size_t tried = 0; tried < n; tried++) {
		size_t at = (*hint + tried) % n;

		if (LAG_PART_AT(part, group, at).group_id == id) {
			*hint = at + 1;
			return &LAG_PART_AT(part, group, at);
		}
	}
	return NULL;
}

/* Operations [first, last) of l->grouped are one group. */
static enum lag_status link_group(struct linker *l, size_t first, size_t last, size_t *hint)
{
	int64_t id = LAG_VEC_AT(&l->grouped, struct keyed, first).key;
	const struct lag_rec_group *rec = l->nested.n ? group_record(l, id, hint) : NULL;
	enum lag_status st = find_events(l, id, rec ? rec->tid : 0, rec ? rec->launch_ns : LAG_NONE,
					 rec ? rec->leave_ns : LAG_NONE);

	l->comms.n = 0;
	for (size_t i = first; i < last && st == LAG_OK; i++) {
		uint32_t op = LAG_VEC_AT(&l->grouped, struct keyed, i).gpu;
		struct group_comm *c = group_comm(l, LAG_OP_LINK_AT(l->p, op)->comm,
						  LAG_PART_AT(&l->p->part, op, op).stream);

		if (!c)
			return LAG_ERR_SYSTEM;
		c->n_ops++;
	}
	for (size_t i = 0; i < l->comms.n && st == LAG_OK; i++) {
		struct group_comm *c = &LAG_VEC_AT(&l->comms, struct group_comm, i);

		c->launch_ref = add_launch(l, c->comm, id, c->n_ops, c->stream);
		if (!c->launch_ref)
			return LAG_ERR_SYSTEM;
	}
	for (size_t i = 0; i < l->events.n && st == LAG_OK; i++)
		share_event(l, i);
	for (size_t i = first; i < last && st == LAG_OK; i++) {
		uint32_t op = LAG_VEC_AT(&l->grouped, struct keyed, i).gpu;
		struct lag_op_link *link = LAG_OP_LINK_AT(l->p, op);

		link->launch_ref = group_comm(l, link->comm, 0)->launch_ref;
	}
	return st;
}

/* The operation's communicator and own place in it. */
static enum lag_status place_op(struct linker *l, uint32_t op)
{
	const struct lag_rec_op *o = &LAG_PART_AT(&l->p->part, op, op);
	struct lag_op_link *link = lag_vec_push(&l->p->op_links);
	const struct lag_comm_row *comm;
	uint64_t at = 0, place = 0;

	if (!link)
		return LAG_ERR_SYSTEM;
	(void)lag_map_find(&l->p->comm_of, (uint64_t)o->comm_id, &at);
	link->comm = (uint32_t)at;
	link->seq = o->seq;
	link->comm_rank = LAG_NONE;
	if (lag_map_find(&l->p->comm_rank_of, (uint64_t)o->comm_id, &place)) {
		link->comm_rank = (int64_t)place;
		return LAG_OK;
	}
	comm = LAG_COMM_AT(l->m, at);
	for (size_t i = 0; i < comm->members.n; i++) {
		const struct lag_comm_member_row *row =
			&LAG_VEC_AT(&comm->members, struct lag_comm_member_row, i);

		if (row->proc_ref == l->proc + 1) {
			link->comm_rank = row->comm_rank;
			break;
		}
	}
	/* Also where it is not known, so that the next operation need not look again. */
	return lag_map_set(&l->p->comm_rank_of, (uint64_t)o->comm_id, (uint64_t)link->comm_rank);
}

static enum lag_status link_ops(struct linker *l)
{
	size_t n = LAG_PART_COUNT(&l->p->part, op), hint = 0;
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; i < n && st == LAG_OK; i++)
		st = lag_merge_cancelled(l->m, i) ? LAG_ERR_LIMIT : place_op(l, i);
	for (uint32_t i = 0; i < n && st == LAG_OK; i++) {
		const struct lag_rec_op *o = &LAG_PART_AT(&l->p->part, op, i);
		size_t own = first_of(&l->keyed, o->op_id);

		/* A member of a group that has events of its own needs no group. */
		if (o->group_id == LAG_NONE ||
		    (own < l->keyed.n &&
		     LAG_VEC_AT(&l->keyed, struct keyed, own).key == o->op_id)) {
			st = link_single(l, i);
		} else {
			st = push_keyed(&l->grouped, o->group_id, i);
		}
	}
	if (st == LAG_OK)
		st = sort_keyed(&l->grouped);
	for (size_t i = 0, j; i < l->grouped.n && st == LAG_OK; i = j) {
		for (j = i + 1; j < l->grouped.n; j++) {
			if (LAG_VEC_AT(&l->grouped, struct keyed, j).key !=
			    LAG_VEC_AT(&l->grouped, struct keyed, i).key)
				break;
		}
		st = link_group(l, i, j, &hint);
	}
	return st;
}

enum lag_status lag_merge_link(struct lag_merge *m, uint32_t proc, struct lag_err *err)
{
	struct linker l = { .m = m,
			    .p = LAG_PROC_AT(m, proc),
			    .proc = proc,
			    .keyed = LAG_VEC_SPILLED(struct keyed, m->spill),
			    .nested = LAG_VEC_SPILLED(struct nested, m->spill),
			    .grouped = LAG_VEC_SPILLED(struct keyed, m->spill),
			    .events = LAG_VEC_INIT(uint32_t),
			    .comms = LAG_VEC_INIT(struct group_comm) };
	enum lag_status st;

	l.p->launches.max = UINT32_MAX - 1;
	st = key_events(&l);
	if (st == LAG_OK)
		st = nest_events(&l);
	if (st == LAG_OK)
		st = link_ops(&l);
	lag_vec_release(&l.keyed);
	lag_vec_release(&l.nested);
	lag_vec_release(&l.grouped);
	lag_vec_release(&l.events);
	lag_vec_release(&l.comms);
	if (atomic_load(&m->cancelled))
		return lag_merge_interrupted(err);
	if (st != LAG_OK) {
		return lag_err_set(err, LAG_ERR_SYSTEM,
				   "%s: no memory to tie operations to kernels", l.p->part.path);
	}
	return lag_merge_seen(l.p, err);
}
