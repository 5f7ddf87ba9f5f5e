/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an archive from anybody through libarchive and puts its files in place, member by member. Only
 * regular files are made; what else is in there is refused by name. */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/lagz.h"
#include "merge/members.h"
#include "merge/pack.h"
#include "merge/source.h"
#include "merge/unpack_place.h"
#include "schema/base/fmt.h"
#include "schema/base/io.h"

#define READ_BLOCK ((size_t)1 << 16)
#define COPY_BLOCK ((size_t)1 << 18)
#define NAME_SHOWN 300

struct unpack {
	const struct lag_unpack_opts *opts;
	struct lag_pack_receipt *receipt;
	struct archive *ar;
	struct lag_members members;
	const char *input; /* for messages */
	uint64_t size_in;  /* of the archive; 0 = not known */
	struct lag_place place;
	struct lag_packed_budget budget;
	uint64_t n_budget; /* bytes allowed so far */
	uint8_t *block;
	/* A file that is written and gets its name when the archive goes on well behind it: zstd's
	 * checksums come after what they are of. */
	struct lag_placed waiting;
	bool waits, waiting_is_recording;
	/* The member being read; also the one that waits, until the next header is read. */
	char shown[NAME_SHOWN];
	size_t n_head, head_at; /* bytes of block that were looked at and not yet delivered */
	bool damaged;           /* reading it failed */
};

static enum lag_status step(struct unpack *u, struct lag_err *err)
{
	const struct lag_pack_watch *watch = &u->opts->watch;
	la_int64_t at = archive_filter_bytes(u->ar, -1);

	if (watch->step && !watch->step(watch->state, at > 0 ? (uint64_t)at : 0, u->size_in))
		return lag_err_set(err, LAG_ERR_LIMIT, "interrupted");
	return LAG_OK;
}

/* Asked before bytes are written. */
static enum lag_status take_budget(struct lag_packed_budget *budget, uint64_t n,
				   struct lag_err *err)
{
	struct unpack *u = budget->state;
	const struct lag_unpack_limits *limits = &u->opts->limits;
	la_int64_t in = archive_filter_bytes(u->ar, -1);

	u->n_budget += n;
	if (u->n_budget > limits->n_bytes) {
		return lag_err_set(err, LAG_ERR_LIMIT,
				   "%s: unpacks to more than %llu bytes (--max-bytes raises it)",
				   u->input, (unsigned long long)limits->n_bytes);
	}
	if (u->n_budget > LAG_UNPACK_FREE &&
	    u->n_budget / limits->ratio > (in > 0 ? (uint64_t)in : 0)) {
		return lag_err_set(err, LAG_ERR_LIMIT,
				   "%s: unpacks to more than %llu times its size (--max-ratio "
				   "raises it)",
				   u->input, (unsigned long long)limits->ratio);
	}
	return step(u, err);
}

static void refuse(struct unpack *u, const char *why)
{
	u->receipt->n_refused++;
	lag_pack_note(u->receipt, "%s: %s, left out", u->shown, why);
}

/* What there is of the member; 0 at its end, also where it is damaged. */
static long read_member(struct unpack *u, void *buf, size_t room)
{
	long n;

	if (u->head_at < u->n_head) {
		size_t some = u->n_head - u->head_at < room ? u->n_head - u->head_at : room;

		memmove(buf, u->block + u->head_at, some);
		u->head_at += some;
		return (long)some;
	}
	n = lag_members_read(&u->members, buf, room);
	u->damaged = u->damaged || n < 0;
	return n < 0 ? 0 : n;
}

static void look_at_head(struct unpack *u)
{
	u->n_head = u->head_at = 0;
	u->damaged = false;
	while (u->n_head < sizeof(uint64_t)) {
		long n = lag_members_read(&u->members, u->block + u->n_head,
					  sizeof(uint64_t) - u->n_head);

		u->damaged = n < 0;
		if (n <= 0)
			break;
		u->n_head += (size_t)n;
	}
}

static void finish_times(int fd, struct archive_entry *entry)
{
	mode_t mask = umask(0);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = archive_entry_mtime(entry) } };

	(void)umask(mask);
	(void)fchmod(fd, (archive_entry_perm(entry) & 0666 & ~mask) | 0600);
	if (archive_entry_mtime_is_set(entry))
		(void)futimens(fd, times);
}

static enum lag_status copy_member(struct unpack *u, int fd, struct lag_err *err)
{
	for (;;) {
		long n = read_member(u, u->block, COPY_BLOCK);
		enum lag_status st = n ? take_budget(&u->budget, (uint64_t)n, err) : LAG_END;

		if (st == LAG_END)
			return LAG_OK;
		if (st == LAG_OK && !lag_io_write(fd, u->block, (size_t)n))
			st = lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write");
		if (st != LAG_OK)
			return st;
	}
}

static long read_input(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct unpack *u = in->state;
	long n = read_member(u, buf, room);

	(void)err;
	in->offset += (uint64_t)n;
	return n;
}

