/* SPDX-License-Identifier: Apache-2.0 */
/* Collects findings. A table of another analysis is read by the names of its columns; a column that is
 * not there is as good as null. */
#include "viz/analysis/findings.h"
#include "schema/base/fmt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/analysis/stat.h"
#include "viz/model/opmodel.h"

#define HANG_TOLD    4    /* suspects on the summary */
#define WORTH_SAYING 0.01 /* of the step */

static void add_rank(const struct lag_trace *t, const struct lag_ledger *ledger,
		     const struct lag_steps *steps, const struct lag_waits *waits,
		     const bool *counts, size_t r, struct lag_mean_step *out)
{
	size_t n = 0;

	for (size_t s = 0; s < steps->n_steps; s++) {
		const int64_t *row = &ledger->by_step[(s * t->n_ranks + r) * LAG_TIME_LIMIT];

		if (!counts[s] || lag_steps_span(steps, s, r)->start_ns == LAG_NONE)
			continue;
		n++;
		for (int c = 0; c < LAG_TIME_LIMIT; c++)
			out->of[c] += (double)row[c];
	}
	out->n += n;
	out->unsplit_ns += (double)lag_unsplit_ns(steps, waits, ledger, counts, r);
	for (int c = 0; n && c < LAG_TIME_LIMIT; c++)
		out->n_told[c] += lag_ledger_tells(t, r, (enum lag_time_class)c) ? n : 0;
}

static enum lag_status mean_step(struct lag_context *ctx, bool of_run, struct lag_mean_step *out,
				 struct lag_err *err)
{
	const struct lag_ledger *ledger = lag_context_ledger(ctx, err);
	const struct lag_steps *steps = ledger ? lag_context_steps(ctx, err) : NULL;
	const struct lag_waits *waits = steps ? lag_context_waits(ctx, err) : NULL;
	const struct lag_trace *t = lag_context_trace(ctx);
	bool *counts = NULL;
	size_t n = 0;
	enum lag_status status;

	*out = (struct lag_mean_step){ 0 };
	if (!waits)
		return err->status;
	status = of_run ? lag_steps_whole(steps, &counts, &n, err)
			: lag_steps_chosen(ctx, steps, &counts, &n, err);
	for (size_t r = 0; !lag_failed(status) && r < t->n_ranks; r++) {
		if (of_run || lag_context_has_rank(ctx, t->ranks[r].rank))
			add_rank(t, ledger, steps, waits, counts, r, out);
	}
	for (int c = 0; out->n && c < LAG_TIME_LIMIT; c++) {
		out->of[c] /= (double)out->n;
		out->step_ns += out->of[c];
	}
	if (out->n)
		out->unsplit_ns /= (double)out->n;
	free(counts);
	return status;
}

enum lag_status lag_mean_step_compute(struct lag_context *ctx, struct lag_mean_step *out,
				      struct lag_err *err)
{
	return mean_step(ctx, false, out, err);
}

enum lag_status lag_mean_step_of_run(struct lag_context *ctx, struct lag_mean_step *out,
				     struct lag_err *err)
{
	return mean_step(ctx, true, out, err);
}

/* step_ns: the mean step that the gain is a part of. The replay's is of the whole run, the ledger's
 * of the report. */
static struct lag_found *add(struct lag_findings *out, const char *item, int64_t gain_ns,
			     double step_ns, int64_t rank)
{
	struct lag_found *f = lag_vec_push(&out->found);
	bool known = gain_ns != LAG_NONE && step_ns > 0;

	if (f) {
		*f = (struct lag_found){ .item = item,
					 .gain_ns = gain_ns,
					 .share = known ? (double)gain_ns / step_ns : NAN,
					 .rank = rank };
	}
	return f;
}

/* A table by the name of its analysis. False when there is no such analysis, or it failed: the summary
 * then goes without. */
static bool table_of(struct lag_context *ctx, const char *name, struct lag_table *out)
{
	const struct lag_analysis *analysis = lag_analysis_find(name);
	struct lag_err err;

	*out = (struct lag_table){ 0 };
	if (!analysis)
		return false;
	if (lag_failed(lag_analysis_run(analysis, ctx, out, &err))) {
		lag_table_release(out);
		return false;
	}
	return true;
}

