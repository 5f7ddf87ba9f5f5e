/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the host shim share. */
#ifndef SIM_HOST_SIMHOST_H
#define SIM_HOST_SIMHOST_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

int simhost_present(void);
/* The calling thread's own time, in true ns, less the lateness that was forgiven (simhost_debt). */
int64_t simhost_now(void);
int64_t simhost_debt(void);
/* The thread has waited for something that was due at this moment of its own time. */
void simhost_woke(int64_t due_ns);
/* The thread makes a call whose moment matters: forgives what held it up since the last one. */
void simhost_call(void);
/* The next definition of a function that this library replaces. */
void *simhost_real(const char *name);

/* Also exported by glibc, without a prototype in its headers. */
int __clock_gettime(clockid_t id, struct timespec *t); /* NOLINT: libc's name */

#endif
