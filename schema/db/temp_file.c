/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary file lies where the trace will, since there is room for the like. */
#include "schema/db/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/base/buf.h"

static enum lag_status make(struct lag_temp_file *file, const char *path, struct lag_err *err)
{
	struct lag_buf name = { 0 };

	lag_buf_printf(&name, "%s.tmp-XXXXXX", path);
	if (name.failed) {
		lag_buf_release(&name);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	}
	file->size = 0;
	file->fd = mkostemp(name.text, O_CLOEXEC);
	if (file->fd >= 0)
		(void)unlink(name.text);
	lag_buf_release(&name);
	if (file->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: no temporary file beside it", path);
	return LAG_OK;
}

enum lag_status lag_temp_file_add(struct lag_temp_file *file, const char *path, const void *bytes,
				  size_t n, struct lag_err *err)
{
	enum lag_status st = file->fd < 0 ? make(file, path, err) : LAG_OK;
	const char *at = bytes;

	while (n && st == LAG_OK) {
		ssize_t done = pwrite(file->fd, at, n, (off_t)file->size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write a temporary file");
		at += done;
		n -= (size_t)done;
		file->size += (uint64_t)done;
	}
	return st;
}

enum lag_status lag_temp_file_read(const struct lag_temp_file *file, uint64_t at, void *bytes,
				   size_t n, struct lag_err *err)
{
	char *to = bytes;

	while (n) {
		ssize_t done = pread(file->fd, to, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot read a temporary file");
		if (done == 0)
			return lag_err_set(err, LAG_ERR_SYSTEM, "a temporary file is cut off");
		to += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return LAG_OK;
}

void lag_temp_file_close(struct lag_temp_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	file->fd = -1;
}
