/* SPDX-License-Identifier: Apache-2.0 */
/* "wall": trusts that the hosts' wall clocks agree (PTP, or one host), and only takes out the steps
 * by which a clock was set during the run. What causality allows is the stated uncertainty. */
#include "merge/align_common.h"
#include "merge/clock_result.h"

static enum lag_status align(const struct lag_align_input *in, struct lag_align_result *out,
			     struct lag_err *err)
{
	struct lag_clock_view view;
	if (in->n_hosts == 0)
		return lag_align_identity(in, "wall", out, err);
	struct lag_fit_model model;
	enum lag_status st = lag_fit_init(&model, in->n_hosts, err);
	if (st == LAG_OK)
		st = lag_clock_view_init(&view, in, NULL, 0, err);
	if (st == LAG_OK) {
		struct lag_clock_solved s = { .view = &view, .model = &model };
		st = lag_clock_result(&s, NULL, "wall", out, err);
		lag_clock_view_release(&view);
	}
	lag_fit_release(&model);
	return st;
}

const struct lag_aligner lag_aligner_wall = { .name = "wall", .align = align };
