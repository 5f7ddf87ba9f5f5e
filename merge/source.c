/* SPDX-License-Identifier: Apache-2.0 */
/* Byte streams under the importers: files, gzip on top of anything, and the look at their beginning
 * that decides who reads them. */
#include "merge/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

struct file_stream {
	struct lag_stream base;
	int fd;
	const char *path; /* borrowed */
};

static long file_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct file_stream *file = (struct file_stream *)st;
	ssize_t n;

	do {
		n = read(file->fd, buf, room);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		(void)lag_err_errno(err, LAG_ERR_SYSTEM, "%s", file->path);
	return (long)n;
}

static void file_close(struct lag_stream *st)
{
	(void)close(((struct file_stream *)st)->fd);
}

/* ---- a stream whose beginning was looked at ---- */

struct head_stream {
	struct lag_stream base;
	struct lag_stream *raw; /* borrowed */
	uint8_t head[LAG_SOURCE_HEAD];
	size_t n, at;
};

static long head_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct head_stream *hs = (struct head_stream *)st;
	size_t n = hs->n - hs->at < room ? hs->n - hs->at : room;

	if (!n) {
		long got = hs->raw->read(hs->raw, buf, room, err);

		hs->base.damage = hs->raw->damage;
		return got;
	}
	memcpy(buf, hs->head + hs->at, n);
	hs->at += n;
	return (long)n;
}

static void head_close(struct lag_stream *st)
{
	(void)st;
}

static enum lag_status head_open(struct head_stream *hs, struct lag_stream *raw,
				 struct lag_err *err)
{
	*hs = (struct head_stream){ .base = { head_read, head_close, NULL }, .raw = raw };
	while (hs->n < sizeof(hs->head)) {
		long n = raw->read(raw, hs->head + hs->n, sizeof(hs->head) - hs->n, err);

		if (n < 0)
			return err ? err->status : LAG_ERR_INPUT;
		if (n == 0)
			break;
		hs->n += (size_t)n;
	}
	return LAG_OK;
}

/* ---- inputs ---- */

static long input_read(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct lag_stream *st = in->state;
	long n = st->read(st, buf, room, err);

	if (n > 0)
		in->offset += (uint64_t)n;
	in->damage = st->damage;
	return n;
}

/* By read, not out of the map: a file that someone cuts meanwhile ends early instead of killing us, and
 * pages that were read once do not count as this process's. */
