/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous by files, and every communicator in one global order so that blocking joins cannot
 * wait for each other in a circle. */
#include "tests/apps/pt_comm.h"

#include "tests/apps/pt_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	POLL_MS = 2,
	GIVE_UP_MS = 120000
};

static _Noreturn void fail(const char *what, const char *path)
{
	fprintf(stderr, "pipetrain: %s: %s: %s\n", path, what, strerror(errno));
	exit(1);
}

static void publish(const char *path, const ncclUniqueId *id)
{
	char tmp[4200];
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail("cannot create", tmp);
	if (write(fd, id, sizeof(*id)) != (ssize_t)sizeof(*id))
		fail("cannot write", tmp);
	close(fd);
	/* link, not rename: a file left by an earlier run must not be taken for this one's. */
	if (link(tmp, path))
		fail("cannot publish the unique id (left by an earlier run?)", path);
	unlink(tmp);
}

static void await(const char *path, ncclUniqueId *id)
{
	for (int waited = 0; waited < GIVE_UP_MS; waited += POLL_MS) {
		int fd = open(path, O_RDONLY);
		if (fd >= 0) {
			ssize_t n = read(fd, id, sizeof(*id));
			close(fd);
			if (n == (ssize_t)sizeof(*id))
				return;
			fail("short unique id", path);
		}
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
	}
	errno = ETIMEDOUT;
	fail("no unique id", path);
}

/* Joins the communicator called name as rank of size; the members' names agree, others differ. */
static ncclComm_t join(struct pt_comms *comms, const struct pt_options *opt, const char *name,
		       int size, int rank)
{
	char path[4096];
	ncclUniqueId id;
	ncclComm_t comm;
	snprintf(path, sizeof(path), "%s/%s.id", opt->rdv_dir ? opt->rdv_dir : ".", name);
	if (rank == 0)
		PT_NCCL(ncclGetUniqueId(&id));
	if (size > 1 && rank == 0)
		publish(path, &id);
	else if (size > 1)
		await(path, &id);
	PT_NCCL(ncclCommInitRank(&comm, size, id, rank));
	if (size > 1 && rank == 0)
		unlink(path);
	comms->owned[comms->n_owned++] = comm;
	return comm;
}

static void set_flow(struct pt_flow *flow, ncclComm_t comm, int prev, int next, int n)
{
	if (prev >= 0 && prev < n)
		flow->from = (struct pt_link){ comm, prev };
	if (next >= 0 && next < n)
		flow->to = (struct pt_link){ comm, next };
}

/* One communicator over the pipeline group for both directions, or one for each. */
static void join_pipeline(struct pt_comms *comms, const struct pt_options *opt, const char *line)
{
	int stage = pt_place_of(opt, opt->rank).stage;
	char name[96];
	snprintf(name, sizeof(name), "pp.%s", line);
	ncclComm_t comm = join(comms, opt, name, opt->pp, stage);
	set_flow(&comms->forward, comm, stage - 1, stage + 1, opt->pp);
	if (opt->pp_comm == PT_PP_DIRECTION) {
		snprintf(name, sizeof(name), "pp.back.%s", line);
		comm = join(comms, opt, name, opt->pp, stage);
	}
	set_flow(&comms->backward, comm, stage + 1, stage - 1, opt->pp);
}

/* Two ranks each: the sender is rank 0, the receiver rank 1. The ring closes where a stage holds
 * more than one chunk of the model. */
static void join_pairs(struct pt_comms *comms, const struct pt_options *opt, const char *line)
{
	int stage = pt_place_of(opt, opt->rank).stage;
	int n_edges = opt->pp - (opt->chunks == 1);
	for (int back = 0; back < 2; back++) {
		struct pt_flow *flow = back ? &comms->backward : &comms->forward;
		for (int e = 0; e < n_edges; e++) {
			int upper = (e + 1) % opt->pp;
			int src = back ? upper : e;
			int dst = back ? e : upper;
			char name[128];
			if (stage != src && stage != dst)
				continue;
			snprintf(name, sizeof(name), "pp.%d-%d.%d.%s", src, dst, back, line);
			ncclComm_t comm = join(comms, opt, name, 2, stage == dst);
			if (stage == src)
				flow->to = (struct pt_link){ comm, 1 };
			else
				flow->from = (struct pt_link){ comm, 0 };
		}
	}
}

void pt_comms_init(struct pt_comms *comms, const struct pt_options *opt)
{
	struct pt_place at = pt_place_of(opt, opt->rank);
	char name[64];
	memset(comms, 0, sizeof(*comms));
	comms->world = join(comms, opt, "world", opt->world, opt->rank);
	if (opt->tp > 1) {
		snprintf(name, sizeof(name), "tp.%d.%d", at.stage, at.dp);
		comms->tp = join(comms, opt, name, opt->tp, at.tp);
	}
	if (opt->dp > 1) {
		snprintf(name, sizeof(name), "dp.%d.%d", at.stage, at.tp);
		comms->dp = join(comms, opt, name, opt->dp, at.dp);
	}
	if (opt->pp > 1) {
		snprintf(name, sizeof(name), "%d.%d", at.dp, at.tp);
		if (opt->pp_comm == PT_PP_PAIR)
			join_pairs(comms, opt, name);
		else
			join_pipeline(comms, opt, name);
	}
}

void pt_comms_release(struct pt_comms *comms)
{
	while (comms->n_owned)
		PT_NCCL(ncclCommDestroy(comms->owned[--comms->n_owned]));
}
