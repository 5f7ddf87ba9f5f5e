/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: shared memory by name, members, and the time model of every link. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/nccl/nc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL

static size_t round_page(size_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static size_t links_at(int n)
{
	return PAGE + round_page((size_t)n * sizeof(struct nc_member));
}

static size_t payload_at(int n)
{
	size_t links = (size_t)n * (size_t)n * NC_CHANNELS;

	return links_at(n) + round_page(links * sizeof(struct nc_link));
}

static size_t link_index(const struct ncclComm *c, enum nc_channel ch, int from, int to)
{
	return ((size_t)ch * (size_t)c->n + (size_t)from) * (size_t)c->n + (size_t)to;
}

struct nc_link *nc_link(struct ncclComm *c, enum nc_channel ch, int from, int to)
{
	char *base = (char *)c->shm + links_at(c->n);

	return (struct nc_link *)(void *)base + link_index(c, ch, from, to);
}

char *nc_payload(struct ncclComm *c, enum nc_channel ch, int from, int to, unsigned slot)
{
	size_t i = link_index(c, ch, from, to) * NC_SLOTS + slot;

	return (char *)c->shm + payload_at(c->n) + i * NC_PAYLOAD;
}

void nc_shm_wait(uint32_t *word, uint32_t seen)
{
	struct timespec t = { 0, 50 * SIM_NS_PER_MS };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void nc_shm_wake(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void nc_comm_unref(struct ncclComm *c)
{
	if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0) {
		return;
	}
	for (int i = 0; c->bells && i < c->n; i++) {
		if (c->bells[i]) {
			munmap(c->bells[i], PAGE);
		}
	}
	if (c->shm) {
		munmap(c->shm, c->shm_bytes);
	}
	free(c->bells);
	free(c->tx);
	free(c->lag_ns);
	free(c->ns_per_byte);
	free(c->p2p_seq[0]);
	free(c->p2p_seq[1]);
	free(c->scales);
	free(c);
}

static bool map_shared(struct ncclComm *c)
{
	size_t links = (size_t)c->n * (size_t)c->n * NC_CHANNELS;

	c->shm_bytes = payload_at(c->n) + links * NC_SLOTS * NC_PAYLOAD;
	int fd = shm_open(c->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)c->shm_bytes) != 0) {
		fprintf(stderr, "simgpu: %s: %s\n", c->name, strerror(errno));
		if (fd >= 0) {
			close(fd);
		}
		return false;
	}
	void *p =
		mmap(NULL, c->shm_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		return false;
	}
	c->shm = p;
	c->members = (struct nc_member *)(void *)((char *)p + PAGE);
	return true;
}

static bool arrays_new(struct ncclComm *c)
{
	size_t n = (size_t)c->n;

	c->bells = calloc(n, sizeof(*c->bells));
	c->tx = calloc(NC_CHANNELS * n, sizeof *c->tx);
	c->lag_ns = calloc(n, sizeof *c->lag_ns);
	c->ns_per_byte = calloc(n, sizeof *c->ns_per_byte);
	c->p2p_seq[0] = calloc(n, sizeof(uint64_t));
	c->p2p_seq[1] = calloc(n, sizeof(uint64_t));
	return c->bells && c->tx && c->lag_ns && c->ns_per_byte && c->p2p_seq[0] && c->p2p_seq[1];
}

struct ncclComm *nc_comm_attach(const char *name, uint64_t hash, int n, int rank)
{
	struct ncclComm *c = calloc(1, sizeof *c);
	const char *algo = sim_env_text("SIMGPU_NCCL_ALGO");
	static uint64_t n_made;

	if (!c) {
		return NULL;
	}
	c->refs = 1;
	c->n = n;
	c->rank = rank;
	c->hash = hash;
	c->ordinal = __atomic_fetch_add(&n_made, 1, __ATOMIC_RELAXED);
	c->device = sim_device_current();
	c->link_sigma = sim_env_double("SIMGPU_LINK_SIGMA", 0.05);
	c->tree = algo && strcmp(algo, "tree") == 0;
	snprintf(c->name, sizeof c->name, "%s", name);
	if (!map_shared(c) || !arrays_new(c)) {
		nc_comm_unref(c);
		return NULL;
	}
	struct nc_member *me = &c->members[rank];
	me->pid = (int32_t)getpid();
	me->bell_fd = sim_doorbell_fd();
	me->rank_in_world = sim_env_rank();
	me->device = c->device;
	__atomic_add_fetch(&c->shm->joined, 1, __ATOMIC_SEQ_CST);
	nc_shm_wake(&c->shm->event);
	return c;
}

static bool bell_open(struct ncclComm *c, int peer)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", c->members[peer].pid,
		 c->members[peer].bell_fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "simgpu: doorbell of rank %d: %s: %s\n", peer, path,
			strerror(errno));
		return false;
	}
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		return false;
	}
	c->bells[peer] = p;
	return true;
}

/* Bandwidths in GB/s are bytes per ns. */
static void link_model(struct ncclComm *c, int peer)
{
	int me = c->members[c->rank].rank_in_world, other = c->members[peer].rank_in_world;
	bool inside = sim_env_host_of(me) == sim_env_host_of(other);
	double us = inside ? sim_env_double("SIMGPU_INTRA_US", 2.0)
			   : sim_env_double("SIMGPU_INTER_US", 8.0);
	double gbps = inside ? sim_env_double("SIMGPU_INTRA_GBPS", 150.0)
			     : sim_env_double("SIMGPU_INTER_GBPS", 25.0);
	double factor = nc_fault_link_factor(me, other);

	c->lag_ns[peer] = us * 1e3 * factor;
	c->ns_per_byte[peer] = factor / gbps;
}

static void wait_for(struct ncclComm *c, uint32_t *count)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&c->shm->event, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(count, __ATOMIC_SEQ_CST) >= (uint32_t)c->n) {
			return;
		}
		nc_shm_wait(&c->shm->event, seen);
	}
}

ncclResult_t nc_comm_open(struct ncclComm *c)
{
	ncclResult_t r = ncclSuccess;

	wait_for(c, &c->shm->joined);
	for (int i = 0; i < c->n; i++) {
		if (!bell_open(c, i)) {
			r = ncclSystemError;
		}
		link_model(c, i);
	}
	/* All have it mapped: the name can go, so that nothing is left behind by a kill. */
	if (c->rank == 0) {
		shm_unlink(c->name);
	}
	/* Nobody may leave, and end, before the others have opened its doorbell. */
	__atomic_add_fetch(&c->shm->ready, 1, __ATOMIC_SEQ_CST);
	nc_shm_wake(&c->shm->event);
	return r;
}

void nc_comm_wait_open(struct ncclComm *c)
{
	wait_for(c, &c->shm->ready);
}

ncclResult_t nc_comm_wait_joined(struct ncclComm *c)
{
	ncclResult_t r = nc_comm_open(c);

	nc_comm_wait_open(c);
	return r;
}

ncclResult_t nc_comm_state(const struct ncclComm *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

static void *join_main(void *arg)
{
	struct ncclComm *c = arg;
	ncclResult_t r = nc_comm_wait_joined(c);

	__atomic_store_n(&c->state, r, __ATOMIC_RELEASE);
	nc_comm_unref(c);
	return NULL;
}

ncclResult_t nc_comm_join_async(struct ncclComm *c)
{
	pthread_t t;

	c->state = ncclInProgress;
	__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
	if (pthread_create(&t, NULL, join_main, c) != 0) {
		nc_comm_unref(c);
		return ncclSystemError;
	}
	pthread_detach(t);
	return ncclInProgress;
}