static const struct lag_cell *cell(const struct lag_table *table, size_t row, const char *column)
{
	static const struct lag_cell none = { .null = true };
	int at = lag_table_find_column(table, column);

	return at < 0 ? &none : lag_table_cell(table, row, (size_t)at);
}

static int64_t int_of(const struct lag_table *table, size_t row, const char *column)
{
	const struct lag_cell *c = cell(table, row, column);

	return c->null ? LAG_NONE : c->i;
}

static const char *text_of(const struct lag_table *table, size_t row, const char *column)
{
	const struct lag_cell *c = cell(table, row, column);

	return c->null ? "" : c->text;
}

/* "rank 5 (node2, stage 2, dp 1)" */
static void name_rank(struct lag_context *ctx, int64_t rank, char *out, size_t room)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, NULL);
	int r = lag_trace_find_rank(t, rank);
	size_t n;

	n = (size_t)snprintf(out, room, "rank %lld", (long long)rank);
	if (r < 0 || !roles)
		return;
	n += (size_t)snprintf(out + n, room - n, " (%.60s",
			      t->ranks[r].host < 0 ? "?" : t->hosts[t->ranks[r].host].name);
	if (roles->ranks[r].stage >= 0 && roles->n_stages > 1)
		n += (size_t)snprintf(out + n, room - n, ", stage %d", roles->ranks[r].stage);
	if (roles->ranks[r].dp >= 0 && roles->n_dp > 1)
		n += (size_t)snprintf(out + n, room - n, ", dp %d", roles->ranks[r].dp);
	if (roles->ranks[r].tp >= 0 && roles->n_tp > 1)
		n += (size_t)snprintf(out + n, room - n, ", tp %d", roles->ranks[r].tp);
	(void)snprintf(out + n, room - n, ")");
}

static enum lag_status add_straggler(struct lag_context *ctx, const struct lag_stragglers *all,
				     const struct lag_mean_step *run, size_t r,
				     struct lag_findings *out)
{
	const struct lag_straggler *s = &all->ranks[r];
	int64_t rank = lag_context_trace(ctx)->ranks[r].rank;
	struct lag_found *f = add(out, "straggler", s->step_cost_ns, run->step_ns, rank);
	char who[160], ratio[48] = "", error[48] = "";

	if (!f)
		return LAG_ERR_SYSTEM;
	name_rank(ctx, rank, who, sizeof(who));
	if (s->verdict == LAG_VERDICT_CANNOT_TELL) {
		(void)snprintf(f->text, sizeof(f->text),
			       "%s: slow rank or heavy stage, cannot tell without a peer", who);
		return LAG_OK;
	}
	if (s->step_cost_error_ns != LAG_NONE && s->step_cost_ns > 0) {
		(void)snprintf(error, sizeof(error), "; cost +/- %.0f %%",
			       100 * (double)s->step_cost_error_ns / (double)s->step_cost_ns);
	}
	if (isfinite(s->ratio) && s->cause != LAG_CAUSE_HOST)
		(void)snprintf(ratio, sizeof(ratio), ", %.2fx its peers", s->ratio);
	(void)snprintf(f->text, sizeof(f->text), "%s: %s%s, %s (%u of %u steps)%s", who,
		       s->cause ? lag_cause_name(s->cause) : "slow", ratio,
		       lag_verdict_name(s->verdict), s->steps_slow, s->steps_seen,
		       all->withheld[0] ? "; its cost is withheld" : error);
	return LAG_OK;
}

/* The slowest of all that were compared, accused or not. */
static void note_ratio(const struct lag_peers *peers, const struct lag_straggler *s, size_t r,
		       int64_t rank, struct lag_findings *out)
{
	if (isnan(s->ratio))
		return;
	out->n_compared++;
	if (!(s->ratio <= out->most_ratio)) {
		out->most_ratio = s->ratio;
		out->most_rank = rank;
		out->slow_from = lag_peers_slow_from(&peers->ranks[r]);
	}
}

