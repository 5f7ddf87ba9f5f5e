/* SPDX-License-Identifier: Apache-2.0 */
/* What each member of an unfinished communication had done when recording ended. */
#include "viz/analysis/unfinished.h"

#include <stdio.h>
#include <stdlib.h>

#include "schema/record/enums.h"
#include "viz/model/comm_text.h"

/* How far the members of one instance had come. */
struct progress {
	uint32_t n_called, n_started, n_ended;
	int64_t start_ns;  /* first start */
	int32_t unstarted; /* op that was called and has no start, -1 */
};

static struct progress progress_of(const struct lag_trace *t, const struct lag_instance *in)
{
	struct progress p = { .start_ns = LAG_NONE, .unstarted = -1 };

	for (uint32_t i = 0; i < in->n; i++) {
		uint32_t at = t->instance_ops[in->first + i];
		const struct lag_op *op = &t->ops[at];
		const struct lag_launch *l = op->launch < 0 ? NULL : &t->launches[op->launch];

		p.n_called++;
		if (!l || l->start_ns == LAG_NONE) {
			p.unstarted = (int32_t)at;
			continue;
		}
		p.n_started++;
		p.n_ended += l->end_ns != LAG_NONE;
		if (p.start_ns == LAG_NONE || l->start_ns < p.start_ns)
			p.start_ns = l->start_ns;
	}
	return p;
}

/* A recorded member without an operation in the instance; its rank index, -1 none. */
static int32_t who_never_called(const struct lag_trace *t, const struct lag_instance *in)
{
	const struct lag_comm *comm = &t->comms[in->comm];

	for (uint32_t m = 0; m < comm->n_members; m++) {
		int32_t r = t->members[comm->first_member + m].r;
		bool called = r < 0 || !t->ranks[r].recorded ||
			      (in->src >= 0 && r != in->src && r != in->dst);

		for (uint32_t i = 0; i < in->n && !called; i++)
			called = t->ops[t->instance_ops[in->first + i]].r == (uint32_t)r;
		if (!called)
			return r;
	}
	return -1;
}

/* GPU work of a rank that began last and never ended: what others queue behind. NULL none. */
static const char *running_on(const struct lag_trace *t, uint32_t r)
{
	const struct lag_rank *rank = &t->ranks[r];

	for (size_t i = rank->gpu_end; i > rank->gpu_begin; i--) {
		if (t->gpu[i - 1].end_ns == LAG_NONE)
			return lag_trace_text(t, t->gpu[i - 1].name);
	}
	return NULL;
}

static void tell(const struct lag_trace *t, const struct lag_instance *in, const struct progress *p,
		 struct lag_unfinished *out)
{
	int32_t absent = who_never_called(t, in);
	struct lag_buf label = { 0 };
	int n;

	lag_comm_label(t, in->comm, &label);
	n = snprintf(out->text, sizeof(out->text),
		     "%s %lld of %.60s had not ended: ", lag_func_name(in->func),
		     (long long)in->seq, lag_buf_text(&label));
	lag_buf_release(&label);
	out->rank = LAG_NONE;
	if (n < 0 || (size_t)n >= sizeof(out->text))
		return;
	if (p->unstarted >= 0) {
		uint32_t r = t->ops[p->unstarted].r;
		const char *running = running_on(t, r);

		out->rank = t->ranks[r].rank;
		(void)snprintf(out->text + n, sizeof(out->text) - (size_t)n,
			       "it was called and is not known to have started%s%.100s",
			       running ? "; on the GPU ran " : "", running ? running : "");
	} else if (absent >= 0) {
		out->rank = t->ranks[absent].rank;
		(void)snprintf(out->text + n, sizeof(out->text) - (size_t)n,
			       t->ranks[absent].last_ns >= p->start_ns
				       ? "this rank never called it, so that what holds it is "
					 "elsewhere"
				       : "cannot tell why, this rank's recording ends before");
	} else if ((int32_t)p->n_called < in->n_members) {
		(void)snprintf(out->text + n, sizeof(out->text) - (size_t)n,
			       "cannot tell why, %d of %d members are on record", (int)p->n_called,
			       (int)in->n_members);
	} else {
		(void)snprintf(
			out->text + n, sizeof(out->text) - (size_t)n,
			"every member had started and %u ended; if the run hung, it hung here",
			p->n_ended);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct lag_unfinished *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

enum lag_status lag_unfinished_find(const struct lag_trace *trace, struct lag_vec *out,
				    struct lag_err *err)
{
	*out = (struct lag_vec)LAG_VEC_INIT(struct lag_unfinished);
	for (size_t i = 0; i < trace->n_instances; i++) {
		struct progress p = progress_of(trace, &trace->instances[i]);
		struct lag_unfinished *item;

		if (p.n_started == p.n_ended)
			continue;
		item = lag_vec_push(out);
		if (!item) {
			lag_vec_release(out);
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
		}
		item->instance = (int32_t)i;
		item->start_ns = p.start_ns;
		tell(trace, &trace->instances[i], &p, item);
	}
	if (out->n)
		qsort(out->items, out->n, out->item_size, by_start);
	return LAG_OK;
}
