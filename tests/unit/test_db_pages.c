/* SPDX-License-Identifier: Apache-2.0 */
/* B-trees written page by page are what SQLite makes of the same rows: byte for byte where the table is
 * one page, and sound and equal in every row where it has many levels, shares and gaps. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/db/page_rows.h"
#include "tests/unit/db_check.h"
#include "tests/unit/lag_builder.h"

#define N_COLUMNS 6

static char dir[64], path[96];
static uint64_t rng;

static uint64_t draw(uint64_t below)
{
	rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (rng >> 33) % below;
}

static int make_dir(void **state)
{
	(void)state;
	lb_make_dir(dir, sizeof(dir));
	(void)snprintf(path, sizeof(path), "%s/t.db", dir);
	rng = 7;
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	lb_remove_dir(dir);
	return 0;
}

static struct lag_db *create(unsigned page_size)
{
	struct lag_db *db;
	struct lag_err err;
	char sql[256];

	(void)unlink(path);
	dbc_ok(lag_db_create(path, &db, &err), &err);
	(void)snprintf(sql, sizeof(sql), "PRAGMA page_size = %u; VACUUM;", page_size);
	dbc_ok(lag_db_exec(db, sql, &err), &err);
	dbc_ok(lag_db_exec(db,
			   "CREATE TABLE t (id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, start "
			   "INTEGER, "
			   "a INTEGER, b INTEGER, c INTEGER);"
			   "CREATE INDEX t_rank ON t (rank, start); CREATE INDEX t_a ON t (a)",
			   &err),
	       &err);
	return db;
}

struct table {
	struct lag_page_file file;
	struct lag_page_set set;
};

static void begin(struct table *t, unsigned page_size)
{
	struct lag_db *db = create(page_size);
	struct lag_err err;

	dbc_ok(lag_page_table_describe(db, "t", &t->set.table, &err), &err);
	lag_db_close(db);
	dbc_ok(lag_page_file_open(&t->file, path, &err), &err);
	assert_int_equal(t->file.page_size, page_size);
	dbc_ok(lag_page_set_init(&t->set, &t->file, path, &err), &err);
}

/* The page count is true, and said to be: readers need not ask the file for its size. */
static void check_header(void)
{
	uint8_t header[100];
	struct stat sb;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(fread(header, 1, sizeof(header), f), sizeof(header));
	assert_int_equal(fstat(fileno(f), &sb), 0);
	(void)fclose(f);
	assert_int_equal((int64_t)lag_page_u32(header + 28) * lag_page_u16(header + 16),
			 sb.st_size);
	assert_int_equal(lag_page_u32(header + 24), lag_page_u32(header + 92));
}

static uint32_t finish(struct table *t)
{
	struct lag_err err;
	uint32_t broken;

	dbc_ok(lag_page_set_finish(&t->set, &broken, &err), &err);
	dbc_ok(lag_page_file_finish(&t->file, &err), &err);
	lag_page_set_release(&t->set);
	check_header();
	return broken;
}

static struct lag_db *reopen(void)
{
	struct lag_db *db;
	struct lag_err err;

	dbc_ok(lag_db_open(path, &db, &err), &err);
	return db;
}

/* Row i of all tests: ids with gaps, ascending (rank, start), values of every size. */
static void row_of(int64_t i, int64_t row[N_COLUMNS])
{
	uint64_t mixed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);

	row[0] = 3 * i + (int64_t)(mixed >> 63) - 100;
	row[1] = i / 1000;
	row[2] = INT64_C(1700000000000000000) + i / 3;
	row[3] = i % 5 ? (int64_t)(mixed >> 32) % 500 : LAG_NONE;
	row[4] = (int64_t)(mixed >> (i % 64)) * (i % 2 ? 1 : -1);
	row[5] = i % 7 ? i % 2 : LAG_NONE;
}

static void add_rows(struct lag_page_rows *share, int64_t from, int64_t until)
{
	int64_t row[N_COLUMNS];
	struct lag_err err;

	for (int64_t i = from; i < until; i++) {
		row_of(i, row);
		dbc_ok(lag_page_rows_add(share, row, 1, &err), &err);
	}
}