static enum lag_status from_stragglers(struct lag_context *ctx, const struct lag_mean_step *run,
				       struct lag_findings *out, struct lag_err *err)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_stragglers *all = lag_context_stragglers(ctx, err);
	const struct lag_peers *peers = all ? lag_context_peers(ctx, err) : NULL;
	enum lag_status status = LAG_OK;

	if (!peers)
		return err->status;
	(void)snprintf(out->withheld, sizeof(out->withheld), "%s", all->withheld);
	out->unsure = all->withheld[0] != 0;
	for (size_t r = 0; r < all->n_ranks && !lag_failed(status); r++) {
		const struct lag_straggler *s = &all->ranks[r];

		if (!lag_context_has_rank(ctx, t->ranks[r].rank))
			continue;
		note_ratio(peers, s, r, t->ranks[r].rank, out);
		if (lag_verdict_accuses(s->verdict)) {
			out->accuses = true;
		} else if (s->verdict == LAG_VERDICT_CANNOT_TELL) {
			out->unsure = true;
		} else {
			continue;
		}
		status = add_straggler(ctx, all, run, r, out);
	}
	return status;
}

/* Which stage carries most, by how much more compute than the mean of the others: by the medians of its
 * ranks, so that a slow one does not make a heavy stage. False: no stage stands out. */
static bool tell_imbalance(struct lag_context *ctx, struct lag_found *f)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, NULL);
	const struct lag_ledger *ledger = lag_context_ledger(ctx, NULL);
	size_t n_stages = roles->n_stages > 0 ? (size_t)roles->n_stages : 0, heavy = 0;
	double *stage = lag_calloc(n_stages, sizeof(*stage));
	double *values = lag_calloc(t->n_ranks, sizeof(*values)), others = 0, ratio = NAN;

	for (size_t k = 0; stage && values && k < n_stages; k++) {
		size_t n = 0;

		for (size_t r = 0; r < t->n_ranks; r++) {
			double sum = 0;

			if (roles->ranks[r].stage != (int32_t)k)
				continue;
			for (size_t s = 0; s < ledger->n_steps; s++) {
				sum += (double)ledger
					       ->by_step[(s * t->n_ranks + r) * LAG_TIME_LIMIT +
							 LAG_TIME_COMPUTE];
			}
			values[n++] = sum;
		}
		stage[k] = n ? lag_median_real(values, n) : 0;
		heavy = stage[k] > stage[heavy] ? k : heavy;
	}
	for (size_t k = 0; stage && k < n_stages; k++)
		others += k == heavy ? 0 : stage[k];
	if (stage && values && n_stages > 1 && others > 0)
		ratio = stage[heavy] / (others / (double)(n_stages - 1));
	free(stage);
	free(values);
	/* The words say at least a hundredth. */
	if (!(ratio >= 1.01))
		return false;
	(void)snprintf(f->text, sizeof(f->text),
		       "stage %zu carries more work: compute %.2fx the mean of the other stages': "
		       "report %s",
		       heavy, ratio, lag_opmodel_applies(t) ? "operations" : "bubbles");
	return true;
}

/* Gains that the replay gives; scenarios are known by how they begin. */
static enum lag_status from_what_if(struct lag_context *ctx, const struct lag_mean_step *run,
				    struct lag_findings *out)
{
	static const struct {
		const char *scenario, *item, *text;
	} said[] = {
		{ "stages balanced", "imbalance", "the pipeline's stages carry unequal work" },
		{ "the host is never late", "host_bound", "the host is late to launch work" },
		{ "send/recv between stages", "send_recv", "send/recv between stages takes time" },
	};
	struct lag_table table;
	enum lag_status status = LAG_OK;

	if (!table_of(ctx, "what-if", &table))
		return LAG_OK;
	for (size_t i = 0; i < table.n_rows && !lag_failed(status); i++) {
		const char *scenario = text_of(&table, i, "scenario");
		int64_t gain = int_of(&table, i, "gain_ns");

		if (!strcmp(scenario, "without stragglers"))
			out->without_stragglers_gain_ns = gain;
		for (size_t k = 0; k < sizeof(said) / sizeof(said[0]); k++) {
			struct lag_found *f;

			if (gain == LAG_NONE || (double)gain < WORTH_SAYING * run->step_ns ||
			    strncmp(scenario, said[k].scenario, strlen(said[k].scenario)) != 0)
				continue;
			f = add(out, said[k].item, gain, run->step_ns, LAG_NONE);
			if (!f) {
				status = LAG_ERR_SYSTEM;
			} else if (k != 0 || !tell_imbalance(ctx, f)) {
				(void)snprintf(f->text, sizeof(f->text), "%s", said[k].text);
			}
		}
	}
	if (!out->accuses)
		out->without_stragglers_gain_ns = LAG_NONE;
	lag_table_release(&table);
	return status;
}

