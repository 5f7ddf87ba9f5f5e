/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary file lies where the trace will, since there is room for the like. */
#include "schema/db/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/base/buf.h"

static enum lag_status make(struct lag_spill *spill, const char *path, struct lag_err *err)
{
	struct lag_buf name = { 0 };

	lag_buf_printf(&name, "%s.tmp-XXXXXX", path);
	if (name.failed) {
		lag_buf_release(&name);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	}
	spill->size = 0;
	spill->fd = mkostemp(name.text, O_CLOEXEC);
	if (spill->fd >= 0)
		(void)unlink(name.text);
	lag_buf_release(&name);
	if (spill->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: no temporary file beside it", path);
	return LAG_OK;
}

enum lag_status lag_spill_add(struct lag_spill *spill, const char *path, const void *bytes,
			      size_t n, struct lag_err *err)
{
	enum lag_status st = spill->fd < 0 ? make(spill, path, err) : LAG_OK;
	const char *at = bytes;

	while (n && st == LAG_OK) {
		ssize_t done = pwrite(spill->fd, at, n, (off_t)spill->size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write a temporary file");
		at += done;
		n -= (size_t)done;
		spill->size += (uint64_t)done;
	}
	return st;
}

enum lag_status lag_spill_read(const struct lag_spill *spill, uint64_t at, void *bytes, size_t n,
			       struct lag_err *err)
{
	char *to = bytes;

	while (n) {
		ssize_t done = pread(spill->fd, to, n, (off_t)at);

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

void lag_spill_close(struct lag_spill *spill)
{
	if (spill->fd >= 0)
		(void)close(spill->fd);
	spill->fd = -1;
}