static void check_rows(struct lag_db *db, int64_t n)
{
	struct lag_stmt *stmt;
	struct lag_err err;
	int64_t row[N_COLUMNS], i = 0;

	dbc_sound(db);
	dbc_ok(lag_stmt_prepare(db, "SELECT * FROM t", NULL, &stmt, &err), &err);
	for (; lag_stmt_step(stmt, &err) == LAG_OK; i++) {
		row_of(i, row);
		for (int k = 0; k < N_COLUMNS; k++)
			assert_int_equal(lag_stmt_int(stmt, k), row[k]);
	}
	assert_int_equal(i, n);
	lag_stmt_free(stmt);
	assert_int_equal(dbc_int(db, "SELECT count(*) FROM t INDEXED BY t_rank WHERE rank >= 0"),
			 n);
	assert_int_equal(dbc_int(db, "SELECT count(*) FROM t INDEXED BY t_a WHERE a IS NULL"),
			 (n + 4) / 5);
	/* The same found by each index and by neither. */
	assert_int_equal(dbc_int(db,
				 "SELECT count(*) FROM t AS x WHERE NOT EXISTS (SELECT 1 FROM t "
				 "INDEXED BY t_rank WHERE rank = x.rank AND start = x.start AND "
				 "id = x.id)"),
			 0);
}

/* SQLite's own page of the same rows. */
static void oracle_page(const int64_t (*rows)[N_COLUMNS], size_t n, unsigned size, int64_t root,
			uint8_t *page)
{
	struct lag_db *db = create(size);
	struct lag_stmt *stmt;
	struct lag_err err;
	FILE *f;

	dbc_ok(lag_stmt_prepare(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", NULL, &stmt, &err),
	       &err);
	for (size_t i = 0; i < n; i++) {
		for (int k = 0; k < N_COLUMNS; k++)
			dbc_ok(lag_stmt_bind_int(stmt, k + 1, rows[i][k], &err), &err);
		assert_int_equal(lag_stmt_step(stmt, &err), LAG_END);
	}
	lag_stmt_free(stmt);
	lag_db_close(db);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fseek(f, (root - 1) * size, SEEK_SET), 0);
	assert_int_equal(fread(page, 1, size, f), size);
	(void)fclose(f);
}

/* Every boundary between serial types, and rowids of every length, on one page of 16 KiB. */
static void test_bytes_are_sqlites(void **state)
{
	static const int shifts[] = { 0, 7, 14, 15, 21, 23, 28, 31, 35, 42, 47, 49, 56, 62 };
	static int64_t rows[128][N_COLUMNS];
	static uint8_t ours[16384], theirs[16384];
	char kept[sizeof(path) + 8];
	size_t n = 0;
	struct lag_page_rows *share;
	struct lag_err err;
	struct table t;
	FILE *f;

	(void)state;
	for (int sign = -1; sign <= 1; sign += 2) {
		for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
			int64_t at = sign * (INT64_C(1) << shifts[sign < 0 ? 13 - s : s]);

			for (int d = -1; d <= 1; d++) {
				int64_t *row = rows[n];

				row[0] =
					n && at + d <= rows[n - 1][0] ? rows[n - 1][0] + 1 : at + d;
				row[1] = (int64_t)n++;
				row[2] = at + d;
				row[3] = -(at + d);
				row[4] = n % 3 ? at - d : LAG_NONE;
				row[5] = d;
			}
		}
	}
	rows[n][0] = INT64_MAX;
	rows[n][1] = INT64_MAX;
	rows[n][2] = INT64_MIN + 1;
	rows[n][3] = LAG_NONE;
	n++;
	(void)snprintf(kept, sizeof(kept), "%s.kept", path);
	begin(&t, sizeof(ours));
	share = lag_page_rows_begin(&t.set);
	assert_non_null(share);
	dbc_ok(lag_page_rows_add(share, rows[0], n, &err), &err);
	dbc_ok(lag_page_rows_seal(share, &err), &err);
	assert_int_equal(finish(&t), 0);
	struct lag_db *db = reopen();

	dbc_sound(db);
	lag_db_close(db);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t root = i ? t.set.table.index[i - 1].root : t.set.table.root;

		/* The oracle is made in the same place: read ours again each time. */
		f = fopen(path, "r");
		assert_non_null(f);
		assert_int_equal(fseek(f, (long)(root - 1) * (long)sizeof(ours), SEEK_SET), 0);
		assert_int_equal(fread(ours, 1, sizeof(ours), f), sizeof(ours));
		(void)fclose(f);
		assert_int_equal(rename(path, kept), 0);
		oracle_page((const int64_t(*)[N_COLUMNS])rows, n, sizeof(theirs), root, theirs);
		assert_int_equal(rename(kept, path), 0);
		/* Entries of t_a come sorted here and in the order of rows there: cells lie elsewhere. */
		if (i < 2)
			assert_memory_equal(ours, theirs, sizeof(ours));
		assert_memory_equal(ours, theirs, LAG_PAGE_LEAF_HEAD);
	}
}

