/* SPDX-License-Identifier: Apache-2.0 */
/* laggard unpack FILE: an archive back to files, carefully. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "cli/packing.h"
#include "cli/progress.h"
#include "merge/pack.h"
#include "schema/base/fmt.h"
#include "schema/base/parse.h"

static bool on_step(void *state, uint64_t done, uint64_t total)
{
	static const char phase[] = "unpacking";

	lag_progress_step(state, phase, done, total);
	return true;
}

static enum lag_status read_limit(const struct lag_args *args, const char *name, uint64_t *value,
				  struct lag_err *err)
{
	const char *text = lag_args_get(args, name);
	int64_t n;

	if (!text)
		return LAG_OK;
	if (!lag_parse_size(text, &n) || n < 1) {
		return lag_err_set(err, LAG_ERR_USAGE, "--%s: '%s' is no number above 0", name,
				   text);
	}
	*value = (uint64_t)n;
	return LAG_OK;
}

static enum lag_status read_limits(const struct lag_args *args, struct lag_unpack_limits *limits,
				   struct lag_err *err)
{
	enum lag_status st = read_limit(args, "max-members", &limits->n_members, err);

	if (st == LAG_OK)
		st = read_limit(args, "max-bytes", &limits->n_bytes, err);
	if (st == LAG_OK)
		st = read_limit(args, "max-ratio", &limits->ratio, err);
	if (st == LAG_OK)
		st = read_limit(args, "max-depth", &limits->depth, err);
	if (st == LAG_OK)
		st = read_limit(args, "max-path", &limits->path_bytes, err);
	return st;
}

static void say_receipt(const struct lag_pack_receipt *r, const char *dir)
{
	struct lag_buf line = { 0 };

	lag_buf_printf(&line, "%s: %" PRIu64 " file%s", dir, r->n_files,
		       LAG_PLURAL(r->n_files, "", "s"));
	if (r->n_rank_files)
		lag_buf_printf(&line, " (%" PRIu64 " of ranks)", r->n_rank_files);
	if (r->n_refused)
		lag_buf_printf(&line, ", %" PRIu64 " left out", r->n_refused);
	lag_buf_puts(&line, ", ");
	lag_fmt_bytes(&line, (int64_t)r->bytes_in);
	lag_buf_puts(&line, " in, ");
	lag_fmt_bytes(&line, (int64_t)r->bytes_out);
	lag_buf_puts(&line, " out");
	lag_say("%s", lag_buf_text(&line));
	lag_buf_release(&line);
}

static int run(const struct lag_args *args)
{
	struct lag_progress progress;
	const char *dir = lag_args_get(args, "directory");
	struct lag_unpack_opts opts = { .input = args->operands[0],
					.dir = dir ? dir : ".",
					.force = lag_args_has(args, "force"),
					.keep = lag_args_has(args, "keep-packed"),
					.limits = LAG_UNPACK_LIMITS,
					.watch = { on_step, &progress } };
	struct lag_pack_receipt receipt = { 0 };
	struct lag_err err = { 0 };
	enum lag_status st = read_limits(args, &opts.limits, &err);
	bool quiet = lag_args_has(args, "quiet");

	if (lag_failed(st))
		return lag_cmd_fail("unpack", &err);
	lag_ending_begin("unpack");
	lag_progress_begin(&progress, "unpack", quiet);
	st = lag_unpack_run(&opts, &receipt, &err);
	lag_progress_clear(&progress);
	lag_say_cleared("unpack", receipt.n_cleared, opts.dir);
	lag_packing_say_notes("unpack", &receipt);
	if (lag_failed(st))
		(void)lag_cmd_fail("unpack", &err);
	if (!quiet && (!lag_failed(st) || receipt.n_files))
		say_receipt(&receipt, opts.dir);
	lag_pack_receipt_release(&receipt);
	return st == LAG_OK ? LAG_EXIT_OK : LAG_EXIT_BAD;
}

static const struct lag_opt options[] = {
	{ 'C', "directory", "DIR", "put the files below DIR (default: the current directory)",
	  "@dir" },
	{ 'f', "force", NULL, "overwrite files", NULL },
	{ 'k', "keep-packed", NULL, "leave rank files packed (.lagz), as merge reads them too",
	  NULL },
	{ 0, "max-members", "N", "refuse more members (default: 1000000)", NULL },
	{ 0, "max-bytes", "SIZE", "refuse to write more (default: 256G)", NULL },
	{ 0, "max-ratio", "N", "refuse to write more than N times the archive (default: 200)",
	  NULL },
	{ 0, "max-depth", "N", "refuse members in more folders (default: 32)", NULL },
	{ 0, "max-path", "N", "refuse names of more bytes (default: 1024)", NULL },
	{ 'q', "quiet", NULL, "no progress and no closing line", NULL },
};

const struct lag_cmd lag_cmd_unpack = {
	.name = "unpack",
	.summary = "Take runs and traces out of an archive, carefully",
	.operands = "FILE|-",
	.details = "FILE is what pack made, or any other tar, zip or 7z archive; - is standard "
		   "input.\n"
		   "Exit status: 0 all is in place, 2 something was left out, and said.\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
