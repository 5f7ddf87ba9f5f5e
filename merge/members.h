/* SPDX-License-Identifier: Apache-2.0 */
/* From one member of an archive to the next, past what is damaged. For those who read archives through
 * libarchive: it passes over damage without a word, and takes a block of zeros for the end. */
#ifndef MERGE_MEMBERS_H
#define MERGE_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct archive;
struct archive_entry;

struct lag_members {
	struct archive *ar; /* borrowed */
	uint64_t n;         /* members found */
	bool searching;     /* since damage */
	bool fatal;         /* nothing more can be read, for the reason in `why` */
	char why[160];
};

enum lag_member {
	LAG_MEMBER_FOUND,
	LAG_MEMBER_LOST, /* damage: the next one is searched for by calling again; *err says where */
	LAG_MEMBER_SEARCHING, /* call again */
	LAG_MEMBER_END,
	LAG_MEMBER_CUT,   /* the end, and no archive ends like this */
	LAG_MEMBER_FATAL, /* damage that ends it */
};

/* Formats that are archives, any compression of them, and archives that follow each other in one file. */
void lag_members_init(struct lag_members *members, struct archive *ar);

/* *entry is the member's until the next call. *err is set by all but FOUND, SEARCHING and END, and begins
 * with "damaged after member 3 (byte 4096)" or "cut off after member 3". */
enum lag_member lag_members_next(struct lag_members *members, struct archive_entry **entry,
				 struct lag_err *err) LAG_MUST_USE;

/* Up to room bytes of the member; 0 at its end, -1 where it is damaged. */
long lag_members_read(struct lag_members *members, void *buf, size_t room) LAG_MUST_USE;

#endif
