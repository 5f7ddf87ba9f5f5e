/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the place of the trace file, and copies a local one to the run directory. Set up by the
 * starting thread, then the writer's alone. What a killed process leaves in the spool is collected
 * by `laggard record`, which knows the folder by the run id. */
#include "tracer/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "schema/env.h"
#include "tracer/config.h"

#define N_COPIED (1u << 20) /* chunks a bit is kept for: 64 GiB of trace */

static struct {
	int fd; /* the copy, -1 = none */
	char path[PATH_MAX];
	uint8_t copied[N_COPIED / 8];
} spool = { .fd = -1 };

/* Local file systems that write in place. On copy-on-write ones a full disk kills the mapping's user
 * even after fallocate; over the network a page fault can take for ever. */
static bool is_local(const char *dir)
{
	static const unsigned long good[] = {
		0xef53,     /* ext2, 3, 4 */
		0x58465342, /* XFS */
		0x01021994, /* tmpfs */
		0x794c7630, /* overlayfs: a container's own disk */
		0xf2f52010, /* F2FS */
	};
	struct statfs fs;

	if (statfs(dir, &fs))
		return false;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if ((unsigned long)fs.f_type == good[i])
			return true;
	}
	return false;
}

static const char *local_folder(const struct lag_config *cfg)
{
	const char *tmp = getenv("TMPDIR");

	if (cfg->local[0])
		return cfg->local;
	if (tmp && *tmp && is_local(tmp))
		return tmp;
	if (is_local("/tmp"))
		return "/tmp";
	return is_local("/dev/shm") ? "/dev/shm" : NULL;
}

static enum lag_status create_spooled(struct lag_trace_file *file, const char *local,
				      const char *name, const char *target,
				      const struct lag_trace_header *head, struct lag_err *err)
{
	const struct lag_config *cfg = lag_config_get();
	size_t n = sizeof(spool.path);
	enum lag_status status;
	int fd;

	if ((size_t)snprintf(spool.path, n, "%s/" LAG_SPOOL_PREFIX "%s", local, cfg->run_id) >= n)
		return lag_err_set(err, LAG_ERR_LIMIT, "path too long");
	(void)mkdir(spool.path, 0700);
	if ((size_t)snprintf(spool.path, n, "%s/" LAG_SPOOL_PREFIX "%s/%s", local, cfg->run_id,
			     name) >= n)
		return lag_err_set(err, LAG_ERR_LIMIT, "path too long");
	fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s: cannot create", target);
	status = lag_trace_file_create(file, spool.path, 0600, head, err);
	if (lag_failed(status)) {
		close(fd);
		unlink(target);
		return status;
	}
	spool.fd = fd;
	return LAG_OK;
}

enum lag_status lag_spool_create(struct lag_trace_file *file, const char *name,
				 const struct lag_trace_header *head, struct lag_err *err)
{
	const struct lag_config *cfg = lag_config_get();
	char path[PATH_MAX];
	const char *local;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", cfg->dir, name) >= sizeof(path))
		return lag_err_set(err, LAG_ERR_LIMIT, "path too long");
	(void)mkdir(cfg->dir, 0777);
	local = cfg->local[0] || !is_local(cfg->dir) ? local_folder(cfg) : NULL;
	if (local)
		return create_spooled(file, local, name, path, head, err);
	return lag_trace_file_create(file, path, 0600, head, err);
}

static bool copy_range(int from, off_t at, size_t n)
{
	uint8_t page[LAG_PAGE_BYTES];

	if (!lag_trace_may_grow((uint64_t)at + n))
		return false;
	while (n) {
		ssize_t got = pread(from, page, n < sizeof(page) ? n : sizeof(page), at);
		ssize_t put = 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		while (put < got) {
			ssize_t done = pwrite(spool.fd, page + put, (size_t)(got - put), at + put);

			if (done < 0 && errno != EINTR)
				return false;
			put += done > 0 ? done : 0;
		}
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static bool is_sealed(int fd, off_t at)
{
	struct lag_chunk_header chunk;

	return pread(fd, &chunk, sizeof(chunk), at) == (ssize_t)sizeof(chunk) &&
	       atomic_load(&chunk.state) == LAG_CHUNK_SEALED;
}

void lag_spool_copy(struct lag_trace_file *file, bool all)
{
	uint32_t n = atomic_load(&file->n_chunks);
	bool whole = true;

	if (spool.fd < 0)
		return;
	for (uint32_t i = 0; i < n && i < N_COPIED; i++) {
		off_t at = (off_t)LAG_CHUNKS_AT + (off_t)i * (off_t)LAG_CHUNK_BYTES;
		uint8_t bit = (uint8_t)(1u << (i % 8));

		if ((spool.copied[i / 8] & bit) || !(all || is_sealed(file->fd, at)))
			continue;
		if (copy_range(file->fd, at, LAG_CHUNK_BYTES)) {
			spool.copied[i / 8] |= bit;
		} else {
			whole = false;
		}
	}
	whole = copy_range(file->fd, 0, LAG_CHUNKS_AT) && whole && n <= N_COPIED;
	if (all && whole)
		unlink(spool.path);
}
