/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an archive through libarchive: tar or zip. A member's size stands before its bytes, so that a
 * rank file is packed into a nameless file first. zstd is put around tar here, a frame with a checksum
 * for each member: libarchive's own has none, and damage would go unseen. */
#include "merge/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "merge/lagz.h"
#include "merge/pack_files.h"
#include "schema/base/io.h"
#include "schema/base/outfile.h"

#define COPY_BLOCK ((size_t)1 << 20)
#define ZSTD_LEVEL 3 /* rank files are compressed already; more gains little on the others */

struct pack {
	const struct lag_pack_opts *opts;
	struct lag_pack_receipt *receipt;
	struct lag_outfile out;
	struct archive *ar;
	struct lag_vec files;
	uint64_t done, total; /* bytes of files */
	uint8_t *block;
	ZSTD_CCtx *zstd; /* NULL: zip */
	uint8_t *packed;
	size_t packed_room;
	uint64_t n_out; /* bytes of the archive */
	/* Why nothing is written any more. Kept from libarchive, which leaks when it is told. */
	struct lag_err broken;
};

static enum lag_status step(struct pack *p, struct lag_err *err)
{
	const struct lag_pack_watch *watch = &p->opts->watch;

	if (lag_failed(p->broken.status)) {
		*err = p->broken;
		return p->broken.status;
	}
	if (watch->step && !watch->step(watch->state, p->done, p->total))
		return lag_err_set(err, LAG_ERR_LIMIT, "interrupted, nothing was written");
	return LAG_OK;
}

static enum lag_status archive_failed(struct pack *p, struct lag_err *err)
{
	int number = archive_errno(p->ar);
	const char *text = archive_error_string(p->ar);

	return lag_err_set(err, LAG_ERR_SYSTEM, "cannot write %s: %s", p->out.name,
			   number > 0 ? strerror(number)
			   : text     ? text
				      : "no reason is given");
}

static void put_bytes(struct pack *p, const void *bytes, size_t n)
{
	if (!lag_failed(p->broken.status) &&
	    lag_outfile_write(&p->out, bytes, n, &p->broken) == LAG_OK)
		p->n_out += n;
}

/* `how` ends the frame, or not. */
static void put_packed(struct pack *p, const void *bytes, size_t n, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = { bytes, n, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { p->packed, p->packed_room, 0 };

		left = ZSTD_compressStream2(p->zstd, &out, &in, how);
		if (ZSTD_isError(left)) {
			(void)lag_err_set(&p->broken, LAG_ERR_SYSTEM, "cannot compress: %s",
					  ZSTD_getErrorName(left));
			return;
		}
		put_bytes(p, p->packed, out.pos);
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
}

static la_ssize_t write_out(struct archive *ar, void *state, const void *bytes, size_t n)
{
	struct pack *p = state;

	(void)ar;
	if (p->zstd) {
		put_packed(p, bytes, n, ZSTD_e_continue);
	} else {
		put_bytes(p, bytes, n);
	}
	return (la_ssize_t)n;
}

static enum lag_status end_frame(struct pack *p, struct lag_err *err)
{
	if (p->zstd)
		put_packed(p, NULL, 0, ZSTD_e_end);
	if (lag_failed(p->broken.status))
		*err = p->broken;
	return p->broken.status;
}

static enum lag_status write_member(struct pack *p, const struct lag_pack_file *file,
				    const char *name, int fd, uint64_t size, struct lag_err *err)
{
	struct archive_entry *entry = archive_entry_new();
	uint64_t left = size;
	bool filled = false;
	enum lag_status st = LAG_OK;

	if (!entry)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, (la_int64_t)size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, file->sb.st_mode & 0666);
	archive_entry_set_mtime(entry, file->sb.st_mtim.tv_sec, 0);
	if (archive_write_header(p->ar, entry) < ARCHIVE_WARN)
		st = archive_failed(p, err);
	archive_entry_free(entry);
	while (st == LAG_OK && left) {
		size_t want = left < COPY_BLOCK ? (size_t)left : COPY_BLOCK;
		ssize_t n = lag_io_read_at(fd, p->block, want, size - left);

		if (n < 0) {
			st = lag_err_errno(err, LAG_ERR_INPUT, "%s", file->path);
			break;
		}
		if (n == 0) {
			memset(p->block, 0, want);
			n = (ssize_t)want;
			if (!filled) {
				lag_pack_note(p->receipt, "%s: became shorter, zeroes fill it",
					      file->path);
				p->receipt->n_refused++;
			}
			filled = true;
		}
		if (archive_write_data(p->ar, p->block, (size_t)n) != n)
			st = archive_failed(p, err);
		left -= (uint64_t)n;
		if (st == LAG_OK)
			st = step(p, err);
	}
	/* Padding belongs to the member, and so to its frame. */
	if (st == LAG_OK && archive_write_finish_entry(p->ar) != ARCHIVE_OK)
		st = archive_failed(p, err);
	return st == LAG_OK ? end_frame(p, err) : st;
}