static long input_read_file(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	ssize_t n;

	do {
		n = pread(*in->file, buf, room, (off_t)in->offset);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		(void)lag_err_errno(err, LAG_ERR_SYSTEM, "%s", in->path);
	if (n > 0)
		in->offset += (uint64_t)n;
	return (long)n;
}

static enum lag_status visit_head(struct head_stream *hs, const char *name, uint64_t size_hint,
				  struct lag_source_visitor *visitor, struct lag_err *err)
{
	struct lag_input in = {
		.path = name, .read = input_read, .state = &hs->base, .size_hint = size_hint
	};

	return visitor->visit(visitor, &in, hs->head, hs->n, err);
}

static enum lag_status visit_gzip(struct lag_stream *raw, const char *name,
				  struct lag_source_visitor *visitor, struct lag_err *err)
{
	struct lag_stream *gzip = lag_gzip_open(raw, name, err);
	struct lag_stream *ahead = gzip ? lag_ahead_open(gzip, err) : NULL;
	struct head_stream *hs = lag_calloc(1, sizeof(*hs));
	enum lag_status st = LAG_ERR_SYSTEM;

	if (ahead && hs) {
		st = head_open(hs, ahead, err);
		if (st == LAG_OK)
			st = visit_head(hs, name, 0, visitor, err);
	} else if (ahead) {
		(void)lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", name);
	}
	if (ahead)
		ahead->close(ahead);
	if (gzip)
		gzip->close(gzip);
	free(hs);
	return st;
}

enum lag_status lag_source_visit_stream(struct lag_stream *raw, const char *name,
					uint64_t size_hint, struct lag_source_visitor *visitor,
					struct lag_err *err)
{
	struct head_stream *hs = lag_calloc(1, sizeof(*hs));
	enum lag_status st;

	if (!hs)
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", name);
	st = head_open(hs, raw, err);
	if (st == LAG_OK && lag_is_gzip(hs->head, hs->n)) {
		st = visit_gzip(&hs->base, name, visitor, err);
	} else if (st == LAG_OK) {
		st = visit_head(hs, name, size_hint, visitor, err);
	}
	free(hs);
	return st;
}

/* A gzip file is an archive when what is inside is one. */
static bool gzip_holds_archive(int fd, const char *path)
{
	struct file_stream file = { { file_read, file_close, NULL }, fd, path };
	struct lag_stream *gz = lag_gzip_open(&file.base, path, NULL);
	struct head_stream *hs = lag_calloc(1, sizeof(*hs));
	bool found =
		gz && hs && head_open(hs, gz, NULL) == LAG_OK && lag_archive_probe(hs->head, hs->n);

	if (gz)
		gz->close(gz);
	free(hs);
	(void)lseek(fd, 0, SEEK_SET);
	return found;
}

static enum lag_status visit_mapped(const struct file_stream *file, size_t size,
				    struct lag_source_visitor *visitor, struct lag_err *err)
{
	struct lag_input in = { .path = file->path,
				.n = size,
				.file = &file->fd,
				.read = input_read_file,
				.size_hint = size };
	enum lag_status st;
	void *map = NULL;

	if (size) {
		map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file->fd, 0);
		if (map == MAP_FAILED)
			return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot map", file->path);
		(void)madvise(map, size, MADV_SEQUENTIAL);
	}
	in.bytes = map ? map : (const uint8_t *)"";
	st = visitor->visit(visitor, &in, in.bytes, size < LAG_SOURCE_HEAD ? size : LAG_SOURCE_HEAD,
			    err);
	if (map)
		(void)munmap(map, size);
	return st;
}

enum lag_status lag_source_each(const char *path, struct lag_source_visitor *visitor,
				struct lag_err *err)
{
	struct file_stream file = { { file_read, file_close, NULL },
				    open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
				    path };
	uint8_t head[LAG_SOURCE_HEAD];
	enum lag_status st;
	struct stat sb = { 0 };
	ssize_t n = -1;

	if (file.fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	if (fstat(file.fd, &sb) == 0 && !S_ISREG(sb.st_mode)) {
		st = lag_err_set(err, LAG_ERR_INPUT, "%s: not a regular file", path);
	} else if ((n = pread(file.fd, head, sizeof(head), 0)) < 0) {
		st = lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	} else if (lag_archive_probe(head, (size_t)n) ||
		   (lag_is_gzip(head, (size_t)n) && gzip_holds_archive(file.fd, path))) {
		st = lag_archive_each(path, visitor, err);
	} else if (lag_is_gzip(head, (size_t)n)) {
		st = lag_source_visit_stream(&file.base, path, 0, visitor, err);
	} else {
		st = visit_mapped(&file, (size_t)sb.st_size, visitor, err);
	}
	file_close(&file.base);
	return st;
}

enum lag_status lag_input_slurp(struct lag_input *in, size_t max, const uint8_t **bytes, size_t *n,
				uint8_t **owned, struct lag_err *err)
{
	struct lag_vec all = { .item_size = 1, .max = max };
	long got;

	*owned = NULL;
	*bytes = in->bytes;
	*n = in->n;
	if (in->bytes)
		return LAG_OK;
	do {
		if (lag_failed(lag_vec_reserve(&all, 1 << 16))) {
			lag_vec_release(&all);
			return lag_err_set(err, LAG_ERR_LIMIT, "%s: larger than %zu bytes",
					   in->path, max);
		}
		got = in->read(in, (uint8_t *)all.items + all.n, all.cap - all.n, err);
		all.n += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	if (got < 0) {
		lag_vec_release(&all);
		return err ? err->status : LAG_ERR_INPUT;
	}
	*bytes = *owned = all.items;
	*n = all.n;
	return LAG_OK;
}

long lag_input_fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct lag_input *in = state;

	return in->read(in, buf, room, err);
}
