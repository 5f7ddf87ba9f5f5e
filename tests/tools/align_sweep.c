/* SPDX-License-Identifier: Apache-2.0 */
/* Clock alignment over many seeds: per scenario the coverage of the stated uncertainty, the error's
 * 95th percentile, the median statement, and bounds that were broken. Argument: seeds (default 200).
 * Ends with 1 where less than 99 % are covered or a bound does not hold. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/align_lab.h"

struct scenario {
	const char *name;
	void (*set)(struct lag_lab_opts *o);
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

static const struct scenario scenarios[] = {
	{ "plain", plain },
	{ "long", long_run },
	{ "rare world", rare_world },
	{ "messages only", messages_only },
	{ "late receivers", late },
	{ "coarse devices", coarse_devices },
	{ "own brackets", own_brackets },
	{ "slow hops", slow_hops },
	{ "clock set", clock_set },
	{ "collectives only", collectives_only },
	{ "slow one way", slow_one_way },
	{ "the same alone", slow_one_way_alone },
	{ "one rank a host", one_rank_hosts },
};

static int run(const struct scenario *sc, uint64_t seeds)
{
	struct lag_lab_score score;
	struct lag_err err;
	uint64_t violations = 0;
	uint64_t pairs = 0;
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
			return 1;
		}
		lag_lab_judge(&lab, &res, &score);
		violations += res.n_violations;
		pairs += res.n_pairs;
		lag_align_release(&res);
		lag_lab_release(&lab);
	}
	printf("%-16s covered %7.3f %%  error p50 %7.1f p95 %7.1f p99.9 %7.1f us  "
	       "stated median %7.1f us  outside %zu of %zu  violations %.4f %%\n",
	       sc->name, 100.0 * (double)score.covered / (double)score.n,
	       lag_lab_quantile(&score.errors, 0.5) / 1e3,
	       lag_lab_quantile(&score.errors, 0.95) / 1e3,
	       lag_lab_quantile(&score.errors, 0.999) / 1e3,
	       lag_lab_quantile(&score.stated, 0.5) / 1e3, score.outside, score.n_bounds,
	       pairs ? 100.0 * (double)violations / (double)pairs : 0.0);
	bool good = 100 * score.covered >= 99 * score.n && score.outside == 0;
	lag_lab_score_release(&score);
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
	int rc = 0;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		rc |= run(&scenarios[i], seeds);
	return rc;
}
