/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of members, one after the other, out of libarchive. */
#include "merge/members.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdio.h>

void lag_members_init(struct lag_members *members, struct archive *ar)
{
	*members = (struct lag_members){ .ar = ar };
	(void)archive_read_support_filter_all(ar);
	(void)archive_read_support_format_tar(ar);
	(void)archive_read_support_format_zip(ar);
	(void)archive_read_support_format_7zip(ar);
	/* Else the first block of zeros where a header should be is the end, whatever comes behind it. */
	(void)archive_read_set_format_option(ar, "tar", "read_concatenated_archives", "1");
}

/* A tar file that was cut between two members ends like a whole one, but for the mark at its end. */
static bool ended_well(struct archive *ar)
{
	if ((archive_format(ar) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_TAR)
		return true;
	/* Looking for another header has read the mark, or nothing. */
	return archive_filter_bytes(ar, 0) > archive_read_header_position(ar);
}

static void say(const struct lag_members *m, const char *what, const char *why, struct lag_err *err)
{
	la_int64_t at = archive_read_header_position(m->ar);

	(void)lag_err_set(err, LAG_ERR_INPUT, "%s after member %" PRIu64 " (byte %lld)%s%s", what,
			  m->n, (long long)(at > 0 ? at : 0), why ? ": " : "", why ? why : "");
}

/* Kept: libarchive forgets it when it is asked for more. */
static void end_here(struct lag_members *m)
{
	const char *why = archive_error_string(m->ar);

	m->fatal = true;
	(void)snprintf(m->why, sizeof(m->why), "%s", why ? why : "not readable");
}

enum lag_member lag_members_next(struct lag_members *m, struct archive_entry **entry,
				 struct lag_err *err)
{
	int rc = m->fatal ? ARCHIVE_FATAL : archive_read_next_header(m->ar, entry);
	bool searched = m->searching;

	m->searching = rc == ARCHIVE_RETRY;
	if (rc == ARCHIVE_OK || rc == ARCHIVE_WARN) {
		m->n++;
		return LAG_MEMBER_FOUND;
	}
	if (rc == ARCHIVE_EOF && (searched || ended_well(m->ar)))
		return LAG_MEMBER_END;
	if (rc == ARCHIVE_EOF) {
		say(m, "cut off", NULL, err);
		return LAG_MEMBER_CUT;
	}
	if (rc == ARCHIVE_RETRY && searched)
		return LAG_MEMBER_SEARCHING;
	if (rc == ARCHIVE_RETRY) {
		say(m, "damaged", "no header of a member is there", err);
		return LAG_MEMBER_LOST;
	}
	if (!m->fatal)
		end_here(m);
	say(m, "damaged", m->why, err);
	return LAG_MEMBER_FATAL;
}

long lag_members_read(struct lag_members *m, void *buf, size_t room)
{
	la_ssize_t n;

	do {
		n = m->fatal ? ARCHIVE_FATAL : archive_read_data(m->ar, buf, room);
	} while (n == ARCHIVE_RETRY);
	if (n == ARCHIVE_FATAL && !m->fatal)
		end_here(m);
	return n < 0 ? -1 : (long)n;
}
