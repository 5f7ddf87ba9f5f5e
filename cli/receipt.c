/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the counters that the tracers kept in their files. Runs in `laggard record`, which outlives
 * processes that were killed. */
#include "cli/receipt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/fmt.h"
#include "schema/base/io.h"
#include "schema/env.h"
#include "schema/trace/trace_tally.h"

static bool is_trace(const char *name)
{
	size_t n = strlen(name), suffix = strlen(LAG_TRACE_SUFFIX);

	return n > suffix && !strcmp(name + n - suffix, LAG_TRACE_SUFFIX);
}

/* <host>.<pid>.<start>.lag; the host may have dots. */
static pid_t pid_of(const char *name)
{
	const char *p = name + strlen(name) - strlen(LAG_TRACE_SUFFIX);

	for (int dots = 0; p > name && dots < 2; dots++) {
		do {
			p--;
		} while (p > name && *p != '.');
	}
	return *p == '.' ? (pid_t)strtol(p + 1, NULL, 10) : 0;
}

static bool copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	char page[65536];
	uint64_t at = 0;
	ssize_t n = -1;

	out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (out >= 0 && (n = lag_io_read_at(in, page, sizeof(page), at)) > 0) {
		at += (uint64_t)n;
		if (!lag_io_write(out, page, (size_t)n)) {
			n = -1;
			break;
		}
	}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out))
		n = -1;
	return n == 0;
}

static void collect_from(const char *base, const char *run_id, const char *dir)
{
	char folder[PATH_MAX], from[PATH_MAX + 256], to[PATH_MAX + 256];
	struct dirent *entry;
	DIR *d;

	if ((size_t)snprintf(folder, sizeof(folder), "%s/" LAG_SPOOL_PREFIX "%s", base, run_id) >=
	    sizeof(folder))
		return;
	d = opendir(folder);
	while (d && (entry = readdir(d))) {
		/* Another `record` on this node may still be running. */
		if (!is_trace(entry->d_name) || !kill(pid_of(entry->d_name), 0) || errno != ESRCH)
			continue;
		(void)snprintf(from, sizeof(from), "%s/%s", folder, entry->d_name);
		(void)snprintf(to, sizeof(to), "%s/%s", dir, entry->d_name);
		if (copy_file(from, to))
			unlink(from);
	}
	if (d)
		closedir(d);
	(void)rmdir(folder);
}

void lag_receipt_collect(const char *run_id, const char *local, const char *dir)
{
	const char *tmp = getenv("TMPDIR");

	if (local)
		collect_from(local, run_id, dir);
	if (tmp && *tmp)
		collect_from(tmp, run_id, dir);
	collect_from("/tmp", run_id, dir);
	collect_from("/dev/shm", run_id, dir);
}

void lag_receipt_begin(struct lag_receipt_before *before, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	memset(before, 0, sizeof(*before));
	while (d && (entry = readdir(d))) {
		if (is_trace(entry->d_name))
			lag_buf_printf(&before->names, "\n%s\n", entry->d_name);
	}
	if (d)
		closedir(d);
}

void lag_receipt_release(struct lag_receipt_before *before)
{
	lag_buf_release(&before->names);
}

static bool was_there(const struct lag_receipt_before *before, const char *name)
{
	char line[NAME_MAX + 3];

	(void)snprintf(line, sizeof(line), "\n%s\n", name);
	return strstr(lag_buf_text(&before->names), line) != NULL;
}

static bool tally_file(struct lag_trace_tally *tally, const char *dir, const char *name)
{
	char path[PATH_MAX + NAME_MAX];
	struct stat st;
	void *map = MAP_FAILED;
	bool ok = false;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map != MAP_FAILED) {
		ok = lag_trace_tally_read(tally, map, (size_t)st.st_size);
		munmap(map, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

struct totals {
	struct lag_trace_tally sum;
	int64_t n, n_killed, n_capped, n_full;
};

static void add_up(struct totals *all, const struct lag_receipt_before *before, const char *dir)
{
	struct lag_trace_tally one;
	struct dirent *entry;
	DIR *d = opendir(dir);

	memset(all, 0, sizeof(*all));
	while (d && (entry = readdir(d))) {
		if (!is_trace(entry->d_name) || was_there(before, entry->d_name) ||
		    !tally_file(&one, dir, entry->d_name))
			continue;
		all->n++;
		all->n_killed += !one.clean;
		all->n_capped += one.capped;
		all->n_full += one.full;
		all->sum.n_records += one.n_records;
		all->sum.n_lost += one.n_lost;
		all->sum.n_bytes += one.n_bytes;
		all->sum.hook_ns += one.hook_ns;
		all->sum.thread_ns += one.thread_ns;
		for (size_t i = 0; i < LAG_REC_LIMIT; i++)
			all->sum.records[i] += one.records[i];
	}
	if (d)
		closedir(d);
}

static void count(struct lag_buf *out, const char *before, uint64_t n, const char *what)
{
	lag_buf_puts(out, before);
	lag_fmt_count(out, (int64_t)n);
	lag_buf_printf(out, " %s", what);
}

void lag_receipt_text(struct lag_buf *out, const struct lag_receipt_before *before, const char *dir,
		      int64_t wall_ns)
{
	struct totals all;
	const uint64_t *r = all.sum.records;

	add_up(&all, before, dir);
	if (!all.n) {
		lag_buf_puts(out, "nothing recorded: no process made a CUDA context or used NCCL");
		return;
	}
	lag_buf_printf(out, "%lld %s: ", (long long)all.n,
		       LAG_PLURAL(all.n, "process", "processes"));
	count(out, "", r[LAG_REC_kernel], "kernels");
	count(out, ", ", r[LAG_REC_memcpy] + r[LAG_REC_memset], "copies and sets");
	count(out, ", ", r[LAG_REC_api], "CUDA calls");
	count(out, ", ", r[LAG_REC_op], "NCCL operations");
	count(out, ", ", r[LAG_REC_range], "annotations");
	count(out, "; ", all.sum.n_lost, "lost, ");
	lag_fmt_bytes(out, (int64_t)all.sum.n_bytes);
	if (wall_ns > 0) {
		lag_buf_puts(out, ", overhead ");
		lag_fmt_share(out, (double)(all.sum.hook_ns + all.sum.thread_ns) /
					   ((double)wall_ns * (double)all.n));
	}
	if (!r[LAG_REC_kernel] && (r[LAG_REC_op] || r[LAG_REC_gap]))
		lag_buf_puts(out, "; NO GPU ACTIVITY: laggard doctor says why");
	if (all.n_killed)
		count(out, "; ", (uint64_t)all.n_killed, "ended without exit handlers");
	if (r[LAG_REC_gap])
		count(out, "; ", r[LAG_REC_gap], "gaps: see laggard report trust");
	if (all.n_capped) {
		count(out, "; ", (uint64_t)all.n_capped,
		      "reached --max-size and stopped recording");
	}
	if (all.n_full)
		count(out, "; ", (uint64_t)all.n_full, "stopped recording: disk full or I/O error");
	lag_buf_printf(out, "; next: laggard merge %s", dir);
}
