/* SPDX-License-Identifier: Apache-2.0 */
/* laggard report [ANALYSIS] FILE: one analysis of a merged trace, as text or for other programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "viz/analysis/analysis.h"
#include "viz/render/render.h"

static const char *const titles[] = {
#define LAG_ANALYSIS(id, title) title,
#include "viz/analysis/analyses.def"
};

static void list_analyses(void)
{
	for (size_t i = 0; lag_analyses[i]; i++)
		printf("  %s\n      %s\n", lag_analyses[i]->name, titles[i]);
	puts("\nExit status: 0 fine, 1 a finding, 2 the file or an option is unusable, 3 cannot "
	     "tell.");
}

static void complete(struct lag_buf *out)
{
	for (size_t i = 0; lag_analyses[i]; i++)
		lag_buf_printf(out, "%s\n", lag_analyses[i]->name);
}

/* Columns of the terminal; 0 where the output goes elsewhere. */
static int terminal_width(void)
{
	const char *text = getenv("COLUMNS");
	long columns = text ? strtol(text, NULL, 10) : 0;
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return columns > 0 && columns < 10000 ? (int)columns : 80;
}

static int exit_code(const struct lag_table *table)
{
	switch (table->outcome) {
	case LAG_OUTCOME_FINDING:
		return LAG_EXIT_FINDING;
	case LAG_OUTCOME_UNSURE:
		return LAG_EXIT_UNSURE;
	default:
		return LAG_EXIT_OK;
	}
}

static int print(const struct lag_analysis *analysis, const struct lag_renderer *renderer,
		 struct lag_context *ctx)
{
	struct lag_render_opts opts = { .width = terminal_width() };
	struct lag_buf out = { 0 };
	struct lag_table table;
	struct lag_err err = { 0 };
	int code = LAG_EXIT_BAD;

	opts.utf8 = lag_cmd_utf8();
	if (lag_failed(lag_analysis_run(analysis, ctx, &table, &err))) {
		(void)lag_err_wrap(&err, "%s", analysis->name);
		(void)lag_cmd_fail("report", &err);
	} else {
		renderer->render(&table, lag_context_trace(ctx), &opts, &out);
		code = exit_code(&table);
		if (out.failed) {
			(void)lag_err_set(&err, LAG_ERR_SYSTEM, "no memory for the output");
			code = lag_cmd_fail("report", &err);
		} else {
			(void)fwrite(lag_buf_text(&out), 1, out.n, stdout);
		}
	}
	lag_buf_release(&out);
	lag_table_release(&table);
	return code;
}

static enum lag_status choose(const struct lag_args *args, const struct lag_analysis **analysis,
			      const struct lag_renderer **renderer, struct lag_err *err)
{
	const char *format = lag_args_get(args, "format");
	const char *name = args->n_operands > 1 ? args->operands[0] : "summary";

	*analysis = lag_analysis_find(name);
	if (!*analysis && lag_analysis_find(args->operands[1])) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "the analysis comes first: laggard report %s %s",
				   args->operands[1], name);
	}
	if (!*analysis) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "there is no analysis '%s' (laggard report --help lists them)",
				   name);
	}
	if (args->n_operands == 1 && lag_analysis_find(args->operands[0]) &&
	    access(args->operands[0], F_OK) != 0) {
		return lag_err_set(err, LAG_ERR_USAGE, "of which file? laggard report %s FILE",
				   args->operands[0]);
	}
	*renderer = lag_renderer_find(format ? format : "text");
	if (!*renderer)
		return lag_err_set(err, LAG_ERR_USAGE, "there is no format '%s'", format);
	return LAG_OK;
}

static int run(const struct lag_args *args)
{
	const struct lag_model_opts opts = { .step_by = lag_args_get(args, "step-by"),
					     .layout = lag_args_get(args, "layout"),
					     .steps = lag_args_get(args, "steps"),
					     .ranks = lag_args_get(args, "ranks"),
					     .all_time = lag_args_is(args, "window", "all") };
	const struct lag_analysis *analysis = NULL;
	const struct lag_renderer *renderer = NULL;
	struct lag_context *ctx = NULL;
	struct lag_trace *trace = NULL;
	struct lag_err err = { 0 };
	int code;

	if (lag_failed(choose(args, &analysis, &renderer, &err)) || !renderer ||
	    lag_failed(lag_trace_open(args->operands[args->n_operands - 1], &trace, &err)) ||
	    lag_failed(lag_context_new(trace, &opts, &ctx, &err)))
		return lag_cmd_fail("report", &err);
	code = print(analysis, renderer, ctx);
	lag_context_free(ctx);
	return code;
}

static const struct lag_opt options[] = {
	{ 'F', "format", "FORMAT", "how to print (default: text)", "text json csv md" },
	{ 's', "steps", "LIST", "only these steps, by number: 10-12,20", "@text" },
	{ 'r', "ranks", "LIST", "list only these ranks: 0,4-7", "@text" },
	{ 0, "window", "WHICH", "of what time (default: common to all ranks)", "all common" },
	{ 0, "step-by", "NAME", "the annotation (or its beginning) that marks a step", "@text" },
	{ 0, "layout", "DIMS", "how ranks are laid out: pp=4,dp=2,tp=1", "@text" },
};

const struct lag_cmd lag_cmd_report = {
	.name = "report",
	.summary = "Say where the time went, who is late, and what fixing it would win",
	.operands = "[ANALYSIS] FILE",
	.details = "Without ANALYSIS: the summary, one page. The analyses:\n",
	.list = list_analyses,
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = 2,
	.complete = complete,
	.run = run,
};
