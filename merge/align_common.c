/* SPDX-License-Identifier: Apache-2.0 */
/* Identity maps and the count of violations. */
#include "merge/align_common.h"

#include <math.h>
#include <string.h>

#include "merge/clock_view.h"
#include "schema/base/mem.h"

static int64_t corrected(const struct lag_align_result *res, const struct lag_align_member *m,
			 int64_t raw_ns)
{
	return lag_align_apply(res, m->host, m->device, raw_ns);
}

static void count_collective(const struct lag_align_input *in, const struct lag_align_collective *c,
			     struct lag_align_result *out)
{
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = &in->members[c->first_member + i];
		if (!lag_clock_known(m))
			continue;
		int64_t start = corrected(out, m, m->start_ns);
		last = start > last ? start : last;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct lag_align_member *m = &in->members[c->first_member + i];
		if (!lag_clock_known(m))
			continue;
		out->n_pairs++;
		out->n_violations += corrected(out, m, m->end_ns) < last;
	}
}

void lag_align_count(const struct lag_align_input *in, struct lag_align_result *out)
{
	out->n_pairs = 0;
	out->n_violations = 0;
	for (size_t i = 0; i < in->n_collectives; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		if (lag_clock_usable(c->func, c->bytes) && c->n_members > 1)
			count_collective(in, c, out);
	}
	for (size_t i = 0; i < in->n_messages; i++) {
		const struct lag_align_message *m = &in->messages[i];
		if (!lag_clock_known(&m->send) || !lag_clock_known(&m->recv))
			continue;
		out->n_pairs++;
		out->n_violations += corrected(out, &m->recv, m->recv.end_ns) <
				     corrected(out, &m->send, m->send.start_ns);
	}
}

enum lag_status lag_align_identity(const struct lag_align_input *in, const char *method,
				   struct lag_align_result *out, struct lag_err *err)
{
	memset(out, 0, sizeof(*out));
	out->method = method;
	out->arriver_bias_ns = -1;
	out->segments = lag_calloc(in->n_hosts, sizeof(*out->segments));
	if (!out->segments)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u hosts", in->n_hosts);
	out->n_segments = in->n_hosts;
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		out->segments[h] = (struct lag_align_segment){ .host = h,
							       .basis = LAG_ALIGN_NOTHING,
							       .uncertainty_ns = -1,
							       .bound_lo_ns = -INFINITY,
							       .bound_hi_ns = INFINITY };
	}
	return LAG_OK;
}
