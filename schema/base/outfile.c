/* SPDX-License-Identifier: Apache-2.0 */
/* Where results go: a temporary file beside the target that is renamed when whole, or standard output
 * or a device. */
#include "schema/base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/io.h"
#include "schema/base/unfinished.h"

#define ENDING     ".laggard-XXXXXX"
#define ENDING_LEN (sizeof(ENDING) - 1)
#define RANDOM_LEN 6

/* ---- names ---- */

bool lag_outfile_rename(int folder, const char *from, const char *to, bool replace)
{
	if (replace)
		return renameat(folder, from, folder, to) == 0;
	if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	if (linkat(folder, from, folder, to, 0) == 0)
		return unlinkat(folder, from, 0) == 0;
	if (errno == EEXIST)
		return false;
	/* Neither is known here: a look has to do. */
	if (faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return false;
	}
	return renameat(folder, from, folder, to) == 0;
}

const char *lag_outfile_tmp(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && folder[0] ? folder : "/tmp";
}

/* ---- what killed ones left ---- */

bool lag_outfile_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Whether this is what an unfinished `output`, a name without its folder, is called. */
static bool is_unfinished(const char *name, const char *output)
{
	size_t n = strlen(output);

	return strlen(name) == n + ENDING_LEN && strncmp(name, output, n) == 0 &&
	       strncmp(name + n, ENDING, ENDING_LEN - RANDOM_LEN) == 0;
}

/* Who makes the file holds a lock on it, until it ends in whatever way. */
static bool clear_one(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat sb;
	bool cleared;

	if (fd < 0)
		return false;
	cleared = fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && sb.st_uid == geteuid() &&
		  lag_outfile_lock(fd) && unlinkat(folder, name, 0) == 0;
	(void)close(fd);
	return cleared;
}

static unsigned clear_predecessors(const char *output)
{
	const char *slash = strrchr(output, '/');
	const struct dirent *entry;
	unsigned n = 0;
	char *folder;
	DIR *dir;

	folder = slash ? strndup(output, (size_t)(slash - output) + 1) : strdup(".");
	dir = folder ? opendir(folder) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (is_unfinished(entry->d_name, slash ? slash + 1 : output))
			n += clear_one(dirfd(dir), entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	free(folder);
	return n;
}

/* ---- a file ---- */

static void release(struct lag_outfile *f)
{
	if (f->partial)
		lag_unfinished_done(f->partial);
	free(f->path);
	free(f->partial);
	f->path = f->partial = NULL;
	f->fd = f->lock = -1;
}

/* A name of its own: neither another result nor a file of the user's has it. */
static bool make_partial(struct lag_outfile *f)
{
	size_t n = strlen(f->path);
	struct lag_making making;
	struct stat sb;

	do {
		if (f->fd >= 0) {
			lag_unfinished_done(f->partial);
			(void)close(f->fd);
		}
		memcpy(f->partial + n, ENDING, sizeof(ENDING));
		lag_making_begin(&making);
		f->fd = mkostemp(f->partial, O_CLOEXEC);
		if (f->fd >= 0)
			lag_unfinished_add(AT_FDCWD, f->partial, false);
		lag_making_end(&making);
		if (f->fd < 0)
			return false;
		/* Where there are no locks, nobody can take one and remove it either. Between making
		 * and locking somebody could: then another one is made. */
		(void)flock(f->fd, LOCK_EX | LOCK_NB);
	} while (fstat(f->fd, &sb) == 0 && sb.st_nlink == 0);
	/* A lock is the open file's, whatever number it has. */
	f->lock = fcntl(f->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return true;
}

enum lag_status lag_outfile_make(struct lag_outfile *f, const char *path, struct lag_err *err)
{
	size_t n = strlen(path);
	enum lag_status st;
	mode_t mask;

	*f = (struct lag_outfile){ .path = strdup(path), .fd = -1, .lock = -1 };
	f->partial = malloc(n + sizeof(ENDING));
	f->name = f->path;
	if (!f->path || !f->partial) {
		release(f);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	}
	f->n_cleared = clear_predecessors(path);
	memcpy(f->partial, path, n);
	if (!make_partial(f)) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", path);
		release(f);
		return st;
	}
	/* mkostemp is 0600; a result is a file like any other. */
	mask = umask(0);
	(void)umask(mask);
	(void)fchmod(f->fd, 0666 & ~mask);
	return LAG_OK;
}

static enum lag_status open_in_place(struct lag_outfile *f, const char *path, int fd,
				     struct lag_err *err)
{
	*f = (struct lag_outfile){ .path = strdup(path), .fd = fd, .lock = -1 };
	if (!f->path)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	f->name = fd == STDOUT_FILENO ? "standard output" : f->path;
	if (f->fd < 0)
		f->fd = open(path, O_WRONLY | O_CLOEXEC);
	if (f->fd < 0) {
		enum lag_status st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", path);

		release(f);
		return st;
	}
	return LAG_OK;
}

static bool is_standard_output(const char *path)
{
	return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0 ||
	       strcmp(path, "/dev/fd/1") == 0 || strcmp(path, "/proc/self/fd/1") == 0;
}

enum lag_status lag_outfile_open(struct lag_outfile *f, const char *path, bool force,
				 struct lag_err *err)
{
	bool there, is_link;
	enum lag_status st;
	char *full = NULL;
	struct stat sb;

	*f = (struct lag_outfile){ .fd = -1, .lock = -1 };
	if (is_standard_output(path))
		return open_in_place(f, path, STDOUT_FILENO, err);
	/* Devices and pipes are written to, never replaced. */
	there = stat(path, &sb) == 0;
	if (there && !S_ISREG(sb.st_mode))
		return open_in_place(f, path, -1, err);
	/* A link stands for what it points to. */
	is_link = lstat(path, &sb) == 0 && S_ISLNK(sb.st_mode);
	if (is_link && !(full = realpath(path, NULL)))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot open %s", path);
	path = full ? full : path;
	if (!path[0]) {
		st = lag_err_set(err, LAG_ERR_USAGE, "the output has no name");
	} else if (there && !force) {
		st = lag_err_set(err, LAG_ERR_USAGE, "'%s' exists (-f overwrites it)", path);
	} else {
		st = lag_outfile_make(f, path, err);
	}
	f->force = force;
	free(full);
	return st;
}

enum lag_status lag_outfile_write(struct lag_outfile *f, const void *bytes, size_t n,
				  struct lag_err *err)
{
	if (!lag_io_write(f->fd, bytes, n))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	return LAG_OK;
}

static enum lag_status give_name(struct lag_outfile *f, struct lag_err *err)
{
	enum lag_status st = f->may_end ? f->may_end(f->state, err) : LAG_OK;
	struct lag_making making;
	bool named;

	if (st != LAG_OK)
		return st;
	lag_making_begin(&making);
	named = lag_outfile_rename(AT_FDCWD, f->partial, f->path, f->force);
	if (named)
		lag_unfinished_is_result(f->partial);
	lag_making_end(&making);
	if (named)
		return LAG_OK;
	if (errno == EEXIST) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "'%s' came into being meanwhile (-f overwrites it)", f->path);
	}
	return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", f->path);
}

enum lag_status lag_outfile_close(struct lag_outfile *f, bool keep, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (f->fd > STDERR_FILENO && close(f->fd) < 0)
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write %s", f->name);
	if (f->partial) {
		if (keep && st == LAG_OK)
			st = give_name(f, err);
		if (!keep || st != LAG_OK)
			(void)unlink(f->partial);
	}
	if (f->lock >= 0)
		(void)close(f->lock);
	release(f);
	return st;
}
