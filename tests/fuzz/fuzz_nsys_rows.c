/* SPDX-License-Identifier: Apache-2.0 */
/* The Nsight Systems importer on any rows. Tables are made of the input's bytes where schema/db/foreign.h
 * is asked for them, so that each run is about values, and none about SQLite's file format (fuzz_nsys.c). */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "schema/base/mem.h"
#include "schema/db/foreign.h"
#include "tests/fuzz/nsys.h"

#define VALUES_MAX 4096 /* of one run */

static const char magic[] = "SQLite format 3";

/* Texts that mean something to the importer. */
static const char *const words[] = { "ncclAllReduce",
				     "ncclGroupStart",
				     "ncclGroupEnd",
				     "NCCL",
				     "Rank",
				     "Root",
				     "Message size [bytes]",
				     "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
				     "cudaLaunchKernel_v7000",
				     "RANK=3",
				     "RANK",
				     "WORLD_SIZE",
				     "Hostname",
				     "EXPORT_SCHEMA_VERSION",
				     "EXPORT_PARAM_TIME_SHIFT",
				     "3.14.2",
				     "12",
				     "overflow, 17 events dropped",
				     "{\"a\":1}",
				     "\x1b[31m\xff" };

struct value {
	bool made;
	int64_t number;
	char *text;
	size_t n;
};

struct lag_foreign {
	char unused;
};

struct lag_foreign_rows {
	size_t n;
	uint64_t missing;
	size_t key;
	struct value values[LAG_FOREIGN_COLUMNS_MAX];
};

/* What is left of the run's input. */
static struct {
	const uint8_t *at, *end;
	unsigned int n_values;
} source;

static uint8_t next_byte(void)
{
	return source.at < source.end ? *source.at++ : 0;
}

static int64_t next_bytes(size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | next_byte();
	return (int64_t)v;
}

/* Mostly small, so that what refers to one another is found. */
static int64_t next_number(void)
{
	static const int64_t odd[] = { -1, INT64_MAX, INT64_MIN + 1, INT32_MAX, 0, 1 << 24 };
	uint8_t b = next_byte();

	if (b < 128)
		return b & 31;
	if (b < 176)
		return next_bytes(2) * 1000;
	if (b < 192)
		return (int64_t)(b & 3) << 24 | 1; /* as global ids of threads are made */
	if (b < 224)
		return (int32_t)next_bytes(4);
	if (b < 240)
		return next_bytes(8);
	return b < 248 ? odd[b % 6] : LAG_NONE;
}

static void set_text(struct value *v, const char *text, size_t n)
{
	v->text = malloc(n + 1);
	lag_fuzz_require(v->text != NULL);
	memcpy(v->text, text, n);
	v->text[n] = '\0';
	v->n = n;
}

static void next_text(struct value *v)
{
	const size_t n_words = sizeof(words) / sizeof(words[0]);
	uint8_t b = next_byte();
	size_t n = b & 127, left = (size_t)(source.end - source.at);

	if (b < 128) {
		set_text(v, words[b % n_words], strlen(words[b % n_words]));
	} else if (b < 250) {
		n = n < left ? n : left;
		set_text(v, (const char *)source.at, n);
		source.at += n;
	}
}

/* A value is what it is first asked for. */
static struct value *value_of(const struct lag_foreign_rows *rows, size_t column, bool text)
{
	/* The interface calls reading values no change. */
	struct value *v = &((struct lag_foreign_rows *)(uintptr_t)rows)->values[column];

	lag_fuzz_require(column < rows->n);
	if (!v->made) {
		*v = (struct value){ .made = true, .number = LAG_NONE };
		if (rows->missing >> column & 1)
			return v;
		if (text) {
			next_text(v);
		} else {
			v->number = next_number();
		}
	}
	return v;
}

static void forget(struct lag_foreign_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		free(rows->values[i].text);
		rows->values[i] = (struct value){ 0 };
	}
}

