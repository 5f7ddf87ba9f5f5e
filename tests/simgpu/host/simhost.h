/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the host shim share. */
#ifndef SIM_HOST_SIMHOST_H
#define SIM_HOST_SIMHOST_H

#include <stdbool.h>
#include <time.h>

int simhost_present(void);
/* The next definition of a function that this library replaces. */
void *simhost_real(const char *name);

/* Also exported by glibc, without a prototype in its headers. */
int __clock_gettime(clockid_t id, struct timespec *t); /* NOLINT: libc's name */

#endif
