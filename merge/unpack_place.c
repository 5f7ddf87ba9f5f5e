/* SPDX-License-Identifier: Apache-2.0 */
/* Every step from the target directory down is an openat of one part of the name that follows no link,
 * so that a link put there in between is an error and never a way out. */
#include "merge/unpack_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/outfile.h"
#include "schema/base/unfinished.h"

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES          100

enum lag_status lag_place_open(struct lag_place *place, const char *dir, bool force,
			       const struct lag_unpack_limits *limits, struct lag_err *err)
{
	struct lag_making making;

	*place = (struct lag_place){ .dir = dir, .root = -1, .force = force, .limits = limits };
	lag_making_begin(&making);
	place->made = mkdir(dir, 0777) == 0 ? dir : NULL;
	if (place->made)
		lag_unfinished_add(AT_FDCWD, dir, true);
	lag_making_end(&making);
	if (!place->made && errno != EEXIST)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s'", dir);
	/* The user named it: a link to a directory is that directory. */
	place->root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->root < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", dir);
	return LAG_OK;
}

void lag_place_close(struct lag_place *place)
{
	if (place->root >= 0)
		(void)close(place->root);
	place->root = -1;
	/* Only an empty one goes. */
	if (place->made) {
		(void)rmdir(place->made);
		lag_unfinished_done(place->made);
	}
}

static const char *next_part(const char *at, size_t *n)
{
	at += strspn(at, "/");
	*n = strcspn(at, "/");
	return at;
}

static bool is_part(const char *part, size_t n, const char *what)
{
	return n == strlen(what) && memcmp(part, what, n) == 0;
}

bool lag_place_name_ok(const struct lag_unpack_limits *limits, const char *name, const char **why)
{
	uint64_t depth = 0;
	size_t n;

	*why = NULL;
	if (name[0] == '/')
		*why = "an absolute path";
	if (strlen(name) > limits->path_bytes)
		*why = "the name is too long";
	for (const char *p = name; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*why = "control characters in the name";
	}
	for (const char *p = next_part(name, &n); n && !*why; p = next_part(p + n, &n)) {
		depth += !is_part(p, n, ".");
		if (is_part(p, n, ".."))
			*why = "leads out of the directory";
		/* Room for the ending of the partial file's name. */
		if (n > NAME_MAX - 16)
			*why = "the name is too long";
	}
	if (!*why && depth == 0)
		*why = "no name";
	if (!*why && depth > limits->depth)
		*why = "nested too deeply";
	return !*why;
}

/* One directory down; the directory is made when it is not there. */
static int enter(int dir, const char *name)
{
	int fd = openat(dir, name, OPEN_DIRECTORY);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdirat(dir, name, 0777) != 0 && errno != EEXIST)
		return -1;
	return openat(dir, name, OPEN_DIRECTORY);
}

static enum lag_status enter_parents(struct lag_place *place, const char *path,
				     struct lag_placed *file, struct lag_err *err)
{
	size_t n, n_next;
	const char *p = next_part(path, &n), *next;

	file->dir = dup(place->root);
	for (; file->dir >= 0; p = next, n = n_next) {
		int below;

		next = next_part(p + n, &n_next);
		while (n_next && is_part(next, n_next, "."))
			next = next_part(next + n_next, &n_next);
		(void)snprintf(file->name, sizeof(file->name), "%.*s", (int)n, p);
		if (!n_next)
			return LAG_OK;
		if (is_part(p, n, "."))
			continue;
		below = enter(file->dir, file->name);
		if (below < 0 && (errno == ENOTDIR || errno == ELOOP)) {
			(void)close(file->dir);
			return lag_err_set(err, LAG_WARN,
					   "'%s' on its way is no directory but a file or link",
					   file->name);
		}
		(void)close(file->dir);
		file->dir = below;
	}
	return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make a directory for '%s/%s'", place->dir,
			     path);
}

static bool may_replace(const struct lag_place *place, const struct lag_placed *file,
			struct lag_err *err)
{
	struct stat sb;

