/* SPDX-License-Identifier: Apache-2.0 */
/* Who waited for whom: the last arriver of each launch against each rank that waited. It explains and
 * does not accuse: a rank that comes last may itself have waited. */
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "schema/base/map.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, "who waited" },
	{ "for_rank", "for rank", LAG_UNIT_ID, "who came last" },
	{ "wait_ns", "waited", LAG_UNIT_NS, "rank's own time, sum over launches" },
	{ "exposed_ns", "exposed", LAG_UNIT_NS, "part not covered by the rank's own work" },
	{ "exposed_per_step_ns", "per step", LAG_UNIT_NS, "exposed, mean over whole steps" },
	{ "contention_ns", "contention", LAG_UNIT_NS,
	  "part of waited in which the late rank's GPU held up work that was ready" },
	{ "count", "times", LAG_UNIT_COUNT, "launches" },
	{ "longest_ns", "longest", LAG_UNIT_NS, "one launch" },
	{ "role", "in", LAG_UNIT_TEXT, "kind of communicator with most of it" },
};

struct pair {
	uint32_t r, last;
	int64_t wait_ns, exposed_ns, count, longest_ns;
	int64_t contention_ns, n_known;
	int64_t in_steps_ns; /* exposed, in the steps that count */
	int64_t by_role[LAG_ROLE_LIMIT];
};

static int by_exposed(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->exposed_ns != y->exposed_ns)
		return x->exposed_ns < y->exposed_ns ? 1 : -1;
	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	if (x->r != y->r)
		return x->r < y->r ? -1 : 1;
	return (x->last > y->last) - (x->last < y->last);
}

/* Exposed waiting of each launch, from the ledger's slices. */
static int64_t *exposed_by_launch(const struct lag_trace *t, const struct lag_ledger *ledger)
{
	int64_t *exposed = lag_calloc(t->n_launches, sizeof(*exposed));

	for (size_t i = 0; exposed && i < ledger->first[ledger->n_ranks]; i++) {
		const struct lag_time_slice *s = &ledger->slices[i];

		if (s->launch >= 0 &&
		    (s->class == LAG_TIME_BUBBLE || s->class == LAG_TIME_EXPOSED_WAIT))
			exposed[s->launch] += s->end_ns - s->start_ns;
	}
	return exposed;
}

struct pairs {
	struct lag_vec vec; /* struct pair */
	struct lag_map map; /* waiter and last -> position */
};

static struct pair *find_pair(struct pairs *pairs, uint32_t r, uint32_t last)
{
	uint64_t at, key = (uint64_t)r << 32 | last;
	struct pair *p;

	if (lag_map_find(&pairs->map, key, &at))
		return &LAG_VEC_AT(&pairs->vec, struct pair, at);
	p = lag_vec_push(&pairs->vec);
	if (!p || lag_failed(lag_map_set(&pairs->map, key, pairs->vec.n - 1)))
		return NULL;
	p->r = r;
	p->last = last;
	return p;
}

static enum lag_status take(struct pairs *pairs, const struct lag_launch *launch,
			    enum lag_comm_role role, const struct lag_wait *wait, int64_t exposed,
			    int64_t contention, bool in_step)
{
	struct pair *p = find_pair(pairs, launch->r, (uint32_t)wait->last);

	if (!p)
		return LAG_ERR_SYSTEM;
	p->wait_ns += wait->wait_ns;
	p->exposed_ns += exposed;
	p->in_steps_ns += in_step ? exposed : 0;
	p->count++;
	if (contention != LAG_NONE) {
		p->contention_ns += contention < wait->wait_ns ? contention : wait->wait_ns;
		p->n_known++;
	}
	if (wait->wait_ns > p->longest_ns)
		p->longest_ns = wait->wait_ns;
	p->by_role[role] += wait->wait_ns;
	return LAG_OK;
}

static void write_rows(const struct lag_trace *t, struct lag_vec *pairs, size_t n_steps,
		       struct lag_table *out)
{
	if (pairs->n)
		qsort(pairs->items, pairs->n, pairs->item_size, by_exposed);
	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *p = &LAG_VEC_AT(pairs, struct pair, i);
		int role = 0;

