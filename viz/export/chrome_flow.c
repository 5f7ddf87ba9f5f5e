/* SPDX-License-Identifier: Apache-2.0 */
/* Arrows between ranks: from the rank that came last to each that waited for it in a collective, from
 * the sender to the receiver of a pair. An arrow needs both kernels in the file, and time to go
 * forward. */
#include "viz/export/chrome.h"

/* The kernel of an instance's member, if it is in the file. */
static const struct lag_launch *exported_launch(const struct lag_chrome *c, uint32_t op)
{
	int32_t launch = c->trace->ops[op].launch;
	const struct lag_launch *l;

	if (launch < 0)
		return NULL;
	l = &c->trace->launches[launch];
	return l->start_ns != LAG_NONE && l->gpu >= 0 && lag_chrome_has_gpu(c, (size_t)l->gpu)
		       ? l
		       : NULL;
}

static bool comes_first(const struct lag_chrome *c, const struct lag_instance *inst, uint32_t op,
			const struct lag_launch *l, const struct lag_launch *than)
{
	if (inst->func == LAG_FUNC_SEND_RECV && inst->src >= 0)
		return c->trace->ops[op].func == LAG_FUNC_SEND;
	return l->start_ns > than->start_ns;
}

static void write_flow(struct lag_chrome *c, const struct lag_launch *from,
		       const struct lag_launch *to)
{
	int64_t at = from->start_ns > to->start_ns ? from->start_ns : to->start_ns;
	int64_t end = lag_chrome_end(c, to->start_ns, to->end_ns);

	/* Arrows into a kernel that is over already would hang in the air. */
	if (to == from || to->r == from->r || at >= end)
		return;
	lag_chrome_flow(c, "nccl", from->r, c->launch_tid[from - c->trace->launches],
			from->start_ns, to->r, c->launch_tid[to - c->trace->launches], at);
}

void lag_chrome_flows_between_ranks(struct lag_chrome *c)
{
	const struct lag_trace *t = c->trace;

	if (!lag_chrome_wants(c, LAG_EXPORT_FLOWS) || !lag_chrome_wants(c, LAG_EXPORT_NCCL))
		return;
	for (size_t i = 0; i < t->n_instances && !lag_failed(c->status); i++) {
		const struct lag_instance *inst = &t->instances[i];
		const struct lag_launch *from = NULL;

		for (uint32_t m = 0; m < inst->n; m++) {
			uint32_t op = t->instance_ops[inst->first + m];
			const struct lag_launch *l = exported_launch(c, op);

			if (l && (!from || comes_first(c, inst, op, l, from)))
				from = l;
		}
		for (uint32_t m = 0; m < inst->n && from; m++) {
			const struct lag_launch *to =
				exported_launch(c, t->instance_ops[inst->first + m]);

			if (to)
				write_flow(c, from, to);
		}
	}
}