/* One share of each length around what fills pages of 512 bytes: one leaf, a root with two, and on. */
static void test_every_length(void **state)
{
	(void)state;
	for (int64_t n = 0; n < 90; n++) {
		struct lag_page_rows *share;
		struct lag_err err;
		struct table t;
		struct lag_db *db;

		begin(&t, 512);
		share = lag_page_rows_begin(&t.set);
		assert_non_null(share);
		add_rows(share, 0, n);
		dbc_ok(lag_page_rows_seal(share, &err), &err);
		assert_int_equal(finish(&t), 0);
		db = reopen();
		check_rows(db, n);
		lag_db_close(db);
	}
}

/* Shares of uneven lengths, sealed in any order. */
static void test_shares(void **state)
{
	static const int64_t lengths[] = { 0, 1, 1, 2, 3, 5, 9, 13, 14, 15, 40, 400, 5000 };
	static const unsigned sizes[] = { 512, 512, 1024, 16384 };

	(void)state;
	for (int round = 0; round < 120; round++) {
		struct lag_page_rows *shares[9];
		size_t n_shares = 1 + draw(9);
		int64_t n = 0;
		struct lag_err err;
		struct table t;
		struct lag_db *db;

		begin(&t, sizes[draw(4)]);
		for (size_t i = 0; i < n_shares; i++) {
			int64_t length = lengths[draw(sizeof(lengths) / sizeof(lengths[0]))];

			shares[i] = lag_page_rows_begin(&t.set);
			assert_non_null(shares[i]);
			add_rows(shares[i], n, n + length);
			n += length;
		}
		for (size_t left = n_shares; left; left--) {
			size_t pick = draw(left);

			dbc_ok(lag_page_rows_seal(shares[pick], &err), &err);
			shares[pick] = shares[left - 1];
		}
		assert_int_equal(finish(&t), 0);
		db = reopen();
		check_rows(db, n);
		lag_db_close(db);
	}
}

/* Four levels of nodes over leaves of 512 bytes. */
static void test_deep(void **state)
{
	struct lag_page_rows *a, *b;
	struct lag_err err;
	struct table t;
	struct lag_db *db;

	(void)state;
	begin(&t, 512);
	a = lag_page_rows_begin(&t.set);
	b = lag_page_rows_begin(&t.set);
	assert_true(a && b);
	add_rows(b, 70001, 120000);
	add_rows(a, 0, 70001);
	dbc_ok(lag_page_rows_seal(b, &err), &err);
	dbc_ok(lag_page_rows_seal(a, &err), &err);
	assert_int_equal(finish(&t), 0);
	db = reopen();
	check_rows(db, 120000);
	lag_db_close(db);
}

/* A list of free pages over the gap [first, until) of a sparse file, as SQLite keeps it: trunk pages that
 * name the next trunk and their leaves. */
static void free_gap(uint32_t first, uint32_t until, uint32_t size)
{
	uint8_t *page = calloc(1, size), head[8];
	uint32_t next = 0, n_free = 0, per = size / 4 - 8;
	FILE *f = fopen(path, "r+");

	assert_true(page && f);
	while (first < until) {
		uint32_t n = until - first - 1 < per ? until - first - 1 : per;

		lag_page_put_u32(page, next);
		lag_page_put_u32(page + 4, n);
		for (uint32_t i = 0; i < n; i++)
			lag_page_put_u32(page + 8 + 4 * (size_t)i, first + 1 + i);
		assert_int_equal(fseek(f, (long)(first - 1) * (long)size, SEEK_SET), 0);
		assert_int_equal(fwrite(page, 1, size, f), size);
		next = first;
		first += n + 1;
		n_free += n + 1;
	}
	lag_page_put_u32(head, next);
	lag_page_put_u32(head + 4, n_free);
	assert_int_equal(fseek(f, 32, SEEK_SET), 0);
	assert_int_equal(fwrite(head, 1, 8, f), 8);
	assert_int_equal(fclose(f), 0);
	free(page);
}

/* Pages on both sides of the one at 1 GiB, in a file that is mostly a hole. */
static void test_lock_page(void **state)
{
	const uint32_t size = 16384, lock = 0x40000000 / size + 1;

	(void)state;
	/* The lock page as the first, a middle and the last of a write; and the file ending before it. */
	for (uint32_t before = 0; before < 9; before += 2) {
		struct lag_page_rows *share;
		uint32_t made, from = lock - before;
		struct lag_err err;
		struct table t;
		struct lag_db *db;
		uint8_t byte;
		FILE *f;

		begin(&t, size);
		made = atomic_load(&t.file.next);
		atomic_store(&t.file.next, from);
		share = lag_page_rows_begin(&t.set);
		assert_non_null(share);
		add_rows(share, 0, before == 8 ? 1000 : 8000);
		dbc_ok(lag_page_rows_seal(share, &err), &err);
		assert_int_equal(finish(&t), 0);
		free_gap(made, from, size);
		db = reopen();
		check_rows(db, before == 8 ? 1000 : 8000);
		lag_db_close(db);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_int_equal(fseek(f, (long)(lock - 1) * (long)size, SEEK_SET), 0);
		assert_true(fread(&byte, 1, 1, f) == 0 || byte == 0);
		(void)fclose(f);
	}
}

