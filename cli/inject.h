/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that makes a program load the tracer: what `record` sets and `env` prints. */
#ifndef CLI_INJECT_H
#define CLI_INJECT_H

#include <limits.h>
#include <stdint.h>

#include "cli/opt.h"

#define LAG_INJECT_MAX 16

struct lag_inject {
	struct {
		const char *name;
		char value[PATH_MAX];
	} vars[LAG_INJECT_MAX];

	size_t n;
	char lib[PATH_MAX]; /* the tracer */
	char dir[PATH_MAX]; /* run directory, absolute */
	char run_id[64];
	char conflict[512]; /* "NAME is taken by VALUE", "" = none */
	int64_t max_bytes;
};

#define LAG_INJECT_OPTIONS                                                                       \
	{ 'o', "output", "DIR", "run directory; %h host, %p pid, %r rank, %j job, %q{VAR}, %%",  \
	  "@dir" },                                                                              \
		{ 0, "max-size", "SIZE", "stop a process's trace at this size (default: 4G)",    \
		  NULL },                                                                        \
		{ 0, "ranks", "LIST", "record only these ranks: 0,8-15,every:8", NULL },         \
		{ 0, "cupti", "on|off", "kernels, copies, CUDA calls (default: on)", "on off" }, \
		{ 0, "nvtx", "on|off|always",                                                    \
		  "annotations; always: also in programs without CUDA", "on off always" },       \
		{ 0, "nccl", "on|off", "communication calls (default: on)", "on off" },          \
		{ 0, "local", "DIR", "write here first, then copy to the run directory", "@dir" },

/* Fills inj from the options; neither creates the directory nor changes our own environment. */
enum lag_status lag_inject_build(struct lag_inject *inj, const struct lag_args *args,
				 struct lag_err *err) LAG_MUST_USE;

/* The value of LD_PRELOAD: what is there already, then ours. */
enum lag_status lag_inject_preload(const struct lag_inject *inj, char *out, size_t room,
				   struct lag_err *err) LAG_MUST_USE;

/* Puts everything into our environment, for a program to be started. */
enum lag_status lag_inject_apply(const struct lag_inject *inj, struct lag_err *err) LAG_MUST_USE;

#endif
