/* SPDX-License-Identifier: Apache-2.0 */
/* laggard diff A B: what changed from one merged trace to another of the same run shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/missed.h"
#include "schema/base/parse.h"
#include "viz/analysis/diff_headline.h"
#include "viz/analysis/diff_runs.h"
#include "viz/model/diff_data.h"
#include "viz/render/render.h"

#define TOP 20

/* "0.05" or "5%". */
static enum lag_status read_tolerance(const char *text, double *out, struct lag_err *err)
{
	char *end = NULL;
	double value = text ? strtod(text, &end) : 0;

	if (text && *end == '%') {
		value /= 100;
		end++;
	}
	if (text && (end == text || *end || !(value >= 0 && value < 1))) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "--tolerance: '%s' is no share below 1, such as 0.05 or 5%%",
				   text);
	}
	*out = value;
	return LAG_OK;
}

static enum lag_status read_options(const struct lag_args *args, struct lag_diff_opts *opts,
				    const struct lag_renderer **renderer, struct lag_err *err)
{
	const char *format = lag_args_get(args, "format"), *top = lag_args_get(args, "top");
	int64_t n = TOP;
	enum lag_status st = read_tolerance(lag_args_get(args, "tolerance"), &opts->tolerance, err);

	opts->ignore = lag_args_get(args, "ignore");
	*renderer = lag_renderer_find(format ? format : "text");
	if (st == LAG_OK && !*renderer)
		st = lag_err_set(err, LAG_ERR_USAGE, "there is no format '%s'", format);
	if (st == LAG_OK && top && (!lag_parse_i64(top, &n) || n < 0))
		st = lag_err_set(err, LAG_ERR_USAGE, "--top: '%s' is no number", top);
	opts->n_top = (size_t)n;
	return st;
}

static enum lag_status compare_data(struct lag_diff *diff, char **paths, struct lag_err *err)
{
	struct lag_db *a = NULL, *b = NULL;
	enum lag_status st = lag_db_open(paths[0], &a, err);

	if (st == LAG_OK)
		st = lag_db_open(paths[1], &b, err);
	if (st == LAG_OK)
		st = lag_diff_data(diff, a, b, err);
	lag_db_close(a);
	lag_db_close(b);
	return st;
}

static enum lag_status open_run(const char *path, const struct lag_model_opts *opts,
				struct lag_context **ctx, struct lag_err *err)
{
	struct lag_trace *trace = NULL;
	enum lag_status st = lag_trace_open(path, &trace, err);

	if (!lag_failed(st))
		st = lag_context_new(trace, opts, ctx, err);
	return lag_failed(st) ? st : lag_say_missed_steps("diff", path, *ctx, opts->step_by, err);
}

static bool is_exact(const struct lag_renderer *renderer)
{
	return strcmp(renderer->name, "json") == 0 || strcmp(renderer->name, "csv") == 0;
}

/* JSON is one object, CSV the last table; people get all, what answers the question first. */
static void render(const struct lag_renderer *renderer, const struct lag_table *const tables[3],
		   struct lag_buf *out)
{
	static const char *const keys[] = { "headline", "summary", "changes" };
	bool json = strcmp(renderer->name, "json") == 0, csv = strcmp(renderer->name, "csv") == 0;
	const struct lag_render_opts opts = { .utf8 = lag_cmd_utf8() };
	const char *before = json ? "{" : "", *between = json ? ", " : "\n";

	for (int i = csv ? 2 : 0; i < 3; i++) {
		if (!tables[i] || (i == 2 && !json && !csv && !tables[i]->n_rows))
			continue;
		lag_buf_puts(out, before);
		before = between;
		if (json)
			lag_buf_printf(out, "\"%s\": ", keys[i]);
		renderer->render(tables[i], NULL, &opts, out);
	}
	if (json)
		lag_buf_puts(out, "}\n");
}

static enum lag_status print(const struct lag_diff *diff, const struct lag_table *headline,
			     const struct lag_renderer *renderer, struct lag_err *err)
{
	struct lag_table summary, changes;
	struct lag_buf out = { 0 };
	enum lag_status st = lag_diff_summary_table(diff, &summary, err), made;

	made = lag_diff_changes_table(diff, is_exact(renderer), &changes,
				      st == LAG_OK ? err : NULL);
	if (st == LAG_OK)
		st = made;
	if (st == LAG_OK) {
		render(renderer, (const struct lag_table *const[]){ headline, &summary, &changes },
		       &out);
	}
	if (st == LAG_OK && out.failed)
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the output");
	if (st == LAG_OK)
		(void)fwrite(lag_buf_text(&out), 1, out.n, stdout);
	lag_buf_release(&out);
	lag_table_release(&summary);
	lag_table_release(&changes);
	return st;
}

