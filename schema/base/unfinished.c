/* SPDX-License-Identifier: Apache-2.0 */
/* A handler has nothing but what is static; all that it touches is atomic. */
#include "schema/base/unfinished.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define N_FILES 256

struct unfinished {
	_Atomic(const char *) path; /* NULL: free. Written last */
	atomic_int at;
	atomic_int flags;
	atomic_bool taken;
};

static struct unfinished files[N_FILES];
static atomic_int n_making;
static atomic_bool at_end, has_result;

static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)nanosleep(&ms, NULL);
}

void lag_making_begin(struct lag_making *making)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &making->mask);
	(void)atomic_fetch_add(&n_making, 1);
	while (atomic_load(&at_end)) {
		(void)atomic_fetch_sub(&n_making, 1);
		nap();
		(void)atomic_fetch_add(&n_making, 1);
	}
}

void lag_making_end(struct lag_making *making)
{
	(void)atomic_fetch_sub(&n_making, 1);
	(void)pthread_sigmask(SIG_SETMASK, &making->mask, NULL);
}

void lag_unfinished_add(int at, const char *path, bool directory)
{
	for (size_t i = 0; i < N_FILES; i++) {
		if (atomic_exchange(&files[i].taken, true))
			continue;
		atomic_store(&files[i].at, at);
		atomic_store(&files[i].flags, directory ? AT_REMOVEDIR : 0);
		atomic_store(&files[i].path, path);
		return;
	}
}

void lag_unfinished_done(const char *path)
{
	for (size_t i = 0; i < N_FILES; i++) {
		if (atomic_load(&files[i].path) != path)
			continue;
		atomic_store(&files[i].path, NULL);
		atomic_store(&files[i].taken, false);
		return;
	}
}

void lag_unfinished_is_result(const char *path)
{
	lag_unfinished_done(path);
	atomic_store(&has_result, true);
}

enum lag_left lag_unfinished_remove_all(void)
{
	enum lag_left left = LAG_LEFT_NOTHING;

	atomic_store(&at_end, true);
	while (atomic_load(&n_making) > 0)
		nap();
	/* What lies in a directory was listed after it. */
	for (size_t i = N_FILES; i-- > 0;) {
		const char *path = atomic_load(&files[i].path);

		if (path &&
		    unlinkat(atomic_load(&files[i].at), path, atomic_load(&files[i].flags)) == 0)
			left = LAG_LEFT_REMOVED;
	}
	if (left == LAG_LEFT_NOTHING && atomic_load(&has_result))
		left = LAG_LEFT_RESULT;
	return left;
}
