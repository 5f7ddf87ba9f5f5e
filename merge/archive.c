/* SPDX-License-Identifier: Apache-2.0 */
/* Members of tar, zip and 7z archives under any compression, read through libarchive one after the
 * other without unpacking anything to disk. */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/source.h"

#define MEMBERS_MAX   1000000u
#define BYTES_MAX     ((uint64_t)1 << 44)
#define RATIO_MAX     2000u /* far above what traces reach; small archives may expand freely */
#define RATIO_FREE    ((uint64_t)1 << 28)
#define READ_BLOCK    ((size_t)1 << 16)
#define MEMBER_NAME_N 4096

struct member_stream {
	struct lag_stream base;
	struct archive *archive;
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
	ssize_t n = archive_read_data(ms->archive, buf, room);

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
	return (long)n;
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

static enum lag_status open_archive(const char *path, struct archive **out, struct lag_err *err)
{
	struct archive *ar = archive_read_new();

	*out = ar;
	if (!ar)
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", path);
	(void)archive_read_support_filter_all(ar);
	(void)archive_read_support_format_tar(ar);
	(void)archive_read_support_format_zip(ar);
	(void)archive_read_support_format_7zip(ar);
	(void)archive_read_support_format_raw(ar);
	if (archive_read_open_filename(ar, path, READ_BLOCK) != ARCHIVE_OK)
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", path, archive_error_string(ar));
	return LAG_OK;
}

bool lag_archive_ended_well(struct archive *ar)
{
	if ((archive_format(ar) & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_TAR)
		return true;
	/* Looking for another header has read the mark, or nothing. */
	return archive_filter_bytes(ar, 0) > archive_read_header_position(ar);
}

enum lag_status lag_archive_each(const char *path, struct lag_source_visitor *visitor,
				 struct lag_err *err)
{
	struct archive *ar = NULL;
	struct archive_entry *entry = NULL;
	struct stat sb = { 0 };
	uint64_t total = 0;
	struct member_stream ms = { .base = { member_read, member_close, NULL }, .total = &total };
	enum lag_status st = open_archive(path, &ar, err);

	if (st == LAG_OK && stat(path, &sb) == 0)
		ms.size_disk = (uint64_t)sb.st_size;
	ms.archive = ar;
	for (unsigned n = 0; st == LAG_OK; n++) {
		int rc = archive_read_next_header(ar, &entry);

		if (rc == ARCHIVE_EOF) {
			if (!lag_archive_ended_well(ar))
				st = lag_err_set(err, LAG_ERR_INPUT, "%s: cut off", path);
			break;
		}
		if (rc < ARCHIVE_WARN) {
			st = lag_err_set(err, LAG_ERR_INPUT, "%s: %s", path,
					 archive_error_string(ar));
		} else if (n == MEMBERS_MAX) {
			st = lag_err_set(err, LAG_ERR_LIMIT, "%s: more than %u members", path,
					 MEMBERS_MAX);
		} else {
			st = visit_member(ar, entry, path, &ms, visitor, err);
		}
	}
	if (ar)
		(void)archive_read_free(ar);
	return st;
}
