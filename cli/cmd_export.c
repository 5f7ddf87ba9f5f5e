/* SPDX-License-Identifier: Apache-2.0 */
/* laggard export: a merged trace in the format of another tool. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "cli/missed.h"
#include "schema/base/fmt.h"
#include "viz/export/export.h"

/* Browsers give up on about this much. */
#define LARGE_EVENTS 1000000u
#define LARGE_BYTES  ((uint64_t)256 << 20)

struct job {
	const char *path;
	bool quiet;
};

static bool is_compressed(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

static enum lag_status say_size(void *state, const struct lag_forecast *f, struct lag_err *err)
{
	const struct job *job = state;
	struct lag_buf events = { 0 }, bytes = { 0 };

	if (!f->n_events) {
		return lag_err_set(
			err, LAG_ERR_USAGE,
			"nothing to export: no event is of the chosen ranks, steps, kinds "
			"and time");
	}
	if (job->quiet)
		return LAG_OK;
	lag_fmt_count(&events, (int64_t)f->n_events);
	lag_fmt_bytes(&bytes, (int64_t)f->n_bytes);
	lag_say("export: %llu rank%s, %s events, about %s of JSON%s to %s",
		(unsigned long long)f->n_ranks, LAG_PLURAL(f->n_ranks, "", "s"),
		lag_buf_text(&events), lag_buf_text(&bytes),
		is_compressed(job->path) ? " before compression" : "",
		strcmp(job->path, "-") == 0 ? "standard output" : job->path);
	if (f->n_events > LARGE_EVENTS || f->n_bytes > LARGE_BYTES) {
		lag_say("export: browsers may fail to open this much; --ranks, --steps, --time and "
			"--kinds make it smaller");
	}
	lag_buf_release(&events);
	lag_buf_release(&bytes);
	return LAG_OK;
}

/* The closing line, of files alone: others hold nothing that could be measured, or opened. */
static void say_done(const struct job *job)
{
	struct lag_buf bytes = { 0 };
	struct stat sb;

	if (job->quiet || strcmp(job->path, "-") == 0 || stat(job->path, &sb) != 0 ||
	    !S_ISREG(sb.st_mode))
		return;
	lag_fmt_bytes(&bytes, (int64_t)sb.st_size);
	lag_say("export: %s, %s; next: open it at https://ui.perfetto.dev", job->path,
		lag_buf_text(&bytes));
	lag_buf_release(&bytes);
}

/* The same file under any name. */
static bool is_input(const char *input, const char *output)
{
	struct stat in, out;

	return strcmp(output, "-") != 0 && stat(input, &in) == 0 && stat(output, &out) == 0 &&
	       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

static enum lag_status read_options(const struct lag_args *args, struct lag_export_opts *opts,
				    struct lag_err *err)
{
	const char *kinds = lag_args_get(args, "kinds"), *time = lag_args_get(args, "time");
	enum lag_status st = LAG_OK;

	*opts = (struct lag_export_opts){ .kinds = LAG_EXPORT_ALL, .until_ns = INT64_MAX };
	if (kinds)
		st = lag_export_kinds_parse(kinds, &opts->kinds, err);
	if (time && !lag_failed(st))
		st = lag_export_time_parse(time, &opts->from_ns, &opts->until_ns, err);
	return st;
}

static enum lag_status write_export(struct lag_context *ctx, const struct lag_exporter *exporter,
				    const struct lag_export_opts *opts, struct job *job, bool force,
				    struct lag_err *err)
{
	struct lag_export_file *file;
	struct lag_export_out out;
	struct lag_err close_err;
	enum lag_status st = lag_export_file_open(job->path, force, &file, &out, err);
	enum lag_status closed;

	if (lag_failed(st))
		return st;
	lag_say_cleared("export", lag_export_file_cleared(file), job->path);
	st = exporter->write(ctx, opts, say_size, job, &out, err);
	closed = lag_export_file_close(file, !lag_failed(st), &close_err);
	if (!lag_failed(st) && lag_failed(closed)) {
		*err = close_err;
		st = closed;
	}
	return st;
}

static int run(const struct lag_args *args)
{
	const char *type = lag_args_get(args, "type");
	const struct lag_exporter *exporter = lag_exporter_find(type ? type : "chrome");
	struct job job = { .path = lag_args_get(args, "output"),
			   .quiet = lag_args_has(args, "quiet") };
	struct lag_model_opts model = { .step_by = lag_args_get(args, "step-by"),
					.layout = lag_args_get(args, "layout"),
					.steps = lag_args_get(args, "steps"),
					.ranks = lag_args_get(args, "ranks") };
	struct lag_export_opts opts;
	struct lag_trace *trace = NULL;
	struct lag_context *ctx = NULL;
	struct lag_err err = { 0 };
	enum lag_status st = read_options(args, &opts, &err);

	lag_ending_begin("export");
	if (!job.path)
		job.path = "trace.json.gz";
	if (!lag_failed(st) && is_input(args->operands[0], job.path))
		st = lag_err_set(&err, LAG_ERR_USAGE, "'%s' is the trace itself", job.path);
	if (!exporter)
		st = lag_err_set(&err, LAG_ERR_USAGE, "no exporter is called '%s'", type);
	if (!lag_failed(st))
		st = lag_trace_open(args->operands[0], &trace, &err);
	if (!lag_failed(st))
		st = lag_context_new(trace, &model, &ctx, &err);
	if (!lag_failed(st)) {
		st = lag_say_missed_steps("export", args->operands[0], ctx, model.step_by, &err);
	}
	if (!lag_failed(st) && exporter)
		st = write_export(ctx, exporter, &opts, &job, lag_args_has(args, "force"), &err);
	lag_context_free(ctx);
	if (!lag_failed(st))
		say_done(&job);
	return lag_failed(st) ? lag_cmd_fail("export", &err) : LAG_EXIT_OK;
}

static const struct lag_opt options[] = {
	{ 't', "type", "FORMAT", "format to write (default: chrome)", "chrome" },
	{ 'o', "output", "FILE",
	  "file to make, .gz compresses, - is stdout (default: trace.json.gz)", "@file" },
	{ 'f', "force", NULL, "overwrite the file", NULL },
	{ 'r', "ranks", "LIST", "only these ranks: 0,4-7", "@text" },
	{ 's', "steps", "LIST", "only these steps: 3-5", "@text" },
	{ 0, "time", "SPAN", "only what overlaps this time from the start: 10ms-20ms, 1s-",
	  "@text" },
	{ 'k', "kinds", "LIST",
	  "only these: kernels,copies,nccl,nvtx,api,waits,time,steps,flows (default: all)",
	  ",kernels copies nccl nvtx api waits time steps flows" },
	{ 0, "step-by", "NAME", "annotation that marks steps", "@text" },
	{ 0, "layout", "DIMS", "parallelism, where it is not recognised: pp=4,dp=2,tp=1", "@text" },
	{ 'q', "quiet", NULL, "no size forecast and no closing line", NULL },
};

const struct lag_cmd lag_cmd_export = {
	.name = "export",
	.summary = "Write a merged trace for Perfetto or chrome://tracing",
	.operands = "FILE",
	.details = "All ranks go into one file: a process per rank, a lane per stream, arrows from "
		   "launches to\n"
		   "kernels and between ranks, and tracks that show bubbles and waits.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
