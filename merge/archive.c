/* SPDX-License-Identifier: Apache-2.0 */
/* Members of tar, zip and 7z archives under any compression, read through libarchive one after the
 * other without unpacking anything to disk. */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/members.h"
#include "merge/source.h"

#define MEMBERS_MAX   1000000u
#define BYTES_MAX     ((uint64_t)1 << 44)
#define RATIO_MAX     2000u /* far above what traces reach; small archives may expand freely */
#define RATIO_FREE    ((uint64_t)1 << 28)
#define READ_BLOCK    ((size_t)1 << 16)
#define MEMBER_NAME_N 4096

struct member_stream {
	struct lag_stream base;
	struct lag_members *members;
	const char *name;
	uint64_t *total;    /* bytes delivered from the whole archive */
	uint64_t size_disk; /* of the archive */
};

bool lag_archive_probe(const uint8_t *head, size_t n)
{
	static const struct {
		size_t at, n;
		const char *magic;
	} known[] = {
		{ 257, 5, "ustar" },
		{ 0, 4, "PK\003\004" },
		{ 0, 4, "\x28\xb5\x2f\xfd" },
		{ 0, 6, "\xfd\x37zXZ\0" },
		{ 0, 3, "BZh" },
		{ 0, 6, "7z\xbc\xaf\x27\x1c" },
		{ 0, 4, "\x04\x22\x4d\x18" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (n >= known[i].at + known[i].n &&
		    memcmp(head + known[i].at, known[i].magic, known[i].n) == 0)
			return true;
	}
	return false;
}

static long member_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct member_stream *ms = (struct member_stream *)st;
	long n = lag_members_read(ms->members, buf, room);

	/* A damaged archive ends here for this member, whose reader sees that it is cut; looking for the
	 * next member then tells why. */
	if (n < 0)
		return 0;
	*ms->total += (uint64_t)n;
	if (*ms->total > BYTES_MAX ||
	    (*ms->total > RATIO_FREE && *ms->total / RATIO_MAX > ms->size_disk)) {
		(void)lag_err_set(err, LAG_ERR_LIMIT,
				  "%s: expands to more than %u times its archive, refused",
				  ms->name, RATIO_MAX);
		return -1;
	}
	return n;
}

static void member_close(struct lag_stream *st)
{
	(void)st;
}

static enum lag_status visit_member(struct archive *ar, struct archive_entry *entry,
				    const char *path, struct member_stream *ms,
				    struct lag_source_visitor *visitor, struct lag_err *err)
{
	const char *inside = archive_entry_pathname(entry);
	char name[MEMBER_NAME_N];
	la_int64_t size = archive_entry_size(entry);

	if (archive_entry_filetype(entry) != AE_IFREG)
		return LAG_OK;
	/* A single compressed file has no member names. */
	if (archive_format(ar) == ARCHIVE_FORMAT_RAW) {
		(void)snprintf(name, sizeof(name), "%s", path);
	} else {
		(void)snprintf(name, sizeof(name), "%s:%s", path, inside ? inside : "?");
	}
	ms->name = name;
	return lag_source_visit_stream(&ms->base, name, size > 0 ? (uint64_t)size : 0, visitor,
				       err);
}

static enum lag_status open_archive(const char *path, struct archive **out,
				    struct lag_members *members, struct lag_err *err)
{
	struct archive *ar = archive_read_new();

	*out = ar;
	if (!ar)
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", path);
	lag_members_init(members, ar);
	(void)archive_read_support_format_raw(ar);
	if (archive_read_open_filename(ar, path, READ_BLOCK) != ARCHIVE_OK)
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", path, archive_error_string(ar));
	return LAG_OK;
}

/* The first damage found is what the archive's walk ends with; members behind it are visited. */
static enum lag_status next_member(struct lag_members *members, const char *path,
				   struct archive_entry **entry, struct lag_err *damage,
				   struct lag_err *err)
{
	struct lag_err why = { 0 };
	enum lag_member next;

	do {
		next = lag_members_next(members, entry, &why);
		if (lag_failed(why.status) && !lag_failed(damage->status))
			(void)lag_err_set(damage, LAG_ERR_INPUT, "%s: %s", path, why.text);
	} while (next == LAG_MEMBER_LOST || next == LAG_MEMBER_SEARCHING);
	if (next != LAG_MEMBER_FOUND)
		return LAG_END;
	if (members->n <= MEMBERS_MAX)
		return LAG_OK;
	return lag_err_set(err, LAG_ERR_LIMIT, "%s: more than %u members", path, MEMBERS_MAX);
}

enum lag_status lag_archive_each(const char *path, struct lag_source_visitor *visitor,
				 struct lag_err *err)
{
	struct archive *ar = NULL;
	struct archive_entry *entry = NULL;
	struct stat sb = { 0 };
	uint64_t total = 0;
	struct member_stream ms = { .base = { member_read, member_close, NULL }, .total = &total };
	struct lag_members members;
	struct lag_err damage = { 0 };
	enum lag_status st = open_archive(path, &ar, &members, err);

	if (st == LAG_OK && stat(path, &sb) == 0)
		ms.size_disk = (uint64_t)sb.st_size;
	ms.members = &members;
	while (st == LAG_OK) {
		st = next_member(&members, path, &entry, &damage, err);
		if (st == LAG_OK)
			st = visit_member(ar, entry, path, &ms, visitor, err);
	}
	if (st == LAG_END) {
		st = damage.status;
		if (lag_failed(st))
			*err = damage;
	}
	if (ar)
		(void)archive_read_free(ar);
	return st;
}