/* Mean of an ns column over its rows that have it; NaN when none has. */
static double mean_of(const struct lag_table *table, const char *column)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		int64_t v = int_of(table, i, column);

		if (v == LAG_NONE)
			continue;
		sum += (double)v;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

static void from_bubbles(struct lag_context *ctx, const struct lag_mean_step *mean,
			 struct lag_findings *out)
{
	struct lag_table table;

	if (!table_of(ctx, "bubbles", &table))
		return;
	out->bubble_ideal = mean_of(&table, "ideal_ns") / mean->step_ns;
	lag_table_release(&table);
}

static enum lag_status add_exposed(struct lag_findings *out, int role, int func, double ns,
				   double step_ns)
{
	struct lag_found *f = add(out, "exposed_comm", (int64_t)llround(ns), step_ns, LAG_NONE);
	bool known = role != LAG_ROLE_UNSURE;

	if (!f)
		return LAG_ERR_SYSTEM;
	(void)snprintf(f->text, sizeof(f->text), "%s%s%s is not hidden behind compute",
		       known ? lag_comm_role_name((enum lag_comm_role)role) : "", known ? " " : "",
		       func ? lag_func_name(func) : "communication");
	return LAG_OK;
}

/* By role and function, ns over all ranks and steps that count. */
struct exposed {
	double ns[LAG_ROLE_LIMIT][LAG_FUNC_LIMIT];
	double for_accused[LAG_ROLE_LIMIT][LAG_FUNC_LIMIT]; /* waiting for ranks that are accused */
};

/* Exposed communication of one rank in one step. What never ended reaches beyond its step, to the end
 * of the recording: that is no part of any step. */
static void sum_exposed(struct lag_context *ctx, const struct lag_ledger *ledger,
			const struct lag_step_span *span, size_t r, struct exposed *sum)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_roles *roles = lag_context_roles(ctx, NULL);
	const struct lag_waits *waits = lag_context_waits(ctx, NULL);
	const struct lag_stragglers *all = lag_context_stragglers(ctx, NULL);

	for (size_t i = lag_ledger_find(ledger, r, span->start_ns);
	     i < ledger->first[r + 1] && ledger->slices[i].start_ns < span->end_ns; i++) {
		const struct lag_time_slice *s = &ledger->slices[i];
		const struct lag_launch *l = s->launch < 0 ? NULL : &t->launches[s->launch];
		int role, func;
		double ns;
		int32_t last;

		if (!l || !l->n_ops ||
		    (s->class != LAG_TIME_EXPOSED_TRANSFER && s->class != LAG_TIME_EXPOSED_WAIT))
			continue;
		func = t->ops[l->first_op].func < LAG_FUNC_LIMIT ? t->ops[l->first_op].func : 0;
		role = roles->comm_role[l->comm];
		ns = (double)lag_time_slice_in(s, span->start_ns, span->end_ns);
		sum->ns[role][func] += ns;
		last = waits->launch[s->launch].last;
		if (s->class == LAG_TIME_EXPOSED_WAIT && last >= 0 &&
		    lag_verdict_accuses(all->ranks[last].verdict))
			sum->for_accused[role][func] += ns;
	}
}

static enum lag_status gather_exposed(struct lag_context *ctx, const struct lag_ledger *ledger,
				      struct exposed *sum)
{
	const struct lag_trace *t = lag_context_trace(ctx);
	const struct lag_steps *steps = lag_context_steps(ctx, NULL);
	bool *counts = NULL;
	size_t n = 0;
	enum lag_status status = lag_steps_chosen(ctx, steps, &counts, &n, NULL);

