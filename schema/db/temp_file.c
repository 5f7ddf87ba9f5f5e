/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary file lies where the trace will, since there is room for the like. */
#include "schema/db/temp_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/io.h"

static enum lag_status make(struct lag_temp_file *file, const char *path, struct lag_err *err)
{
	const char *slash = strrchr(path, '/');
	/* Of "/trace" the slash itself. */
	size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
	char *folder = n ? strndup(path, n) : strdup(".");

	if (!folder)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	file->size = 0;
	file->fd = lag_io_nameless(folder);
	free(folder);
	if (file->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: no temporary file beside it", path);
	return LAG_OK;
}

enum lag_status lag_temp_file_add(struct lag_temp_file *file, const char *path, const void *bytes,
				  size_t n, struct lag_err *err)
{
	enum lag_status st = file->fd < 0 ? make(file, path, err) : LAG_OK;

	if (st != LAG_OK)
		return st;
	if (!lag_io_write_at(file->fd, bytes, n, file->size))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write a temporary file");
	file->size += n;
	return LAG_OK;
}

enum lag_status lag_temp_file_read(const struct lag_temp_file *file, uint64_t at, void *bytes,
				   size_t n, struct lag_err *err)
{
	ssize_t got = lag_io_read_at(file->fd, bytes, n, at);

	if (got < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot read a temporary file");
	if ((size_t)got < n)
		return lag_err_set(err, LAG_ERR_SYSTEM, "a temporary file is cut off");
	return LAG_OK;
}

void lag_temp_file_close(struct lag_temp_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	file->fd = -1;
}
