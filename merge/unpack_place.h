/* SPDX-License-Identifier: Apache-2.0 */
/* Files below one directory and never outside it, whatever their names say and whoever changes the
 * directory meanwhile. Between unpack_place.c and unpack.c. */
#ifndef MERGE_UNPACK_PLACE_H
#define MERGE_UNPACK_PLACE_H

#include <limits.h>
#include <sys/types.h>

#include "merge/pack.h"

struct lag_place {
	const char *dir;  /* for messages; borrowed */
	int root;         /* the directory, opened once */
	const char *made; /* its name, where it was not there before; borrowed */
	bool force;
	unsigned n_cleared; /* partial files of killed ones that were removed */
	const struct lag_unpack_limits *limits;
};

/* A file being written under a name of its own in the directory where it will be. */
struct lag_placed {
	int dir, fd; /* fd -1: somebody else makes the file under `partial` */
	char name[NAME_MAX + 1];
	char partial[NAME_MAX + 1];
};

enum lag_status lag_place_open(struct lag_place *place, const char *dir, bool force,
			       const struct lag_unpack_limits *limits,
			       struct lag_err *err) LAG_MUST_USE;
/* Removes a directory that it made and nothing was put into. */
void lag_place_close(struct lag_place *place);

/* Is it a name that may be made below a directory? Else *why says what it has: an absolute path,
 * "..", control characters, too many or too long parts. */
bool lag_place_name_ok(const struct lag_unpack_limits *limits, const char *name, const char **why);

/* Begins the file `name` and makes the directories above it. LAG_WARN: it may not be there, *err says
 * why (exists, a link or file where a directory should be). create: also makes the partial file. */
enum lag_status lag_place_begin(struct lag_place *place, const char *name, bool create,
				struct lag_placed *file, struct lag_err *err) LAG_MUST_USE;

/* A path of `partial` for those who cannot take a directory and a name. */
/* The file is known by where its struct lies. */
void lag_place_move(const struct lag_placed *from, struct lag_placed *to);

void lag_place_partial_path(const struct lag_placed *file, char *path, size_t room);

/* Gives the file its name, or removes it. LAG_WARN: something of that name came meanwhile. */
enum lag_status lag_place_end(struct lag_place *place, struct lag_placed *file, bool keep,
			      struct lag_err *err) LAG_MUST_USE;

#endif