	for (size_t s = 0; !lag_failed(status) && s < steps->n_steps; s++) {
		for (size_t r = 0; counts[s] && r < t->n_ranks; r++) {
			const struct lag_step_span *span = lag_steps_span(steps, s, r);

			if (span->start_ns != LAG_NONE &&
			    lag_context_has_rank(ctx, t->ranks[r].rank))
				sum_exposed(ctx, ledger, span, r, sum);
		}
	}
	free(counts);
	return status;
}

/* Exposed communication by role and function: what each would win at most, were it hidden. */
static enum lag_status from_exposed(struct lag_context *ctx, const struct lag_mean_step *mean,
				    struct lag_findings *out)
{
	const struct lag_ledger *ledger = lag_context_ledger(ctx, NULL);
	struct exposed sum = { 0 };
	double known = 0, all;
	enum lag_status status;

	if (!ledger || !mean->n)
		return LAG_OK;
	status = gather_exposed(ctx, ledger, &sum);
	for (int role = 0; role < LAG_ROLE_LIMIT && !lag_failed(status); role++) {
		for (int func = 0; func < LAG_FUNC_LIMIT && !lag_failed(status); func++) {
			double ns = sum.ns[role][func] / (double)mean->n;

			double spared = sum.for_accused[role][func] / (double)mean->n;

			known += ns;
			/* Waiting for ranks that are findings of their own is counted there. */
			out->spared = out->spared || spared >= 0.001 * mean->step_ns;
			if (ns - spared > WORTH_SAYING * mean->step_ns)
				status = add_exposed(out, role, func, ns - spared, mean->step_ns);
		}
	}
	/* Communication kernels that no recorded call explains. */
	all = mean->of[LAG_TIME_EXPOSED_TRANSFER] + mean->of[LAG_TIME_EXPOSED_WAIT];
	if (!lag_failed(status) && all - known > WORTH_SAYING * mean->step_ns)
		status = add_exposed(out, LAG_ROLE_UNSURE, 0, all - known, mean->step_ns);
	return status;
}

static enum lag_status from_copies(const struct lag_mean_step *mean, struct lag_findings *out)
{
	double ns = mean->of[LAG_TIME_COPY];
	struct lag_found *f;

	if (ns <= WORTH_SAYING * mean->step_ns)
		return LAG_OK;
	f = add(out, "copy", (int64_t)llround(ns), mean->step_ns, LAG_NONE);
	if (!f)
		return LAG_ERR_SYSTEM;
	(void)snprintf(f->text, sizeof(f->text), "copies are not hidden behind compute");
	return LAG_OK;
}

/* Largest gain first; what is named without a gain comes before all: it is an open question. */
static int by_gain(const void *a, const void *b)
{
	const struct lag_found *x = a, *y = b;
	int64_t gx = x->gain_ns == LAG_NONE ? INT64_MAX : x->gain_ns;
	int64_t gy = y->gain_ns == LAG_NONE ? INT64_MAX : y->gain_ns;

	if (gx != gy)
		return gx < gy ? 1 : -1;
	return strcmp(x->text, y->text);
}

/* What a verdict of `hang` says of its rank and operation. */
static const struct {
	const char *verdict, *does, *besides;
} hang_words[] = {
	{ "never called it", "has not called", ", others wait in it" },
	{ "its own", "has not finished", ", others have" },
	{ "blocked", "has called and not started", "" },
	{ "communication", "all members are in", ": communication hangs" },
	{ "cannot tell", "all on record are in", ": who holds it cannot be told" },
	{ "deadlock", "is in", ", others that it needs wait in another operation" },
	{ "no record", "is to be in", ", what it did is not on record" },
};

