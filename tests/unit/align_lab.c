/* SPDX-License-Identifier: Apache-2.0 */
/* The laboratory's clocks, and how estimates of them are held against the truth. */
#include "tests/unit/align_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MOMENTS = 25 /* at which each device is judged */
};

#define EPOCH_NS 1700000000000000000LL

static uint64_t draw(struct lag_lab *lab)
{
	uint64_t x = lab->random += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

double lag_lab_uniform(struct lag_lab *lab, double lo, double hi)
{
	return lo + (hi - lo) * ((double)(draw(lab) >> 11) * 0x1p-53);
}

double lag_lab_exponential(struct lag_lab *lab, double mean)
{
	return -mean * log(lag_lab_uniform(lab, 1e-12, 1));
}

double lag_lab_normal(struct lag_lab *lab, double sigma)
{
	double r = sqrt(-2 * log(lag_lab_uniform(lab, 1e-12, 1)));
	return sigma * r * cos(lag_lab_uniform(lab, 0, 6.283185307179586));
}

void *lag_lab_push(struct lag_vec *v)
{
	void *p = lag_vec_push(v);
	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static void *make(size_t n, size_t size)
{
	void *p = lag_calloc(n, size);
	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

struct lag_lab_opts lag_lab_defaults(uint64_t seed)
{
	return (struct lag_lab_opts){ .seed = seed,
				      .hosts = 4,
				      .per_host = 2,
				      .steps = 20,
				      .microbatches = 8,
				      .step_ms = 120,
				      .offset_ms = 40,
				      .drift_ppm = 200,
				      .device_us = 10,
				      .step_us = 10,
				      .hop_us = 8,
				      .transfer_us = 60,
				      .world_every = 1,
				      .first_last = true,
				      .dp = true,
				      .set_host = UINT32_MAX };
}

/* What a clock is ahead of true time, settings apart. */
static double ahead(const struct lag_lab *lab, const struct lag_lab_clock *c, int64_t true_ns)
{
	double t = (double)true_ns;
	double turn = 6.283185307179586 / (double)lab->length_ns;
	double sum = c->offset_ns + c->drift * t;
	for (int i = 0; i < c->n_bends; i++)
		sum += true_ns > c->bend_at_ns[i]
			       ? c->bend_by[i] * (double)(true_ns - c->bend_at_ns[i])
			       : 0;
	return sum + c->wave / turn * sin(turn * t + c->wave_phase);
}

int64_t lag_lab_host_ns(const struct lag_lab *lab, uint32_t host, int64_t true_ns)
{
	const struct lag_lab_clock *c = &lab->clocks[host];
	int64_t set = true_ns >= c->set_at_ns ? c->set_by_ns : 0;
	return EPOCH_NS + true_ns + llround(ahead(lab, c, true_ns)) + set;
}

int64_t lag_lab_device_ns(const struct lag_lab *lab, uint32_t device, int64_t true_ns)
{
	const struct lag_lab_device *d = &lab->devices[device];
	double off = true_ns < d->step_at_ns ? d->before_ns : d->after_ns;
	return lag_lab_host_ns(lab, lab->device_host[device], true_ns) + llround(off);
}

static void bracket(struct lag_lab *lab, uint32_t device, int64_t t, bool own)
{
	struct lag_align_bracket *b = lag_lab_push(&lab->brackets);
	uint32_t h = lab->device_host[device];
	int64_t width = 60 + (int64_t)lag_lab_uniform(lab, 0, 100);
	int64_t shown = lag_lab_host_ns(lab, h, t);
	int64_t set = t >= lab->clocks[h].set_at_ns ? lab->clocks[h].set_by_ns : 0;
	*b = (struct lag_align_bracket){ .host = h,
					 .device = own ? device : UINT32_MAX,
					 .own = own,
					 .realtime_ns = shown,
					 .cupti_ns =
						 own ? lag_lab_device_ns(lab, device, t) : shown,
					 .monotonic_ns = shown - set - EPOCH_NS + 5000000000,
					 .bracket_ns = width };
}

static void make_bends(struct lag_lab *lab, struct lag_lab_clock *c)
{
	const struct lag_lab_opts *o = &lab->opts;
	c->n_bends = o->n_bends < LAG_LAB_BENDS ? o->n_bends : LAG_LAB_BENDS;
	for (int i = 0; i < c->n_bends; i++) {
		/* One in each part of the run. */
		double at = 0.1 + 0.8 * (i + lag_lab_uniform(lab, 0.1, 0.9)) / c->n_bends;
		double by = lag_lab_uniform(lab, o->bend_ppm / 3, o->bend_ppm) * 1e-6;
		c->bend_at_ns[i] = (int64_t)(at * (double)lab->length_ns);
		c->bend_by[i] = draw(lab) & 1 ? by : -by;
	}
	c->wave = o->wave_ppm * 1e-6;
	c->wave_phase = o->wave_ppm > 0 ? lag_lab_uniform(lab, 0, 6.283185307179586) : 0;
}

static void make_clocks(struct lag_lab *lab)
{
	const struct lag_lab_opts *o = &lab->opts;
	uint32_t set = o->set_host < o->hosts ? o->set_host : o->hosts - 1;
	for (uint32_t h = 0; h < o->hosts; h++) {
		double offset = lag_lab_uniform(lab, -o->offset_ms, o->offset_ms) * 1e6;
		double drift = lag_lab_uniform(lab, -o->drift_ppm, o->drift_ppm) * 1e-6;
		lab->clocks[h] = (struct lag_lab_clock){ .offset_ns = offset,
							 .drift = drift,
							 .set_at_ns = INT64_MAX };
		if (h > 0)
			make_bends(lab, &lab->clocks[h]);
	}
	if (o->set_clock_ms != 0) {
		double part = o->no_brackets ? lag_lab_uniform(lab, 0.3, 0.7) : 0.5;
		lab->clocks[set].set_at_ns = (int64_t)(part * (double)lab->length_ns);
	}
	lab->clocks[set].set_by_ns = llround(o->set_clock_ms * 1e6);
	for (uint32_t d = 0; d < o->hosts * o->per_host; d++) {
		double before = lag_lab_uniform(lab, -o->device_us, o->device_us) * 1e3;
		double by = (draw(lab) & 1 ? 1e3 : -1e3) * o->step_us;
		lab->devices[d] = (struct lag_lab_device){ before, before + by,
							   (int64_t)(lag_lab_uniform(lab, 0, 1) *
								     (double)lab->length_ns) };
	}
}

void lag_lab_make(struct lag_lab *lab, const struct lag_lab_opts *opts)
{
	uint32_t n = opts->hosts * opts->per_host;
	*lab = (struct lag_lab){ .opts = *opts,
				 .members = LAG_VEC_INIT(struct lag_align_member),
				 .collectives = LAG_VEC_INIT(struct lag_align_collective),
				 .messages = LAG_VEC_INIT(struct lag_align_message),
				 .brackets = LAG_VEC_INIT(struct lag_align_bracket),
				 .states = LAG_VEC_INIT(struct lag_align_state),
				 .device_host = make(n, sizeof(uint32_t)),
				 .clocks = make(opts->hosts, sizeof(struct lag_lab_clock)),
				 .devices = make(n, sizeof(struct lag_lab_device)),
				 .length_ns = (int64_t)(opts->steps * opts->step_ms * 1e6),
				 .random = opts->seed * 77 + 5 };
	for (uint32_t d = 0; d < n; d++)
		lab->device_host[d] = d / opts->per_host;
	make_clocks(lab);
	for (int k = 0; k < opts->steps; k++)
		lag_lab_step(lab, k);
	for (int64_t t = 0; t <= lab->length_ns && !opts->no_brackets; t += 500000000) {
		for (uint32_t d = 0; d < n; d++) {
			bracket(lab, d, t, false);
			if (opts->own_brackets)
				bracket(lab, d, t, true);
		}
	}
	for (uint32_t h = 0; h < opts->hosts && opts->state_error_ms > 0; h++) {
		struct lag_align_state *s;
		if (opts->state_some && h % 2)
			continue;
		s = lag_lab_push(&lab->states);
		*s = (struct lag_align_state){ h, lag_lab_host_ns(lab, h, 0),
					       llround(opts->state_error_ms * 1e6) };
	}
	lab->in = (struct lag_align_input){ .n_hosts = opts->hosts,
					    .n_devices = n,
					    .device_host = lab->device_host,
					    .members = lab->members.items,
					    .n_members = lab->members.n,
					    .collectives = lab->collectives.items,
					    .n_collectives = lab->collectives.n,
					    .messages = lab->messages.items,
					    .n_messages = lab->messages.n,
					    .brackets = lab->brackets.items,
					    .n_brackets = lab->brackets.n,
					    .states = lab->states.items,
					    .n_states = lab->states.n };
}

void lag_lab_release(struct lag_lab *lab)
{
	lag_vec_release(&lab->members);
	lag_vec_release(&lab->collectives);
	lag_vec_release(&lab->messages);
	lag_vec_release(&lab->brackets);
	lag_vec_release(&lab->states);
	free(lab->device_host);
	free(lab->clocks);
	free(lab->devices);
}

/* The true time at which a host's clock shows `shown`. */
static int64_t true_of(const struct lag_lab *lab, uint32_t host, int64_t shown)
{
	int64_t t = shown - EPOCH_NS;
	for (int i = 0; i < 20; i++)
		t += shown - lag_lab_host_ns(lab, host, t);
	return t;
}

static int64_t moment(const struct lag_lab *lab, int k)
{
	return lab->length_ns * k / (MOMENTS - 1);
}

/* The reference's clock; its later setting taken out if `first_set`. */
static int64_t common_ns(const struct lag_lab *lab, uint32_t reference, int64_t t, bool first_set)
{
	const struct lag_lab_clock *c = &lab->clocks[reference];
	return lag_lab_host_ns(lab, reference, t) -
	       (first_set && t >= c->set_at_ns ? c->set_by_ns : 0);
}

/* Whether the result holds on to the reference's first setting. Both are a common clock. */
static bool keeps_first(const struct lag_lab *lab, const struct lag_align_result *res)
{
	int64_t sum[2] = { 0, 0 };
	for (int k = 0; k < MOMENTS; k++) {
		for (int first = 0; first < 2; first++) {
			int64_t t = moment(lab, k);
			int64_t raw = lag_lab_device_ns(lab, 0, t);
			int64_t got = lag_align_apply(res, lab->device_host[0], 0, raw);
			sum[first] += llabs(got - common_ns(lab, res->reference_host, t, first));
		}
	}
	return sum[1] < sum[0];
}

/* What the common clock is ahead of the reference host's. */
static double zero_of(const struct lag_lab *lab, uint32_t reference)
{
	double sum = 0;
	if (lab->opts.per_host > 1)
		return 0;
	for (int k = 0; k < MOMENTS; k++) {
		const struct lag_lab_device *d = &lab->devices[reference];
		sum += moment(lab, k) < d->step_at_ns ? d->before_ns : d->after_ns;
	}
	return sum / MOMENTS;
}

/* By the lab's making: observations tie this device to the reference. */
static bool joined(const struct lag_lab *lab, uint32_t device, uint32_t reference)
{
	const struct lag_lab_opts *o = &lab->opts;
	uint32_t host = lab->device_host[device];
	if (o->lose_rank && o->per_host == 1 && device == o->seed % o->hosts)
		return false;
	if (host == reference)
		return true;
	if (o->shape == LAG_LAB_HALVES && (host < o->hosts / 2) != (reference < o->hosts / 2))
		return o->state_error_ms > 0;
	return o->world_every || (!o->no_messages && !o->one_way);
}

void lag_lab_judge(const struct lag_lab *lab, const struct lag_align_result *res,
		   struct lag_lab_score *score)
{
	double zero = zero_of(lab, res->reference_host);
	bool first = keeps_first(lab, res);
	for (uint32_t d = 0; d < lab->in.n_devices; d++) {
		uint32_t h = lab->device_host[d];
		bool known = joined(lab, d, res->reference_host);
		for (int k = 0; k < MOMENTS; k++) {
			int64_t t = moment(lab, k);
			int64_t raw = lag_lab_device_ns(lab, d, t);
			double err = (double)(lag_align_apply(res, h, d, raw) -
					      common_ns(lab, res->reference_host, t, first)) -
				     zero;
			int64_t u = lag_align_uncertainty(res, h, d, raw);
			if (!known) {
				score->n_silent++;
				score->right += u == INT64_MAX;
				continue;
			}
			score->n++;
			if (u == INT64_MAX)
				continue; /* silence where the data suffice covers nothing */
			*(double *)lag_lab_push(&score->errors) = fabs(err);
			*(double *)lag_lab_push(&score->stated) = (double)u;
			score->covered += fabs(err) <= (double)u;
		}
	}
	for (size_t i = 0; i < res->n_segments; i++) {
		const struct lag_align_segment *s = &res->segments[i];
		int64_t t = true_of(lab, s->host, s->ref_ns);
		double want = (double)(common_ns(lab, res->reference_host, t, first) - s->ref_ns);
		score->n_bounds++;
		score->outside += want < s->bound_lo_ns - 1 || want > s->bound_hi_ns + 1;
	}
}

void lag_lab_score_init(struct lag_lab_score *score)
{
	*score = (struct lag_lab_score){ .errors = LAG_VEC_INIT(double),
					 .stated = LAG_VEC_INIT(double) };
}

void lag_lab_score_release(struct lag_lab_score *score)
{
	lag_vec_release(&score->errors);
	lag_vec_release(&score->stated);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;
	return (x > y) - (x < y);
}

double lag_lab_quantile(struct lag_vec *v, double q)
{
	if (v->n == 0)
		return 0;
	qsort(v->items, v->n, sizeof(double), by_value);
	return LAG_VEC_AT(v, double, (size_t)(q * (double)(v->n - 1)));
}
