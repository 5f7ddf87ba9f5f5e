/* SPDX-License-Identifier: Apache-2.0 */
/* The guard page; see guard.h. Opened once by the thread that starts the tracer. */
#include "tracer/guard.h"

#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct lag_guard closed;
struct lag_guard *lag_guard = &closed;

bool lag_guard_open(void)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	if (madvise(page, n, MADV_WIPEONFORK)) {
		munmap(page, n);
		return false;
	}
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	lag_guard = page;
	return true;
}

void lag_guard_set(bool on)
{
	atomic_store(&lag_guard->on, on ? 1u : 0u);
}

bool lag_guard_fence(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}
