/* SPDX-License-Identifier: Apache-2.0 */
/* laggard pack RUN...: runs, traces and imported files into one archive. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/ending.h"
#include "cli/packing.h"
#include "cli/progress.h"
#include "merge/pack.h"
#include "schema/base/fmt.h"

static bool on_step(void *state, uint64_t done, uint64_t total)
{
	static const char phase[] = "packing";

	lag_progress_step(state, phase, done, total);
	return true;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), m = strlen(ending);

	return n > m && strcmp(text + n - m, ending) == 0;
}

static enum lag_status choose_format(const struct lag_args *args, const char *output,
				     enum lag_pack_format *format, struct lag_err *err)
{
	static const char *const others[] = { ".gz",  ".tgz", ".xz", ".bz2", ".tar",
					      ".lz4", ".7z",  ".db", ".lag", ".json" };
	const char *name = lag_args_get(args, "format");

	*format = LAG_PACK_TAR_ZST;
	if (name && strcmp(name, "zip") == 0) {
		*format = LAG_PACK_ZIP;
	} else if (name && strcmp(name, "tar.zst") != 0) {
		return lag_err_set(err, LAG_ERR_USAGE, "there is no format '%s'", name);
	} else if (!name && output && ends_with(output, ".zip")) {
		*format = LAG_PACK_ZIP;
	}
	for (size_t i = 0; output && i < sizeof(others) / sizeof(others[0]); i++) {
		if (ends_with(output, others[i])) {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "'%s': archives are .tar.zst or .zip", output);
		}
	}
	/* Another ending would be a lie about what is in it; -t takes any. */
	if (!name && output && strrchr(output, '.') > strrchr(output, '/') &&
	    *format == LAG_PACK_TAR_ZST && !ends_with(output, ".zst") &&
	    !ends_with(output, ".tzst")) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "'%s': archives are .tar.zst or .zip; under another name, -t "
				   "says which",
				   output);
	}
	return LAG_OK;
}

/* The first input's name, in the current directory. */
static char *default_output(const char *input, enum lag_pack_format format)
{
	char *full = realpath(input, NULL), *path = NULL;
	const char *slash = full ? strrchr(full, '/') : NULL;
	const char *name = slash && slash[1] ? slash + 1 : "run";

	if (asprintf(&path, "%s%s", name, format == LAG_PACK_ZIP ? ".zip" : ".tar.zst") < 0)
		path = NULL;
	free(full);
	return path;
}

static void say_receipt(const struct lag_pack_receipt *r, const char *output)
{
	struct lag_buf line = { 0 };

	lag_buf_printf(&line, "%s: %" PRIu64 " file%s", output, r->n_files,
		       LAG_PLURAL(r->n_files, "", "s"));
	if (r->n_rank_files) {
		lag_buf_printf(&line, " (%" PRIu64 " of ranks)", r->n_rank_files);
	}
	lag_buf_puts(&line, ", ");
	lag_fmt_bytes(&line, (int64_t)r->bytes_in);
	lag_buf_puts(&line, " in, ");
	lag_fmt_bytes(&line, (int64_t)r->bytes_out);
	lag_buf_puts(&line, " out");
	if (r->bytes_out)
		lag_buf_printf(&line, ", %.1f to 1", (double)r->bytes_in / (double)r->bytes_out);
	lag_say("%s", lag_buf_text(&line));
	lag_buf_release(&line);
}

static int run(const struct lag_args *args)
{
	struct lag_progress progress;
	struct lag_pack_opts opts = { .inputs = (const char *const *)args->operands,
				      .n_inputs = (size_t)args->n_operands,
				      .output = lag_args_get(args, "output"),
				      .force = lag_args_has(args, "force"),
				      .watch = { on_step, &progress } };
	struct lag_pack_receipt receipt = { 0 };
	struct lag_err err = { 0 };
	char *made = NULL;
	enum lag_status st = choose_format(args, opts.output, &opts.format, &err);
	bool quiet = lag_args_has(args, "quiet");

	if (lag_failed(st))
		return lag_cmd_fail("pack", &err);
	if (!opts.output)
		opts.output = made = default_output(args->operands[0], opts.format);
	if (!opts.output) {
		(void)lag_err_set(&err, LAG_ERR_SYSTEM, "no memory");
		return lag_cmd_fail("pack", &err);
	}
	lag_ending_begin("pack");
	lag_progress_begin(&progress, "pack", quiet);
	st = lag_pack_run(&opts, &receipt, &err);
	lag_progress_clear(&progress);
	lag_say_cleared("pack", receipt.n_cleared, opts.output);
	lag_packing_say_notes("pack", &receipt);
	if (lag_failed(st)) {
		(void)lag_cmd_fail("pack", &err);
	} else if (!quiet) {
		say_receipt(&receipt,
			    strcmp(opts.output, "-") == 0 ? "standard output" : opts.output);
	}
	lag_pack_receipt_release(&receipt);
	free(made);
	return st == LAG_OK ? LAG_EXIT_OK : LAG_EXIT_BAD;
}

static const struct lag_opt options[] = {
	{ 'o', "output", "FILE",
	  "archive to make, - is stdout (default: the first input's name with .tar.zst)", "@file" },
	{ 't', "format", "FORMAT", "kind of archive (default: by the output's name)",
	  "tar.zst zip" },
	{ 'f', "force", NULL, "overwrite the output", NULL },
	{ 'q', "quiet", NULL, "no progress and no closing line", NULL },
};

const struct lag_cmd lag_cmd_pack = {
	.name = "pack",
	.summary = "Put runs and traces into one small archive",
	.operands = "RUN...",
	.details = "RUN is a run directory, a rank file, a merged trace, or any trace that merge "
		   "reads. What comes\n"
		   "out can be merged as it is, or unpacked.\n\n"
		   "  laggard pack runs/today -o today.tar.zst\n"
		   "  laggard pack runs/today -o - | ssh desk laggard unpack -\n",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
