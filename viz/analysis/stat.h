/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of small samples, and what several analyses ask of a context in the same way. */
#ifndef VIZ_ANALYSIS_STAT_H
#define VIZ_ANALYSIS_STAT_H

#include "viz/model/context.h"
#include "viz/model/table.h"

/* Values that grow one by one. Zero-initialise; release when done. */
struct lag_sample {
	int64_t *at;
	size_t n, cap;
	bool sorted;
};

enum lag_status lag_sample_add(struct lag_sample *sample, int64_t value) LAG_MUST_USE;
void lag_sample_release(struct lag_sample *sample);

/* The smallest value with at least share q of the sample at or below it; LAG_NONE when empty. Sorts. */
int64_t lag_sample_quantile(struct lag_sample *sample, double q);
int64_t lag_sample_mean(const struct lag_sample *sample); /* rounded; LAG_NONE when empty */

/* Same for reals: sorts at[0..n). NaN when empty. */
double lag_median_real(double *at, size_t n);

/* Steps that reports cover and statistics may use: chosen, and whole on every recorded rank. Steps
 * without any complete one: all chosen (a step cut off is better than none). counts[s] says which. */
enum lag_status lag_steps_chosen(const struct lag_context *ctx, const struct lag_steps *steps,
				 bool **counts, size_t *n, struct lag_err *err) LAG_MUST_USE;

/* The same of the whole run, whatever was chosen. */
enum lag_status lag_steps_whole(const struct lag_steps *steps, bool **counts, size_t *n,
				struct lag_err *err) LAG_MUST_USE;

/* Whether a GPU event is part of the report: its step is chosen, or no steps were asked for. */
bool lag_covers_gpu(const struct lag_context *ctx, const struct lag_steps *steps, size_t gpu);
bool lag_covers_launch(const struct lag_context *ctx, const struct lag_steps *steps, size_t launch);

/* Exposed transfer of rank index r in the steps that count whose waiting could not be told apart. */
int64_t lag_unsplit_ns(const struct lag_steps *steps, const struct lag_waits *waits,
		       const struct lag_ledger *ledger, const bool *counts, size_t r);

/* A note that ranks lost records, where some did: what they did is more than what the table shows. */
void lag_note_losses(const struct lag_context *ctx, struct lag_table *out);

/* Mean over recorded ranks of their spans of the step; LAG_NONE when none has one. */
int64_t lag_step_length(const struct lag_steps *steps, size_t step);

#endif
