/* SPDX-License-Identifier: Apache-2.0 */
/* laggard merge RUN...: recordings in, one trace file out; progress and a closing line on stderr. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "merge/merge.h"
#include "schema/base/fmt.h"
#include "schema/record/record.h"

#define REDRAW_NS INT64_C(200000000)

struct progress {
	bool show;
	sigset_t ends;
	int64_t phase_start_ns, drawn_ns;
	enum lag_merge_phase phase;
	bool drawn;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void draw(struct progress *p, const struct lag_merge_progress *at, int64_t now)
{
	static const char *const phases[] = { "reading", "matching", "writing" };
	double share = at->total ? (double)at->done / (double)at->total : 0;
	double spent = (double)(now - p->phase_start_ns) / 1e9;

	(void)fprintf(stderr, "\r\033[Klaggard merge: %s %3.0f %%", phases[at->phase], 100 * share);
	if (share > 0.02 && spent > 1)
		(void)fprintf(stderr, ", %.0f s left", spent / share - spent);
	(void)fflush(stderr);
	p->drawn = true;
}

static bool on_progress(void *state, const struct lag_merge_progress *at)
{
	struct progress *p = state;
	int64_t now = now_ns();

	if (at->phase != p->phase || p->phase_start_ns == 0) {
		p->phase = at->phase;
		p->phase_start_ns = now;
	}
	if (p->show && now - p->drawn_ns > REDRAW_NS) {
		draw(p, at, now);
		p->drawn_ns = now;
	}
	return lag_ending_pending(&p->ends) == 0;
}

static void say_receipt(const struct lag_merge_receipt *r)
{
	struct lag_buf line = { 0 };

	lag_buf_printf(&line, "%s: %" PRIu64, r->output, r->n_ranks);
	if (r->world_size != r->n_ranks)
		lag_buf_printf(&line, " of %" PRIu64, r->world_size);
	lag_buf_puts(&line, r->world_size == 1 ? " rank, " : " ranks, ");
	lag_fmt_count(&line, (int64_t)r->n_events);
	lag_buf_puts(&line, " events, clock error ");
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
		lag_buf_printf(&line, "%" PRIu64 " remark%s", r->n_findings,
			       r->n_findings == 1 ? "" : "s");
	} else {
		lag_buf_puts(&line, "nothing to remark");
	}
	if (r->n_warnings)
		lag_buf_printf(&line, ", %" PRIu64 " to look at", r->n_warnings);
	lag_buf_printf(&line, "; next: laggard %s %s", r->n_warnings ? "info" : "report",
		       r->output);
	lag_say("%s", lag_buf_text(&line));
	lag_buf_release(&line);
}

static bool choose_writer(const char *name, enum lag_db_writer_kind *kind)
{
	*kind = name && strcmp(name, "sql") == 0 ? LAG_DB_WRITER_SQL : LAG_DB_WRITER_PAGES;
	return !name || *kind == LAG_DB_WRITER_SQL || strcmp(name, "pages") == 0;
}

static int run(const struct lag_args *args)
{
	struct progress progress = { .show = !lag_args_has(args, "quiet") &&
					     isatty(STDERR_FILENO) };
	struct lag_merge_opts opts = {
		.inputs = (const char *const *)args->operands,
		.n_inputs = (size_t)args->n_operands,
		.output = lag_args_get(args, "output"),
		.force = lag_args_has(args, "force"),
		.align = lag_args_get(args, "align"),
		.rename_path = lag_args_get(args, "rename"),
		.cpu_ops = lag_args_has(args, "cpu-ops"),
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
	/* A file that outgrows the process's limit is an error like a full disk, not the end. */
	(void)signal(SIGXFSZ, SIG_IGN);
	lag_ending_block(&progress.ends);
	st = lag_merge_run(&opts, &receipt, &err);
	if (progress.drawn)
		(void)fputs("\r\033[K", stderr);
	if (lag_failed(st)) {
		(void)lag_cmd_fail("merge", &err);
		lag_ending_unblock(&progress.ends);
		return LAG_EXIT_BAD;
	}
	if (!lag_args_has(args, "quiet"))
		say_receipt(&receipt);
	return LAG_EXIT_OK;
}

static const struct lag_opt options[] = {
	{ 'o', "output", "FILE",
	  "write the trace to FILE (default: the first input's name with .db)", "@file" },
	{ 'f', "force", NULL, "overwrite the output", NULL },
	{ 'a', "align", "METHOD", "how to put the hosts on one clock (default: collective)",
	  "collective wall none" },
	{ 0, "rename", "FILE", "rules \"regex => name\" for kernel names", "@file" },
	{ 0, "cpu-ops", NULL, "keep framework operators of imported traces", NULL },
	{ 0, "writer", "HOW", "how events get into the file (default: pages)", "pages sql" },
	{ 'q', "quiet", NULL, "no progress and no closing line", NULL },
};

const struct lag_cmd lag_cmd_merge = {
	.name = "merge",
	.summary = "Merge the recordings of all ranks into one trace on one clock",
	.operands = "RUN...",
	.details = "RUN is a run directory, a .lag file, a PyTorch profiler trace (.json, "
		   ".json.gz), an\n"
		   "Nsight Systems export (.sqlite), a directory of any, or an archive (.tar.zst,\n"
		   ".zip, ...) of one.\n\n"
		   "  laggard merge runs/today -o today.db\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
