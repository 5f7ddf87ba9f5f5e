/* SPDX-License-Identifier: Apache-2.0 */
/* The file under the chunks. Chunk memory is allocated on disk before it is mapped, since a store into a
 * hole of a full file system would be a SIGBUS in the traced program. What a roll needs may run inside
 * that program's threads: no lock, no allocation, no stdio. */
#include "schema/trace/trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define SPACE_CHUNKS_MAX 16  /* disk space that is taken at once */
#define HIGH_FD          500 /* out of the way of programs that count on getting low numbers */

static off_t chunk_at(uint32_t index)
{
	return (off_t)LAG_CHUNKS_AT + (off_t)index * (off_t)LAG_CHUNK_BYTES;
}

/* For file systems that cannot allocate: written zeroes take the space just as well. */
static int fill_with_zeroes(int fd, off_t at, size_t n)
{
	static const uint8_t zeroes[LAG_PAGE_BYTES];

	while (n) {
		size_t part = n < sizeof(zeroes) ? n : sizeof(zeroes);
		ssize_t done = pwrite(fd, zeroes, part, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

bool lag_trace_may_grow(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       (rlim_t)end <= limit.rlim_cur;
}

/* fill: where the system cannot allocate, zeroes are written: the place must be nobody else's. */
static int take_space(int fd, off_t at, size_t n, bool fill)
{
	if (!lag_trace_may_grow((uint64_t)at + n))
		return EFBIG;
	/* glibc's fallocate is the bare system call, unlike posix_fallocate. */
	while (fallocate(fd, 0, at, (off_t)n)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return fill ? fill_with_zeroes(fd, at, n) : errno;
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

static void *map_shared(int fd, off_t at, size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);

	if (p == MAP_FAILED)
		return NULL;
	/* A forked child must not be able to write into its parent's trace. */
	(void)madvise(p, n, MADV_DONTFORK);
	return p;
}

static void stop_allocating(struct lag_trace_file *file, enum lag_loss_reason reason)
{
	atomic_store_explicit(&file->full_reason, reason, memory_order_relaxed);
	atomic_store_explicit(&file->full, true, memory_order_release);
}

static bool still_ours(const struct lag_trace_file *file)
{
	struct stat st;

	return !fstat(file->fd, &st) && (uint64_t)st.st_dev == file->dev &&
	       (uint64_t)st.st_ino == file->ino;
}

/* The chunk's place on the disk. Taken for several chunks at once when the file has grown: a system call
 * a chunk is a good part of what a chunk costs. */
static int take_chunk_space(struct lag_trace_file *file, uint32_t index)
{
	uint64_t space = atomic_load_explicit(&file->space, memory_order_acquire);
	uint32_t step = index / 8 < SPACE_CHUNKS_MAX ? index / 8 : SPACE_CHUNKS_MAX;
	int rc = EFBIG;

	if (index >= space >> 32 && index < (uint32_t)space)
		return 0;
	if (step > 1 && !(file->max_bytes && (uint64_t)chunk_at(index + step) > file->max_bytes))
		rc = take_space(file->fd, chunk_at(index), step * (size_t)LAG_CHUNK_BYTES, false);
	if (rc) {
		step = 1;
		rc = take_space(file->fd, chunk_at(index), LAG_CHUNK_BYTES, true);
	}
	if (!rc) {
		atomic_store_explicit(&file->space, (uint64_t)index << 32 | (index + step),
				      memory_order_release);
	}
	return rc;
}

/* Takes the chunk's page faults, all at once, where the kernel can (5.14). A page that cannot be had,
 * which would be a SIGBUS later, is an error here. */
static int take_faults(struct lag_chunk_header *chunk)
{
	if (!madvise(chunk, LAG_CHUNK_BYTES, MADV_POPULATE_WRITE) || errno == EINVAL)
		return 0;
	return errno;
}

static struct lag_chunk_header *new_chunk(struct lag_trace_file *file)
{
	struct lag_chunk_header *chunk;
	uint32_t index;
	int rc;

	if (atomic_load_explicit(&file->full, memory_order_acquire))
		return NULL;
	index = atomic_load_explicit(&file->n_chunks, memory_order_relaxed);
	do {
		if (index == UINT32_MAX ||
		    (file->max_bytes && (uint64_t)chunk_at(index + 1) > file->max_bytes)) {
			stop_allocating(file, LAG_LOSS_SIZE_CAP);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak(&file->n_chunks, &index, index + 1));
	rc = still_ours(file) ? take_chunk_space(file, index) : EBADF;
	chunk = rc ? NULL : map_shared(file->fd, chunk_at(index), LAG_CHUNK_BYTES);
	if (chunk && (rc = take_faults(chunk))) {
		munmap(chunk, LAG_CHUNK_BYTES);
		chunk = NULL;
	}
	if (!chunk) {
		stop_allocating(file, rc == ENOSPC || rc == EDQUOT || rc == EFBIG
					      ? LAG_LOSS_DISK_FULL
					      : LAG_LOSS_IO);
		return NULL;
	}
	chunk->index = index;
	chunk->magic = LAG_CHUNK_MAGIC;
	return chunk;
}

void lag_trace_file_seal(struct lag_trace_file *file, struct lag_chunk_header *chunk,
			 const uint32_t *written)
{
	uint32_t committed = atomic_load_explicit(&chunk->committed, memory_order_relaxed);

	chunk->crc = lag_chunk_crc(chunk, chunk + 1, committed);
	atomic_store_explicit(&chunk->state, LAG_CHUNK_SEALED, memory_order_release);
	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		if (written[i]) {
			atomic_fetch_add_explicit(&file->counters->written[i], written[i],
						  memory_order_relaxed);
		}
	}
	munmap(chunk, LAG_CHUNK_BYTES);
}

/* A slot that is being filled or emptied. */
static void *const busy = (void *)1;

bool lag_trace_file_hand_over(struct lag_trace_file *file, struct lag_chunk_header *chunk,
			      const uint32_t *written)
{
	if (!atomic_load_explicit(&file->helped, memory_order_relaxed))
		return false;
	for (size_t i = 0; i < LAG_HANDED; i++) {
		struct lag_trace_handed *slot = &file->handed[i];
		void *none = NULL;

		if (!atomic_load_explicit(&slot->chunk, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&slot->chunk, &none, busy)) {
			memcpy(slot->written, written, sizeof(slot->written));
			atomic_store_explicit(&slot->chunk, (void *)chunk, memory_order_release);
			return true;
		}
	}
	return false;
}

static void seal_handed(struct lag_trace_file *file)
{
	for (size_t i = 0; i < LAG_HANDED; i++) {
		struct lag_trace_handed *slot = &file->handed[i];
		void *chunk = atomic_load_explicit(&slot->chunk, memory_order_relaxed);

		if (chunk && chunk != busy &&
		    atomic_compare_exchange_strong(&slot->chunk, &chunk, busy)) {
			lag_trace_file_seal(file, chunk, slot->written);
			atomic_store_explicit(&slot->chunk, NULL, memory_order_release);
		}
	}
}

struct lag_chunk_header *lag_trace_file_chunk(struct lag_trace_file *file)
{
	for (size_t i = 0; i < LAG_SPARES; i++) {
		void *spare = NULL;

		if (atomic_load_explicit(&file->spares[i], memory_order_relaxed))
			spare = atomic_exchange(&file->spares[i], NULL);
		if (spare)
			return spare;
	}
	return new_chunk(file);
}

void lag_trace_file_prepare(struct lag_trace_file *file)
{
	int saved = errno;
	uint32_t n_rolls = atomic_load_explicit(&file->n_rolls, memory_order_relaxed);
	uint32_t wanted = n_rolls - file->n_rolls_seen + 1;

	file->n_rolls_seen = n_rolls;
	atomic_store_explicit(&file->helped, true, memory_order_relaxed);
	for (uint32_t i = 0; i < LAG_SPARES && i < wanted; i++) {
		struct lag_chunk_header *chunk;
		void *none = NULL;

		if (atomic_load_explicit(&file->spares[i], memory_order_relaxed))
			continue;
		chunk = new_chunk(file);
		if (!chunk)
			break;
		/* For kernels that cannot take the faults at once. */
		for (size_t at = LAG_PAGE_BYTES; at < LAG_CHUNK_BYTES; at += LAG_PAGE_BYTES)
			((volatile uint8_t *)chunk)[at] = 0;
		if (!atomic_compare_exchange_strong(&file->spares[i], &none, (void *)chunk))
			munmap(chunk, LAG_CHUNK_BYTES);
	}
	seal_handed(file);
	errno = saved;
}

void lag_trace_file_settle(struct lag_trace_file *file)
{
	atomic_store_explicit(&file->helped, false, memory_order_relaxed);
	seal_handed(file);
}

/* A file without a name, which gets one when its header is there: nobody ever sees half of one. -1
 * where the file system cannot do that. */
static int open_nameless(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 1;
	char dir[PATH_MAX];

	if (n >= sizeof(dir))
		return -1;
	memcpy(dir, slash ? path : ".", n);
	dir[n] = '\0';
	return open(n ? dir : "/", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
}

static int give_name(int fd, const char *path)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static int write_head(struct lag_trace_file *file, const struct lag_trace_header *head)
{
	struct lag_trace_header *out;
	struct stat st;
	int rc = fstat(file->fd, &st) ? errno : take_space(file->fd, 0, LAG_CHUNKS_AT, true);

	if (rc)
		return rc;
	file->head = map_shared(file->fd, 0, LAG_CHUNKS_AT);
	if (!file->head)
		return errno;
	file->dev = (uint64_t)st.st_dev;
	file->ino = (uint64_t)st.st_ino;
	file->counters = (struct lag_trace_counters *)((uint8_t *)file->head + LAG_PAGE_BYTES);
	out = file->head;
	*out = *head;
	out->host[sizeof(out->host) - 1] = 0;
	out->version = LAG_TRACE_VERSION;
	out->header_bytes = LAG_CHUNKS_AT;
	out->chunk_bytes = LAG_CHUNK_BYTES;
	out->crc = 0;
	out->magic = LAG_TRACE_MAGIC;
	out->crc = lag_crc32c(0, out, sizeof(*out));
	return 0;
}

enum lag_status lag_trace_file_create(struct lag_trace_file *file, const char *path, unsigned mode,
				      const struct lag_trace_header *head, struct lag_err *err)
{
	int fd = open_nameless(path, (mode_t)mode), high, rc;
	bool named = fd < 0;

	*file = (struct lag_trace_file){ .fd = -1 };
	if (named)
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
	if (fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot create", path);
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	file->fd = fd;
	rc = write_head(file, head);
	if (!rc && !named)
		rc = give_name(fd, path);
	if (rc) {
		if (named)
			unlink(path);
		lag_trace_file_close(file);
		errno = rc;
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot create", path);
	}
	return LAG_OK;
}

void lag_trace_file_close(struct lag_trace_file *file)
{
	lag_trace_file_settle(file);
	for (size_t i = 0; i < LAG_SPARES; i++) {
		void *spare = atomic_exchange(&file->spares[i], NULL);

		if (spare)
			munmap(spare, LAG_CHUNK_BYTES);
	}
	if (file->head)
		munmap(file->head, LAG_CHUNKS_AT);
	if (file->fd >= 0) {
		off_t end = chunk_at(atomic_load(&file->n_chunks));
		struct stat st;

		/* Space that was taken for chunks to come. */
		if (file->head && still_ours(file) && !fstat(file->fd, &st) && st.st_size > end)
			(void)ftruncate(file->fd, end);
		close(file->fd);
	}
	*file = (struct lag_trace_file){ .fd = -1 };
}