/* Names of columns that no view has would be taken for ones that are left out. */
static enum lag_status check_ignored(const char *list, struct lag_err *err)
{
	for (const char *p = list; p && *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");

		if (!lag_diff_has_column(p, n) && !lag_diff_data_has_column(p, n)) {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "--ignore: no table has a column '%.*s'; -F csv shows "
					   "their names",
					   (int)(n < 64 ? n : 64), p);
		}
		p += n;
	}
	return LAG_OK;
}

static int run(const struct lag_args *args)
{
	const struct lag_model_opts model = { .step_by = lag_args_get(args, "step-by"),
					      .layout = lag_args_get(args, "layout"),
					      .steps = lag_args_get(args, "steps"),
					      .ranks = lag_args_get(args, "ranks") };
	const struct lag_renderer *renderer = NULL;
	struct lag_context *a = NULL, *b = NULL;
	struct lag_diff_opts opts = { 0 };
	struct lag_err err = { 0 };
	struct lag_table headline = { 0 };
	struct lag_diff diff;
	enum lag_status st = read_options(args, &opts, &renderer, &err);
	/* Who asks for one view is spared what others take. */
	bool whole = !lag_args_has(args, "views");
	int code = LAG_EXIT_OK;

	lag_diff_init(&diff, &opts);
	if (st == LAG_OK)
		st = check_ignored(opts.ignore, &err);
	if (st == LAG_OK)
		st = open_run(args->operands[0], &model, &a, &err);
	if (st == LAG_OK)
		st = open_run(args->operands[1], &model, &b, &err);
	if (st == LAG_OK)
		st = lag_diff_comparable(a, b, &err);
	if (st == LAG_OK && whole) {
		st = lag_diff_headline(a, b, is_exact(renderer), &headline, &diff.opts.step_ns,
				       &err);
	}
	if (st == LAG_OK)
		st = lag_diff_runs(&diff, a, b, lag_args_get(args, "views"), &err);
	lag_context_free(a);
	lag_context_free(b);
	if (st == LAG_OK && lag_args_has(args, "data"))
		st = compare_data(&diff, args->operands, &err);
	if (st == LAG_OK)
		st = lag_diff_finish(&diff, &err);
	if (st == LAG_OK)
		st = print(&diff, whole ? &headline : NULL, renderer, &err);
	if (st == LAG_WARN) {
		lag_say("diff: %s", err.text);
		code = LAG_EXIT_UNSURE;
	} else if (lag_failed(st)) {
		code = lag_cmd_fail("diff", &err);
	} else if (diff.n_found) {
		code = LAG_EXIT_FINDING;
	}
	lag_table_release(&headline);
	lag_diff_release(&diff);
	return code;
}

static const struct lag_opt options[] = {
	{ 'F', "format", "FORMAT", "how to print (default: text)", "text json csv md" },
	{ 'T', "tolerance", "SHARE", "numbers that differ by less are equal: 0.05 or 5%", "@text" },
	{ 'i', "ignore", "LIST", "columns not to compare: start_ns,kernels.share", "@text" },
	{ 'V', "views", "LIST", "only these analyses: kernels,stragglers (default: all)",
	  ",steps ledger breakdown bubbles stragglers what-if waits collectives kernels ranks "
	  "communicators clock trust" },
	{ 'n', "top", "N", "show so many changes, 0 = all (default: 20)", "@text" },
	{ 'd', "data", NULL, "compare events one by one too", NULL },
	{ 's', "steps", "LIST", "only these steps, by number: 10-12,20", "@text" },
	{ 'r', "ranks", "LIST", "list only these ranks: 0,4-7", "@text" },
	{ 0, "step-by", "NAME", "the annotation (or its beginning) that marks a step", "@text" },
	{ 0, "layout", "DIMS", "how ranks are laid out: pp=4,dp=2,tp=1", "@text" },
};

const struct lag_cmd lag_cmd_diff = {
	.name = "diff",
	.summary = "Say what changed from one merged trace to another",
	.operands = "A B",
	.details =
		"First whether the step became shorter and whose verdict changed; then the tables "
		"of all analyses,\n"
		"row by row: rows of the same rank, step, kernel, members.\n\n"
		"Exit status: 0 equal, 1 differences, 2 a file or an option is unusable, 3 not "
		"comparable.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 2,
	.max_operands = 2,
	.run = run,
};