bool lag_foreign_probe(const uint8_t *head, size_t n)
{
	return n >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

bool lag_foreign_is_ours(const uint8_t *head, size_t n)
{
	(void)head;
	(void)n;
	return false;
}

enum lag_status lag_foreign_open(const char *path, struct lag_foreign **out, struct lag_err *err)
{
	uint8_t b = next_byte();

	(void)path;
	*out = NULL;
	if (b == 255)
		return lag_err_set(err, LAG_ERR_INPUT, "no database");
	*out = lag_calloc(1, sizeof(**out));
	lag_fuzz_require(*out != NULL);
	return b == 254 ? LAG_WARN : LAG_OK;
}

void lag_foreign_close(struct lag_foreign *f)
{
	free(f);
}

bool lag_foreign_has(const struct lag_foreign *f, const char *table)
{
	(void)f;
	(void)table;
	return next_byte() < 240;
}

const char *lag_foreign_refused(const struct lag_foreign *f, const char *table)
{
	(void)f;
	(void)table;
	return "a view";
}

enum lag_status lag_foreign_rows_open(struct lag_foreign *f, const char *table,
				      const char *const *columns, size_t n,
				      struct lag_foreign_rows **out, struct lag_err *err)
{
	uint8_t b = next_byte();

	(void)f;
	(void)table;
	(void)columns;
	(void)err;
	lag_fuzz_require(n <= LAG_FOREIGN_COLUMNS_MAX);
	*out = NULL;
	if (b >= 240)
		return LAG_END;
	*out = lag_calloc(1, sizeof(**out));
	lag_fuzz_require(*out != NULL);
	(*out)->n = n;
	(*out)->missing = b >= 192 ? (uint64_t)next_bytes(6) : 0;
	(*out)->key = b & 1 ? 0 : SIZE_MAX;
	return LAG_OK;
}

void lag_foreign_rows_close(struct lag_foreign_rows *rows)
{
	if (rows)
		forget(rows);
	free(rows);
}

bool lag_foreign_rows_have(const struct lag_foreign_rows *rows, size_t column)
{
	lag_fuzz_require(column < rows->n);
	return !(rows->missing >> column & 1);
}

bool lag_foreign_rows_keyed(const struct lag_foreign_rows *rows, size_t column)
{
	return rows->key == column;
}

enum lag_status lag_foreign_rows_next(struct lag_foreign_rows *rows, struct lag_err *err)
{
	uint8_t b = source.at < source.end ? next_byte() : 0;

	forget(rows);
	if (b == 255)
		return lag_err_set(err, LAG_ERR_INPUT, "a broken table");
	return b >= 64 && source.n_values++ < VALUES_MAX ? LAG_OK : LAG_END;
}

enum lag_status lag_foreign_rows_find(struct lag_foreign_rows *rows, int64_t number,
				      struct lag_err *err)
{
	(void)number;
	(void)err;
	forget(rows);
	return next_byte() < 224 ? LAG_OK : LAG_END;
}

bool lag_foreign_rows_damaged(const struct lag_foreign_rows *rows)
{
	(void)rows;
	return next_byte() >= 240;
}

int64_t lag_foreign_int(const struct lag_foreign_rows *rows, size_t column)
{
	return value_of(rows, column, false)->number;
}

const char *lag_foreign_text(const struct lag_foreign_rows *rows, size_t column, size_t *n)
{
	const struct value *v = value_of(rows, column, true);

	*n = v->n;
	return v->text;
}

/* A file that the importer takes for the input, which nobody reads. */
static const char *made_file(void)
{
	static char path[64];
	int fd;

	if (path[0])
		return path;
	(void)snprintf(path, sizeof(path), "/tmp/laggard-fuzz-XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	lag_fuzz_require(fd >= 0 && write(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic));
	(void)close(fd);
	return path;
}

static void remove_file(void)
{
	(void)unlink(made_file());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t *const head = (const uint8_t *)magic;
	static bool registered;

	if (!registered)
		registered = atexit(remove_file) == 0;
	source.at = data;
	source.end = data + n;
	source.n_values = 0;
	lag_fuzz_import_mapped(&lag_importer_nsys, made_file(), head, sizeof(magic),
			       lag_fuzz_check_nsys);
	return 0;
}