	if (fstatat(file->dir, file->name, &sb, AT_SYMLINK_NOFOLLOW) != 0)
		return true;
	if (!S_ISREG(sb.st_mode)) {
		(void)lag_err_set(err, LAG_WARN, "something that is no file is there");
		return false;
	}
	if (!place->force)
		(void)lag_err_set(err, LAG_WARN, "exists (-f overwrites it)");
	return place->force;
}

/* Whether nobody has the partial file, which is made where `create`; else errno says why. */
static bool is_free(struct lag_placed *file, bool create)
{
	struct lag_making making;
	struct stat sb;

	if (create) {
		lag_making_begin(&making);
		file->fd = openat(file->dir, file->partial,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd >= 0)
			lag_unfinished_add(file->dir, file->partial, false);
		lag_making_end(&making);
		return file->fd >= 0;
	}
	if (fstatat(file->dir, file->partial, &sb, AT_SYMLINK_NOFOLLOW) != 0) {
		lag_unfinished_add(file->dir, file->partial, false);
		return true;
	}
	errno = EEXIST;
	return false;
}

/* Removes a partial file of that name where nobody else is writing into its directory: a killed one has
 * left it. Else errno is EEXIST. */
static bool clear(struct lag_place *place, const struct lag_placed *file)
{
	struct stat sb;
	bool cleared;

	cleared = flock(file->dir, LOCK_EX | LOCK_NB) == 0 &&
		  fstatat(file->dir, file->partial, &sb, AT_SYMLINK_NOFOLLOW) == 0 &&
		  S_ISREG(sb.st_mode) && sb.st_uid == geteuid() &&
		  unlinkat(file->dir, file->partial, 0) == 0;
	/* A lock that is changed may be lost to another's. */
	(void)flock(file->dir, LOCK_SH | LOCK_NB);
	place->n_cleared += cleared;
	errno = EEXIST;
	return cleared;
}

enum lag_status lag_place_begin(struct lag_place *place, const char *name, bool create,
				struct lag_placed *file, struct lag_err *err)
{
	enum lag_status st;

	*file = (struct lag_placed){ .dir = -1, .fd = -1 };
	st = enter_parents(place, name, file, err);
	if (st != LAG_OK)
		return st;
	if (!may_replace(place, file, err)) {
		(void)close(file->dir);
		return LAG_WARN;
	}
	/* Whoever writes into a directory shares its lock, until it ends in whatever way. */
	(void)flock(file->dir, LOCK_SH | LOCK_NB);
	for (int i = 0; i < TRIES; i++) {
		(void)snprintf(file->partial, sizeof(file->partial), ".%.*s.laggard-%02d",
			       NAME_MAX - 16, file->name, i);
		if (is_free(file, create) ||
		    (errno == EEXIST && clear(place, file) && is_free(file, create)))
			return LAG_OK;
		if (errno != EEXIST)
			break;
	}
	st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot make '%s/%s'", place->dir, name);
	(void)close(file->dir);
	return st;
}

void lag_place_move(const struct lag_placed *from, struct lag_placed *to)
{
	struct lag_making making;

	lag_making_begin(&making);
	lag_unfinished_done(from->partial);
	*to = *from;
	lag_unfinished_add(to->dir, to->partial, false);
	lag_making_end(&making);
}

void lag_place_partial_path(const struct lag_placed *file, char *path, size_t room)
{
	(void)snprintf(path, room, "/proc/self/fd/%d/%s", file->dir, file->partial);
}

enum lag_status lag_place_end(struct lag_place *place, struct lag_placed *file, bool keep,
			      struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (file->fd >= 0 && close(file->fd) != 0 && keep) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write");
		keep = false;
	}
	if (keep && !lag_outfile_rename(file->dir, file->partial, file->name, place->force)) {
		st = lag_err_errno(err, errno == EEXIST ? LAG_WARN : LAG_ERR_SYSTEM,
				   "cannot make '%s'", file->name);
		keep = false;
	}
	if (!keep)
		(void)unlinkat(file->dir, file->partial, 0);
	lag_unfinished_done(file->partial);
	(void)close(file->dir);
	file->dir = file->fd = -1;
	return st;
}
