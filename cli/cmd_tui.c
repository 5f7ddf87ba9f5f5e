/* SPDX-License-Identifier: Apache-2.0 */
/* laggard tui FILE: a merged trace on the full screen, or one of its screens as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "schema/base/fmt.h"
#include "viz/analysis/analysis.h"
#include "viz/tui/tui.h"

#define PRINT_WIDTH    100
#define MAX_EVENTS     20000000 /* that are all held in memory, some 100 bytes each */
#define SIZE_MAX_CELLS 1000

/* Tables are computed when a view first asks for them, and kept. */
struct tables {
	struct lag_context *ctx;
	struct lag_table *at; /* by place in lag_analyses; analysis NULL = not yet */
	size_t n;
};

static enum lag_status table_of(void *self, const char *name, const struct lag_table **out,
				struct lag_err *err)
{
	struct tables *tables = self;

	for (size_t i = 0; i < tables->n; i++) {
		enum lag_status status = LAG_OK;

		if (strcmp(lag_analyses[i]->name, name) != 0)
			continue;
		if (!tables->at[i].analysis) {
			status =
				lag_analysis_run(lag_analyses[i], tables->ctx, &tables->at[i], err);
		}
		if (lag_failed(status)) {
			lag_table_release(&tables->at[i]);
			return status;
		}
		/* The screen takes them apart again where it has ASCII only. */
		lag_table_units(&tables->at[i]);
		*out = &tables->at[i];
		return LAG_OK;
	}
	return lag_err_set(err, LAG_ERR_USAGE, "there is no analysis '%s'", name);
}

static enum lag_status tables_init(struct tables *tables, struct lag_context *ctx,
				   struct lag_err *err)
{
	*tables = (struct tables){ .ctx = ctx };
	while (lag_analyses[tables->n])
		tables->n++;
	tables->at = lag_calloc(tables->n, sizeof(*tables->at));
	return tables->at ? LAG_OK : lag_err_set(err, LAG_ERR_SYSTEM, "no memory for tables");
}

