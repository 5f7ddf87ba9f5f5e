/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV reader: quotes, line ends, limits, in chunks of any size. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/csv.h"
#include "schema/base/mem.h"

struct source {
	const char *text;
	size_t n, at, chunk;
};

static long fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct source *s = state;
	size_t n = s->n - s->at;

	(void)err;
	n = n < s->chunk ? n : s->chunk;
	n = n < room ? n : room;
	if (n)
		memcpy(buf, s->text + s->at, n);
	s->at += n;
	return (long)n;
}

/* Rows as "[a|b][c]". */
static void expect_n(const char *text, size_t n, const char *rows)
{
	for (size_t chunk = 1; chunk < 40; chunk++) {
		struct source s = { text, n, 0, chunk };
		struct lag_buf out = { 0 };
		struct lag_err err = { 0 };
		struct lag_csv csv;

		assert_int_equal(lag_csv_init(&csv, fill, &s, ','), LAG_OK);
		while (lag_csv_next(&csv, &err) == LAG_OK) {
			for (size_t i = 0; i < csv.n_fields; i++)
				lag_buf_printf(&out, "%s%s", i ? "|" : "[", csv.field[i]);
			lag_buf_putc(&out, ']');
		}
		assert_string_equal(lag_buf_text(&out), rows);
		lag_csv_release(&csv);
		lag_buf_release(&out);
	}
}

#define EXPECT(text, rows) expect_n(text, sizeof(text) - 1, rows)

static void reads_rows(void **state)
{
	(void)state;
	EXPECT("", "");
	EXPECT("\n\r\n\n", "");
	EXPECT("a,b\nc,d\n", "[a|b][c|d]");
	EXPECT("a,b\r\nc,d", "[a|b][c|d]");
	EXPECT("a,b\rc,d\r", "[a|b][c|d]");
	EXPECT("\xef\xbb\xbf"
	       "a,b\n",
	       "[a|b]");
	EXPECT("a,,\n,\n", "[a||][|]");
	EXPECT("a,", "[a|]");
	EXPECT("\n\na\n\nb\n", "[a][b]");
}

static void reads_quotes(void **state)
{
	(void)state;
	EXPECT("\"a,b\",c\n", "[a,b|c]");
	EXPECT("\"a\"\"b\",\"\"\n", "[a\"b|]");
	EXPECT("\"a\nb\",c\n", "[a\nb|c]");
	EXPECT("\"a\"x,c\n", "[ax|c]");
	EXPECT("a\"b,c\n", "[a\"b|c]");
	EXPECT("\"never closed,c\nd", "[never closed,c\nd]");
	expect_n("a\0b,c\n", 6, "[a b|c]");
}

static void keeps_to_limits(void **state)
{
	size_t n = LAG_CSV_FIELD_MAX + 1000;
	char *text = malloc(2 * n);
	struct source s = { text, 0, 0, 4096 };
	struct lag_err err = { 0 };
	struct lag_csv csv;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n);
	(void)snprintf(text + n, n, ",y\nz\n");
	s.n = n + 5;
	assert_int_equal(lag_csv_init(&csv, fill, &s, ','), LAG_OK);
	assert_int_equal(lag_csv_next(&csv, &err), LAG_OK);
	assert_int_equal(csv.n_fields, 2);
	assert_int_equal(strlen(csv.field[0]), LAG_CSV_FIELD_MAX);
	assert_string_equal(csv.field[1], "y");
	assert_true(csv.n_cut > 0);
	assert_int_equal(lag_csv_next(&csv, &err), LAG_OK);
	assert_string_equal(csv.field[0], "z");
	assert_int_equal(csv.at, n + 3);
	lag_csv_release(&csv);

	memset(text, ',', n);
	s = (struct source){ text, n, 0, 4096 };
	assert_int_equal(lag_csv_init(&csv, fill, &s, ','), LAG_OK);
	assert_int_equal(lag_csv_next(&csv, &err), LAG_OK);
	assert_int_equal(csv.n_fields, LAG_CSV_FIELDS_MAX);
	assert_true(csv.n_cut > 0);
	assert_int_equal(lag_csv_next(&csv, &err), LAG_END);
	lag_csv_release(&csv);
	free(text);
}

static long refuse(void *state, void *buf, size_t room, struct lag_err *err)
{
	(void)state;
	(void)buf;
	(void)room;
	(void)lag_err_set(err, LAG_ERR_INPUT, "no more");
	return -1;
}

static void passes_errors_on(void **state)
{
	struct lag_err err = { 0 };
	struct lag_csv csv;

	(void)state;
	assert_int_equal(lag_csv_init(&csv, refuse, NULL, ','), LAG_OK);
	assert_int_equal(lag_csv_next(&csv, &err), LAG_ERR_INPUT);
	lag_csv_release(&csv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_rows),
		cmocka_unit_test(reads_quotes),
		cmocka_unit_test(keeps_to_limits),
		cmocka_unit_test(passes_errors_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
