/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work by name and class: how often, how long, and how its ranks differ. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/map.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/stat.h"

static const struct lag_column columns[] = {
	{ "name", "kernel", LAG_UNIT_TEXT, NULL },
	{ "class", "class", LAG_UNIT_TEXT, NULL },
	{ "count", "count", LAG_UNIT_COUNT, NULL },
	{ "total_ns", "total", LAG_UNIT_NS, "sum over launches and ranks" },
	{ "share", "share", LAG_UNIT_SHARE, "summed time of all GPU work" },
	{ "mean_ns", "mean", LAG_UNIT_NS, "launches" },
	{ "median_ns", "median", LAG_UNIT_NS, "launches" },
	{ "p95_ns", "p95", LAG_UNIT_NS, "launches" },
	{ "max_ns", "max", LAG_UNIT_NS, "launches" },
	{ "n_ranks", "ranks", LAG_UNIT_COUNT, NULL },
	{ "slowest_rank", "slowest", LAG_UNIT_ID,
	  "rank with the largest mean; communication waits inside: null" },
	{ "slowest_ratio", "ratio", LAG_UNIT_RATIO,
	  "its mean to the mean of the other ranks' launches" },
};

struct kernel {
	uint32_t name;
	uint8_t class;
	struct lag_sample durations;
	int64_t total_ns;
	/* Of the rank that is read now, and of the slowest so far. */
	uint32_t r;
	int64_t rank_total_ns, rank_n, n_ranks, slowest, slowest_total_ns, slowest_n;
	double slowest_mean;
};

static void close_rank(const struct lag_trace *t, struct kernel *k)
{
	double mean;

	if (!k->rank_n)
		return;
	mean = (double)k->rank_total_ns / (double)k->rank_n;
	k->n_ranks++;
	if (mean > k->slowest_mean) {
		k->slowest_mean = mean;
		k->slowest = t->ranks[k->r].rank;
		k->slowest_total_ns = k->rank_total_ns;
		k->slowest_n = k->rank_n;
	}
	k->rank_total_ns = k->rank_n = 0;
}

static enum lag_status take(const struct lag_trace *t, const struct lag_gpu_event *ev,
			    struct lag_vec *kernels, struct lag_map *map)
{
	uint64_t at, key = (uint64_t)ev->name << 8 | ev->class;
	struct kernel *k;

	if (!lag_map_find(map, key, &at)) {
		k = lag_vec_push(kernels);
		if (!k)
			return LAG_ERR_SYSTEM;
		k->name = ev->name;
		k->class = ev->class;
		k->slowest = LAG_NONE;
		k->slowest_mean = -1;
		at = kernels->n - 1;
		if (lag_failed(lag_map_set(map, key, at)))
			return LAG_ERR_SYSTEM;
	}
	k = &LAG_VEC_AT(kernels, struct kernel, at);
	if (k->rank_n && k->r != ev->r)
		close_rank(t, k);
	k->r = ev->r;
	k->rank_n++;
	k->rank_total_ns += ev->end_ns - ev->start_ns;
	k->total_ns += ev->end_ns - ev->start_ns;
	return lag_sample_add(&k->durations, ev->end_ns - ev->start_ns);
}

static int by_total(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

/* The slowest rank's mean to that of the others' launches. */
static double v_others(const struct kernel *k)
{
	double others_ns = (double)(k->total_ns - k->slowest_total_ns);
	double n = (double)((int64_t)k->durations.n - k->slowest_n);

	return others_ns > 0 ? k->slowest_mean * n / others_ns : NAN;
}

static void write_rows(const struct lag_trace *t, struct lag_vec *kernels, struct lag_table *out)
{
	static const char *const classes[] = { "compute", "communication", "copy" };
	double all = 0;

	for (size_t i = 0; i < kernels->n; i++) {
		close_rank(t, &LAG_VEC_AT(kernels, struct kernel, i));
		all += (double)LAG_VEC_AT(kernels, struct kernel, i).total_ns;
	}
	if (kernels->n)
		qsort(kernels->items, kernels->n, kernels->item_size, by_total);
	for (size_t i = 0; i < kernels->n; i++) {
		struct kernel *k = &LAG_VEC_AT(kernels, struct kernel, i);
		int64_t mean = lag_sample_mean(&k->durations);
		/* Whose communication takes longest has waited longest: that is no slowness. */
		bool compared = k->n_ranks > 1 && k->class != LAG_CLASS_COMM;

		lag_table_row(out);
		lag_table_text(out, lag_trace_text(t, k->name));
		lag_table_text(out, classes[k->class <= LAG_CLASS_COPY ? k->class : 0]);
		lag_table_int(out, (int64_t)k->durations.n);
		lag_table_int(out, k->total_ns);
		lag_table_real(out, (double)k->total_ns / all);
		lag_table_int(out, mean);
		lag_table_int(out, lag_sample_quantile(&k->durations, 0.5));
		lag_table_int(out, lag_sample_quantile(&k->durations, 0.95));
		lag_table_int(out, lag_sample_quantile(&k->durations, 1));
		lag_table_int(out, k->n_ranks);
		lag_table_int(out, compared ? k->slowest : LAG_NONE);
		lag_table_real(out, compared ? v_others(k) : NAN);
	}
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	struct lag_vec kernels = LAG_VEC_INIT(struct kernel);
	struct lag_map map = { 0 };
	enum lag_status status = LAG_OK;

	if (!steps)
		return err->status;
	for (size_t i = 0; i < t->n_gpu && !lag_failed(status); i++) {
		if (t->gpu[i].end_ns != LAG_NONE && lag_covers_gpu(ctx, steps, i) &&
		    lag_context_has_rank(ctx, t->ranks[t->gpu[i].r].rank))
			status = take(t, &t->gpu[i], &kernels, &map);
	}
	if (!lag_failed(status))
		write_rows(t, &kernels, out);
	for (size_t i = 0; i < kernels.n; i++)
		lag_sample_release(&LAG_VEC_AT(&kernels, struct kernel, i).durations);
	lag_vec_release(&kernels);
	lag_map_release(&map);
	lag_table_note(out, "sums of durations: work that overlaps counts twice here");
	lag_table_note(
		out,
		"ratio: the slowest rank's mean to that of the other ranks' launches, whatever "
		"their stage; communication has none, its longest kernel has waited longest");
	if (lag_failed(status))
		return lag_err_set(err, status, "kernels: no memory");
	return LAG_OK;
}

const struct lag_analysis lag_analysis_kernels = {
	.name = "kernels",
	.summary = "GPU time by kernel",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};