static void tables_release(struct tables *tables)
{
	for (size_t i = 0; tables->at && i < tables->n; i++)
		lag_table_release(&tables->at[i]);
	free(tables->at);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static enum lag_status fill(const char *path, struct lag_context *ctx, struct tables *tables,
			    struct lag_tui_data *data, struct lag_err *err)
{
	*data = (struct lag_tui_data){ .title = base_name(path),
				       .trace = lag_context_trace(ctx),
				       .self = tables,
				       .table = table_of };
	data->roles = lag_context_roles(ctx, err);
	data->steps = data->roles ? lag_context_steps(ctx, err) : NULL;
	data->waits = data->steps ? lag_context_waits(ctx, err) : NULL;
	data->pipeline = data->waits ? lag_context_pipeline(ctx, err) : NULL;
	data->ledger = data->pipeline ? lag_context_ledger(ctx, err) : NULL;
	data->peers = data->ledger ? lag_context_peers(ctx, err) : NULL;
	data->stragglers = data->peers ? lag_context_stragglers(ctx, err) : NULL;
	return data->stragglers ? LAG_OK : err->status;
}

struct size {
	long long width, height;
};

static enum lag_status read_size(const struct lag_args *args, struct size *size,
				 struct lag_err *err)
{
	enum lag_status status = lag_args_i64(args, "width", PRINT_WIDTH, &size->width, err);

	if (!lag_failed(status))
		status = lag_args_i64(args, "height", 0, &size->height, err);
	if (lag_failed(status))
		return status;
	if (size->width < 1 || size->width > SIZE_MAX_CELLS || size->height < 0 ||
	    size->height > SIZE_MAX_CELLS) {
		return lag_err_set(err, LAG_ERR_USAGE, "a screen has 1 to %d columns and rows",
				   SIZE_MAX_CELLS);
	}
	return LAG_OK;
}

static enum lag_status show(const struct lag_args *args, const struct lag_tui_data *data,
			    struct lag_err *err)
{
	const char *print = lag_args_get(args, "print"), *no_color = getenv("NO_COLOR");
	struct lag_tui_opts opts = { .view = print ? print : lag_args_get(args, "view"),
				     .keys = lag_args_get(args, "keys"),
				     .ascii = lag_args_has(args, "ascii"),
				     .no_color = lag_args_has(args, "no-color") ||
						 (no_color && no_color[0]),
				     .mouse = !lag_args_has(args, "no-mouse") };
	struct lag_buf out = { 0 };
	struct size size;
	enum lag_status status;

	opts.ascii = !lag_cmd_utf8() || opts.ascii;
	if (!print)
		return lag_tui_run(data, &opts, err);
	status = read_size(args, &size, err);
	if (lag_failed(status))
		return status;
	if (data->detail && lag_tui_needs_events(print)) {
		return lag_err_set(err, LAG_ERR_LIMIT,
				   "%s needs all events, more than --max-events: --all reads them",
				   print);
	}
	if (size.height) {
		status = lag_tui_screen(data, &opts, (int)size.width, (int)size.height, &out, err);
	} else {
		status = lag_tui_print(data, &opts, (int)size.width, 0, &out, err);
	}
	if (!lag_failed(status))
		(void)fwrite(lag_buf_text(&out), 1, out.n, stdout);
	lag_buf_release(&out);
	return status;
}

/* The whole trace, or the parts of one with too many events for that. */
static enum lag_status open_trace(const struct lag_args *args, const char *path,
				  struct lag_trace **trace, struct lag_detail **detail,
				  struct lag_err *err)
{
	long long most;
	enum lag_status status = lag_args_i64(args, "max-events", MAX_EVENTS, &most, err);
	int64_t n = 0;

	if (!lag_failed(status) && !lag_args_has(args, "all"))
		status = lag_detail_size(path, &n, err);
	if (!lag_failed(status) && n > most) {
		status = lag_detail_open(path, detail, trace, err);
		if (status != LAG_END)
			return status;
		lag_say("%s has %lld %s and no level of detail to draw it by (merged with "
			"--no-pyramid, or by an older laggard): reading all of them",
			path, (long long)n, LAG_PLURAL(n, "event", "events"));
		status = LAG_OK;
	}
	return lag_failed(status) ? status : lag_trace_open(path, trace, err);
}

static int run(const struct lag_args *args)
{
	const struct lag_model_opts model = { .step_by = lag_args_get(args, "step-by"),
					      .layout = lag_args_get(args, "layout"),
					      .all_time = lag_args_is(args, "window", "all") };
	const char *path = args->operands[0];
	struct lag_context *ctx = NULL;
	struct lag_trace *trace = NULL;
	struct lag_detail *detail = NULL;
	struct tables tables = { 0 };
	struct lag_tui_data data;
	struct lag_err err = { 0 };
	enum lag_status status;

	/* A large trace takes seconds; the screen then covers this line. */
	if (!lag_args_has(args, "print") && isatty(STDERR_FILENO))
		lag_say("reading %s ...", path);
	status = open_trace(args, path, &trace, &detail, &err);
	if (!lag_failed(status))
		status = lag_context_new(trace, &model, &ctx, &err);
	if (!lag_failed(status))
		status = tables_init(&tables, ctx, &err);
	if (!lag_failed(status))
		status = fill(path, ctx, &tables, &data, &err);
	data.detail = detail;
	if (!lag_failed(status))
		status = show(args, &data, &err);
	tables_release(&tables);
	lag_detail_close(detail);
	lag_context_free(ctx);
	return lag_failed(status) ? lag_cmd_fail("tui", &err) : LAG_EXIT_OK;
}

#define VIEW_NAMES "overview timeline pipeline stragglers collectives kernels trust hang"

static const struct lag_opt options[] = {
	{ 'v', "view", "VIEW", "the first view (default: overview)", VIEW_NAMES },
	{ 'p', "print", "VIEW", "print a view as text instead; needs no terminal", VIEW_NAMES },
	{ 'k', "keys", "KEYS", "press these keys first: \"n Enter + +\"", NULL },
	{ 'W', "width", "N", "columns to print (default: 100)", NULL },
	{ 'H', "height", "N", "print the whole screen of a terminal with N lines", NULL },
	{ 0, "ascii", NULL, "draw with ASCII only", NULL },
	{ 0, "no-color", NULL, "no colours, as with NO_COLOR in the environment", NULL },
	{ 0, "no-mouse", NULL, "leave the mouse to the terminal", NULL },
	{ 0, "window", "WHICH", "of what time (default: common to all ranks)", "all common" },
	{ 0, "step-by", "NAME", "the annotation (or its beginning) that marks a step", "@text" },
	{ 0, "max-events", "N", "with more, read only what is looked at (default: 20000000)",
	  NULL },
	{ 0, "all", NULL, "read all events, however many", NULL },
	{ 0, "layout", "DIMS", "how ranks are laid out: pp=4,dp=2,tp=1", "@text" },
};

const struct lag_cmd lag_cmd_tui = {
	.name = "tui",
	.summary = "Look at a merged trace on the full screen",
	.operands = "FILE",
	.details = "Views: overview, timeline, pipeline, stragglers, collectives, kernels, trust, "
		   "hang.\n"
		   "? shows the keys; q goes back, and leaves from the overview.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
