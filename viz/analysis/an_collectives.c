/* SPDX-License-Identifier: Apache-2.0 */
/* Communication by communicator, function and size. Waiting and transfer are kept apart; bus bandwidth
 * comes only from instances that hardly waited, since a wait inside the kernel is no transfer. Bus
 * bandwidth factors: the ones that nccl-tests documents. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"
#include "viz/model/comm_text.h"

/* Of the transfer, for an instance whose bandwidth counts. */
#define WAIT_SHARE_MAX  0.05
#define ERROR_SHARE_MAX 0.2 /* clock error between its members */

static const struct lag_column columns[] = {
	{ "communicator", "communicator", LAG_UNIT_TEXT, NULL },
	{ "members", "members", LAG_UNIT_TEXT, "job ranks" },
	{ "role", "role", LAG_UNIT_TEXT, NULL },
	{ "function", "function", LAG_UNIT_TEXT, NULL },
	{ "bytes", "size", LAG_UNIT_BYTES,
	  "per instance; of all members together for gather-like" },
	{ "n_ranks", "ranks", LAG_UNIT_COUNT, NULL },
	{ "count", "count", LAG_UNIT_COUNT, "instances" },
	{ "complete", "complete", LAG_UNIT_COUNT, "instances with every member on record" },
	{ "wait_ns", "waiting", LAG_UNIT_NS, "all members of complete instances, summed" },
	{ "wait_mean_ns", "wait each", LAG_UNIT_NS, "mean over members of complete instances" },
	{ "transfer_ns", "transfer", LAG_UNIT_NS,
	  "median of complete instances with a kernel of their own" },
	{ "busbw_gbps", "bus bandwidth", LAG_UNIT_GBPS,
	  "median of instances whose wait is at most 5 % of the transfer, the clock error 20 %" },
	{ "busbw_n", "of", LAG_UNIT_COUNT, "instances behind the bus bandwidth" },
	{ "mismatched", "mismatched", LAG_UNIT_COUNT, "instances whose members' arguments differ" },
};

#define BUSBW_COLUMN 11

struct group {
	uint32_t comm;
	uint8_t func;
	int64_t bytes;
	size_t n, complete, mismatched, n_waits;
	double wait_ns;
	struct lag_sample transfers;
	double *bandwidths;
	size_t n_bandwidths;
};

static double bus_factor(uint8_t func, int32_t n_ranks)
{
	double n = n_ranks;

	if (n_ranks < 2)
		return NAN;
	switch (func) {
	case LAG_FUNC_ALL_REDUCE:
		return 2 * (n - 1) / n;
	case LAG_FUNC_ALL_GATHER:
	case LAG_FUNC_REDUCE_SCATTER:
	case LAG_FUNC_ALL_TO_ALL:
		return (n - 1) / n;
	case LAG_FUNC_BROADCAST:
	case LAG_FUNC_REDUCE:
	case LAG_FUNC_SEND_RECV:
		return 1;
	default:
		return NAN;
	}
}

/* One instance, to be sorted by group. */
struct member {
	const struct lag_instance *in;
};

