/* SPDX-License-Identifier: Apache-2.0 */
/* From a table's rows to records: every operation is GPU work of its name; communication is an operation of
 * a communicator besides, numbered so that a row which is missing on one worker shifts nothing. */
#include <stdio.h>
#include <string.h>

#include "merge/optable.h"
#include "schema/base/fmt.h"

/* Streams of a worker: what a table's rows of one kind run on, one after the other. */
enum stream {
	STREAM_COMPUTE,
	STREAM_DATA,
	STREAM_MESSAGES, /* four: each direction sends and receives */
	STREAM_OTHERS = STREAM_MESSAGES + 4
};

enum group {
	GROUP_WORLD,
	GROUP_DATA,
	GROUP_PIPELINE,
	GROUP_EMBEDDING,
	GROUP_UNKNOWN,
	GROUP_LIMIT
};

struct emit {
	struct lag_optable *t;
	const struct lag_optable_worker *w;
	struct lag_part part;
	bool used[GROUP_LIMIT];
	int64_t n_ops, n_ungrouped;
};

static enum group group_of(enum lag_optype kind)
{
	switch (kind) {
	case LAG_OT_PARAMS:
	case LAG_OT_GRADS:
	case LAG_OT_SEPARATE:
		return GROUP_DATA;
	case LAG_OT_EMBEDDING:
		return GROUP_EMBEDDING;
	case LAG_OT_CLIP:
		return GROUP_WORLD;
	case LAG_OT_UNGROUPED:
		return GROUP_UNKNOWN;
	default:
		return GROUP_PIPELINE;
	}
}

static int64_t stream_of(enum lag_optype kind)
{
	if (lag_optype_is_message(kind))
		return STREAM_MESSAGES + (kind - LAG_OT_FORWARD_SEND);
	switch (group_of(kind)) {
	case GROUP_DATA:
		return STREAM_DATA;
	case GROUP_PIPELINE:
		return STREAM_COMPUTE;
	default:
		return STREAM_OTHERS;
	}
}

static enum lag_func func_of(const struct lag_optable *t, const struct lag_optable_row *row)
{
	static const char *const words[] = { "all-reduce", "all-gather", "reduce-scatter",
					     "broadcast",  "all-to-all", "scatter" };
	const char *type = lag_strtab_get(&t->pool->strings, row->type);

	switch ((enum lag_optype)row->kind) {
	case LAG_OT_FORWARD_SEND:
	case LAG_OT_BACKWARD_SEND:
		return LAG_FUNC_SEND;
	case LAG_OT_FORWARD_RECV:
	case LAG_OT_BACKWARD_RECV:
		return LAG_FUNC_RECV;
	case LAG_OT_CLIP: /* the norm of all gradients is summed in it */
		return LAG_FUNC_ALL_REDUCE;
	default:
		break;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = strstr(type, words[i]);

		if (at)
			return lag_func_parse(at, strlen(at));
	}
	return LAG_FUNC_UNKNOWN;
}

/* Stage of a message's other side. */
static int64_t peer_of(const struct lag_optable *t, const struct lag_optable_row *row)
{
	bool next = row->kind == LAG_OT_FORWARD_SEND || row->kind == LAG_OT_BACKWARD_RECV;

	return (row->stage + (next ? 1 : t->n_stages - 1)) % t->n_stages;
}

/* Unique in its communicator, and the same on all members whatever rows they lack. */
static int64_t number_of(struct emit *e, const struct lag_optable_row *row)
{
	int64_t width = (int64_t)e->t->max_seq + 1, seq = row->seq, kind = 0, kinds = 1;

	if (lag_optype_is_message((enum lag_optype)row->kind)) {
		kinds = 2;
		kind = row->kind >= LAG_OT_BACKWARD_SEND;
		seq = row->pair;
	} else if (group_of((enum lag_optype)row->kind) == GROUP_DATA) {
		kinds = 3;
		kind = row->kind - LAG_OT_PARAMS;
	} else if (row->kind == LAG_OT_UNGROUPED) {
		return e->n_ungrouped++;
	}
	return ((int64_t)row->at_step * kinds + kind) * width + seq;
}

static int64_t start_of(const struct lag_optable *t, const struct lag_optable_row *row)
{
	return row->start_ns + LAG_OPTABLE_STEP(t, row->at_step)->offset_ns;
}

static enum lag_status emit_op(struct emit *e, const struct lag_optable_row *row,
			       struct lag_err *err)
{
	enum lag_optype kind = (enum lag_optype)row->kind;
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = rec.op.leave_ns = start_of(e->t, row);
	rec.op.tid = 0;
	rec.op.op_id = ++e->n_ops;
	rec.op.comm_id = (int64_t)group_of(kind) + 1;
	rec.op.func = func_of(e->t, row);
	rec.op.seq = number_of(e, row);
	if (lag_optype_is_message(kind))
		rec.op.peer = peer_of(e->t, row);
	rec.op.stream = stream_of(kind);
	rec.op.sources = LAG_OP_FROM_META | LAG_OP_NUMBERED;
	e->used[group_of(kind)] = true;
	return lag_part_add(&e->part, &rec, err);
}