/* LAG_WARN: it is damaged; what could be read is there when *keep. */
static enum lag_status restore_member(struct unpack *u, struct lag_placed *file, bool *keep,
				      struct lag_err *err)
{
	struct lag_input in = { .path = u->shown, .read = read_input, .state = u };
	char path[NAME_MAX + 64];
	enum lag_status st;

	lag_place_partial_path(file, path, sizeof(path));
	st = lag_packed_restore(&in, path, 0600, &u->budget, err);
	*keep = !lag_failed(st);
	if (*keep)
		file->fd = openat(file->dir, file->partial, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* What is wrong with this file is no reason to leave out the others. */
	return st == LAG_ERR_INPUT ? LAG_WARN : st;
}

/* Text that survives a cut: what is there of a recording can be merged. */
static bool worth_keeping(const struct unpack *u, const uint8_t *head)
{
	uint64_t magic;

	memcpy(&magic, head, sizeof(magic));
	return u->n_head == sizeof(magic) &&
	       (magic == LAG_TRACE_MAGIC || lag_packed_probe(head, u->n_head));
}

/* Says what became of a file that is in its place, or not. */
static void report(struct unpack *u, enum lag_status st, bool kept, bool restored, const char *why)
{
	u->receipt->n_files += kept;
	u->receipt->n_rank_files += kept && restored;
	if (st == LAG_WARN && kept) {
		lag_pack_note(u->receipt, "%s: %s", u->shown, why);
	} else if (st == LAG_WARN) {
		refuse(u, why);
	}
}

static enum lag_status give_place(struct unpack *u, struct lag_placed *file, enum lag_status st,
				  bool keep, bool restored, struct lag_err *why,
				  struct lag_err *err)
{
	struct lag_err end_why;
	enum lag_status ended = lag_place_end(&u->place, file, keep && !lag_failed(st), &end_why);

	if (!lag_failed(st) && ended != LAG_OK) {
		*why = end_why;
		st = ended;
		keep = false;
	}
	if (lag_failed(st)) {
		*err = *why;
		/* Limits are of the archive, and name it. */
		return st == LAG_ERR_SYSTEM ? lag_err_wrap(err, "%s/%s", u->opts->dir, u->shown)
					    : st;
	}
	report(u, st, keep, restored, why->text);
	return LAG_OK;
}

/* The archive went on, or did not: the file that waited for that. */
static enum lag_status settle(struct unpack *u, bool well, struct lag_err *err)
{
	struct lag_err why = { 0 };
	bool keep = well || u->waiting_is_recording;

	if (!u->waits)
		return LAG_OK;
	u->waits = false;
	if (!well)
		(void)lag_err_set(&why, LAG_WARN, "the archive is damaged inside it");
	return give_place(u, &u->waiting, well ? LAG_OK : LAG_WARN, keep, false, &why, err);
}

static enum lag_status write_file(struct unpack *u, struct archive_entry *entry, bool restore,
				  struct lag_placed *file, struct lag_err *err)
{
	struct lag_err why = { 0 };
	bool recording = worth_keeping(u, u->block), keep = true;
	enum lag_status st;

	st = restore ? restore_member(u, file, &keep, &why) : copy_member(u, file->fd, &why);
	if (u->damaged && !restore && !lag_failed(st)) {
		(void)lag_err_set(&why, LAG_WARN, "the archive is damaged inside it");
		st = LAG_WARN;
		keep = recording;
	}
	if (file->fd >= 0)
		finish_times(file->fd, entry);
	if (restore || st != LAG_OK)
		return give_place(u, file, st, keep, restore, &why, err);
	lag_place_move(file, &u->waiting);
	u->waiting_is_recording = recording;
	u->waits = true;
	return LAG_OK;
}

static enum lag_status take_file(struct unpack *u, struct archive_entry *entry, const char *member,
				 struct lag_err *err)
{
	size_t n = strlen(member);
	struct lag_err why = { 0 };
	struct lag_placed file;
	char name[4096];
	bool restore;
	enum lag_status st;

	look_at_head(u);
	if (u->damaged && u->n_head == 0) {
		refuse(u, "the archive is damaged here");
		return LAG_OK;
	}
	(void)snprintf(name, sizeof(name), "%s", member);
	restore = !u->opts->keep && n > 5 && n < sizeof(name) &&
		  strcmp(name + n - 5, LAG_PACKED_SUFFIX) == 0 &&
		  lag_packed_probe(u->block, u->n_head);
	if (restore)
		name[n - 1] = '\0';
	st = lag_place_begin(&u->place, name, !restore, &file, &why);
	if (st == LAG_WARN) {
		refuse(u, why.text);
		return LAG_OK;
	}
	if (lag_failed(st)) {
		*err = why;
		return st;
	}
	return write_file(u, entry, restore, &file, err);
}

static const char *kind_refused(struct archive_entry *entry)
{
	if (archive_entry_hardlink(entry))
		return "a hard link";
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
	case AE_IFDIR:
		return NULL;
	case AE_IFLNK:
		return "a symbolic link";
	case AE_IFCHR:
	case AE_IFBLK:
		return "a device";
	case AE_IFIFO:
	case AE_IFSOCK:
		return "a pipe or socket";
	default:
		return "of an unknown kind";
	}
}

