/* SPDX-License-Identifier: Apache-2.0 */
/* Of the hosts of one set, the one with the smallest stated error speaks for all. */
#include "merge/clock_prior.h"

#include <math.h>
#include <stdlib.h>

struct word {
	double error_ns; /* from UTC, the worst of its statements; INFINITY: silent */
};

struct prior {
	const struct lag_clock_view *view;
	const uint32_t *set;
	const struct lag_fit_model *model;
	struct word *words; /* by host */
	uint32_t *speaker;  /* by set: 1 + host */
};

static void listen(struct prior *p)
{
	const struct lag_align_input *in = p->view->in;

	for (uint32_t h = 0; h < in->n_hosts; h++)
		p->words[h].error_ns = -1;
	for (size_t i = 0; i < in->n_states; i++) {
		const struct lag_align_state *s = &in->states[i];

		if (s->host < in->n_hosts && s->max_error_ns >= 0) {
			struct word *w = &p->words[s->host];

			w->error_ns = fmax(w->error_ns, (double)s->max_error_ns);
		}
	}
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		struct word *w = &p->words[h];
		uint32_t *s = &p->speaker[p->set[h]];

		if (w->error_ns < 0) {
			w->error_ns = INFINITY;
		} else if (*s == 0 || w->error_ns < p->words[*s - 1].error_ns) {
			*s = h + 1;
		}
	}
}

/* A host's reading plus this is what its set's clock shows; x on the host's own scale. */
static double correction(const struct prior *p, uint32_t host, int64_t at_ns)
{
	return lag_fit_value(p->model, host, lag_clock_x(p->view, host, at_ns));
}

/* Hosts of one set have UTC within their errors, by their own words, and each other by observation. */
static void doubt(const struct prior *p, uint32_t *contradicted, double *worst)
{
	*contradicted = 0;
	*worst = 0;
	for (uint32_t h = 0; h < p->view->in->n_hosts; h++) {
		uint32_t s = p->speaker[p->set[h]];
		int64_t at = p->view->origin_ns[h];
		double over;

		if (s == 0 || s - 1 == h || isinf(p->words[h].error_ns))
			continue;
		over = fabs(correction(p, h, at) - correction(p, s - 1, at)) -
		       p->words[h].error_ns - p->words[s - 1].error_ns;
		if (over <= 0)
			continue;
		++*contradicted;
		*worst = fmax(*worst, over);
	}
}

/* By how much a set's clock is to be moved so that its speaker's UTC is that of the reference's set. */
static double move(const struct prior *p, uint32_t ours, uint32_t theirs, int64_t at_ns)
{
	return correction(p, ours, at_ns) - correction(p, theirs, at_ns);
}

static void shift(struct prior *p, uint32_t host, uint32_t ours, double *coef)
{
	uint32_t theirs = p->speaker[p->set[host]] - 1;
	int64_t origin = p->view->origin_ns[host];
	int64_t half = (int64_t)p->view->span_ns;
	double at = move(p, ours, theirs, origin);
	double before = move(p, ours, theirs, origin - half);
	double after = move(p, ours, theirs, origin + half);

	coef[lag_fit_first(p->model, host)] += at;
	coef[lag_fit_first(p->model, host) + 1] += (after - before) / 2;
}

enum lag_status lag_clock_prior(const struct lag_clock_view *view, const uint32_t *set,
				uint32_t reference, struct lag_fit_model *model, double *error_ns,
				uint32_t *contradicted, double *worst_ns, struct lag_err *err)
{
	uint32_t n = view->in->n_hosts;
	size_t size = lag_fit_size(model);
	struct prior p = { .view = view,
			   .set = set,
			   .model = model,
			   .words = lag_calloc(n, sizeof(*p.words)),
			   .speaker = lag_calloc(n, sizeof(*p.speaker)) };
	double *coef = lag_calloc(size, sizeof(*coef));

	if (!p.words || !p.speaker || !coef) {
		free(p.words);
		free(p.speaker);
		free(coef);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %u clocks", n);
	}
	listen(&p);
	doubt(&p, contradicted, worst_ns);
	uint32_t ours = p.speaker[set[reference]];
	for (uint32_t h = 0; h < n; h++) {
		uint32_t theirs = p.speaker[set[h]];

		error_ns[h] = set[h] == set[reference] ? 0 : INFINITY;
		if (set[h] == set[reference] || !ours || !theirs)
			continue;
		error_ns[h] = p.words[ours - 1].error_ns + p.words[theirs - 1].error_ns + *worst_ns;
		shift(&p, h, ours - 1, coef);
	}
	for (size_t k = 0; k < size; k++)
		model->coef[k] += coef[k];
	free(p.words);
	free(p.speaker);
	free(coef);
	return LAG_OK;
}
