/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/self/task/<tid>/comm of threads that appear in records. Writer thread, but for claim. */
#include "tracer/names.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 4096u /* power of two; threads beyond go without a name */
#define N_CLAIMED 256u

static struct {
	struct {
		uint32_t tid;
		char name[16]; /* as long as the kernel keeps */
	} seen[N_THREADS];

	uint32_t n;
	_Atomic uint32_t claimed[N_CLAIMED];
	_Atomic uint32_t n_claimed;
} names;

void lag_names_claim(uint32_t tid)
{
	uint32_t i = atomic_fetch_add(&names.n_claimed, 1);

	if (i < N_CLAIMED)
		atomic_store(&names.claimed[i], tid);
}

static bool is_claimed(uint32_t tid)
{
	uint32_t n = atomic_load(&names.n_claimed);

	for (uint32_t i = 0; i < n && i < N_CLAIMED; i++) {
		if (atomic_load(&names.claimed[i]) == tid)
			return true;
	}
	return false;
}

static void write_name(struct lag_trace_producer *prod, uint32_t slot)
{
	uint32_t tid = names.seen[slot].tid;
	char path[48], name[16];
	struct lag_record rec;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, name, sizeof(name));
	close(fd);
	if (n < 1)
		return;
	name[n - 1] = 0; /* a line */
	if (!strcmp(name, names.seen[slot].name) || is_claimed(tid))
		return;
	memcpy(names.seen[slot].name, name, sizeof(name));
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = tid;
	rec.thread.name = lag_trace_string(prod, name, strlen(name));
	(void)lag_trace_append(prod, &rec);
}

void lag_names_see(struct lag_trace_producer *prod, uint32_t tid)
{
	uint32_t slot = (tid * 2654435761u) % N_THREADS;

	while (names.seen[slot].tid && names.seen[slot].tid != tid)
		slot = (slot + 1) % N_THREADS;
	if (names.seen[slot].tid || names.n == N_THREADS / 2)
		return;
	names.n++;
	names.seen[slot].tid = tid;
	write_name(prod, slot);
}

void lag_names_refresh(struct lag_trace_producer *prod)
{
	for (uint32_t slot = 0; slot < N_THREADS; slot++) {
		if (names.seen[slot].tid)
			write_name(prod, slot);
	}
}
