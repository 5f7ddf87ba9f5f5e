/* SPDX-License-Identifier: Apache-2.0 */
/* The Nsight Systems importer tells how far it is, and ends when it is told to, whether its database is read
 * where it lies or was spooled. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/importer.h"
#include "schema/db/db.h"

#define ROWS 5000

struct job {
	char path[64];
	uint8_t *bytes;
	size_t n, at;
	size_t n_read, n_watched, n_taken;
	size_t patience; /* calls of watch until it says no */
	uint64_t last;
	bool fell;
};

static void make(struct job *job)
{
	struct lag_err err = { 0 };
	struct lag_db *db;
	struct stat sb;
	int fd;

	*job = (struct job){ .path = "/tmp/lag-nsys-XXXXXX", .patience = SIZE_MAX };
	fd = mkstemp(job->path);
	assert_true(fd >= 0);
	assert_int_equal(lag_db_create(job->path, &db, &err), LAG_OK);
	assert_int_equal(
		lag_db_exec(
			db,
			"PRAGMA application_id = 0;"
			"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
			"INSERT INTO StringIds VALUES (1, 'step');"
			"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER,"
			" textId INTEGER, globalTid INTEGER);"
			"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
			"5000)"
			" INSERT INTO NVTX_EVENTS SELECT i * 1000, i * 1000 + 500, 59, 1, 50 << 24 "
			"FROM n;",
			&err),
		LAG_OK);
	lag_db_close(db);
	assert_int_equal(fstat(fd, &sb), 0);
	job->n = (size_t)sb.st_size;
	job->bytes = mmap(NULL, job->n, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(job->bytes != MAP_FAILED);
	(void)close(fd);
}

static void drop(struct job *job)
{
	(void)munmap(job->bytes, job->n);
	(void)unlink(job->path);
}

static long read_some(struct lag_input *in, void *buf, size_t room, struct lag_err *err)
{
	struct job *job = in->state;
	size_t n = job->n - job->at < room ? job->n - job->at : room;

	(void)err;
	memcpy(buf, job->bytes + job->at, n);
	job->at += n;
	in->offset = job->at;
	job->n_read++;
	return (long)n;
}

static bool watch(struct lag_input *in, uint64_t offset)
{
	struct job *job = in->state;

	job->fell = job->fell || offset < job->last;
	job->last = offset;
	return ++job->n_watched <= job->patience;
}

static enum lag_status take(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	struct job *job = sink->state;

	(void)err;
	job->n_taken += LAG_PART_COUNT(part, range);
	lag_part_release(part);
	return LAG_OK;
}

static enum lag_status import(struct job *job, bool on_disk, struct lag_err *err)
{
	static const struct lag_import_opts opts = { 0 };
	struct lag_input in = {
		.path = job->path, .read = read_some, .watch = watch, .state = job
	};
	struct lag_part_sink sink = { .take = take, .state = job };
	struct lag_pool pool;
	enum lag_status st;

	if (on_disk) {
		in.bytes = job->bytes;
		in.n = job->n;
	}
	assert_int_equal(lag_pool_init(&pool), LAG_OK);
	st = lag_importer_nsys.import(&in, &pool, &opts, &sink, err);
	lag_pool_release(&pool);
	return st;
}

static void it_tells_how_far_it_is(void **state)
{
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		struct lag_err err = { 0 };
		struct job job;

		(void)state;
		make(&job);
		assert_int_equal(import(&job, on_disk, &err), LAG_OK);
		assert_int_equal(job.n_taken, ROWS);
		assert_true(job.n_watched >= ROWS / 512);
		assert_false(job.fell);
		assert_int_equal(job.last, job.n);
		/* What lies on disk is SQLite's to read: here its head only. */
		assert_true(!on_disk || job.n_read <= 2);
		drop(&job);
	}
}

static void it_ends_when_told_to(void **state)
{
	(void)state;
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		for (size_t patience = 0; patience < 9; patience += 4) {
			struct lag_err err = { 0 };
			struct job job;

			make(&job);
			job.patience = patience;
			assert_int_equal(import(&job, on_disk, &err), LAG_ERR_LIMIT);
			assert_non_null(strstr(err.text, "interrupted"));
			assert_int_equal(job.n_watched, patience + 1);
			assert_int_equal(job.n_taken, 0);
			drop(&job);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_tells_how_far_it_is),
		cmocka_unit_test(it_ends_when_told_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
