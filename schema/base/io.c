/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, and files without names. */
#include "schema/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/base/unfinished.h"

/* at: -1 = the file's position. */
static bool put(int fd, const char *bytes, size_t n, off_t at)
{
	while (n) {
		ssize_t done = at < 0 ? write(fd, bytes, n) : pwrite(fd, bytes, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			/* Nothing written, and no reason given. */
			errno = done ? errno : EIO;
			return false;
		}
		bytes += done;
		n -= (size_t)done;
		at += at < 0 ? 0 : done;
	}
	return true;
}

bool lag_io_write(int fd, const void *bytes, size_t n)
{
	return put(fd, bytes, n, -1);
}

bool lag_io_write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	return put(fd, bytes, n, (off_t)at);
}

ssize_t lag_io_read_at(int fd, void *out, size_t n, uint64_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t done = pread(fd, (char *)out + got, n - got, (off_t)(at + got));

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && !got)
			return -1;
		if (done <= 0)
			break;
		got += (size_t)done;
	}
	return (ssize_t)got;
}

int lag_io_nameless(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct lag_making making;
	char path[4096];

	if (fd >= 0)
		return fd;
	/* Not every file system knows files without names. */
	if (snprintf(path, sizeof(path), "%s/laggard.XXXXXX", folder) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	lag_making_begin(&making);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	lag_making_end(&making);
	return fd;
}
