/* SPDX-License-Identifier: Apache-2.0 */
/* "collective": offset and drift of each host from the ends of n-to-n collectives, and from messages
 * where collectives do not join hosts often enough. */
#include <math.h>
#include <stdlib.h>

#include "merge/align_common.h"
#include "merge/clock_break.h"
#include "merge/clock_prior.h"
#include "merge/clock_result.h"

/* Quartz that nobody disciplines is within this: for hosts whose few observations leave the drift
 * open. In the fit itself it weighs next to nothing, so that data always win. */
#define PRIOR_DRIFT 3e-4
#define FIT_DRIFT   3e-2

/* Conversions by drivers step by up to some tens of microseconds; a clock that is set moves farther. */
#define MIN_STEP_NS 40000.0
#define MIN_BEND_NS 5000.0

/* In standard errors: from here on a rate is no scatter. Scatter is never taken for less than this share
 * of what is assumed. */
#define CLEAR_RATE 4.0
/* What a rate moves by over half the run, for it to be doubted at all. */
#define LITTLE_NS   5000.0
#define LEAST_SCALE 0.05

enum {
	MAX_BREAK_ROUNDS = 24,
	MAX_LOOKS = 3
};

/* The host with the most devices: their mean hides single conversion errors best. */
static uint32_t choose_reference(const struct lag_align_input *in)
{
	uint32_t best = 0;
	uint32_t most = 0;
	if (in->reference_ref)
		return in->reference_ref - 1;
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
				    const struct lag_fit_model *model, struct lag_err *err)
{
	double chunk = best_chunk(view, g);
	enum lag_status st = LAG_OK;
	for (size_t i = 0; st == LAG_OK && i < g->pairs.n; i++) {
		struct lag_clock_pair *p = &LAG_VEC_AT(&g->pairs, struct lag_clock_pair, i);
		if (p->in_fit || CLEARLY * sqrt(lag_clock_pair_variance(p)) > chunk ||
		    fabs(lag_clock_pair_gap(view, p, model)) > AGREE * chunk)
			continue;
		st = lag_clock_use_pair(g, view, p, err);
	}
	return st;
}

struct fitting {
	const struct lag_clock_view *view;
	struct lag_clock_gather *g;
	struct lag_fit_problem p;
	struct lag_fit_model *model;
	double scale;
};

/* Without residuals it is the last one, and variances are wanted. */
static enum lag_status fit(struct fitting *f, double *residual, double *share, struct lag_err *err)
{
	f->p.obs = f->g->obs.items;
	f->p.n_obs = f->g->obs.n;
	f->p.groups = f->g->groups.items;
	f->p.n_groups = f->g->groups.n;
	return lag_fit_solve(&f->p, f->model, !residual, residual, share, &f->scale, err);
}

/* Adds bends and steps one after the other (several hosts' at a time), as long as the data ask. */
static enum lag_status find_breaks(struct fitting *f, double min_step_ns, struct lag_err *err)
{
	struct lag_vec knots = LAG_VEC_INIT(struct lag_fit_knot);
	double *residual = lag_calloc(2 * f->g->obs.n, sizeof(*residual));
	double *share = residual ? residual + f->g->obs.n : NULL;
	struct lag_break_input in = { .problem = &f->p,
				      .model = f->model,
				      .residual = residual,
				      .share = share,
				      .min_step_ns = min_step_ns,
				      .min_bend_ns = MIN_BEND_NS };
	enum lag_status st = lag_fit_set_knots(f->model, NULL, 0, err);
	if (st == LAG_OK) {
		st = residual ? fit(f, residual, share, err)
			      : lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock changes");
	}
	for (int i = 0; st == LAG_OK && i < MAX_BREAK_ROUNDS; i++) {
		size_t found;
		st = lag_break_find(&in, &knots, &found, err);
		if (st != LAG_OK || !found)
			break;
		st = lag_fit_set_knots(f->model, knots.items, knots.n, err);
		if (st == LAG_OK)
			st = fit(f, residual, share, err);
	}
	free(residual);
	lag_vec_release(&knots);
	return st;
}

