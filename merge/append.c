/* SPDX-License-Identifier: Apache-2.0 */
/* The trace that late ranks are added to: locked, loaded, checked against them, copied. The old file stays
 * as it is until the new one takes its name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/append_change.sql.h"
#include "merge/state.h"
#include "schema/base/fmt.h"
#include "schema/base/io.h"
#include "schema/db/db.h"

#define CHUNK ((size_t)8 << 20)

/* Whether path still names the file of fd: who waited for the lock may have one that was replaced. */
static bool is_current(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static enum lag_status lock(struct lag_merge *m, const char *path, struct lag_err *err)
{
	/* A pipe would wait for somebody to write into it. */
	m->old.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (m->old.fd < 0)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", path);
	/* A file system without locks has none to offer. */
	if ((flock(m->old.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
	    !is_current(m->old.fd, path))
		return lag_err_set(err, LAG_ERR_USAGE, "%s: somebody else is adding to it", path);
	return LAG_OK;
}

enum lag_status lag_append_recheck(const struct lag_merge *m, const char *path, struct lag_err *err)
{
	if (is_current(m->old.fd, path))
		return LAG_OK;
	return lag_err_set(err, LAG_ERR_USAGE, "%s: became another file meanwhile, not overwritten",
			   path);
}

struct reading {
	struct lag_merge *m;
	struct lag_db *db;
};

static enum lag_status read_rows(void *state, size_t i, struct lag_err *err)
{
	struct reading *r = state;

	(void)i;
	return lag_append_read(r->m, r->db, err);
}

enum lag_status lag_append_load(struct lag_merge *m, const char *path, struct lag_err *err)
{
	struct reading r = { m, NULL };
	enum lag_status st;

	m->old =
		(struct lag_old){ .is = true,
				  .fd = -1,
				  .world_size = LAG_NONE,
				  .segments = LAG_VEC_INIT(struct lag_align_segment),
				  .devices = LAG_VEC_INIT(struct lag_old_device),
				  .stale = LAG_VEC_INIT(int64_t),
				  .instances = LAG_VEC_SPILLED(struct lag_old_instance, m->spill) };
	st = lock(m, path, err);
	if (st == LAG_OK)
		st = lag_db_open(path, &r.db, err);
	if (st == LAG_OK) {
		st = lag_merge_tasks(m, 1, read_rows, &r, err);
		/* Who interrupts it is told the same in every stage. */
		if (st != LAG_OK && !atomic_load(&m->cancelled))
			(void)lag_err_wrap(err, "%s", path);
	}
	lag_db_close(r.db);
	return st;
}

void lag_append_release(struct lag_old *old)
{
	if (!old->is)
		return;
	if (old->fd >= 0)
		(void)close(old->fd);
	lag_vec_release(&old->segments);
	lag_vec_release(&old->devices);
	lag_vec_release(&old->stale);
	lag_vec_release(&old->instances);
	lag_map_release(&old->named);
}

enum lag_status lag_append_check(const struct lag_merge *m, struct lag_err *err)
{
	const char *trace = m->opts->append;

	for (size_t i = m->old.n_procs; i < m->procs.n; i++) {
		const struct lag_part *part = &LAG_PROC_AT(m, i)->part;
		int64_t rank = part->process.rank, world = part->process.world_size;
		uint64_t at = 0;

		if (!lag_merge_may_be_rank(part))
			continue;
		if (world > 0 && m->old.world_size != LAG_NONE &&
		    lag_merge_other_world(part, m->old.world_size)) {
			return lag_err_set(err, LAG_ERR_INPUT,
					   "%s: of a job of %" PRId64 " %s, and %s is of one of "
					   "%" PRId64,
					   part->path, world, LAG_PLURAL(world, "rank", "ranks"),
					   trace, m->old.world_size);
		}
		if (rank >= 0 && lag_map_find(&m->rank_proc, (uint64_t)rank, &at)) {
			return lag_err_set(err, LAG_ERR_INPUT,
					   "%s: rank %" PRId64 " is in %s already, recorded by %s",
					   part->path, rank, trace, LAG_PROC_AT(m, at)->part.path);
		}
	}
	return LAG_OK;
}

bool lag_append_changed(const struct lag_merge *m, size_t i)
{
	const struct lag_instance_row *row = LAG_INSTANCE_AT(m, i);
	const struct lag_old_instance *before;

	if (i >= m->old.n_instances)
		return true;
	before = &LAG_VEC_AT(&m->old.instances, struct lag_old_instance, i);
	return row->n_recorded > before->n_recorded || row->n_members != before->n_members;
}

/* ---- the copy ---- */

static enum lag_status copy_bytes(struct lag_merge *m, int from, int to, struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	ssize_t n;

	for (;;) {
		n = copy_file_range(from, NULL, to, NULL, CHUNK, 0);
		if (n <= 0 || st != LAG_OK)
			break;
		st = lag_merge_advance(m, 0, err);
	}
	if (n == 0 || st != LAG_OK)
		return st;
	/* Not between these file systems, or not by this kernel. */
	if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
		char room[65536];

		while ((n = read(from, room, sizeof(room))) > 0 && st == LAG_OK) {
			if (!lag_io_write(to, room, (size_t)n))
				return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot copy");
			st = lag_merge_advance(m, 0, err);
		}
	}
	return n < 0 ? lag_err_errno(err, LAG_ERR_SYSTEM, "cannot copy") : st;
}

struct copying {
	struct lag_merge *m;
	int to;
};

static enum lag_status do_copy(void *state, size_t i, struct lag_err *err)
{
	struct copying *c = state;

	(void)i;
	if (ioctl(c->to, FICLONE, c->m->old.fd) == 0)
		return LAG_OK;
	return copy_bytes(c->m, c->m->old.fd, c->to, err);
}

enum lag_status lag_append_copy(struct lag_merge *m, int fd, struct lag_err *err)
{
	struct copying c = { m, fd };
	struct stat sb;

	if (fstat(m->old.fd, &sb) == 0)
		(void)fchmod(fd, sb.st_mode & 07777);
	return lag_merge_tasks(m, 1, do_copy, &c, err);
}

/* ---- rows that change ---- */

static enum lag_status run(struct lag_stmt *stmt, enum lag_status st, struct lag_err *err)
{
	if (st == LAG_OK)
		st = lag_stmt_step(stmt, err);
	lag_stmt_reset(stmt);
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status drop_findings(struct lag_merge *m, struct lag_stmt *stmt,
				     struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < m->old.stale.n && st == LAG_OK; i++) {
		st = lag_stmt_bind_int(stmt, 1, LAG_VEC_AT(&m->old.stale, int64_t, i), err);
		st = run(stmt, st, err);
	}
	return st;
}

static enum lag_status update_instances(struct lag_merge *m, struct lag_stmt *stmt,
					struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < m->old.n_instances && st == LAG_OK; i++) {
		const struct lag_instance_row *r = LAG_INSTANCE_AT(m, i);
		const int64_t values[] = { (int64_t)i + 1,    r->bytes,         r->n_members,
					   r->n_recorded,     r->n_started,     r->n_finished,
					   r->first_start_ns, r->last_start_ns, r->first_end_ns,
					   r->last_end_ns,    r->last_rank,     r->lead_ns,
					   r->flags };

		if (i % LAG_MERGE_EVERY == 0)
			st = lag_merge_advance(m, 0, err);
		if (st != LAG_OK || !lag_append_changed(m, i))
			continue;
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]) && st == LAG_OK; k++)
			st = lag_stmt_bind_int(stmt, (int)k + 1, values[k], err);
		st = run(stmt, st, err);
	}
	return st;
}

enum lag_status lag_append_change(struct lag_merge *m, struct lag_db_writer *db,
				  struct lag_err *err)
{
	enum {
		CLEARED = 5
	}; /* statements that only take rows out */

	const char *sql = lag_sql_append_change;
	struct lag_stmt *stmt[CLEARED + 2] = { NULL };
	const int n = sizeof(stmt) / sizeof(stmt[0]);
	enum lag_status st = LAG_OK;

	for (int i = 0; i < n && st == LAG_OK; i++) {
		st = lag_db_writer_prepare(db, sql, &sql, &stmt[i], err);
		if (i < CLEARED && st == LAG_OK)
			st = run(stmt[i], st, err);
	}
	if (st == LAG_OK)
		st = drop_findings(m, stmt[CLEARED], err);
	if (st == LAG_OK)
		st = update_instances(m, stmt[CLEARED + 1], err);
	for (int i = 0; i < n; i++)
		lag_stmt_free(stmt[i]);
	return st;
}
