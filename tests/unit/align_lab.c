/* SPDX-License-Identifier: Apache-2.0 */
/* Rings are stepped through hop by hop, so that their ends are uneven and depend on who came last. */
#include "tests/unit/align_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MOMENTS = 24, /* at which each device is judged */
	MAX_RING = 256
};

#define EPOCH_NS 1700000000000000000LL

static uint64_t draw(struct lag_lab *lab)
{
	uint64_t x = lab->random += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static double uniform(struct lag_lab *lab, double lo, double hi)
{
	return lo + (hi - lo) * ((double)(draw(lab) >> 11) * 0x1p-53);
}

static double exponential(struct lag_lab *lab, double mean)
{
	return -mean * log(uniform(lab, 1e-12, 1));
}

static double normal(struct lag_lab *lab, double sigma)
{
	double r = sqrt(-2 * log(uniform(lab, 1e-12, 1)));
	return sigma * r * cos(uniform(lab, 0, 6.283185307179586));
}

static void *push(struct lag_vec *v)
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
				      .dp = true };
}

int64_t lag_lab_host_ns(const struct lag_lab *lab, uint32_t host, int64_t true_ns)
{
	const struct lag_lab_clock *c = &lab->clocks[host];
	int64_t set = true_ns >= c->set_at_ns ? c->set_by_ns : 0;
	return EPOCH_NS + true_ns + llround(c->offset_ns + c->drift * (double)true_ns) + set;
}

int64_t lag_lab_device_ns(const struct lag_lab *lab, uint32_t device, int64_t true_ns)
{
	const struct lag_lab_device *d = &lab->devices[device];
	double off = true_ns < d->step_at_ns ? d->before_ns : d->after_ns;
	return lag_lab_host_ns(lab, lab->device_host[device], true_ns) + llround(off);
}

static struct lag_align_member member(const struct lag_lab *lab, uint32_t device, double start,
				      double end)
{
	return (struct lag_align_member){ .host = lab->device_host[device],
					  .device = device,
					  .start_ns =
						  lag_lab_device_ns(lab, device, llround(start)),
					  .end_ns = lag_lab_device_ns(lab, device, llround(end)) };
}

/* n members start at start[]; what they show goes into the run. The data of a ring all-reduce makes
 * 2 (n - 1) hops; rank r passes on what its predecessor passed on one hop before. */