static enum lag_status emit_range(struct emit *e, const char *name, int64_t start_ns,
				  int64_t end_ns, struct lag_err *err)
{
	struct lag_record rec;
	uint32_t id = 0;
	enum lag_status st = lag_optable_string(e->t, name, &id, err);

	lag_record_init(&rec, LAG_REC_range);
	rec.range.start_ns = start_ns;
	rec.range.end_ns = end_ns;
	rec.range.tid = 0;
	rec.range.kind = LAG_RANGE_PUSH;
	rec.range.domain = e->t->domain;
	rec.range.name = id;
	return st == LAG_OK ? lag_part_add(&e->part, &rec, err) : st;
}

static enum lag_status emit_row(struct emit *e, const struct lag_optable_row *row,
				struct lag_err *err)
{
	enum lag_optype kind = (enum lag_optype)row->kind;
	struct lag_record rec;
	enum lag_status st = LAG_OK;
	char name[96];

	/* What exchanges nothing is not there. */
	if (lag_optype_is_message(kind) && row->pair < 0)
		return LAG_OK;
	if (lag_optype_is_comm(kind))
		st = emit_op(e, row, err);
	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = start_of(e->t, row);
	rec.kernel.end_ns = rec.kernel.start_ns + row->dur_ns;
	rec.kernel.device = e->w->rank;
	rec.kernel.context = 0;
	rec.kernel.stream = stream_of(kind);
	rec.kernel.correlation = 0;
	rec.kernel.name = row->type;
	if (lag_optype_is_comm(kind))
		rec.kernel.op_id = e->n_ops;
	if (st == LAG_OK)
		st = lag_part_add(&e->part, &rec, err);
	if (st != LAG_OK || (kind != LAG_OT_FORWARD && kind != LAG_OT_BACKWARD))
		return st;
	if (row->microbatch >= 0) {
		(void)snprintf(name, sizeof(name), "%.32s mb %d",
			       kind == LAG_OT_FORWARD ? "forward" : "backward", row->microbatch);
	} else {
		(void)snprintf(name, sizeof(name), "%s",
			       kind == LAG_OT_FORWARD ? "forward" : "backward");
	}
	return emit_range(e, name, rec.kernel.start_ns, rec.kernel.end_ns, err);
}

static enum lag_status emit_steps(struct emit *e, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	int64_t seen = -1;

	for (size_t i = e->w->first; i < e->w->first + e->w->n && st == LAG_OK; i++) {
		int32_t at = LAG_OPTABLE_ROW(e->t, i)->at_step;
		const struct lag_optable_step *s = LAG_OPTABLE_STEP(e->t, at);
		char name[64];

		if (at == seen)
			continue;
		seen = at;
		(void)snprintf(name, sizeof(name), "ProfilerStep#%lld", (long long)s->number);
		st = emit_range(e, name, s->begin_ns + s->offset_ns, s->end_ns + s->offset_ns, err);
	}
	return st;
}

/* Whether worker v is in the group of worker w, and its place there. */
static bool in_group(const struct lag_optable *t, enum group group,
		     const struct lag_optable_worker *w, const struct lag_optable_worker *v,
		     int64_t *place)
{
	switch (group) {
	case GROUP_WORLD:
		*place = v->rank;
		return true;
	case GROUP_DATA:
		*place = v->dp;
		return v->stage == w->stage;
	case GROUP_PIPELINE:
		*place = v->stage;
		return v->dp == w->dp;
	case GROUP_EMBEDDING:
		*place = v->stage > 0;
		return v->dp == w->dp && (v->stage == 0 || v->stage == t->n_stages - 1);
	default:
		*place = 0;
		return v == w;
	}
}

static int64_t size_of(const struct lag_optable *t, enum group group)
{
	switch (group) {
	case GROUP_WORLD:
		return (int64_t)t->workers.n;
	case GROUP_DATA:
		return t->n_dp;
	case GROUP_PIPELINE:
		return t->n_stages;
	case GROUP_EMBEDDING:
		return t->n_stages > 1 ? 2 : 1;
	default:
		return LAG_NONE;
	}
}

static enum lag_status emit_group(struct emit *e, enum group group, struct lag_err *err)
{
	static const char *const names[] = { "all workers", "data parallel, stage",
					     "pipeline, dp rank", "embedding, dp rank",
					     "members not in the table" };
	const int32_t index[] = { 0, e->w->stage, e->w->dp, e->w->dp, (int32_t)e->w->rank };
	struct lag_optable *t = e->t;
	struct lag_record rec;
	uint32_t name = 0;
	char text[64];
	enum lag_status st;

