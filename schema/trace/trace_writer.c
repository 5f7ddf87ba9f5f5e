/* SPDX-License-Identifier: Apache-2.0 */
/* Appends records to chunks of a .lag file. The append path runs inside other people's threads: no
 * lock, no allocation, no stdio. Chunk memory is allocated on disk before it is mapped, since a store
 * into a hole of a full file system would be a SIGBUS in the traced program. */
#include "schema/trace/trace_writer.h"

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

#include "schema/base/map.h"

#define HIGH_FD 500 /* out of the way of programs that count on getting low numbers */

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

/* A file that outgrows the process's limit costs the process its life: SIGXFSZ. */
static bool may_grow_to(off_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       (rlim_t)end <= limit.rlim_cur;
}

static int take_space(int fd, off_t at, size_t n)
{
	if (!may_grow_to(at + (off_t)n))
		return EFBIG;
	/* glibc's fallocate is the bare system call, unlike posix_fallocate. */
	while (fallocate(fd, 0, at, (off_t)n)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return fill_with_zeroes(fd, at, n);
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
	rc = still_ours(file) ? take_space(file->fd, chunk_at(index), LAG_CHUNK_BYTES) : EBADF;
	chunk = rc ? NULL : map_shared(file->fd, chunk_at(index), LAG_CHUNK_BYTES);
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

void lag_trace_file_prepare(struct lag_trace_file *file)
{
	int saved = errno;
	void *none = NULL;
	struct lag_chunk_header *chunk;

	if (!atomic_load_explicit(&file->spare, memory_order_relaxed)) {
		chunk = new_chunk(file);
		/* Taking the page faults here is what makes a roll in a hook cheap. */
		for (size_t at = LAG_PAGE_BYTES; chunk && at < LAG_CHUNK_BYTES;
		     at += LAG_PAGE_BYTES)
			((volatile uint8_t *)chunk)[at] = 0;
		if (chunk && !atomic_compare_exchange_strong(&file->spare, &none, (void *)chunk))
			munmap(chunk, LAG_CHUNK_BYTES);
	}
	errno = saved;
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
	int rc = fstat(file->fd, &st) ? errno : take_space(file->fd, 0, LAG_CHUNKS_AT);

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
	void *spare = atomic_exchange(&file->spare, NULL);

	if (spare)
		munmap(spare, LAG_CHUNK_BYTES);
	if (file->head)
		munmap(file->head, LAG_CHUNKS_AT);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct lag_trace_file){ .fd = -1 };
}

void lag_trace_producer_init(struct lag_trace_producer *prod, struct lag_trace_file *file,
			     uint64_t tid)
{
	prod->file = file;
	prod->tid = tid;
	prod->id = atomic_fetch_add_explicit(&file->n_producers, 1, memory_order_relaxed);
}

static void count_loss(struct lag_trace_producer *prod, enum lag_record_kind kind,
		       enum lag_loss_reason reason)
{
	struct lag_trace_counters *c = prod->file->counters;

	prod->n_lost++;
	atomic_fetch_add_explicit(&c->lost[kind], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->lost_reason[reason], 1, memory_order_relaxed);
}

static void seal(struct lag_trace_producer *prod)
{
	struct lag_chunk_header *chunk = prod->chunk;

	if (!chunk)
		return;
	prod->last_time = prod->codec.time_ns;
	chunk->n_records = prod->n_records;
	chunk->crc = lag_chunk_crc(chunk, chunk + 1, prod->used);
	atomic_store_explicit(&chunk->state, LAG_CHUNK_SEALED, memory_order_release);
	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		if (prod->written[i]) {
			atomic_fetch_add_explicit(&prod->file->counters->written[i],
						  prod->written[i], memory_order_relaxed);
		}
	}
	memset(prod->written, 0, sizeof(prod->written));
	prod->n_records = 0;
	munmap(chunk, LAG_CHUNK_BYTES);
	prod->chunk = NULL;
}

static bool roll(struct lag_trace_producer *prod)
{
	struct lag_chunk_header *chunk = atomic_exchange(&prod->file->spare, NULL);

	if (!chunk)
		chunk = new_chunk(prod->file);
	if (!chunk)
		return false;
	seal(prod);
	lag_codec_start(&prod->codec, prod->last_time);
	chunk->producer = prod->id;
	chunk->producer_seq = prod->seq++;
	chunk->tid = prod->tid;
	chunk->base_ns = prod->last_time;
	chunk->lost_before = prod->n_lost;
	atomic_store_explicit(&chunk->state, LAG_CHUNK_CLAIMED, memory_order_release);
	prod->chunk = chunk;
	prod->used = 0;
	return true;
}

