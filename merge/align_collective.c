/* SPDX-License-Identifier: Apache-2.0 */
/* "collective": offset and drift of each host from the ends of n-to-n collectives, and from messages
 * where collectives do not join hosts often enough. */
#include <math.h>
#include <stdlib.h>

#include "merge/align_common.h"
#include "merge/clock_result.h"

/* Quartz that nobody disciplines is within this: for hosts whose few observations leave the drift
 * open. In the fit itself it weighs next to nothing, so that data always win. */
#define PRIOR_DRIFT 3e-4
#define FIT_DRIFT   3e-2

/* The host with the most devices: their mean hides single conversion errors best. */
static uint32_t choose_reference(const struct lag_align_input *in)
{
	uint32_t best = 0;
	uint32_t most = 0;
	uint32_t *n = lag_calloc(in->n_hosts, sizeof(*n));
	for (uint32_t d = 0; n && d < in->n_devices; d++)
		n[in->device_host[d]]++;
	for (uint32_t h = 0; n && h < in->n_hosts; h++) {
		if (n[h] > most) {
			most = n[h];
			best = h;
		}
	}
	free(n);
	return best;
}

/* Ends of collectives first; but where they may differ by far more than what messages leave open,
 * and both agree within that, the messages decide. */
#define CLEARLY 2.0
#define AGREE   6.0

static double best_chunk(const struct lag_clock_view *view, const struct lag_clock_gather *g)
{
	double best = INFINITY;
	for (size_t i = 0; i < g->which.n; i++) {
		size_t k = LAG_VEC_AT(&g->which, size_t, i);
		best = fmin(best, lag_clock_skew(g, view, &view->in->collectives[k]));
	}
	return best;
}

static enum lag_status use_messages(const struct lag_clock_view *view, struct lag_clock_gather *g,
				    const struct lag_fit_line *lines, bool *used,
				    struct lag_err *err)
{
	double chunk = best_chunk(view, g);
	enum lag_status st = LAG_OK;
	for (size_t i = 0; st == LAG_OK && i < g->pairs.n; i++) {
		struct lag_clock_pair *p = &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i);
		if (p->in_fit || CLEARLY * sqrt(lag_clock_pair_variance(p)) > chunk ||
		    fabs(lag_clock_pair_gap(view, p, lines)) > AGREE * chunk)
			continue;
		st = lag_clock_use_pair(g, view, p, err);
		*used = true;
	}
	return st;
}

static enum lag_status fit(const struct lag_clock_solved *s, struct lag_fit_line *lines,
			   double *scale, struct lag_err *err)
{
	const struct lag_clock_gather *g = s->gather;
	const double weak = 1 / (FIT_DRIFT * FIT_DRIFT);
	struct lag_fit_problem p = { .n_hosts = s->view->in->n_hosts,
				     .reference = s->reference,
				     .obs = g->obs.items,
				     .n_obs = g->obs.n,
				     .groups = g->groups.items,
				     .n_groups = g->groups.n,
				     .slope_weight = weak / (s->view->span_ns * s->view->span_ns) };
	return lag_fit_solve(&p, lines, NULL, scale, err);
}

static enum lag_status solve(const struct lag_clock_view *view, struct lag_clock_gather *g,
			     struct lag_fit_line *lines, struct lag_align_result *out,
			     struct lag_err *err)
{
	double drift_ns = PRIOR_DRIFT * view->span_ns;
	struct lag_clock_trust trust;
	struct lag_clock_solved s = { .view = view,
				      .gather = g,
				      .lines = lines,
				      .reference = choose_reference(view->in),
				      .slope_weight = 1 / (drift_ns * drift_ns) };
	bool used = false;
	enum lag_status st = fit(&s, lines, &s.scale, err);
	if (st == LAG_OK)
		st = use_messages(view, g, lines, &used, err);
	if (st == LAG_OK && used)
		st = fit(&s, lines, &s.scale, err);
	if (st == LAG_OK)
		st = lag_clock_trust_init(&trust, &s, err);
	if (st != LAG_OK)
		return st;
	st = lag_clock_result(&s, &trust, "collective", out, err);
	lag_clock_trust_release(&trust);
	return st;
}

static enum lag_status align(const struct lag_align_input *in, struct lag_align_result *out,
			     struct lag_err *err)
{
	struct lag_clock_view view;
	struct lag_clock_gather g;
	if (in->n_hosts == 0)
		return lag_align_identity(in, "collective", out, err);
	struct lag_fit_line *lines = lag_calloc(in->n_hosts, sizeof(*lines));
	if (!lines)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u hosts", in->n_hosts);
	enum lag_status st = lag_clock_view_init(&view, in, err);
	if (st == LAG_OK) {
		st = lag_clock_gather_init(&g, &view, err);
		if (st == LAG_OK) {
			st = solve(&view, &g, lines, out, err);
			lag_clock_gather_release(&g);
		}
		lag_clock_view_release(&view);
	}
	free(lines);
	return st;
}

const struct lag_aligner lag_aligner_collective = { .name = "collective", .align = align };
