/* SPDX-License-Identifier: Apache-2.0 */
/* Where results go: a temporary file beside the target that is renamed when whole, or standard output
 * or a device. */
#include "schema/base/outfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/io.h"
#include "schema/base/unfinished.h"

static enum lag_status open_partial(struct lag_outfile *f, bool force, struct lag_err *err)
{
	static const char ending[] = ".XXXXXX.part";
	size_t n = strlen(f->path);
	struct lag_making making;
	struct stat there;
	mode_t mask;

	/* A link stands for what it points to: replacing it could replace a name such as /dev/stdout. */
	if (lstat(f->path, &there) == 0 && S_ISLNK(there.st_mode)) {
		char *full = realpath(f->path, NULL);

		if (!full)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", f->name);
		free(f->path);
		f->path = full;
		f->name = full;
		n = strlen(full);
	}
	/* Devices and pipes are written to, never replaced. */
	if (stat(f->path, &there) == 0 && !S_ISREG(there.st_mode)) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", f->name)
				 : LAG_OK;
	}
	if (!force && access(f->path, F_OK) == 0)
		return lag_err_set(err, LAG_ERR_USAGE, "'%s' exists (-f overwrites it)", f->path);
	if (n == 0)
		return lag_err_set(err, LAG_ERR_USAGE, "the output has no name");
	f->partial = malloc(n + sizeof(ending));
	if (!f->partial)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	memcpy(f->partial, f->path, n);
	memcpy(f->partial + n, ending, sizeof(ending));
	/* A name of its own: neither another result nor a file of the user's has it. */
	lag_making_begin(&making);
	f->fd = mkostemps(f->partial, sizeof(".part") - 1, O_CLOEXEC);
	if (f->fd >= 0)
		lag_unfinished_add(AT_FDCWD, f->partial, false);
	lag_making_end(&making);
	if (f->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", f->path);
	mask = umask(0);
	(void)umask(mask);
	(void)fchmod(f->fd, 0666 & ~mask);
	return LAG_OK;
}

static void release(struct lag_outfile *f)
{
	if (f->partial)
		lag_unfinished_done(f->partial);
	free(f->path);
	free(f->partial);
	*f = (struct lag_outfile){ .fd = -1 };
}

enum lag_status lag_outfile_open(struct lag_outfile *f, const char *path, bool force,
				 struct lag_err *err)
{
	enum lag_status st;

	*f = (struct lag_outfile){ .path = strdup(path), .fd = STDOUT_FILENO };
	if (!f->path)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	if (strcmp(path, "-") == 0) {
		f->name = "standard output";
		return LAG_OK;
	}
	f->name = f->path;
	f->fd = -1;
	st = open_partial(f, force, err);
	if (lag_failed(st))
		release(f);
	return st;
}

enum lag_status lag_outfile_write(struct lag_outfile *f, const void *bytes, size_t n,
				  struct lag_err *err)
{
	if (!lag_io_write(f->fd, bytes, n))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	return LAG_OK;
}

enum lag_status lag_outfile_close(struct lag_outfile *f, bool keep, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (f->fd > STDERR_FILENO && close(f->fd) < 0)
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	if (f->partial) {
		if (!keep || lag_failed(st)) {
			(void)unlink(f->partial);
		} else if (rename(f->partial, f->path) < 0) {
			st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", f->path);
			(void)unlink(f->partial);
		}
	}
	release(f);
	return st;
}