static enum lag_status take_member(struct unpack *u, struct archive_entry *entry,
				   struct lag_err *err)
{
	const char *member = archive_entry_pathname(entry), *why;
	struct lag_buf shown = { 0 };

	if (!member)
		member = archive_entry_pathname_utf8(entry);
	if (!member)
		member = "";
	lag_fmt_name(&shown, member);
	(void)snprintf(u->shown, sizeof(u->shown), "%s", lag_buf_text(&shown));
	lag_buf_release(&shown);
	why = kind_refused(entry);
	/* Directories are made when something is in them. */
	if (!why && archive_entry_filetype(entry) == AE_IFDIR)
		return LAG_OK;
	if (why || !lag_place_name_ok(&u->opts->limits, member, &why)) {
		refuse(u, why);
		return LAG_OK;
	}
	return take_file(u, entry, member, err);
}

static enum lag_status open_archive(struct unpack *u, int *fd, struct lag_err *err)
{
	bool from_stdin = strcmp(u->opts->input, "-") == 0;
	struct stat sb = { 0 };

	u->ar = archive_read_new();
	u->block = malloc(COPY_BLOCK);
	if (!u->ar || !u->block)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to unpack");
	*fd = from_stdin ? STDIN_FILENO : open(u->opts->input, O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &sb) != 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", u->input);
	if (S_ISDIR(sb.st_mode))
		return lag_err_set(err, LAG_ERR_INPUT, "%s: a directory, not an archive", u->input);
	u->size_in = S_ISREG(sb.st_mode) ? (uint64_t)sb.st_size : 0;
	lag_members_init(&u->members, u->ar);
	if (archive_read_open_fd(u->ar, *fd, READ_BLOCK) != ARCHIVE_OK) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", u->input,
				   archive_error_string(u->ar));
	}
	return LAG_OK;
}

static void note_damage(struct unpack *u, const struct lag_err *why)
{
	u->receipt->n_refused++;
	lag_pack_note(u->receipt, "%s: %s", u->input, why->text);
}

/* What was found where a header should be, or the end. LAG_END: nothing more comes. */
static enum lag_status pass_on(struct unpack *u, enum lag_member next, const struct lag_err *why,
			       struct lag_err *err)
{
	bool over = next == LAG_MEMBER_END || next == LAG_MEMBER_CUT || next == LAG_MEMBER_FATAL;

	if (over && u->members.n == 0 && !u->receipt->n_refused) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s: %s", u->input,
				   next == LAG_MEMBER_FATAL ? why->text : "nothing is in it");
	}
	if (next == LAG_MEMBER_LOST || next == LAG_MEMBER_CUT || next == LAG_MEMBER_FATAL)
		note_damage(u, why);
	return over ? LAG_END : step(u, err);
}

static enum lag_status read_members(struct unpack *u, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	while (st == LAG_OK) {
		struct archive_entry *entry = NULL;
		struct lag_err why = { 0 };
		enum lag_member next = lag_members_next(&u->members, &entry, &why);

		st = settle(u, next != LAG_MEMBER_FATAL, err);
		if (st == LAG_OK && next != LAG_MEMBER_FOUND) {
			st = pass_on(u, next, &why, err);
		} else if (st == LAG_OK && u->members.n > u->opts->limits.n_members) {
			return lag_err_set(err, LAG_ERR_LIMIT,
					   "%s: more than %llu members (--max-members raises it)",
					   u->input, (unsigned long long)u->opts->limits.n_members);
		} else if (st == LAG_OK) {
			st = take_member(u, entry, err);
			if (st == LAG_OK)
				st = step(u, err);
		}
	}
	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_unpack_run(const struct lag_unpack_opts *opts, struct lag_pack_receipt *receipt,
			       struct lag_err *err)
{
	struct unpack u = { .opts = opts,
			    .receipt = receipt,
			    .input = strcmp(opts->input, "-") == 0 ? "standard input" : opts->input,
			    .place = { .root = -1 } };
	struct lag_err end_err = { 0 };
	int fd = -1;
	enum lag_status st = open_archive(&u, &fd, err);

	u.budget = (struct lag_packed_budget){ take_budget, &u };
	if (st == LAG_OK)
		st = lag_place_open(&u.place, opts->dir, opts->force, &opts->limits, err);
	if (st == LAG_OK)
		st = read_members(&u, err);
	if (u.waits && lag_failed(lag_place_end(&u.place, &u.waiting, false, &end_err)) &&
	    st == LAG_OK) {
		*err = end_err;
		st = end_err.status;
	}
	if (u.ar) {
		la_int64_t in = archive_filter_bytes(u.ar, -1);

		receipt->bytes_in = in > 0 ? (uint64_t)in : 0;
		(void)archive_read_free(u.ar);
	}
	receipt->bytes_out = u.n_budget;
	receipt->n_cleared = u.place.n_cleared;
	lag_place_close(&u.place);
	if (fd > STDERR_FILENO)
		(void)close(fd);
	free(u.block);
	if (st == LAG_OK && (receipt->notes.n || receipt->n_refused))
		st = LAG_WARN;
	return st;
}