/* The steps that the fit found become settings of the clocks, on raw time. */
static enum lag_status take_steps(const struct fitting *f, struct lag_vec *sets, bool *any,
				  struct lag_err *err)
{
	const struct lag_clock_view *view = f->view;
	for (size_t i = 0; i < f->model->knots.n; i++) {
		const struct lag_fit_knot *k =
			&LAG_VEC_AT(&f->model->knots, struct lag_fit_knot, i);
		size_t at = 2 * ((size_t)k->host + 1) + i;
		int64_t repaired = view->origin_ns[k->host] + llround(k->x * view->span_ns);
		int64_t step = -llround(f->model->coef[at]);
		struct lag_clock_set *set = k->step ? lag_vec_push(sets) : NULL;
		if (!k->step)
			continue;
		if (!set)
			return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock changes");
		*set = (struct lag_clock_set){
			k->host, repaired + lag_clock_shift(view, k->host, repaired) + step / 2,
			step, llround(k->reach * view->span_ns) + llabs(step) / 2 + 1
		};
		*any = true;
	}
	return LAG_OK;
}

/* Short recordings show rates that are mere scatter. Where all move little and no host's is clearly
 * another, less of them is believed, and the curves keep their middles. */
static void doubt_rates(const struct fitting *f)
{
	const struct lag_fit_model *m = f->model;
	size_t size = lag_fit_size(m);
	double n_free = (double)f->p.n_obs - (double)f->p.n_groups - (double)size;
	/* Curves through few readings lie closer to them than the truth does. */
	double scale = fmax(f->scale, LEAST_SCALE) * sqrt((double)f->p.n_obs / fmax(n_free, 1));
	double clearest = 0;
	if (!m->covariance || m->knots.n)
		return;
	for (uint32_t h = 0; h < m->n_hosts; h++) {
		size_t at = lag_fit_first(m, h) + 1;
		/* What the data alone say: the belief is in the covariance, too. */
		double known = 1 / m->covariance[at * (size + 1)] - m->belief_weight;
		if (fabs(m->coef[at]) > LITTLE_NS)
			return;
		if (!f->p.fixed[h] && known > 0)
			clearest = fmax(clearest, fabs(m->coef[at]) * sqrt(known) / scale);
	}
	if (clearest > CLEAR_RATE)
		return;
	double keep = clearest > 2 ? 1 - 4 / (clearest * clearest) : 0;
	for (uint32_t h = 0; h < m->n_hosts; h++) {
		double *c = m->coef + lag_fit_first(m, h);
		const double *info = m->info + 3 * (size_t)h;
		double middle = info[0] > 0 ? info[1] / info[0] : 0;
		c[0] += (1 - keep) * c[1] * middle;
		c[1] *= keep;
	}
}

/* What no observation joins to the reference keeps the clock of one of its hosts: the one with the
 * most devices. */
static void choose_fixed(const struct lag_clock_view *view, const struct lag_clock_gather *g,
			 uint32_t reference, bool *fixed)
{
	const struct lag_align_input *in = view->in;
	uint32_t *n = lag_calloc(2 * (size_t)in->n_hosts, sizeof(*n));
	uint32_t *best = n ? n + in->n_hosts : NULL; /* by set: 1 + host */
	for (uint32_t d = 0; n && d < in->n_devices; d++)
		n[in->device_host[d]]++;
	for (uint32_t h = 0; n && h < in->n_hosts; h++) {
		uint32_t *b = &best[g->set[h]];
		if (*b == 0 || (n[h] > n[*b - 1] && *b - 1 != reference) || h == reference)
			*b = h + 1;
	}
	for (uint32_t h = 0; h < in->n_hosts; h++)
		fixed[h] = n ? best[g->set[h]] == h + 1 : h == g->set[h];
	free(n);
}

struct aligning {
	const struct lag_align_input *in;
	struct lag_align_result *out;
	struct lag_vec sets; /* struct lag_clock_set: found so far */
	struct lag_fit_model model;
	bool *fixed;      /* by host */
	double *prior_ns; /* by host */
	uint32_t contradicted;
	double contradicted_ns;
};