		for (int k = 0; k < LAG_ROLE_LIMIT; k++) {
			if (p->by_role[k] > p->by_role[role])
				role = k;
		}
		lag_table_row(out);
		lag_table_int(out, t->ranks[p->r].rank);
		lag_table_int(out, t->ranks[p->last].rank);
		lag_table_int(out, p->wait_ns);
		lag_table_int(out, p->exposed_ns);
		lag_table_int(out, n_steps ? p->in_steps_ns / (int64_t)n_steps : LAG_NONE);
		lag_table_int(out, p->n_known ? p->contention_ns : LAG_NONE);
		lag_table_int(out, p->count);
		lag_table_int(out, p->longest_ns);
		lag_table_text(out, lag_comm_role_name((enum lag_comm_role)role));
	}
}

static void write_notes(const struct lag_waits *waits, const struct lag_vec *pairs,
			struct lag_table *out)
{
	int64_t n_unknown = 0, n = 0;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *p = &LAG_VEC_AT(pairs, struct pair, i);

		n += p->count;
		n_unknown += p->count - p->n_known;
	}
	if (n_unknown) {
		lag_table_note(
			out,
			"contention: in %lld of %lld waits it is not on record what the last "
			"to come had to wait for itself",
			(long long)n_unknown, (long long)n);
	}
	if (waits->n_incomplete) {
		lag_table_note(out, "%llu %s nobody: a member of the communicator is not on record",
			       (unsigned long long)waits->n_incomplete,
			       LAG_PLURAL(waits->n_incomplete, "launch names", "launches name"));
	}
	if (waits->n_undirected) {
		lag_table_note(out,
			       "%llu %s nobody: with whom they exchange messages is not on "
			       "record",
			       (unsigned long long)waits->n_undirected,
			       LAG_PLURAL(waits->n_undirected, "launch names", "launches name"));
	}
	if (waits->n_outside) {
		lag_table_note(out, "%llu %s nobody: they began before all members recorded",
			       (unsigned long long)waits->n_outside,
			       LAG_PLURAL(waits->n_outside, "launch names", "launches name"));
	}
	if (waits->n_contradicted) {
		lag_table_note(out, "%llu %s withheld: by these clocks the last came after the end",
			       (unsigned long long)waits->n_contradicted,
			       LAG_PLURAL(waits->n_contradicted, "wait is", "waits are"));
	}
	if (waits->n_within_error) {
		lag_table_note(out, "%llu %s nobody: they are within the clock error",
			       (unsigned long long)waits->n_within_error,
			       LAG_PLURAL(waits->n_within_error, "wait names", "waits name"));
	}
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_ledger *ledger = lag_context_ledger(ctx, err);
	const struct lag_waits *waits = ledger ? lag_context_waits(ctx, err) : NULL;
	const struct lag_steps *steps = waits ? lag_context_steps(ctx, err) : NULL;
	const struct lag_roles *roles = steps ? lag_context_roles(ctx, err) : NULL;
	const struct lag_ready *ready = roles ? lag_context_ready(ctx, err) : NULL;
	struct pairs pairs = { .vec = LAG_VEC_INIT(struct pair) };
	int64_t *exposed = NULL;
	bool *counts = NULL;
	size_t n_steps = 0;
	enum lag_status status;

	if (!ready)
		return err->status;
	status = lag_steps_chosen(ctx, steps, &counts, &n_steps, err);
	exposed = exposed_by_launch(t, ledger);
	if (!exposed)
		status = LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_launches && !lag_failed(status); i++) {
		const struct lag_wait *wait = &waits->launch[i];
		int32_t gpu = t->launches[i].gpu, step = gpu < 0 ? -1 : steps->of_gpu[gpu];

		if (wait->last < 0 || wait->wait_ns == LAG_NONE || wait->wait_ns <= 0 ||
		    !lag_covers_launch(ctx, steps, i) ||
		    !lag_context_has_rank(ctx, t->ranks[t->launches[i].r].rank))
			continue;
		status = take(&pairs, &t->launches[i], roles->comm_role[t->launches[i].comm], wait,
			      exposed[i], lag_ready_of_last(t, waits, ready, i),
			      step >= 0 && counts[step]);
	}
	if (!lag_failed(status))
		write_rows(t, &pairs.vec, n_steps, out);
	write_notes(waits, &pairs.vec, out);
	free(exposed);
	free(counts);
	lag_vec_release(&pairs.vec);
	lag_map_release(&pairs.map);
	if (lag_failed(status))
		return lag_err_set(err, status, "waits: no memory");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_waits = {
	.name = "waits",
	.summary = "who waited for whom",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};