static int name_to_member(const void *name, const void *file)
{
	return strcmp(name, ((const struct lag_pack_file *)file)->member);
}

/* Has another file the name already? */
static bool name_taken(const struct pack *p, const char *name)
{
	return bsearch(name, p->files.items, p->files.n, sizeof(struct lag_pack_file),
		       name_to_member);
}

/* The rank file packed into packed_fd; LAG_WARN when it goes as it is. */
static enum lag_status pack_rank_file(struct pack *p, const struct lag_pack_file *file, int fd,
				      int packed_fd, struct lag_packed_tally *tally,
				      struct lag_err *err)
{
	struct lag_err why = { 0 };
	enum lag_status st = lag_packed_write(fd, packed_fd, tally, &why);

	if (st == LAG_WARN) {
		lag_pack_note(p->receipt, "%s: %s; packed as it is", file->path, why.text);
	} else if (st == LAG_ERR_SYSTEM) {
		st = lag_err_set(err, st, "packing %s into a temporary file in %s: %s", file->path,
				 lag_outfile_tmp(), why.text);
	} else if (lag_failed(st)) {
		st = lag_err_set(err, st, "%s: %s", file->path, why.text);
	}
	return st;
}

static bool is_rank_file(const struct lag_pack_file *file, int fd)
{
	size_t n = strlen(file->member);
	uint64_t magic = 0;

	return file->sb.st_size > 0 && n > 4 &&
	       strcmp(file->member + n - 4, LAG_TRACE_SUFFIX) == 0 &&
	       lag_io_read_at(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       magic == LAG_TRACE_MAGIC;
}

static enum lag_status pack_open_file(struct pack *p, const struct lag_pack_file *file, int fd,
				      struct lag_err *err)
{
	struct lag_packed_tally tally = { 0 };
	char *name = NULL;
	int packed = -1;
	enum lag_status st = LAG_WARN;

	if (is_rank_file(file, fd) && asprintf(&name, "%sz", file->member) > 0 &&
	    !name_taken(p, name)) {
		packed = lag_io_nameless(lag_outfile_tmp());
		st = packed < 0 ? lag_err_errno(err, LAG_ERR_SYSTEM,
						"cannot make a temporary file in %s",
						lag_outfile_tmp())
				: pack_rank_file(p, file, fd, packed, &tally, err);
	}
	if (st == LAG_OK) {
		p->receipt->n_rank_files++;
		st = write_member(p, file, name, packed, tally.bytes_out, err);
	} else if (st == LAG_WARN) {
		st = write_member(p, file, file->member, fd, (uint64_t)file->sb.st_size, err);
	}
	if (packed >= 0)
		(void)close(packed);
	free(name);
	return st;
}

static enum lag_status pack_file(struct pack *p, struct lag_pack_file *file, struct lag_err *err)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum lag_status st;

	if (fd < 0 && errno == ENOENT) {
		lag_pack_note(p->receipt, "%s: gone meanwhile, left out", file->path);
		p->receipt->n_refused++;
		return LAG_OK;
	}
	/* The size as it is now: rank files may still grow. */
	if (fd < 0 || fstat(fd, &file->sb) != 0 || !S_ISREG(file->sb.st_mode)) {
		st = lag_err_errno(err, LAG_ERR_INPUT, "%s", file->path);
	} else {
		uint64_t before = p->done;

		st = pack_open_file(p, file, fd, err);
		p->receipt->n_files++;
		p->receipt->bytes_in += (uint64_t)file->sb.st_size;
		p->done = before + (uint64_t)file->sb.st_size;
		if (st == LAG_OK)
			st = step(p, err);
	}
	if (fd >= 0)
		(void)close(fd);
	return st;
}

