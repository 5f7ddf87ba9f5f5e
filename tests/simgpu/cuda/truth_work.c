/* SPDX-License-Identifier: Apache-2.0 */
/* work.<rank>.csv (SIMGPU_TRUTH_WORK=1): the true times of all work on the device, one line each
 * in the order in which the engine decided them. Engine lock held. */
#include "tests/simgpu/cuda/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	FILE *file;
	pid_t pid; /* a forked child inherits the file, and must not write to it */
} work;

void sim_truth_work_open(void)
{
	const char *dir = sim_env_text("SIMGPU_TRUTH_DIR");
	char path[4096];

	if (!dir || sim_env_i64("SIMGPU_TRUTH_WORK", 0) == 0) {
		return;
	}
	snprintf(path, sizeof path, "%s/work.%d.csv", dir, sim_env_rank());
	work.file = fopen(path, "we");
	if (!work.file) {
		fprintf(stderr, "simgpu: %s: %s\n", path, strerror(errno));
		return;
	}
	work.pid = getpid();
	fprintf(work.file, "kind,copy_kind,stream,launch,enqueued_ns,start_ns,end_ns,name\n");
}

void sim_truth_work(const struct sim_op *op)
{
	static const char *const kinds[] = {
		[SIM_OP_KERNEL] = "kernel",
		[SIM_OP_MEMCPY] = "copy",
		[SIM_OP_MEMSET] = "set",
		[SIM_OP_COMM] = "comm",
	};

	if (!work.file || op->kind > SIM_OP_COMM || work.pid != getpid()) {
		return;
	}
	fprintf(work.file, "%s,%u,%u,%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s\n",
		kinds[op->kind], op->copy_kind, op->stream->id, op->nth, op->enqueued_ns,
		op->start_ns, op->end_ns, op->name ? op->name : "");
}