static size_t put(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	return prod->chunk ? lag_record_encode((uint8_t *)(prod->chunk + 1) + prod->used,
					       LAG_CHUNK_ROOM - prod->used, &prod->codec, rec)
			   : 0;
}

bool lag_trace_append(struct lag_trace_producer *prod, const struct lag_record *rec)
{
	int saved = errno;
	enum lag_loss_reason reason = LAG_LOSS_TOO_LONG;
	size_t n = rec->n_bytes > LAG_RECORD_BYTES_MAX ? 0 : put(prod, rec);

	if (!n && rec->n_bytes <= LAG_RECORD_BYTES_MAX) {
		if (roll(prod)) {
			n = put(prod, rec);
		} else {
			reason = (enum lag_loss_reason)atomic_load_explicit(
				&prod->file->full_reason, memory_order_relaxed);
		}
	}
	if (n) {
		prod->used += (uint32_t)n;
		prod->n_records++;
		prod->written[rec->kind]++;
		atomic_store_explicit(&prod->chunk->committed, prod->used, memory_order_release);
	} else {
		count_loss(prod, rec->kind, reason);
	}
	errno = saved;
	return n > 0;
}

int64_t lag_trace_string(struct lag_trace_producer *prod, const char *text, size_t n)
{
	struct lag_record rec;
	uint64_t hash;
	size_t i;

	if (!text || !n)
		return 0;
	if (n > LAG_RECORD_BYTES_MAX)
		n = LAG_RECORD_BYTES_MAX;
	hash = lag_hash_bytes(text, n);
	for (i = hash; prod->strings[i %= LAG_PRODUCER_STRINGS].id; i++) {
		if (prod->strings[i].hash == hash)
			return prod->strings[i].id;
	}
	if (prod->strings_used >= LAG_PRODUCER_STRINGS * 3 / 4) {
		memset(prod->strings, 0, sizeof(prod->strings));
		prod->strings_used = 0;
		i = hash % LAG_PRODUCER_STRINGS;
	}
	lag_record_init(&rec, LAG_REC_string);
	rec.string.id = (int64_t)prod->n_strings + 1;
	rec.bytes = text;
	rec.n_bytes = n;
	if (!lag_trace_append(prod, &rec))
		return 0;
	prod->strings[i].hash = hash;
	prod->strings[i].id = ++prod->n_strings;
	prod->strings_used++;
	return prod->n_strings;
}

int64_t lag_trace_config(struct lag_trace_producer *prod, const struct lag_rec_launch_config *cfg)
{
	const size_t n_slots = sizeof(prod->configs) / sizeof(prod->configs[0]);
	struct lag_record rec = { .kind = LAG_REC_launch_config, .launch_config = *cfg };
	uint64_t hash;
	size_t i;

	rec.launch_config.id = 0;
	hash = lag_hash_bytes(&rec.launch_config, sizeof(rec.launch_config));
	for (i = hash; prod->configs[i %= n_slots].id; i++) {
		if (prod->configs[i].hash == hash)
			return prod->configs[i].id;
	}
	if (prod->configs_used >= n_slots * 3 / 4) {
		memset(prod->configs, 0, sizeof(prod->configs));
		prod->configs_used = 0;
		i = hash % n_slots;
	}
	rec.launch_config.id = (int64_t)prod->n_configs + 1;
	if (!lag_trace_append(prod, &rec))
		return LAG_NONE;
	prod->configs[i].hash = hash;
	prod->configs[i].id = ++prod->n_configs;
	prod->configs_used++;
	return prod->n_configs;
}

bool lag_trace_producer_enter(struct lag_trace_producer *prod, uint32_t index)
{
	uint32_t n = atomic_load(&prod->file->n_chunks);
	bool ok;

	atomic_store(&prod->file->n_chunks, index);
	ok = roll(prod);
	atomic_store(&prod->file->n_chunks, n > index + 1 ? n : index + 1);
	return ok;
}

void lag_trace_producer_abandon(struct lag_trace_producer *prod)
{
	if (prod->chunk)
		munmap(prod->chunk, LAG_CHUNK_BYTES);
	prod->chunk = NULL;
}

void lag_trace_producer_close(struct lag_trace_producer *prod)
{
	int saved = errno;

	seal(prod);
	errno = saved;
}
