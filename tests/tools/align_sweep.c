/* SPDX-License-Identifier: Apache-2.0 */
/* Clock alignment over many seeds: per scenario the coverage of the stated uncertainty, the error's
 * 95th percentile, the median statement, silence where the data cannot tell, and bounds that were
 * broken. Arguments: seeds (default 100), part of a scenario's name. Ends with 1 where less than 99 %
 * are covered, the median statement is beyond 3 times the error's 95th percentile (95 % and 4 times with
 * a handful of seeds, which share their errors), a bound does not hold, or something is claimed that the
 * data do not say. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/align_lab.h"

enum {
	HANDFUL = 20
};

struct scenario {
	const char *name;
	void (*set)(struct lag_lab_opts *o);
	int fewer; /* seeds are divided by this: large runs */
};

static void plain(struct lag_lab_opts *o)
{
	o->straggler = o->seed % 2;
}

static void long_run(struct lag_lab_opts *o)
{
	o->straggler = o->seed % 2;
	o->steps = 80;
	o->step_ms = 200;
	o->drift_ppm = 20;
}

static void rare_world(struct lag_lab_opts *o)
{
	o->world_every = 5;
	o->straggler = o->seed % 2;
}

static void messages_only(struct lag_lab_opts *o)
{
	o->world_every = 0;
}

static void late(struct lag_lab_opts *o)
{
	o->world_every = 0;
	o->late_receivers = true;
}

static void coarse_devices(struct lag_lab_opts *o)
{
	o->device_us = 20;
	o->step_us = 13;
}

static void own_brackets(struct lag_lab_opts *o)
{
	o->device_us = 30;
	o->own_brackets = true;
}

static void slow_hops(struct lag_lab_opts *o)
{
	o->hop_us = 25;
	o->straggler = true;
}

static void clock_set(struct lag_lab_opts *o)
{
	o->set_clock_ms = 5;
}

static void one_rank_hosts(struct lag_lab_opts *o)
{
	o->hosts = 8;
	o->per_host = 1;
}

static void collectives_only(struct lag_lab_opts *o)
{
	o->no_messages = true;
	o->straggler = o->seed % 2;
}

static void slow_one_way(struct lag_lab_opts *o)
{
	o->slow_way = 3;
	o->straggler = o->seed % 2;
}

static void slow_one_way_alone(struct lag_lab_opts *o)
{
	o->slow_way = 3;
	o->world_every = 0;
}

static void chain_of_pairs(struct lag_lab_opts *o)
{
	o->shape = LAG_LAB_NEIGHBOURS;
	o->no_messages = true;
	o->hosts = 6;
	o->step_ms = 160;
}

static void tensor_inside(struct lag_lab_opts *o)
{
	o->shape = LAG_LAB_DP_ACROSS;
	o->hosts = 8;
	o->per_host = 4;
	o->microbatches = 4;
	o->straggler = o->seed % 2;
}

static void long_chain(struct lag_lab_opts *o)
{
	o->world_every = 0;
	o->hosts = 12;
	o->step_ms = 300;
	o->microbatches = 6;
}

static void two_parts(struct lag_lab_opts *o)
{
	o->shape = LAG_LAB_HALVES;
	o->hosts = 6;
}

static void two_parts_of_one_time(struct lag_lab_opts *o)
{
	two_parts(o);
	o->state_error_ms = o->offset_ms = 0.5;
	o->drift_ppm = 5;
	o->state_some = o->seed % 2;
}

static void one_way(struct lag_lab_opts *o)
{
	o->one_way = true;
	o->world_every = 0;
}

static void rate_changes(struct lag_lab_opts *o)
{
	o->steps = 80;
	o->n_bends = 1 + (int)(o->seed % 3);
	o->bend_ppm = 100;
	o->straggler = o->seed % 2;
}

static void rate_changes_alone(struct lag_lab_opts *o)
{
	rate_changes(o);
	o->no_messages = true;
	o->no_brackets = true;
}

static void rate_changes_chain(struct lag_lab_opts *o)
{
	rate_changes(o);
	o->world_every = 0;
}

static void rate_swings(struct lag_lab_opts *o)
{
	o->steps = 100;
	o->step_ms = 400;
	o->drift_ppm = 20;
	o->wave_ppm = 4;
	o->microbatches = 4;
}

static void set_unseen(struct lag_lab_opts *o)
{
	o->set_clock_ms = 0.3 + (double)(o->seed % 7);
	o->no_brackets = true;
	o->steps = 40;
	o->set_host = 1 + (uint32_t)(o->seed % (o->hosts - 1));
}

static void reference_set_unseen(struct lag_lab_opts *o)
{
	set_unseen(o);
	o->set_host = 0;
}

static void set_in_pairs(struct lag_lab_opts *o)
{
	o->hosts = 2;
	o->per_host = 4;
	o->no_messages = true;
	set_unseen(o);
}

static void tree_ends(struct lag_lab_opts *o)
{
	o->spread = LAG_LAB_TREE;
	o->straggler = o->seed % 2;
}

static void ordered_ends(struct lag_lab_opts *o)
{
	o->spread = LAG_LAB_ORDERED;
}

static void ordered_ends_alone(struct lag_lab_opts *o)
{
	o->spread = LAG_LAB_ORDERED;
	o->no_messages = true;
	o->straggler = o->seed % 2;
}

static void ordered_single(struct lag_lab_opts *o)
{
	ordered_ends_alone(o);
	o->hosts = 8;
	o->per_host = 1;
}

static void thinned(struct lag_lab_opts *o)
{
	o->thin = 2 + (int)(o->seed % 6);
	o->steps = 40;
}

static void rank_lost(struct lag_lab_opts *o)
{
	o->lose_rank = true;
}