static enum lag_status open_archive(struct pack *p, struct lag_err *err)
{
	bool zip = p->opts->format == LAG_PACK_ZIP, ok;

	p->ar = archive_write_new();
	p->packed_room = ZSTD_CStreamOutSize();
	p->packed = malloc(p->packed_room);
	p->zstd = zip ? NULL : ZSTD_createCCtx();
	if (!p->ar || !p->packed || (!zip && !p->zstd))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	if (p->zstd) {
		(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
		(void)ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	}
	ok = (zip ? archive_write_set_format_zip(p->ar)
		  : archive_write_set_format_pax_restricted(p->ar)) == ARCHIVE_OK;
	/* Unblocked: what libarchive has of a member comes out before its frame is ended. */
	ok = ok && archive_write_set_bytes_per_block(p->ar, 0) == ARCHIVE_OK &&
	     archive_write_open(p->ar, p, NULL, write_out, NULL) == ARCHIVE_OK;
	return ok ? LAG_OK : archive_failed(p, err);
}

static enum lag_status pack_all(struct pack *p, struct lag_err *err)
{
	struct stat out = { 0 };
	enum lag_status st;

	(void)fstat(p->out.fd, &out);
	st = lag_pack_files(p->opts, &out, &p->files, p->receipt, err);
	if (st == LAG_OK && p->files.n == 0)
		st = lag_err_set(err, LAG_ERR_INPUT, "nothing to pack");
	for (size_t i = 0; i < p->files.n; i++)
		p->total += (uint64_t)LAG_VEC_AT(&p->files, struct lag_pack_file, i).sb.st_size;
	p->block = malloc(COPY_BLOCK);
	if (st == LAG_OK && !p->block)
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	if (st == LAG_OK)
		st = step(p, err);
	if (st == LAG_OK)
		st = open_archive(p, err);
	for (size_t i = 0; i < p->files.n && st == LAG_OK; i++)
		st = pack_file(p, &LAG_VEC_AT(&p->files, struct lag_pack_file, i), err);
	if (st == LAG_OK && archive_write_close(p->ar) != ARCHIVE_OK)
		st = archive_failed(p, err);
	if (st == LAG_OK)
		st = end_frame(p, err);
	if (p->ar) {
		p->receipt->bytes_out = p->n_out;
		/* What is left of it goes nowhere. */
		if (st != LAG_OK)
			p->broken.status = st;
		(void)archive_write_free(p->ar);
	}
	return st;
}

enum lag_status lag_pack_run(const struct lag_pack_opts *opts, struct lag_pack_receipt *receipt,
			     struct lag_err *err)
{
	struct pack p = { .opts = opts, .receipt = receipt };
	enum lag_status st = lag_outfile_open(&p.out, opts->output, opts->force, err), closed;
	struct lag_err close_err;

	if (lag_failed(st))
		return st;
	receipt->n_cleared = p.out.n_cleared;
	st = pack_all(&p, err);
	closed = lag_outfile_close(&p.out, st == LAG_OK, &close_err);
	if (st == LAG_OK && lag_failed(closed)) {
		*err = close_err;
		st = closed;
	}
	lag_pack_files_release(&p.files);
	free(p.block);
	free(p.packed);
	(void)ZSTD_freeCCtx(p.zstd);
	if (st == LAG_OK && receipt->n_refused)
		st = LAG_WARN;
	return st;
}
