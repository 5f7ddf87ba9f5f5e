/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow in one step: against the peers in that same step. A step that is long for all ranks (the
 * first one, a longer batch, an evaluation) is no rank's slowness. */
#include <math.h>
#include <stdlib.h>

#include "viz/model/peers_internal.h"

/* One kernel on one rank in the step. */
struct cell {
	size_t at; /* key * n_ranks + r */
	double total;
	uint32_t n;
};

struct walk {
	const struct lag_peers_steps *in;
	size_t *first,
		*events; /* events that are compared, by step: events[first[s] .. first[s + 1]] */
	uint32_t *place; /* by key * n_ranks + r: 1 + its cell; 0 = none yet */
	struct lag_vec cells; /* struct cell */
};

static bool is_compared(const struct lag_peers_steps *in, size_t i)
{
	return in->peers->key[i] >= 0 && !in->left_out[i];
}

static void sort_by_step(struct walk *w)
{
	const struct lag_peers_steps *in = w->in;
	size_t n_steps = in->peers->n_steps;

	for (size_t i = 0; i < in->trace->n_gpu; i++)
		w->first[in->steps->of_gpu[i] + 2] += is_compared(in, i);
	for (size_t s = 2; s < n_steps + 2; s++)
		w->first[s] += w->first[s - 1];
	for (size_t i = 0; i < in->trace->n_gpu; i++) {
		if (is_compared(in, i))
			w->events[w->first[in->steps->of_gpu[i] + 1]++] = i;
	}
}

static enum lag_status add_up(struct walk *w, size_t step)
{
	const struct lag_peers_steps *in = w->in;

	w->cells.n = 0;
	for (size_t i = w->first[step]; i < w->first[step + 1]; i++) {
		const struct lag_gpu_event *g = &in->trace->gpu[w->events[i]];
		size_t at = (size_t)in->peers->key[w->events[i]] * in->peers->n_ranks + g->r;
		struct cell *cell;

		if (w->place[at]) {
			cell = &LAG_VEC_AT(&w->cells, struct cell, w->place[at] - 1);
		} else {
			cell = lag_vec_push(&w->cells);
			if (!cell)
				return LAG_ERR_SYSTEM;
			*cell = (struct cell){ .at = at };
			w->place[at] = (uint32_t)w->cells.n;
		}
		cell->total += (double)(g->end_ns - g->start_ns);
		cell->n++;
	}
	for (size_t i = 0; i < w->cells.n; i++)
		w->place[LAG_VEC_AT(&w->cells, struct cell, i).at] = 0;
	return LAG_OK;
}

static int by_place(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* One kernel of the step: what its ranks took, and what their peers lead to expect. */
static void compare_kernel(const struct lag_peers_steps *in, const struct cell *cells, size_t n,
			   double *took, double *expected)
{
	struct lag_others *o = in->others;

	for (size_t i = 0; i < n; i++) {
		o->values[i] = (struct lag_rank_value){ cells[i].total / cells[i].n,
							cells[i].at % in->peers->n_ranks };
	}
	lag_others_find(o, n);
	for (size_t i = 0; i < n; i++) {
		size_t r = cells[i].at % in->peers->n_ranks;
		double other = isnan(in->job_ratio[cells[i].at]) ? o->stage[r] : o->job[r];

		if (isnan(other))
			continue;
		took[r] += cells[i].total;
		expected[r] += other * cells[i].n;
	}
}

static void compare_step(struct walk *w, size_t step, double *took, double *expected)
{
	const struct lag_peers_steps *in = w->in;
	size_t n_ranks = in->peers->n_ranks, n = w->cells.n, end;
	struct cell *cells = w->cells.items;

	for (size_t r = 0; r < n_ranks; r++)
		took[r] = expected[r] = 0;
	if (n)
		qsort(cells, n, sizeof(*cells), by_place);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && cells[end].at / n_ranks == cells[i].at / n_ranks;)
			end++;
		compare_kernel(in, cells + i, end - i, took, expected);
	}
	for (size_t r = 0; r < n_ranks; r++) {
		in->peers->step_ratio[step * n_ranks + r] =
			expected[r] > 0 ? (float)(took[r] / expected[r]) : NAN;
	}
}

enum lag_status lag_peers_compare_steps(const struct lag_peers_steps *in)
{
	size_t n_ranks = in->peers->n_ranks, n_steps = in->peers->n_steps;
	struct walk w = {
		.in = in,
		.first = lag_calloc(n_steps + 2, sizeof(*w.first)),
		.events = lag_calloc(in->trace->n_gpu, sizeof(*w.events)),
		.place = lag_calloc(in->peers->n_keys * n_ranks, sizeof(*w.place)),
		.cells = LAG_VEC_INIT(struct cell),
	};
	double *took = lag_calloc(n_ranks, sizeof(*took));
	double *expected = lag_calloc(n_ranks, sizeof(*expected));
	enum lag_status status =
		w.first && w.events && w.place && took && expected ? LAG_OK : LAG_ERR_SYSTEM;

	if (!lag_failed(status))
		sort_by_step(&w);
	for (size_t s = 0; s < n_steps && !lag_failed(status); s++) {
		status = add_up(&w, s);
		if (!lag_failed(status))
			compare_step(&w, s, took, expected);
	}
	free(w.first);
	free(w.events);
	free(w.place);
	lag_vec_release(&w.cells);
	free(took);
	free(expected);
	return status;
}
