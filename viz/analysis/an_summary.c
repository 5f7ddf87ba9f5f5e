/* SPDX-License-Identifier: Apache-2.0 */
/* One page: how long a step is, where its time goes, who is late and what fixing that wins, and whether
 * this can be trusted. A page is a table in sections; renderers lay it out as such. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/analysis/findings.h"
#include "viz/analysis/stat.h"

#define FINDINGS_SHOWN 12

static const struct lag_column columns[] = {
	{ "section", "", LAG_UNIT_TEXT, NULL },
	{ "item", "", LAG_UNIT_TEXT, NULL },
	{ "text", "", LAG_UNIT_TEXT, NULL },
	{ "value_ns", "", LAG_UNIT_NS, "step; of a finding: what fixing it wins" },
	{ "share", "", LAG_UNIT_SHARE, "step" },
	{ "rank", "", LAG_UNIT_ID, NULL },
};

static void row(struct lag_table *out, const char *section, const char *item, const char *text,
		int64_t ns, double share)
{
	lag_table_row(out);
	lag_table_text(out, section);
	lag_table_text(out, item);
	lag_table_text(out, text);
	lag_table_int(out, ns);
	lag_table_real(out, share);
	lag_table_null(out);
}

static void run_rows(struct lag_context *ctx, const struct lag_steps *steps,
		     const struct lag_roles *roles, const struct lag_pipeline *pipeline,
		     struct lag_table *out)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	struct lag_buf text = { 0 };
	size_t recorded = 0, whole = 0;

	for (size_t r = 0; r < t->n_ranks; r++)
		recorded += t->ranks[r].recorded;
	if (recorded < t->n_ranks) {
		lag_buf_printf(&text, "%zu of %zu ranks recorded", recorded, t->n_ranks);
	} else {
		lag_buf_printf(&text, "%zu rank%s", recorded, LAG_PLURAL(recorded, "", "s"));
	}
	lag_buf_printf(&text, ", %zu host%s", t->n_hosts, LAG_PLURAL(t->n_hosts, "", "s"));
	if (recorded > 1) {
		lag_buf_printf(&text, ", %s%s", strcmp(roles->shape, "unsure") ? "" : "layout ",
			       roles->shape);
	}
	if (pipeline->n_groups && pipeline->groups[0].schedule != LAG_SCHEDULE_UNKNOWN) {
		lag_buf_printf(&text, ", %s m=%d", lag_schedule_name(pipeline->groups[0].schedule),
			       pipeline->groups[0].n_microbatches);
	}
	for (size_t s = 0; s < steps->n_steps; s++)
		whole += steps->steps[s].complete;
	lag_buf_printf(&text, ", %zu step%s", steps->n_steps, LAG_PLURAL(steps->n_steps, "", "s"));
	if (whole < steps->n_steps) {
		lag_buf_printf(&text, ", %zu of them whole%s", whole,
			       whole ? "" : " (all are counted)");
	}
	row(out, "run", "shape", lag_buf_text(&text), LAG_NONE, NAN);
	row(out, "run", "steps_from", steps->label, LAG_NONE, NAN);
	lag_buf_release(&text);
}

static enum lag_status step_rows(struct lag_context *ctx, const struct lag_steps *steps,
				 const struct lag_mean_step *mean, int64_t gain_ns,
				 struct lag_table *out, struct lag_err *err)
{
	struct lag_sample lengths = { 0 };
	bool *counts = NULL;
	size_t n = 0;
	enum lag_status status = lag_steps_chosen(ctx, steps, &counts, &n, err);

	for (size_t s = 0; !lag_failed(status) && s < steps->n_steps; s++) {
		if (counts[s] && lag_step_length(steps, s) != LAG_NONE)
			status = lag_sample_add(&lengths, lag_step_length(steps, s));
	}
	if (!lag_failed(status)) {
		row(out, "step", "mean",
		    mean->n ? "mean step" : "mean step: no GPU work in a step is on record",
		    mean->n ? llround(mean->step_ns) : LAG_NONE, NAN);
		if (lengths.n > 1) {
			row(out, "step", "p50", "median", lag_sample_quantile(&lengths, 0.5), NAN);
			row(out, "step", "p5", "5th percentile",
			    lag_sample_quantile(&lengths, 0.05), NAN);
			row(out, "step", "p95", "95th percentile",
			    lag_sample_quantile(&lengths, 0.95), NAN);
		}
		/* The replay's own step also holds what lies between steps: only its gain compares. It
		 * is one of the whole run. */
		if (gain_ns != LAG_NONE && mean->n && lag_context_has_all_steps(ctx)) {
			row(out, "step", "without_stragglers", "without stragglers",
			    llround(mean->step_ns) - gain_ns, NAN);
		}
	}
	free(counts);
	lag_sample_release(&lengths);
	return lag_failed(status) ? lag_err_set(err, status, "summary: no memory") : LAG_OK;
}

