/* SPDX-License-Identifier: Apache-2.0 */
/* Who the simulated host is: its name and boot id. Opening the kernel's boot_id file yields a
 * memory file with the host's own; everything else passes through. */
#include "tests/simgpu/common/simclock.h"
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/host/simhost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static void host_name(char *out, size_t size)
{
	const char *prefix = sim_env_text("SIMGPU_HOST_PREFIX");

	snprintf(out, size, "%s%d", prefix ? prefix : "simhost", sim_clock_map()->host);
}

int uname(struct utsname *u)
{
	long rc = syscall(SYS_uname, u);

	if (rc == 0) {
		host_name(u->nodename, sizeof u->nodename);
	}
	return (int)rc;
}

int gethostname(char *name, size_t size)
{
	char mine[64];

	host_name(mine, sizeof mine);
	if (strlen(mine) >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, mine, strlen(mine) + 1);
	return 0;
}

/* SIMGPU_BOOT_ID, else drawn from the seed for this host. */
static void boot_id(char out[38])
{
	const char *given = sim_env_text("SIMGPU_BOOT_ID");

	if (given) {
		snprintf(out, 38, "%.36s\n", given);
		return;
	}
	uint64_t host = (uint64_t)sim_clock_map()->host;
	uint64_t a = sim_rand_u64(SIM_RAND_BOOT, 2 * host);
	uint64_t b = sim_rand_u64(SIM_RAND_BOOT, 2 * host + 1);

	snprintf(out, 38, "%08x-%04x-4%03x-a%03x-%012llx\n", (unsigned)(a >> 32),
		 (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 52),
		 (unsigned long long)(b & 0xffffffffffffULL));
}

static int boot_id_open(void)
{
	char id[38];
	int fd = memfd_create("boot_id", MFD_CLOEXEC);

	if (fd < 0) {
		return -1;
	}
	boot_id(id);
	if (write(fd, id, strlen(id)) < 0) {
		close(fd);
		return -1;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
	if (path && strcmp(path, BOOT_ID) == 0) {
		return boot_id_open();
	}
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static bool takes_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	if (takes_mode(flags)) {
		va_list ap;
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return open_path(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;

	if (takes_mode(flags)) {
		va_list ap;
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return open_path(dir, path, flags, mode);
}

/* off_t is 64 bits wide here, so the 64 variants are the same functions. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));

FILE *fopen(const char *restrict path, const char *restrict mode)
{
	FILE *(*real)(const char *, const char *);
	void *sym = simhost_real("fopen");

	if (path && strcmp(path, BOOT_ID) == 0) {
		int fd = boot_id_open();
		return fd < 0 ? NULL : fdopen(fd, "r");
	}
	memcpy(&real, &sym, sizeof real);
	return real(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) __attribute__((alias("fopen")));