	if (group == GROUP_WORLD || group == GROUP_UNKNOWN) {
		(void)snprintf(text, sizeof(text), "%s", names[group]);
	} else {
		(void)snprintf(text, sizeof(text), "%s %d", names[group], index[group]);
	}
	st = lag_optable_string(t, text, &name, err);
	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.comm_id = (int64_t)group + 1;
	rec.comm.hash = (int64_t)lag_hash_pair(lag_hash_bytes(names[group], strlen(names[group])),
					       (uint64_t)index[group] + 1);
	rec.comm.n_ranks = size_of(t, group);
	(void)in_group(t, group, e->w, e->w, &rec.comm.comm_rank);
	rec.comm.name = name;
	rec.comm.description = name;
	if (st == LAG_OK)
		st = lag_part_add(&e->part, &rec, err);
	for (size_t i = 0; i < t->workers.n && st == LAG_OK; i++) {
		const struct lag_optable_worker *v = LAG_OPTABLE_WORKER(t, i);
		int64_t place;

		if (!in_group(t, group, e->w, v, &place))
			continue;
		lag_record_init(&rec, LAG_REC_comm_member);
		rec.comm_member.comm_id = (int64_t)group + 1;
		rec.comm_member.comm_rank = place;
		rec.comm_member.rank = v->rank;
		st = lag_part_add(&e->part, &rec, err);
	}
	return st;
}

static void add_notes(struct emit *e)
{
	const struct lag_optable *t = e->t;

	lag_part_note(&e->part,
		      "an operation table of %zu %s (%d %s, %d %s) and %zu %s; clocks as the table "
		      "has them",
		      t->workers.n, LAG_PLURAL(t->workers.n, "worker", "workers"), t->n_stages,
		      LAG_PLURAL(t->n_stages, "stage", "stages"), t->n_dp,
		      LAG_PLURAL(t->n_dp, "data-parallel rank", "data-parallel ranks"), t->steps.n,
		      LAG_PLURAL(t->steps.n, "step", "steps"));
	if (t->restarts) {
		lag_part_note(&e->part, "times begin anew in each step: steps are laid one after "
					"the other, what was between them is not known");
	}
	if (t->renumbered) {
		lag_part_note(&e->part, "ranks of the table do not count its workers: these are "
					"numbered by stage and data-parallel rank");
	}
	if (t->n_idle) {
		lag_part_note(&e->part, "%llu %s nothing, being at the model's ends: left out",
			      (unsigned long long)t->n_idle,
			      LAG_PLURAL(t->n_idle, "send or receive exchanges",
					 "sends and receives exchange"));
	}
	if (t->n_bad) {
		lag_part_note(&e->part,
			      "%llu %s without worker, step, type or a possible time left out, "
			      "the first at byte %llu",
			      (unsigned long long)t->n_bad, LAG_PLURAL(t->n_bad, "row", "rows"),
			      (unsigned long long)t->first_bad_at);
	}
	if (t->cut)
		lag_part_note(&e->part, "quotes that do not close, or fields beyond all bounds");
	e->part.n_bad = t->n_bad;
}

static enum lag_status emit_worker(struct emit *e, struct lag_err *err)
{
	struct lag_optable *t = e->t;
	struct lag_rec_process *p = &e->part.process;
	enum lag_status st = emit_steps(e, err);

	p->rank = e->w->rank;
	p->world_size = (int64_t)t->workers.n;
	p->host = t->host;
	p->rank_source = t->rank_source;
	for (size_t i = e->w->first; i < e->w->first + e->w->n && st == LAG_OK; i++)
		st = emit_row(e, LAG_OPTABLE_ROW(t, i), err);
	for (int g = 0; g < GROUP_LIMIT && st == LAG_OK; g++) {
		if (e->used[g])
			st = emit_group(e, (enum group)g, err);
	}
	if (st == LAG_OK && e->w->rank == 0)
		add_notes(e);
	return st;
}

/* Rows without a number get their place among those of their type in the step. */
static void number_rows(struct lag_optable *t)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		struct lag_optable_row *row = LAG_OPTABLE_ROW(t, i);

		for (size_t k = i; row->seq < 0 && k > 0; k--) {
			const struct lag_optable_row *o = LAG_OPTABLE_ROW(t, k - 1);

			if (o->worker != row->worker || o->at_step != row->at_step)
				break;
			if (o->type == row->type)
				row->seq = o->seq + 1;
		}
		row->seq = row->seq < 0 ? 0 : row->seq;
		t->max_seq = row->seq > t->max_seq ? row->seq : t->max_seq;
		t->max_seq = row->pair > t->max_seq ? row->pair : t->max_seq;
	}
}

enum lag_status lag_optable_emit(struct lag_optable *t, struct lag_err *err)
{
	enum lag_status st = lag_optable_string(t, "operation table", &t->host, err);

	number_rows(t);
	t->domain = t->host;
	if (st == LAG_OK) {
		st = lag_optable_string(t, t->renumbered ? "stage and dp_rank" : "column rank",
					&t->rank_source, err);
	}
	for (size_t i = 0; i < t->workers.n && st == LAG_OK; i++) {
		struct emit e = { .t = t, .w = LAG_OPTABLE_WORKER(t, i) };

		st = lag_part_init(&e.part, t->pool, t->path, "optable");
		if (st != LAG_OK) {
			(void)lag_err_set(err, st, "out of memory");
		} else {
			st = emit_worker(&e, err);
		}
		if (st == LAG_OK) {
			st = t->sink->take(t->sink, &e.part, err);
		} else {
			lag_part_release(&e.part);
		}
	}
	return st;
}