#define UNSPLIT_TELLS 0.001 /* of the step: what may hold waiting is said from here on */

/* What is not told of a class stands behind its title. */
static void class_text(enum lag_time_class class, const struct lag_mean_step *mean,
		       const struct lag_findings *findings, char text[160])
{
	const char *title = lag_time_class_title(class), *more = "";
	bool unsplit = mean->unsplit_ns > UNSPLIT_TELLS * mean->step_ns;

	if (mean->n && mean->n_told[class] == 0) {
		more = " (not on record)";

	} else if (class == LAG_TIME_EXPOSED_WAIT && unsplit) {
		/* Without every member's record waiting is a lower bound, what is left of the kernel
		 * an upper one of the transfer. */
		more = mean->of[class] > 0 ? ", at least" : " (not told from transfer)";

	} else if (class == LAG_TIME_EXPOSED_TRANSFER && unsplit) {

		more = ", at most";
	} else if (mean->n_told[class] < mean->n ||
		   (class == LAG_TIME_BUBBLE && findings->withheld[0])) {

		more = ", at least";

	} else if (class == LAG_TIME_BUBBLE && isfinite(findings->bubble_ideal)) {
		(void)snprintf(text, 160, "%s (ideal %.1f %%, excess %.1f %%)", title,
			       findings->bubble_ideal * 100,
			       (mean->of[class] / mean->step_ns - findings->bubble_ideal) * 100);
		return;
	}

	(void)snprintf(text, 160, "%s%s", title, more);
}

static void time_rows(const struct lag_mean_step *mean, const struct lag_findings *findings,
		      bool has_pipeline, struct lag_table *out)
{
	char text[160];

	/* Of nothing there are no parts. */
	for (int c = 0; c < LAG_TIME_LIMIT && mean->n; c++) {
		enum lag_time_class class = (enum lag_time_class)c;
		bool known = mean->n_told[c] > 0;

		if (class == LAG_TIME_BUBBLE && !has_pipeline)
			continue;
		if (class == LAG_TIME_EXPOSED_WAIT && mean->of[c] <= 0 &&
		    mean->unsplit_ns > UNSPLIT_TELLS * mean->step_ns)
			known = false;
		class_text(class, mean, findings, text);
		row(out, "time", lag_time_class_name(class), text,
		    known ? llround(mean->of[c]) : LAG_NONE,
		    known && mean->step_ns > 0 ? mean->of[c] / mean->step_ns : NAN);
	}
}

/* Nobody is accused: of what that is true. */
static void nobody_row(const struct lag_findings *f, struct lag_table *out)
{
	char text[256];

	if (f->n_compared == 0) {
		row(out, "finding", "not_compared",
		    "no rank has a peer that does the same work: none could be compared", LAG_NONE,
		    NAN);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "no rank is slow: the slowest, rank %lld, is %.2fx its peers; slow is from "
		       "%.2fx on",
		       (long long)f->most_rank, f->most_ratio, f->slow_from);
	row(out, "finding", "nobody_late", text, LAG_NONE, NAN);
}

static void finding_rows(const struct lag_trace *t, const struct lag_findings *findings,
			 struct lag_table *out)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "who made others wait, and at what cost, is withheld: %s",
		       findings->withheld);
	for (size_t i = 0; i < findings->found.n && i < FINDINGS_SHOWN; i++) {
		const struct lag_found *f = &LAG_VEC_AT(&findings->found, struct lag_found, i);

		lag_table_row(out);
		lag_table_text(out, "finding");
		lag_table_text(out, f->item);
		lag_table_text(out, f->text);
		lag_table_int(out, f->gain_ns);
		lag_table_real(out, f->share);
		lag_table_int(out, f->rank);
	}
	if (t->n_ranks == 1) {
		row(out, "finding", "one_rank",
		    "one rank's trace: where its own time goes, not whom it waited for", LAG_NONE,
		    NAN);
	} else if (findings->withheld[0]) {
		row(out, "finding", "withheld", text, LAG_NONE, NAN);
	} else if (!findings->accuses && !findings->unsure) {
		nobody_row(findings, out);
	}
}

