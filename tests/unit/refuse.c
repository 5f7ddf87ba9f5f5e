/* SPDX-License-Identifier: Apache-2.0 */
/* See refuse.h. */
#include "tests/unit/refuse.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/types.h>

static atomic_int refusal;
static atomic_uint n_refused;

int systems_fallocate(int fd, int mode, off_t at, off_t n) __asm__("__real_fallocate");
int our_fallocate(int fd, int mode, off_t at, off_t n) __asm__("__wrap_fallocate");

int our_fallocate(int fd, int mode, off_t at, off_t n)
{
	int number = atomic_load(&refusal);

	if (!number)
		return systems_fallocate(fd, mode, at, n);
	(void)atomic_fetch_add(&n_refused, 1);
	errno = number;
	return -1;
}

void refuse_allocation(int number)
{
	atomic_store(&n_refused, 0);
	atomic_store(&refusal, number);
}

unsigned n_refused_allocations(void)
{
	return atomic_load(&n_refused);
}
