/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: members, traffic, and the role inferred from both. */
#include <stdlib.h>

#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"
#include "viz/model/comm_text.h"

static const struct lag_column columns[] = {
	{ "communicator", "communicator", LAG_UNIT_TEXT, NULL },
	{ "description", "description", LAG_UNIT_TEXT, NULL },
	{ "role", "role", LAG_UNIT_TEXT, "inferred" },
	{ "n_ranks", "ranks", LAG_UNIT_COUNT, NULL },
	{ "n_recorded", "recorded", LAG_UNIT_COUNT, "members with a record" },
	{ "members", "members", LAG_UNIT_TEXT, "job ranks" },
	{ "n_ops", "calls", LAG_UNIT_COUNT, "all recorded members" },
	{ "bytes", "bytes", LAG_UNIT_BYTES, "all recorded calls" },
	{ "n_launches", "kernels", LAG_UNIT_COUNT, NULL },
	{ "time_ns", "time", LAG_UNIT_NS, "sum of its kernels' durations" },
};

struct traffic {
	int64_t n_ops, n_sized, bytes, n_launches, time_ns;
};

static struct traffic *count(const struct lag_trace *t)
{
	struct traffic *traffic = lag_calloc(t->n_comms, sizeof(*traffic));

	for (size_t i = 0; traffic && i < t->n_ops; i++) {
		traffic[t->ops[i].comm].n_ops++;
		if (t->ops[i].bytes == LAG_NONE)
			continue;
		traffic[t->ops[i].comm].n_sized++;
		if (t->ops[i].bytes > 0)
			traffic[t->ops[i].comm].bytes += t->ops[i].bytes;
	}
	for (size_t i = 0; traffic && i < t->n_launches; i++) {
		const struct lag_launch *l = &t->launches[i];

		if (l->start_ns == LAG_NONE)
			continue; /* not started, or not on record */
		traffic[l->comm].n_launches++;
		if (l->end_ns != LAG_NONE)
			traffic[l->comm].time_ns += l->end_ns - l->start_ns;
	}
	return traffic;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, err);
	struct lag_buf text = { 0 }, label = { 0 };
	struct traffic *traffic;

	if (!roles)
		return err->status;
	traffic = count(t);
	if (!traffic)
		return lag_err_set(err, LAG_ERR_SYSTEM, "communicators: no memory");
	for (size_t c = 0; c < t->n_comms; c++) {
		const struct lag_comm *comm = &t->comms[c];
		int64_t recorded = 0;

		for (uint32_t m = 0; m < comm->n_members; m++)
			recorded += t->members[comm->first_member + m].recorded;
		lag_comm_members(t, c, &text);
		lag_table_row(out);
		lag_comm_label(t, c, &label);
		lag_table_text(out, lag_buf_text(&label));
		lag_table_text(out, comm->description[0] ? comm->description : NULL);
		lag_table_text(out, lag_comm_role_name(roles->comm_role[c]));
		lag_table_int(out, comm->n_ranks < 0 ? LAG_NONE : comm->n_ranks);
		lag_table_int(out, recorded);
		lag_table_text(out, lag_buf_text(&text));
		lag_table_int(out, traffic[c].n_ops);
		/* Kernels' names tell no size: not known, which is not 0. */
		lag_table_int(out, traffic[c].n_ops && !traffic[c].n_sized ? LAG_NONE
									   : traffic[c].bytes);
		lag_table_int(out, traffic[c].n_launches);
		lag_table_int(out, traffic[c].n_ops && !traffic[c].n_launches ? LAG_NONE
									      : traffic[c].time_ns);
	}
	lag_table_note(out, "layout: %s (confidence %.2f): %s", roles->shape, roles->confidence,
		       roles->why);
	lag_buf_release(&text);
	lag_buf_release(&label);
	free(traffic);
	return LAG_OK;
}

const struct lag_analysis lag_analysis_communicators = {
	.name = "communicators",
	.summary = "communicators and the role inferred for each",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
	.ignores = LAG_WHOLE_RUN | LAG_ALL_RANKS,
};
