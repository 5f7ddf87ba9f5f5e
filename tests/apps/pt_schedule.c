/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of a stage's forwards and backwards, and the neighbours that each exchanges with. */
#include "tests/apps/pt_schedule.h"

int pt_schedule_size(const struct pt_options *opt)
{
	return 2 * opt->microbatches * opt->chunks;
}

/* The k-th forward (or backward) of any stage: rounds of pp microbatches, chunk by chunk; the
 * backward takes the chunks from the last to the first. With one chunk this is k itself. */
static struct pt_act nth(const struct pt_options *opt, int k, bool backward)
{
	if (opt->chunks == 1)
		return (struct pt_act){ .backward = backward, .mb = k };
	int round = opt->pp * opt->chunks;
	int chunk = k % round / opt->pp;
	return (struct pt_act){ .backward = backward,
				.chunk = backward ? opt->chunks - 1 - chunk : chunk,
				.mb = k / round * opt->pp + k % opt->pp };
}

static int warmup(const struct pt_options *opt, int stage)
{
	int total = opt->microbatches * opt->chunks;
	int n = total;
	if (opt->order == PT_1F1B)
		n = opt->pp - 1 - stage;
	else if (opt->order == PT_INTERLEAVED)
		n = 2 * (opt->pp - 1 - stage) + (opt->chunks - 1) * opt->pp;
	return n < total ? n : total;
}

void pt_schedule_fill(const struct pt_options *opt, int stage, struct pt_act *acts)
{
	int total = opt->microbatches * opt->chunks;
	int warm = warmup(opt, stage);
	int n = 0;
	for (int k = 0; k < warm; k++)
		acts[n++] = nth(opt, k, false);
	for (int k = 0; k < total - warm; k++) {
		acts[n++] = nth(opt, warm + k, false);
		acts[n++] = nth(opt, k, true);
	}
	for (int k = total - warm; k < total; k++)
		acts[n++] = nth(opt, k, true);
}

/* Position along the model, counted in chunks: chunk c of stage s is part c x pp + s. */
static int neighbour(const struct pt_options *opt, int stage, struct pt_act act, int step)
{
	int part = act.chunk * opt->pp + stage + step;
	if (part < 0 || part >= opt->pp * opt->chunks)
		return -1;
	return part % opt->pp;
}

int pt_act_source(const struct pt_options *opt, int stage, struct pt_act act)
{
	return neighbour(opt, stage, act, act.backward ? 1 : -1);
}

int pt_act_target(const struct pt_options *opt, int stage, struct pt_act act)
{
	return neighbour(opt, stage, act, act.backward ? -1 : 1);
}

int pt_act_slot(const struct pt_options *opt, struct pt_act act)
{
	return act.chunk * opt->microbatches + act.mb;
}