static void ring(struct lag_lab *lab, uint32_t first_device, uint32_t n, const double *start,
		 double hop_ns, uint32_t comm, int64_t bytes)
{
	double now[MAX_RING];
	double before[MAX_RING];
	struct lag_align_collective *c = push(&lab->collectives);
	*c = (struct lag_align_collective){ .func = LAG_FUNC_ALL_REDUCE,
					    .bytes = bytes,
					    .comm = comm,
					    .first_member = (uint32_t)lab->members.n,
					    .n_members = n,
					    .complete = true };
	for (uint32_t r = 0; r < n; r++)
		now[r] = start[r];
	for (uint32_t k = 0; k < 2 * (n - 1); k++) {
		for (uint32_t r = 0; r < n; r++)
			before[r] = now[r];
		for (uint32_t r = 0; r < n; r++) {
			uint32_t prev = (r + n - 1) % n;
			uint32_t a = lab->device_host[first_device + prev];
			uint32_t b = lab->device_host[first_device + r];
			double hop = a == b ? hop_ns / 5
					    : hop_ns * (1 + 0.1 * (double)((a * 7 + b) % 3));
			double from_prev = before[prev] + hop + exponential(lab, 300);
			now[r] = fmax(before[r] + 200, from_prev);
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		struct lag_align_member *m = push(&lab->members);
		*m = member(lab, first_device + r, start[r], now[r] + exponential(lab, 500));
	}
}

static void message(struct lag_lab *lab, uint32_t src, uint32_t dst, double send_start, double tf)
{
	double t = lab->opts.transfer_us * 1e3 * (1 + normal(lab, 0.03)) + exponential(lab, 1000);
	if (lab->opts.slow_way > 0 && lab->device_host[src] == 1 && lab->device_host[dst] == 2)
		t *= lab->opts.slow_way;
	bool late = uniform(lab, 0, 1) < (lab->opts.late_receivers ? 0.9 : 0.2);
	double recv_start = send_start + (late ? uniform(lab, 0, 0.3) : uniform(lab, -1.5, 0)) * tf;
	double recv_end = fmax(send_start, recv_start) + t;
	double send_end = send_start + 0.4 * t;
	struct lag_align_message *m = push(&lab->messages);
	*m = (struct lag_align_message){ .send = member(lab, src, send_start, send_end),
					 .recv = member(lab, dst, recv_start, recv_end),
					 .bytes = 1 << 20 };
}

static void pipeline(struct lag_lab *lab, double t0, double tf)
{
	const struct lag_lab_opts *o = &lab->opts;
	for (int mb = 0; mb < o->microbatches; mb++) {
		for (uint32_t s = 0; s + 1 < o->hosts; s++) {
			for (uint32_t i = 0; i < o->per_host; i++) {
				uint32_t up = s * o->per_host + i;
				double f =
					t0 + (mb + (double)s + 1) * tf + exponential(lab, tf / 50);
				double b = t0 + (o->microbatches + (double)o->hosts) * tf +
					   2 * (mb + (double)(o->hosts - 1 - s)) * tf +
					   exponential(lab, tf / 50);
				message(lab, up, up + o->per_host, f, tf);
				message(lab, up + o->per_host, up, b, tf);
			}
		}
	}
}

static void step(struct lag_lab *lab, int k)
{
	const struct lag_lab_opts *o = &lab->opts;
	double start[MAX_RING];
	uint32_t n = o->hosts * o->per_host;
	double t0 = k * o->step_ms * 1e6;
	/* Forward one unit, backward two, m + p - 1 of each: nine tenths of the step. */
	double tf = 0.9 * o->step_ms * 1e6 / (3.0 * (o->microbatches + (int)o->hosts));
	double end = t0 + 0.92 * o->step_ms * 1e6;
	if (!o->no_messages)
		pipeline(lab, t0, tf);
	for (uint32_t h = 0; h < o->hosts && o->dp && o->per_host > 1; h++) {
		for (uint32_t i = 0; i < o->per_host; i++)
			start[i] = end - 4e6 + uniform(lab, 0, 3e5);
		ring(lab, h * o->per_host, o->per_host, start, 1e6, 1 + h, 8 << 20);
	}
	if (!o->world_every || k % o->world_every)
		return;
	for (uint32_t r = 0; r < n; r++) {
		start[r] = end + uniform(lab, 0, 1.5e6);
		if (o->straggler && r == o->seed % n)
			start[r] = end + 2e6 + uniform(lab, 0, 1e6);
		else if (o->first_last && lab->device_host[r] == 0)
			start[r] += 5e5;
	}
	ring(lab, 0, n, start, o->hop_us * 1e3, 0, 4);
}

static void bracket(struct lag_lab *lab, uint32_t device, int64_t t, bool own)
{
	struct lag_align_bracket *b = push(&lab->brackets);
	uint32_t h = lab->device_host[device];
	int64_t width = 60 + (int64_t)uniform(lab, 0, 100);
	int64_t shown = lag_lab_host_ns(lab, h, t);
	int64_t set = t >= lab->clocks[h].set_at_ns ? lab->clocks[h].set_by_ns : 0;
	*b = (struct lag_align_bracket){ .host = h,
					 .device = own ? device : UINT32_MAX,
					 .realtime_ns = shown,
					 .cupti_ns =
						 own ? lag_lab_device_ns(lab, device, t) : shown,
					 .monotonic_ns = shown - set - EPOCH_NS + 5000000000,
					 .bracket_ns = width };
}

static void make_clocks(struct lag_lab *lab)
{
	const struct lag_lab_opts *o = &lab->opts;
	for (uint32_t h = 0; h < o->hosts; h++)
		lab->clocks[h] = (struct lag_lab_clock){
			.offset_ns = uniform(lab, -o->offset_ms, o->offset_ms) * 1e6,
			.drift = uniform(lab, -o->drift_ppm, o->drift_ppm) * 1e-6,
			.set_at_ns = INT64_MAX
		};
	if (o->set_clock_ms != 0)
		lab->clocks[o->hosts - 1].set_at_ns = lab->length_ns / 2;
	lab->clocks[o->hosts - 1].set_by_ns = llround(o->set_clock_ms * 1e6);
	for (uint32_t d = 0; d < o->hosts * o->per_host; d++) {
		double before = uniform(lab, -o->device_us, o->device_us) * 1e3;
		double by = (draw(lab) & 1 ? 1e3 : -1e3) * o->step_us;
		lab->devices[d] = (struct lag_lab_device){
			before, before + by, (int64_t)(uniform(lab, 0, 1) * (double)lab->length_ns)
		};
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
				 .device_host = make(n, sizeof(uint32_t)),
				 .clocks = make(opts->hosts, sizeof(struct lag_lab_clock)),
				 .devices = make(n, sizeof(struct lag_lab_device)),
				 .length_ns = (int64_t)(opts->steps * opts->step_ms * 1e6),
				 .random = opts->seed * 77 + 5 };
	for (uint32_t d = 0; d < n; d++)
		lab->device_host[d] = d / opts->per_host;
	make_clocks(lab);
	for (int k = 0; k < opts->steps; k++)
		step(lab, k);
	for (int64_t t = 0; t <= lab->length_ns; t += 500000000) {
		for (uint32_t d = 0; d < n; d++) {
			bracket(lab, d, t, false);
			if (opts->own_brackets)
				bracket(lab, d, t, true);
		}
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
					    .n_brackets = lab->brackets.n };
}

void lag_lab_release(struct lag_lab *lab)
{
	lag_vec_release(&lab->members);
	lag_vec_release(&lab->collectives);
	lag_vec_release(&lab->messages);
	lag_vec_release(&lab->brackets);
	free(lab->device_host);
	free(lab->clocks);
	free(lab->devices);
}

/* The true time at which a host's clock, as first set, shows `shown`. */
static double true_of(const struct lag_lab *lab, uint32_t host, int64_t shown)
{
	const struct lag_lab_clock *c = &lab->clocks[host];
	double t = (double)(shown - EPOCH_NS) - c->offset_ns;
	if (t / (1 + c->drift) >= (double)c->set_at_ns)
		t -= (double)c->set_by_ns;
	return t / (1 + c->drift);
}

void lag_lab_judge(const struct lag_lab *lab, const struct lag_align_result *res,
		   struct lag_lab_score *score)
{
	for (uint32_t d = 0; d < lab->in.n_devices; d++) {
		uint32_t h = lab->device_host[d];
		for (int k = 0; k < MOMENTS; k++) {
			int64_t t = lab->length_ns * (2 * k + 1) / (2 * MOMENTS);
			int64_t raw = lag_lab_device_ns(lab, d, t);
			int64_t err = lag_align_apply(res, h, d, raw) -
				      lag_lab_host_ns(lab, res->reference_host, t);
			int64_t u = lag_align_uncertainty(res, h, d, raw);
			*(double *)push(&score->errors) = fabs((double)err);
			*(double *)push(&score->stated) = (double)u;
			score->n++;
			score->covered += llabs(err) <= u;
		}
	}
	for (size_t i = 0; i < res->n_segments; i++) {
		const struct lag_align_segment *s = &res->segments[i];
		int64_t t = llround(true_of(lab, s->host, s->ref_ns));
		double want = (double)(lag_lab_host_ns(lab, res->reference_host, t) - s->ref_ns);
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