static int by_group(const void *a, const void *b)
{
	const struct lag_instance *x = ((const struct member *)a)->in;
	const struct lag_instance *y = ((const struct member *)b)->in;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Whether the instance is part of the report, by its first member's kernel. */
static bool covers(const struct lag_context *ctx, const struct lag_steps *steps,
		   const struct lag_instance *in)
{
	const struct lag_trace *t = lag_context_trace(ctx);

	if (lag_context_has_all_steps(ctx))
		return true;
	for (uint32_t i = 0; i < in->n; i++) {
		int32_t launch = t->ops[t->instance_ops[in->first + i]].launch;

		if (launch >= 0)
			return lag_covers_launch(ctx, steps, (size_t)launch);
	}
	return false;
}

/* Adds the waits of all members and gives the longest; LAG_NONE, and nothing added, when one is unknown. */
static int64_t add_waits(const struct lag_trace *t, const struct lag_waits *waits,
			 const struct lag_instance *in, struct group *g)
{
	int64_t longest = 0;
	double sum = 0;

	for (uint32_t i = 0; i < in->n; i++) {
		int32_t launch = t->ops[t->instance_ops[in->first + i]].launch;

		if (launch < 0 || waits->launch[launch].wait_ns == LAG_NONE)
			return LAG_NONE;
		if (waits->launch[launch].wait_ns > longest)
			longest = waits->launch[launch].wait_ns;
		sum += (double)waits->launch[launch].wait_ns;
	}
	g->wait_ns += sum;
	g->n_waits += in->n;
	return longest;
}

/* From the last arrival to the last end; of a pair, to the end of the receive. */
static int64_t transfer(const struct lag_trace *t, const struct lag_waits *waits,
			const struct lag_instance *in)
{
	int64_t longest = LAG_NONE;

	for (uint32_t i = 0; i < in->n; i++) {
		const struct lag_op *op = &t->ops[t->instance_ops[in->first + i]];
		int64_t one;

		if (op->launch < 0 || op->func == LAG_FUNC_SEND)
			continue;
		one = waits->launch[op->launch].transfer_ns;
		if (one != LAG_NONE && (longest == LAG_NONE || one > longest))
			longest = one;
	}
	return longest;
}

/* Whether the transfer is one that a bandwidth can be taken from. A receive that began after its send
 * had ended only found the data there, and below the clock error there is no transfer to speak of. */
static bool is_measured(const struct lag_trace *t, const struct lag_waits *waits,
			const struct lag_instance *in, int64_t transfer_ns)
{
	int64_t sent = LAG_NONE;

	for (uint32_t i = 0; i < in->n; i++) {
		const struct lag_op *op = &t->ops[t->instance_ops[in->first + i]];

		if (op->launch >= 0 && (double)waits->launch[op->launch].uncertainty_ns >
					       ERROR_SHARE_MAX * (double)transfer_ns)
			return false;
		if (op->launch >= 0 && op->func == LAG_FUNC_SEND)
			sent = t->launches[op->launch].end_ns;
	}
	for (uint32_t i = 0; i < in->n && sent != LAG_NONE; i++) {
		const struct lag_op *op = &t->ops[t->instance_ops[in->first + i]];

		if (op->launch >= 0 && op->func == LAG_FUNC_RECV &&
		    t->launches[op->launch].start_ns >= sent)
			return false;
	}
	return true;
}

static enum lag_status add_bandwidth(const struct lag_trace *t, struct group *g,
				     int64_t transfer_ns)
{
	double factor =
		bus_factor(g->func, g->func == LAG_FUNC_SEND_RECV ? 2 : t->comms[g->comm].n_ranks);
	double *more;

	if (!isfinite(factor) || g->bytes <= 0 || transfer_ns <= 0)
		return LAG_OK;
	more = realloc(g->bandwidths, (g->n_bandwidths + 1) * sizeof(*more));
	if (!more)
		return LAG_ERR_SYSTEM;
	g->bandwidths = more;
	more[g->n_bandwidths++] = (double)g->bytes * factor / (double)transfer_ns;
	return LAG_OK;
}

static enum lag_status take(const struct lag_trace *t, const struct lag_waits *waits,
			    const struct lag_instance *in, struct group *g)
{
	int64_t wait, transfer_ns;
	enum lag_status status;

	g->n++;
	g->mismatched += (in->flags & 1) != 0;
	if (!in->complete)
		return LAG_OK;
	g->complete++;
	/* What shares its kernel with other operations has no time of its own: the kernel's wait would
	 * count once for each of them. */
	if ((in->flags & 4) != 0)
		return LAG_OK;
	wait = add_waits(t, waits, in, g);
	transfer_ns = transfer(t, waits, in);
	if (transfer_ns == LAG_NONE)
		return LAG_OK;
	status = lag_sample_add(&g->transfers, transfer_ns);
	if (!lag_failed(status) && wait != LAG_NONE &&
	    (double)wait <= WAIT_SHARE_MAX * (double)transfer_ns &&
	    is_measured(t, waits, in, transfer_ns))
		status = add_bandwidth(t, g, transfer_ns);
	return status;
}

static void row(const struct lag_trace *t, const struct lag_roles *roles, struct group *g,
		struct lag_table *out)
{
	const struct lag_comm *comm = &t->comms[g->comm];
	struct lag_buf text = { 0 };

	lag_table_row(out);
	lag_comm_label(t, g->comm, &text);
	lag_table_text(out, comm->description[0] ? comm->description : lag_buf_text(&text));
	lag_comm_members(t, g->comm, &text);
	lag_table_text(out, lag_buf_text(&text));
	lag_buf_release(&text);
	lag_table_text(out, lag_comm_role_name(roles->comm_role[g->comm]));
	lag_table_text(out, lag_func_name(g->func));
	lag_table_int(out, g->bytes);
	lag_table_int(out, comm->n_ranks < 0 ? LAG_NONE : comm->n_ranks);
	lag_table_int(out, (int64_t)g->n);
	lag_table_int(out, (int64_t)g->complete);
	lag_table_int(out, g->n_waits ? (int64_t)llround(g->wait_ns) : LAG_NONE);
	lag_table_int(out,
		      g->n_waits ? (int64_t)llround(g->wait_ns / (double)g->n_waits) : LAG_NONE);
	lag_table_int(out, lag_sample_quantile(&g->transfers, 0.5));
	lag_table_real(out, lag_median_real(g->bandwidths, g->n_bandwidths));
	lag_table_int(out, (int64_t)g->n_bandwidths);
	lag_table_int(out, (int64_t)g->mismatched);
	lag_sample_release(&g->transfers);
	free(g->bandwidths);
}

static void write_notes(const struct lag_trace *t, struct lag_table *out)
{
	size_t alone = 0, incomplete = 0, hurried = 0, shared = 0;

	for (size_t i = 0; i < t->n_ops; i++)
		alone += t->ops[i].instance < 0;
	for (size_t i = 0; i < t->n_instances; i++) {
		incomplete += !t->instances[i].complete;
		shared += t->instances[i].complete && (t->instances[i].flags & 4) != 0;
	}
	if (shared) {
		lag_table_note(
			out,
			"%zu of %zu instances %s a kernel with others: wait and transfer are the "
			"kernel's, none of their own",
			shared, t->n_instances, LAG_PLURAL(shared, "shares", "share"));
	}
	if (incomplete) {
		lag_table_note(
			out, "%zu of %zu instances %s a member's record: no wait or transfer of %s",
			incomplete, t->n_instances, LAG_PLURAL(incomplete, "lacks", "lack"),
			LAG_PLURAL(incomplete, "it", "them"));
	}
	for (size_t i = 0; i < out->n_rows; i++)
		hurried += lag_table_cell(out, i, BUSBW_COLUMN)->null;
	if (hurried) {
		lag_table_note(out,
			       "bus bandwidth withheld in %zu %s: waits or clock error too large",
			       hurried, LAG_PLURAL(hurried, "row", "rows"));
	}
	if (alone) {
		lag_table_note(out, "%zu %s found no partner", alone,
			       LAG_PLURAL(alone, "operation", "operations"));
	}
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_waits *waits = lag_context_waits(ctx, err);
	const struct lag_steps *steps = waits ? lag_context_steps(ctx, err) : NULL;
	const struct lag_roles *roles = steps ? lag_context_roles(ctx, err) : NULL;
	struct member *order;
	enum lag_status status = LAG_OK;
	size_t n = 0;

	if (!roles)
		return err->status;
	order = lag_calloc(t->n_instances, sizeof(*order));
	if (!order)
		return lag_err_set(err, LAG_ERR_SYSTEM, "collectives: no memory");
	for (size_t i = 0; i < t->n_instances; i++) {
		if (covers(ctx, steps, &t->instances[i]))
			order[n++].in = &t->instances[i];
	}
	qsort(order, n, sizeof(*order), by_group);
	for (size_t i = 0; i < n && !lag_failed(status);) {
		struct group g = { .comm = order[i].in->comm,
				   .func = order[i].in->func,
				   .bytes = order[i].in->bytes };
		size_t first = i;

		for (; i < n && !by_group(&order[first], &order[i]) && !lag_failed(status); i++)
			status = take(t, waits, order[i].in, &g);
		row(t, roles, &g, out);
	}
	free(order);
	write_notes(t, out);
	if (lag_failed(status))
		return lag_err_set(err, status, "collectives: no memory");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_collectives = {
	.name = "collectives",
	.summary = "collectives by communicator, function and size: wait, transfer, bus bandwidth",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_ALL_RANKS,
};
