/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts over many seeds: straggler_sweep SEEDS CLEAN. SEEDS runs with one slow rank each (x1.3, then
 * x1.1), CLEAN runs without a fault, and a few of every other kind. Prints what is wrong, and figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/mkt_memory.h"
#include "viz/model/context.h"

enum {
	ARGS_MAX = 40
};

struct tally {
	int n_bad, n_costs, n_within;
	double *errors;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Options from a line of words, for one seed. */
static struct mkt_options options(const char *line, int seed)
{
	struct mkt_options opt;
	char text[512], self[] = "sweep", *argv[ARGS_MAX] = { self };
	int argc = 1;

	(void)snprintf(text, sizeof(text), "--out none %s", line);
	for (char *word = strtok(text, " "); word && argc < ARGS_MAX - 1; word = strtok(NULL, " "))
		argv[argc++] = word;
	if (mkt_options_read(&opt, argc, argv) >= 0)
		exit(2);
	opt.seed = (uint64_t)seed;
	opt.out = "none";
	return opt;
}

static void must(enum lag_status status, const struct lag_err *err)
{
	if (!lag_failed(status))
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

static struct lag_context *run(const struct mkt_options *opt, bool faults, int64_t *step_ns)
{
	struct lag_trace *trace;
	struct lag_context *ctx;
	struct lag_err err;

	must(mkt_memory_trace(opt, faults, &trace, step_ns, &err), &err);
	must(lag_context_new(trace, NULL, &ctx, &err), &err);
	return ctx;
}

static const struct lag_stragglers *judge(struct lag_context *ctx)
{
	struct lag_err err;
	const struct lag_stragglers *s = lag_context_stragglers(ctx, &err);

	if (!s)
		must(err.status, &err);
	return s;
}

/* Every rank but `expected` (-1: none may) must not be accused. */
static void check_others(const struct lag_stragglers *s, int expected, const char *what, int seed,
			 struct tally *t)
{
	for (size_t r = 0; r < s->n_ranks; r++) {
		if ((int)r == expected || !lag_verdict_accuses(s->ranks[r].verdict))
			continue;
		printf("%s, seed %d: accuses rank %zu (%s, %s, x%.3f)\n", what, seed, r,
		       lag_verdict_name(s->ranks[r].verdict), lag_cause_name(s->ranks[r].cause),
		       s->ranks[r].ratio);
		t->n_bad++;
	}
}

/* One rank slowed in all steps: named, chronic, its GPU, at what it costs. */
static void slow_run(const char *line, double factor, int seed, struct tally *t)
{
	struct mkt_options opt = options(line, seed);
	int slow = (int)((unsigned)seed * 7919u % (unsigned)mkt_n_ranks(&opt));
	const struct lag_straggler *s;
	struct lag_context *ctx;
	int64_t with_ns, without_ns;

	opt.faults[opt.n_faults++] = (struct mkt_fault){
		.kind = MKT_SLOW, .a = slow, .until = INT64_MAX, .factor = factor
	};
	lag_context_free(run(&opt, false, &without_ns));
	ctx = run(&opt, true, &with_ns);
	s = &judge(ctx)->ranks[slow];
	if (s->verdict != LAG_VERDICT_CHRONIC || s->cause != LAG_CAUSE_GPU) {
		printf("x%.1f, seed %d: rank %d is %s, x%.3f\n", factor, seed, slow,
		       lag_verdict_name(s->verdict), s->ratio);
		t->n_bad++;
	} else {
		double error = fabs((double)s->step_cost_ns / (double)(with_ns - without_ns) - 1);

		t->errors[t->n_costs++] = error;
		t->n_within += error <= 0.1;
	}
	check_others(judge(ctx), slow, "slow rank", seed, t);
	lag_context_free(ctx);
}

/* How exact a cost can be: a GPU's own deviation from its peers cannot be told from the fault. */
static void slow_runs(const char *line, double factor, int n, double within, struct tally *t)
{
	t->n_costs = t->n_within = 0;
	for (int seed = 1; seed <= n; seed++)
		slow_run(line, factor, seed, t);
	if (t->n_costs == 0)
		return;
	qsort(t->errors, (size_t)t->n_costs, sizeof(*t->errors), by_value);
	printf("x%.1f, %s: cost off by %.1f %% (median), %.1f %% (90th percentile); within 10 %%: "
	       "%d of "
	       "%d\n",
	       factor, line, 100 * t->errors[t->n_costs / 2], 100 * t->errors[t->n_costs * 9 / 10],
	       t->n_within, t->n_costs);
	if (t->n_within < within * t->n_costs) {
		printf("too few costs within 10 %%\n");
		t->n_bad++;
	}
}

static void clean_runs(const char *line, int n, struct tally *t)
{
	int before = t->n_bad;

	for (int seed = 1001; seed < 1001 + n; seed++) {
		struct mkt_options opt = options(line, seed);
		struct lag_context *ctx = run(&opt, true, NULL);

		check_others(judge(ctx), -1, line, seed, t);
		lag_context_free(ctx);
	}
	printf("clean, %s: %d runs, %d accusations\n", line, n, t->n_bad - before);
}

static void expect(const char *line, int rank, enum lag_verdict verdict, enum lag_cause cause,
		   struct tally *t)
{
	for (int seed = 1; seed <= 3; seed++) {
		struct mkt_options opt = options(line, seed);
		struct lag_context *ctx = run(&opt, true, NULL);
		const struct lag_straggler *s = &judge(ctx)->ranks[rank];

		if (s->verdict != verdict || s->cause != cause) {
			printf("%s, seed %d: rank %d is %s (%s)\n", line, seed, rank,
			       lag_verdict_name(s->verdict),
			       s->cause ? lag_cause_name(s->cause) : "no cause");
			t->n_bad++;
		}
		lag_context_free(ctx);
	}
}

int main(int argc, char **argv)
{
	const char *shape = "--pp 4 --dp 2 --steps 20 --microbatches 4";
	int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 3;
	int n_clean = argc > 2 ? (int)strtol(argv[2], NULL, 10) : n;
	struct tally t = { 0 };

	if (n < 1)
		return 2;
	t.errors = calloc((size_t)n + 1, sizeof(*t.errors));
	if (!t.errors)
		return 2;
	slow_runs(shape, 1.3, n, 0.95, &t);
	slow_runs(shape, 1.1, n, 0.7, &t);
	/* Without differences between GPUs nothing hides the fault's cost. */
	slow_runs("--pp 4 --dp 2 --steps 20 --microbatches 4 --gpu-sigma 0", 1.1, n, 1, &t);
	slow_runs("--pp 2 --dp 4 --tp 2 --steps 20 --microbatches 2 --no-nvtx", 1.3, (n + 4) / 5,
		  0.9, &t);
	clean_runs(shape, n_clean, &t);
	clean_runs("--pp 4 --dp 2 --steps 20 --microbatches 4 --seq-sigma 0.2 --layers 4,4,6,4",
		   (n_clean + 4) / 5, &t);
	expect("--pp 4 --dp 1 --steps 20 --slow 2:1.3", 2, LAG_VERDICT_CANNOT_TELL, LAG_CAUSE_NONE,
	       &t);
	expect("--pp 2 --dp 2 --steps 20 --slow 1:1.3 --missing 2", 1, LAG_VERDICT_CHRONIC,
	       LAG_CAUSE_GPU, &t);
	expect("--pp 2 --dp 2 --steps 20 --stall 3:7:80", 3, LAG_VERDICT_ONE_OFF, LAG_CAUSE_HOST,
	       &t);
	expect("--pp 2 --dp 4 --steps 20 --slow 3:1.5:4:12", 3, LAG_VERDICT_ROTATING, LAG_CAUSE_GPU,
	       &t);
	expect("--pp 2 --dp 4 --steps 20 --slow-data 1:1.5", 1, LAG_VERDICT_CHRONIC, LAG_CAUSE_DATA,
	       &t);
	free(t.errors);
	printf("%d wrong\n", t.n_bad);
	return t.n_bad != 0;
}
