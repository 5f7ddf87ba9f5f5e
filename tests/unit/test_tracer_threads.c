/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer's hooks under many threads, in this very process, so that sanitizers see them: threads
 * that come and go, and threads that are still annotating when the tracer finishes. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/env.h"
#include "schema/trace/trace_reader.h"
#include "tracer/guard.h"
#include "tracer/tracer.h"

#define N_WAVES   6
#define N_THREADS 24
#define N_PAIRS   400

typedef void any_function(void);

int InitializeInjectionNvtx2(const void *(*get)(uint32_t));

/* NVTX's side of the door: tables of 16 slots for the core modules. */
static any_function *functions[7][16];
static any_function **tables[7][16];

static int get_module(int module, any_function ****table, unsigned *n)
{
	if (module != 1 && module != 5)
		return 0;
	for (size_t i = 0; i < 16; i++)
		tables[module][i] = &functions[module][i];
	*table = tables[module];
	*n = 16;
	return 1;
}

static const void *get_table(uint32_t id)
{
	static const struct {
		size_t size;
		int (*get)(int, any_function ****, unsigned *);
	} callbacks = { sizeof(callbacks), get_module };

	return id == 1 ? &callbacks : NULL;
}

static int push(const char *text)
{
	int (*fn)(const char *);

	memcpy(&fn, &functions[1][9], sizeof(fn));
	return fn(text);
}

static int pop(void)
{
	int (*fn)(void);

	memcpy(&fn, &functions[1][11], sizeof(fn));
	return fn();
}

static _Atomic int go_on;

static void *annotate(void *arg)
{
	for (int i = 0; i < N_PAIRS; i++) {
		(void)push("outer");
		(void)push("inner");
		(void)pop();
		(void)pop();
	}
	return arg;
}

static void *annotate_to_the_end(void *arg)
{
	while (atomic_load(&go_on)) {
		(void)push("until the end");
		(void)pop();
	}
	return arg;
}

struct found {
	uint64_t n_outer, n_inner, n_late, n_ends;
	bool clean;
	struct lag_trace_damage damage;
};

static void read_back(struct found *f, const char *path)
{
	struct lag_trace_reader *rd;
	struct lag_err err = { 0 };
	struct lag_record rec;
	int64_t names[3] = { 0 }; /* of the current producer: outer, inner, late */
	uint32_t producer, current = UINT32_MAX;
	enum lag_status status;
	struct stat st;
	uint64_t tid;
	void *map;
	int fd = open(path, O_RDONLY);

	memset(f, 0, sizeof(*f));
	assert_true(fd >= 0 && !fstat(fd, &st));
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	if (lag_failed(lag_trace_reader_open(map, (size_t)st.st_size, &rd, &err)))
		fail_msg("%s", err.text);
	while ((status = lag_trace_reader_next(rd, &rec, &producer, &tid)) == LAG_OK) {
		if (producer != current)
			memset(names, 0, sizeof(names));
		current = producer;
		if (rec.kind == LAG_REC_string && rec.n_bytes == 5)
			names[rec.bytes[0] == 'i'] = rec.string.id;
		else if (rec.kind == LAG_REC_string && rec.n_bytes == 13)
			names[2] = rec.string.id;
		else if (rec.kind == LAG_REC_range_end)
			f->n_ends++;
		else if (rec.kind == LAG_REC_range) {
			f->n_outer += rec.range.name == names[0];
			f->n_inner += rec.range.name == names[1];
			f->n_late += rec.range.name == names[2];
		} else if (rec.kind == LAG_REC_receipt) {
			f->clean = rec.receipt.clean_exit == 1;
		}
	}
	assert_int_equal(status, LAG_END);
	f->damage = *lag_trace_reader_damage(rd);
	lag_trace_reader_close(rd);
	munmap(map, (size_t)st.st_size);
	close(fd);
}

static void find_file(char *path, size_t room, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, room, "%s/%s", dir, entry->d_name);
		n++;
	}
	closedir(d);
	assert_int_equal(n, 1);
}

static void nothing_is_lost_and_the_end_is_clean(void **state)
{
	char dir[] = "/tmp/lag-threads-XXXXXX", path[PATH_MAX];
	pthread_t threads[N_THREADS], late[4];
	struct found f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv(LAG_ENV_DIR, dir, 1);
	setenv(LAG_ENV_NVTX, "always", 1);
	assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
	assert_true(lag_guard_on());
	for (int wave = 0; wave < N_WAVES; wave++) {
		for (size_t i = 0; i < N_THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, annotate, NULL), 0);
		for (size_t i = 0; i < N_THREADS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		usleep(250000); /* the writer gives the slots of ended threads to others */
	}
	atomic_store(&go_on, 1);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&late[i], NULL, annotate_to_the_end, NULL), 0);
	usleep(50000);
	lag_tracer_finish(10000);
	assert_false(lag_guard_on());
	usleep(20000);
	atomic_store(&go_on, 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(late[i], NULL), 0);
	find_file(path, sizeof(path), dir);
	read_back(&f, path);
	assert_int_equal(f.n_outer, N_WAVES * N_THREADS * N_PAIRS);
	assert_int_equal(f.n_inner, N_WAVES * N_THREADS * N_PAIRS);
	assert_true(f.n_late > 100);
	assert_true(f.n_ends <= f.n_outer + f.n_inner + f.n_late);
	assert_true(f.n_ends + 4 >= f.n_outer + f.n_inner + f.n_late);
	assert_int_equal(f.damage.bad_chunks + f.damage.missing_chunks + f.damage.bad_records, 0);
	assert_true(f.clean);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_and_the_end_is_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