/* "rank 12 has not finished all_gather #42806 of TENSOR_MODEL_PARALLEL_GROUP (41), others have" */
static void tell_hang(const struct lag_table *hang, size_t row, struct lag_buf *out)
{
	int64_t rank = int_of(hang, row, "rank"), seq = int_of(hang, row, "seq");
	int64_t n_waiting = int_of(hang, row, "waiting");
	const char *verdict = text_of(hang, row, "verdict"),
		   *comm = text_of(hang, row, "communicator");
	const char *name = text_of(hang, row, "description");
	const char *does = verdict, *besides = "";

	for (size_t i = 0; i < sizeof(hang_words) / sizeof(hang_words[0]); i++) {
		if (strcmp(hang_words[i].verdict, verdict) == 0) {
			does = hang_words[i].does;
			besides = hang_words[i].besides;
		}
	}
	lag_buf_puts(out, "the job stands: ");
	if (rank != LAG_NONE)
		lag_buf_printf(out, "rank %lld ", (long long)rank);
	lag_buf_printf(out, "%s %s", does, text_of(hang, row, "function"));
	if (seq != LAG_NONE)
		lag_buf_printf(out, " #%lld", (long long)seq);
	lag_buf_printf(out, name[0] ? " of %.60s (%.40s)" : " of %.60s%.0s", name[0] ? name : comm,
		       comm);
	lag_buf_puts(out, besides);
	if (n_waiting > 0) {
		lag_buf_printf(out, "; %lld rank%s in the end: report hang", (long long)n_waiting,
			       n_waiting == 1 ? " waits" : "s wait");
	}
}

/* Whoever holds up a job that stands comes before everything else. */
static enum lag_status from_hang(struct lag_context *ctx, struct lag_findings *out)
{
	struct lag_buf text = { 0 };
	struct lag_table hang;
	size_t told = 0;

	if (!table_of(ctx, "hang", &hang))
		return LAG_OK;
	out->stands = hang.outcome == LAG_OUTCOME_FINDING;
	for (size_t i = 0; i < hang.n_rows && told < HANG_TOLD && out->stands; i++) {
		struct lag_found *f;

		if (strcmp(text_of(&hang, i, "kind"), "suspect") != 0)
			continue;
		f = add(out, "hang", LAG_NONE, 0, int_of(&hang, i, "rank"));
		if (!f) {
			lag_table_release(&hang);
			lag_buf_release(&text);
			return LAG_ERR_SYSTEM;
		}
		lag_buf_clear(&text);
		tell_hang(&hang, i, &text);
		(void)snprintf(f->text, sizeof(f->text), "%s", lag_buf_text(&text));
		told++;
	}
	lag_buf_release(&text);
	lag_table_release(&hang);
	return LAG_OK;
}

/* Whether lateness can be judged at all: more than one rank, and all of them on record. */
static bool can_judge(const struct lag_trace *t)
{
	if (t->n_ranks < 2 || (t->world_size != LAG_NONE && t->world_size > (int64_t)t->n_ranks))
		return false;
	for (size_t r = 0; r < t->n_ranks; r++) {
		if (!t->ranks[r].recorded)
			return false;
	}
	return true;
}

enum lag_status lag_findings_collect(struct lag_context *ctx, const struct lag_mean_step *mean,
				     struct lag_findings *out, struct lag_err *err)
{
	struct lag_mean_step of_run;
	enum lag_status status;

	*out = (struct lag_findings){ .found = LAG_VEC_INIT(struct lag_found),
				      .without_stragglers_gain_ns = LAG_NONE,
				      .bubble_ideal = NAN,
				      .most_ratio = NAN,
				      .most_rank = LAG_NONE };
	status = lag_mean_step_of_run(ctx, &of_run, err);
	if (!lag_failed(status))
		status = from_stragglers(ctx, &of_run, out, err);
	if (!lag_failed(status))
		status = from_what_if(ctx, &of_run, out);
	if (!lag_failed(status))
		status = from_exposed(ctx, mean, out);
	if (!lag_failed(status))
		status = from_copies(mean, out);
	if (!lag_failed(status))
		status = from_hang(ctx, out);
	if (lag_failed(status)) {
		lag_findings_release(out);
		return lag_err_set(err, status, "summary: no memory");
	}
	from_bubbles(ctx, mean, out);
	if (!out->accuses && !can_judge(lag_context_trace(ctx)))
		out->unsure = true;
	if (out->found.n)
		qsort(out->found.items, out->found.n, out->found.item_size, by_gain);
	return LAG_OK;
}

void lag_findings_release(struct lag_findings *findings)
{
	lag_vec_release(&findings->found);
}
