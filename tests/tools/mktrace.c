/* SPDX-License-Identifier: Apache-2.0 */
/* mktrace: simulates a training run in virtual time, with any number of ranks, and writes its traces
 * and truth.json. The same options give the same bytes. */
#include "tests/tools/mkt_emit.h"
#include "tests/tools/mkt_truth.h"

#include <inttypes.h>
#include <string.h>

static enum lag_status simulate(struct mkt_run *run, struct mkt_truth *truth, struct mkt_writer *w,
				struct lag_err *err)
{
	for (int s = 0; s < run->opt->steps; s++) {
		enum lag_status st = mkt_run_step(run, err);
		if (!lag_failed(st) && w)
			st = mkt_writer_step(w, run, err);
		if (!lag_failed(st) && mkt_truth_add(truth, run))
			st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
		if (lag_failed(st))
			return st;
	}
	return LAG_OK;
}

/* The same draws without what was injected. */
static enum lag_status simulate_clean(const struct mkt_options *opt, struct mkt_truth *truth,
				      struct lag_err *err)
{
	struct mkt_run run;
	enum lag_status st = mkt_run_init(&run, opt, false, err);
	if (!lag_failed(st))
		st = simulate(&run, truth, NULL, err);
	mkt_run_release(&run);
	return st;
}

int main(int argc, char **argv)
{
	struct mkt_options opt;
	struct mkt_run run;
	struct mkt_truth truth, clean;
	struct mkt_writer *w = NULL;
	struct lag_err err = { LAG_OK, "" };
	int rc = mkt_options_read(&opt, argc, argv);
	if (rc >= 0)
		return rc;
	mkt_truth_init(&truth);
	mkt_truth_init(&clean);
	enum lag_status st = mkt_run_init(&run, &opt, true, &err);
	if (!lag_failed(st))
		st = mkt_writer_open(&run, &w, &err);
	if (!lag_failed(st))
		st = simulate(&run, &truth, w, &err);
	uint64_t n = mkt_writer_close(w, &run);
	if (!lag_failed(st) && opt.n_faults > 0)
		st = simulate_clean(&opt, &clean, &err);
	if (!lag_failed(st))
		st = mkt_truth_write(&truth, opt.n_faults > 0 ? &clean : &truth, &run, &err);
	if (lag_failed(st)) {
		fprintf(stderr, "mktrace: %s\n", err.text);
	} else {
		printf("%" PRIu64 " records, %d ranks, %d steps\n", n, run.n_ranks, opt.steps);
	}
	mkt_truth_release(&truth);
	mkt_truth_release(&clean);
	mkt_run_release(&run);
	return lag_failed(st) ? 1 : 0;
}