/* Worst clock error of the recorded ranks, and everything that `trust` warns of. */
static enum lag_status trust_rows(struct lag_context *ctx, struct lag_table *out,
				  struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	struct lag_table trust;
	struct lag_buf text = { 0 };
	int64_t clock_ns = lag_trace_clock_error(t);
	size_t said = 0;
	enum lag_status status = lag_analysis_run(&lag_analysis_trust, ctx, &trust, err);

	if (lag_failed(status)) {
		lag_table_release(&trust);
		return status;
	}
	if (clock_ns != LAG_NONE) {
		row(out, "trust", "clock", "clock error of a rank, at most", clock_ns, NAN);
	} else if (lag_trace_n_recorded(t) > 1) {
		row(out, "trust", "clock", "clock error of the ranks: not known", LAG_NONE, NAN);
	}
	for (size_t i = 0; i < trust.n_rows; i++) {
		const struct lag_cell *severity = lag_table_cell(&trust, i, 0);
		const struct lag_cell *rank = lag_table_cell(&trust, i, 2);

		if (!strcmp(severity->text, "note") || said++ >= FINDINGS_SHOWN)
			continue;
		lag_buf_clear(&text);
		if (!rank->null)
			lag_buf_printf(&text, "rank %lld: ", (long long)rank->i);
		lag_buf_puts(&text, lag_table_cell(&trust, i, 4)->text);
		row(out, "trust", lag_table_cell(&trust, i, 1)->text, lag_buf_text(&text), LAG_NONE,
		    NAN);
	}
	if (said > FINDINGS_SHOWN)
		row(out, "trust", "more", "and more: see `laggard report trust`", LAG_NONE, NAN);
	if (!said) {
		row(out, "trust", "ok", "nothing known to be lost, damaged or missing", LAG_NONE,
		    NAN);
	}
	lag_buf_release(&text);
	lag_table_release(&trust);
	return LAG_OK;
}

static enum lag_status run(struct lag_context *ctx, struct lag_table *out, struct lag_err *err)
{
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	const struct lag_roles *roles = steps ? lag_context_roles(ctx, err) : NULL;
	const struct lag_pipeline *pipeline = roles ? lag_context_pipeline(ctx, err) : NULL;
	struct lag_mean_step mean;
	struct lag_findings findings;
	enum lag_status status;
	size_t n_gains = 0;

	if (!pipeline)
		return err->status;
	status = lag_mean_step_compute(ctx, &mean, err);
	if (lag_failed(status))
		return status;
	status = lag_findings_collect(ctx, &mean, &findings, err);
	if (lag_failed(status))
		return status;
	run_rows(ctx, steps, roles, pipeline, out);
	status = step_rows(ctx, steps, &mean, findings.without_stragglers_gain_ns, out, err);
	time_rows(&mean, &findings, pipeline->n_groups > 0, out);
	finding_rows(lag_context_trace(ctx), &findings, out);
	if (!lag_failed(status))
		status = trust_rows(ctx, out, err);
	out->outcome = findings.accuses || findings.stands ? LAG_OUTCOME_FINDING
		       : findings.unsure                   ? LAG_OUTCOME_UNSURE
							   : LAG_OUTCOME_FINE;
	if (!lag_context_has_all_steps(ctx)) {
		lag_table_note(out, "who is late and what the replay wins: of the whole run, and "
				    "as shares of its mean step");
	}
	for (size_t i = 0; i < findings.found.n; i++)
		n_gains += LAG_VEC_AT(&findings.found, struct lag_found, i).gain_ns != LAG_NONE;
	if (findings.spared) {
		lag_table_note(out,
			       "communication that is not hidden: without the waiting for ranks "
			       "that are findings of their own");
	}
	if (n_gains > 1)
		lag_table_note(out, "findings overlap: what they win must not be added");
	if (!pipeline->n_groups)
		lag_table_note(out, "pipeline bubble: n/a, no pipeline was found");
	lag_findings_release(&findings);
	return status;
}

const struct lag_analysis lag_analysis_summary = {
	.name = "summary",
	.summary = "where the time went, who is late, what fixing it wins, what to trust",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.run = run,
};
