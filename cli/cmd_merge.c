/* SPDX-License-Identifier: Apache-2.0 */
/* laggard merge RUN...: recordings in, one trace file out; progress and a closing line on stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "cli/progress.h"
#include "merge/merge.h"
#include "schema/base/fmt.h"
#include "schema/base/parse.h"
#include "schema/record/record.h"

#define MEMORY_MAX_T 8000000

static bool on_progress(void *state, const struct lag_merge_progress *at)
{
	static const char *const phases[] = { "reading", "matching", "writing" };

	lag_progress_step(state, phases[at->phase], at->done, at->total);
	return true;
}

static void say_receipt(const struct lag_merge_receipt *r)
{
	struct lag_buf line = { 0 };

	lag_buf_printf(&line, "%s: %" PRIu64, r->output, r->n_ranks);
	if (r->world_size != r->n_ranks)
		lag_buf_printf(&line, " of %" PRIu64, r->world_size);
	lag_buf_puts(&line, r->world_size == 1 ? " rank, " : " ranks, ");
	if (r->n_added)
		lag_buf_printf(&line, "%" PRIu64 " of them added, ", r->n_added);
	if (r->n_other_runs) {
		lag_buf_printf(&line, "%" PRIu64 " recording%s of another run left out, ",
			       r->n_other_runs, LAG_PLURAL(r->n_other_runs, "", "s"));
	}
	lag_fmt_count(&line, (int64_t)r->n_events);
	lag_buf_printf(&line, " events%s, clock error ", r->n_added ? " more" : "");
	if (r->n_ranks < 2) {
		lag_buf_puts(&line, "n/a: one rank");
	} else if (r->clock_uncertainty_ns == LAG_NONE) {
		lag_buf_printf(&line, "unknown (%s)", r->clock_method);
	} else {
		lag_fmt_ns(&line, r->clock_uncertainty_ns);
		lag_buf_printf(&line, " (%s)", r->clock_method);
	}
	lag_buf_puts(&line, ", ");
	if (r->n_findings) {
		lag_buf_printf(&line, "%" PRIu64 " remark%s (laggard info)", r->n_findings,
			       LAG_PLURAL(r->n_findings, "", "s"));
	} else {
		lag_buf_puts(&line, "nothing to remark");
	}
	if (r->n_warnings)
		lag_buf_printf(&line, ", %" PRIu64 " to look at", r->n_warnings);
	if (r->spill_bytes)
		lag_buf_printf(&line, ", %" PRIu64 " MiB of temporary data", r->spill_bytes >> 20);
	lag_buf_printf(&line, "; next: laggard %s %s",
		       r->hangs        ? "report hang"
		       : r->n_warnings ? "info"
				       : "report",
		       r->output);
	lag_say("%s", lag_buf_text(&line));
	lag_buf_release(&line);
}

static bool choose_writer(const char *name, enum lag_db_writer_kind *kind)
{
	*kind = name && strcmp(name, "sql") == 0 ? LAG_DB_WRITER_SQL : LAG_DB_WRITER_PAGES;
	return !name || *kind == LAG_DB_WRITER_SQL || strcmp(name, "pages") == 0;
}

static enum lag_status choose_memory(const struct lag_args *args, struct lag_merge_opts *opts,
				     struct lag_err *err)
{
	const char *memory = lag_args_get(args, "memory");
	long long n_threads;
	int64_t bytes;
	enum lag_status st = lag_args_i64(args, "threads", 0, &n_threads, err);

	if (st != LAG_OK)
		return st;
	if (lag_args_has(args, "threads") && (n_threads < 1 || n_threads > LAG_MERGE_THREADS_MAX)) {
		return lag_err_set(err, LAG_ERR_USAGE, "--threads %lld: 1 to %d", n_threads,
				   LAG_MERGE_THREADS_MAX);
	}
	opts->n_threads = (unsigned)n_threads;
	opts->tmp = lag_args_get(args, "tmp");
	if (!memory)
		return LAG_OK;
	if (!lag_parse_size(memory, &bytes) || bytes < (int64_t)LAG_MERGE_MEMORY_MIN ||
	    bytes > (int64_t)MEMORY_MAX_T << 40) {
		return lag_err_set(err, LAG_ERR_USAGE, "--memory %s: a size of 1M to %dT is needed",
				   memory, MEMORY_MAX_T);
	}
	opts->memory_bytes = (uint64_t)bytes;
	return LAG_OK;
}

static int run(const struct lag_args *args)
{
	struct lag_progress progress;
	struct lag_merge_opts opts = {
		.inputs = (const char *const *)args->operands,
		.n_inputs = (size_t)args->n_operands,
		.output = lag_args_get(args, "output"),
		.append = lag_args_get(args, "append"),
		.force = lag_args_has(args, "force"),
		.align = lag_args_get(args, "align"),
		.repair_order = lag_args_has(args, "repair-order"),
		.from = lag_args_get(args, "from"),
		.rename_path = lag_args_get(args, "rename"),
		.cpu_ops = lag_args_has(args, "cpu-ops"),
		.no_pyramid = lag_args_has(args, "no-pyramid"),
		.progress = on_progress,
		.progress_state = &progress,
	};
	struct lag_merge_receipt receipt;
	struct lag_err err = { 0 };
	enum lag_status st;

	if (!choose_writer(lag_args_get(args, "writer"), &opts.writer)) {
		(void)lag_err_set(&err, LAG_ERR_USAGE, "no writer '%s': pages or sql",
				  lag_args_get(args, "writer"));
		return lag_cmd_fail("merge", &err);
	}
	if (lag_failed(choose_memory(args, &opts, &err)))
		return lag_cmd_fail("merge", &err);
	lag_ending_begin("merge");
	lag_progress_begin(&progress, "merge", lag_args_has(args, "quiet"));
	st = lag_merge_run(&opts, &receipt, &err);
	lag_progress_clear(&progress);
	lag_say_cleared("merge", receipt.n_cleared, receipt.output);
	if (lag_failed(st)) {
		return lag_cmd_fail("merge", &err);
	}
	if (!lag_args_has(args, "quiet"))
		say_receipt(&receipt);
	return LAG_EXIT_OK;
}

#define LAG_IMPORTER(name) " " #name
static const char formats[] =
#include "merge/importers.def"
	;

static const struct lag_opt options[] = {
	{ 'o', "output", "FILE",
	  "write the trace to FILE (default: the first input's name with .db)", "@file" },
	{ 'f', "force", NULL, "overwrite the output", NULL },
	{ 0, "append", "TRACE", "add RUN, late ranks, to a merged trace (not with -o, -f, -a)",
	  "@file" },
	{ 'a', "align", "METHOD", "how to put the hosts on one clock (default: collective)",
	  "collective wall none" },
	{ 0, "repair-order", NULL, "move events that still contradict cause and effect, and say so",
	  NULL },
	{ 0, "from", "FORMAT", "read every input as that (default: see what it is)", formats + 1 },
	{ 0, "rename", "FILE", "rules \"regex => name\" for kernel names", "@file" },
	{ 0, "cpu-ops", NULL, "keep framework operators of imported traces", NULL },
	{ 0, "no-pyramid", NULL, "leave out the level of detail", NULL },
	{ 0, "writer", "HOW", "how events get into the file (default: pages)", "pages sql" },
	{ 0, "memory", "SIZE", "beyond it, work in a temporary file (default: 512M)", NULL },
	{ 0, "tmp", "DIR", "its folder (default: $TMPDIR, else the output's)", "@dir" },
	{ 0, "threads", "N", "work on N processors (default: all)", NULL },
	{ 'q', "quiet", NULL, "no progress and no closing line", NULL },
};

const struct lag_cmd lag_cmd_merge = {
	.name = "merge",
	.summary = "Merge the recordings of all ranks into one trace on one clock",
	.operands = "RUN...",
	.details =
		"RUN is a run directory, a .lag file, a PyTorch profiler trace (.json, .json.gz),\n"
		"an Nsight Systems export (.sqlite), a Flight Recorder dump, an operation table\n"
		"(.csv), a directory of any, or an archive (.tar.zst, .zip, ...) of one.\n\n"
		"  laggard merge runs/today -o today.db\n"
		"  laggard merge --append today.db late/*.lag\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