static void test_refused(void **state)
{
	const int64_t good[] = { 5, 0, 1, 2, 3, 4 }, same[] = { 5, 0, 2, 2, 3, 4 },
		      null[] = { 6, LAG_NONE, 1, 2, 3, 4 }, no_id[] = { LAG_NONE, 0, 1, 2, 3, 4 };
	struct lag_page_rows *a, *b;
	struct lag_err err;
	struct table t;
	uint32_t broken;

	(void)state;
	begin(&t, 512);
	a = lag_page_rows_begin(&t.set);
	b = lag_page_rows_begin(&t.set);
	assert_true(a && b);
	dbc_ok(lag_page_rows_add(a, good, 1, &err), &err);
	assert_int_equal(lag_page_rows_add(a, same, 1, &err), LAG_ERR_USAGE);
	assert_non_null(strstr(err.text, "ascend"));
	assert_int_equal(lag_page_rows_add(a, null, 1, &err), LAG_ERR_USAGE);
	assert_non_null(strstr(err.text, "NULL"));
	assert_int_equal(lag_page_rows_add(b, no_id, 1, &err), LAG_ERR_USAGE);
	dbc_ok(lag_page_rows_add(b, good, 1, &err), &err);
	dbc_ok(lag_page_rows_seal(a, &err), &err);
	dbc_ok(lag_page_rows_seal(b, &err), &err);
	assert_int_equal(lag_page_set_finish(&t.set, &broken, &err), LAG_ERR_USAGE);
	assert_non_null(strstr(err.text, "overlap"));
	lag_page_set_release(&t.set);
	lag_page_file_close(&t.file);
}

/* Tables whose pages SQLite has to write. */
static void test_unsuited(void **state)
{
#define WITH_INDEX "CREATE TABLE u (id INTEGER PRIMARY KEY, x INTEGER); CREATE INDEX v ON u "
	static const char *const tables[] = {
		"CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT)",
		"CREATE TABLE u (x INTEGER, y INTEGER)",
		"CREATE TABLE u (x INTEGER, id INTEGER PRIMARY KEY)",
		"CREATE TABLE u (id INTEGER PRIMARY KEY, x INTEGER UNIQUE)",
		WITH_INDEX "(x DESC)",
		WITH_INDEX "(x) WHERE x",
		WITH_INDEX "(x + 1)",
		"CREATE TABLE other (id INTEGER PRIMARY KEY, x INTEGER)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct lag_db *db = create(4096);
		struct lag_page_table table;
		struct lag_err err;

		dbc_ok(lag_db_exec(db, tables[i], &err), &err);
		assert_int_equal(lag_page_table_describe(db, "u", &table, &err), LAG_ERR_USAGE);
		lag_db_close(db);
	}
}

struct seen {
	int64_t last[2];
	uint64_t n, sum;
};

static enum lag_status see(void *state, const int64_t *entry, struct lag_err *err)
{
	struct seen *seen = state;

	(void)err;
	assert_true(!seen->n || entry[0] > seen->last[0] ||
		    (entry[0] == seen->last[0] && entry[1] > seen->last[1]));
	memcpy(seen->last, entry, sizeof(seen->last));
	seen->n++;
	seen->sum += (uint64_t)entry[0] * 31 + (uint64_t)entry[1];
	return LAG_OK;
}

/* In memory, and in blocks on disk, the last of them empty or not. */
static void test_sort(void **state)
{
	static const size_t lengths[] = { 0, 1, 99, 100, 101, 1000, 12345 };

	(void)state;
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		struct lag_index_sort sort;
		struct seen seen = { 0 };
		struct lag_err err;
		uint64_t sum = 0;

		lag_index_sort_init(&sort, path, 2, 100);
		for (size_t i = 0; i < lengths[l]; i++) {
			int64_t entry[2] = { (int64_t)draw(1000) - 500, (int64_t)i };

			if (draw(10) == 0)
				entry[0] = draw(2) ? INT64_MAX : LAG_NONE;
			sum += (uint64_t)entry[0] * 31 + (uint64_t)entry[1];
			dbc_ok(lag_index_sort_add(&sort, entry, 1, &err), &err);
		}
		dbc_ok(lag_index_sort_each(&sort, see, &seen, &err), &err);
		assert_int_equal(seen.n, lengths[l]);
		assert_int_equal(seen.sum, sum);
		lag_index_sort_release(&sort);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_are_sqlites),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_lock_page),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unsuited),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