static void rank_cut(struct lag_lab_opts *o)
{
	o->cut_rank = true;
	o->steps = 40;
}

static void short_run(struct lag_lab_opts *o)
{
	o->steps = 2 + (int)(o->seed % 3);
	o->microbatches = 4;
}

static void short_alone(struct lag_lab_opts *o)
{
	short_run(o);
	o->no_messages = true;
}

static void two_hosts(struct lag_lab_opts *o)
{
	o->hosts = 2;
	o->per_host = 8;
	o->no_messages = o->seed % 2;
}

static void many_hosts(struct lag_lab_opts *o)
{
	o->hosts = 32;
	o->per_host = 2;
	o->steps = 12;
	o->microbatches = 2;
	o->step_ms = 250;
	o->n_bends = o->seed % 2 ? 1 : 0;
	o->bend_ppm = 60;
}

static const struct scenario scenarios[] = {
	{ "plain", plain, 1 },
	{ "long", long_run, 1 },
	{ "rare world", rare_world, 1 },
	{ "messages only", messages_only, 1 },
	{ "late receivers", late, 1 },
	{ "coarse devices", coarse_devices, 1 },
	{ "own brackets", own_brackets, 1 },
	{ "slow hops", slow_hops, 1 },
	{ "clock set", clock_set, 1 },
	{ "collectives only", collectives_only, 1 },
	{ "slow one way", slow_one_way, 1 },
	{ "the same alone", slow_one_way_alone, 1 },
	{ "one rank a host", one_rank_hosts, 1 },
	{ "chain of pairs", chain_of_pairs, 1 },
	{ "tensor inside", tensor_inside, 1 },
	{ "long chain", long_chain, 2 },
	{ "two parts", two_parts, 1 },
	{ "two of one time", two_parts_of_one_time, 1 },
	{ "one way", one_way, 1 },
	{ "rate changes", rate_changes, 2 },
	{ "  alone", rate_changes_alone, 1 },
	{ "  in a chain", rate_changes_chain, 2 },
	{ "rate swings", rate_swings, 2 },
	{ "set unseen", set_unseen, 1 },
	{ "  the reference", reference_set_unseen, 1 },
	{ "  two hosts", set_in_pairs, 1 },
	{ "tree ends", tree_ends, 1 },
	{ "ordered ends", ordered_ends, 1 },
	{ "  alone", ordered_ends_alone, 1 },
	{ "  one rank a host", ordered_single, 1 },
	{ "thinned", thinned, 1 },
	{ "rank lost", rank_lost, 1 },
	{ "rank cut", rank_cut, 1 },
	{ "short", short_run, 1 },
	{ "  alone", short_alone, 1 },
	{ "two hosts", two_hosts, 1 },
	{ "32 hosts", many_hosts, 10 },
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static bool judge(const struct scenario *sc, struct lag_lab_score *score, uint64_t seeds)
{
	double p95 = lag_lab_quantile(&score->errors, 0.95);
	double stated = lag_lab_quantile(&score->stated, 0.5);
	double covered = score->n ? 100.0 * (double)score->covered / (double)score->n : 100;
	bool few = seeds < HANDFUL;
	bool good = score->n + score->n_silent > 0 && covered >= (few ? 95 : 99) &&
		    stated <= (few ? 4 : 3) * p95 && score->outside == 0 &&
		    score->right == score->n_silent;
	printf("%-18s %4llu  covered %7.3f %%  error p50 %7.1f p95 %7.1f max %7.1f  stated %7.1f "
	       "us (%4.2f)  outside %zu/%zu  silent %zu/%zu%s\n",
	       sc->name, (unsigned long long)seeds, covered,
	       lag_lab_quantile(&score->errors, 0.5) / 1e3, p95 / 1e3,
	       lag_lab_quantile(&score->errors, 1) / 1e3, stated / 1e3, p95 > 0 ? stated / p95 : 0,
	       score->outside, score->n_bounds, score->right, score->n_silent,
	       good ? "" : "  FAILED");
	return good;
}

static bool run(const struct scenario *sc, uint64_t seeds)
{
	struct lag_lab_score score;
	struct lag_err err;
	lag_lab_score_init(&score);
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct lag_lab lab;
		struct lag_align_result res;
		struct lag_lab_opts o = lag_lab_defaults(seed);
		sc->set(&o);
		lag_lab_make(&lab, &o);
		if (lag_aligner_collective.align(&lab.in, &res, &err) != LAG_OK) {
			fprintf(stderr, "%s: seed %llu: %s\n", sc->name, (unsigned long long)seed,
				err.text);
			return false;
		}
		lag_lab_judge(&lab, &res, &score);
		lag_align_release(&res);
		lag_lab_release(&lab);
	}
	bool good = judge(sc, &score, seeds);
	lag_lab_score_release(&score);
	return good;
}

/* A process a core; each takes the next scenario that nobody has. */
static int work(atomic_size_t *next, uint64_t seeds, const char *part)
{
	int rc = 0;
	for (size_t i = atomic_fetch_add(next, 1); i < N_SCENARIOS; i = atomic_fetch_add(next, 1)) {
		uint64_t n =
			(seeds + (uint64_t)scenarios[i].fewer - 1) / (uint64_t)scenarios[i].fewer;
		if (!part || strstr(scenarios[i].name, part))
			rc |= !run(&scenarios[i], n);
	}
	return rc;
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
	const char *part = argc > 2 ? argv[2] : NULL;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int rc = 0;
	atomic_size_t *next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (next == MAP_FAILED)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (long i = 0; i < cores; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 1;
		if (pid == 0)
			exit(work(next, seeds, part));
	}
	for (int status; wait(&status) > 0;)
		rc |= !WIFEXITED(status) || WEXITSTATUS(status);
	return rc;
}