static enum lag_status publish(struct lag_clock_solved *s, struct lag_align_result *out,
			       struct lag_err *err)
{
	struct lag_clock_trust trust;
	enum lag_status st = lag_clock_trust_init(&trust, s, err);
	if (st != LAG_OK)
		return st;
	st = lag_clock_result(s, &trust, "collective", out, err);
	lag_clock_trust_release(&trust);
	return st;
}

/* *again: steps were found, and everything must be looked at anew without them. */
static enum lag_status solve(struct aligning *a, const struct lag_clock_view *view,
			     struct lag_clock_gather *g, double min_step_ns, bool *again,
			     struct lag_err *err)
{
	const double weak = FIT_DRIFT * view->span_ns;
	const double drift_ns = PRIOR_DRIFT * view->span_ns;
	struct lag_clock_solved s = { .view = view,
				      .gather = g,
				      .model = &a->model,
				      .fixed = a->fixed,
				      .prior_ns = a->prior_ns,
				      .reference = choose_reference(view->in) };
	struct fitting f = { .view = view,
			     .g = g,
			     .p = { .n_hosts = view->in->n_hosts,
				    .fixed = a->fixed,
				    .slope_weight = 1 / (weak * weak),
				    .belief_weight = 1 / (drift_ns * drift_ns) },
			     .model = &a->model };
	choose_fixed(view, g, s.reference, a->fixed);
	enum lag_status st = find_breaks(&f, min_step_ns, err);
	if (st == LAG_OK)
		st = take_steps(&f, &a->sets, again, err);
	if (st != LAG_OK || *again)
		return st;
	st = use_messages(view, g, &a->model, err);
	if (st == LAG_OK)
		st = fit(&f, NULL, NULL, err);
	s.scale = f.scale;
	if (st == LAG_OK) {
		doubt_rates(&f);
		st = lag_clock_prior(view, g->set, s.reference, &a->model, a->prior_ns,
				     &a->contradicted, &a->contradicted_ns, err);
	}
	return st == LAG_OK ? publish(&s, a->out, err) : st;
}

static enum lag_status look(struct aligning *a, double min_step_ns, bool *again,
			    struct lag_err *err)
{
	struct lag_clock_view view;
	struct lag_clock_gather g;
	enum lag_status st = lag_clock_view_init(&view, a->in, a->sets.items, a->sets.n, err);
	if (st != LAG_OK)
		return st;
	st = lag_clock_gather_init(&g, &view, err);
	if (st == LAG_OK) {
		st = solve(a, &view, &g, min_step_ns, again, err);
		lag_clock_gather_release(&g);
	}
	lag_clock_view_release(&view);
	return st;
}

static enum lag_status align(const struct lag_align_input *in, struct lag_align_result *out,
			     struct lag_err *err)
{
	struct aligning a = { .in = in, .out = out, .sets = LAG_VEC_INIT(struct lag_clock_set) };
	bool again = true;
	if (in->n_hosts == 0)
		return lag_align_identity(in, "collective", out, err);
	a.fixed = lag_calloc(in->n_hosts, sizeof(*a.fixed));
	a.prior_ns = lag_calloc(in->n_hosts, sizeof(*a.prior_ns));
	enum lag_status st = lag_fit_init(&a.model, in->n_hosts, err);
	if (st == LAG_OK && (!a.fixed || !a.prior_ns))
		st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u hosts", in->n_hosts);
	for (int i = 0; st == LAG_OK && again; i++) {
		again = false;
		st = look(&a, i < MAX_LOOKS ? MIN_STEP_NS : INFINITY, &again, err);
	}
	lag_fit_release(&a.model);
	lag_vec_release(&a.sets);
	free(a.fixed);
	free(a.prior_ns);
	if (st == LAG_OK) {
		out->n_contradicted = a.contradicted;
		out->contradicted_ns = a.contradicted_ns;
	}
	return st;
}

const struct lag_aligner lag_aligner_collective = { .name = "collective", .align = align };
