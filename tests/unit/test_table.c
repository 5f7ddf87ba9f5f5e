/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, quantities and renderers: what a cell says, and that nothing a file holds can break a format
 * or a terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "schema/base/json_read.h"
#include "schema/record/record.h"
#include "tests/unit/unit.h"
#include "viz/render/render.h"

static const struct lag_column columns[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },    { "name", "name", LAG_UNIT_TEXT, NULL },
	{ "time_ns", "time", LAG_UNIT_NS, NULL }, { "share", "share", LAG_UNIT_SHARE, "the step" },
	{ "size", "size", LAG_UNIT_BYTES, NULL },
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void fill(struct lag_table *t, const char *name)
{
	lag_table_init(t, "test", columns, N_COLUMNS);
	lag_table_row(t);
	lag_table_int(t, 3);
	lag_table_text(t, name);
	lag_table_int(t, 284100000);
	lag_table_real(t, 0.612);
	lag_table_int(t, 32 << 20);
	lag_table_row(t);
	lag_table_int(t, LAG_NONE);
	lag_table_text(t, NULL);
	lag_table_null(t);
	lag_table_real(t, NAN);
	lag_table_int(t, 0);
}

static void check_format(void (*fmt)(struct lag_buf *, int64_t), int64_t value, const char *want)
{
	struct lag_buf out = { 0 };

	fmt(&out, value);
	assert_string_equal(lag_buf_text(&out), want);
	lag_buf_release(&out);
}

static void check_share(double value, const char *want)
{
	struct lag_buf out = { 0 };

	lag_fmt_share(&out, value);
	assert_string_equal(lag_buf_text(&out), want);
	lag_buf_release(&out);
}

static void quantities_read_well_at_every_size(void **state)
{
	(void)state;
	check_format(lag_fmt_ns, 0, "0 ns");
	check_format(lag_fmt_ns, 999, "999 ns");
	check_format(lag_fmt_ns, 8902, "8.902 us");
	check_format(lag_fmt_ns, 999949, "999.9 us");
	check_format(lag_fmt_ns, 999951, "1.000 ms");
	check_format(lag_fmt_ns, 284100000, "284.1 ms");
	check_format(lag_fmt_ns, -26700000, "-26.70 ms");
	check_format(lag_fmt_ns, 61000000000, "61.00 s");
	check_format(lag_fmt_ns, INT64_MAX, "9223372037 s");
	check_format(lag_fmt_bytes, 700, "700 B");
	check_format(lag_fmt_bytes, 32 << 20, "32 MiB");
	check_format(lag_fmt_bytes, 1536, "1.50 KiB");
	check_format(lag_fmt_count, 1234567, "1,234,567");
	check_format(lag_fmt_count, -1000, "-1,000");
	check_format(lag_fmt_count, INT64_MIN, "-9,223,372,036,854,775,808");
	check_share(0.612, "61.2 %");
	check_share(0.0001, "<0.1 %");
	check_share(-0.00001, "0.0 %");
	check_share(-0.125, "-12.5 %");
}

static void hostile_names_are_shown_as_what_they_are(void **state)
{
	struct lag_buf out = { 0 };

	(void)state;
	lag_fmt_name(&out, "a\x1b[31m\n\x7f\xc2\x9b\xe2\x80\xae\xff\xc3\xa9");
	assert_string_equal(lag_buf_text(&out),
			    "a\\x1b[31m\\x0a\\x7f\\xc2\\x9b\\xe2\\x80\\xae\\xff\xc3\xa9");
	lag_buf_release(&out);
	assert_int_equal(lag_fmt_width("\xc3\xa9\xe6\xbc\xa2x"), 4); /* 1 + 2 + 1 */
	assert_int_equal(lag_fmt_prefix("\xc3\xa9\xe6\xbc\xa2x", 2), 2);
}

static void a_row_with_a_wrong_number_of_cells_is_an_error(void **state)
{
	struct lag_table t;
	struct lag_err err;

	(void)state;
	fill(&t, "x");
	assert_int_equal(lag_table_finish(&t, &err), LAG_OK);
	lag_table_row(&t);
	lag_table_int(&t, 1);
	assert_true(lag_failed(lag_table_finish(&t, &err)));
	lag_table_release(&t);

	fill(&t, "x");
	lag_table_int(&t, 1); /* a sixth cell */
	assert_true(lag_failed(lag_table_finish(&t, &err)));
	lag_table_release(&t);

	lag_table_init(&t, "test", columns, N_COLUMNS);
	lag_table_row(&t);
	lag_table_text(&t, "text where a number belongs");
	assert_true(lag_failed(lag_table_finish(&t, &err)));
	lag_table_release(&t);
}

static void render(const char *format, const struct lag_table *t, int width, struct lag_buf *out)
{
	const struct lag_render_opts opts = { .utf8 = false, .width = width };

	lag_renderer_find(format)->render(t, NULL, &opts, out);
	assert_false(out->failed);
}

static void numbers_are_never_cut_and_texts_are_where_it_is_narrow(void **state)
{
	struct lag_buf out = { 0 };
	struct lag_table t;
	char *line;

	(void)state;
	fill(&t, "a_kernel_name_that_is_much_longer_than_the_terminal_is_wide");
	render("text", &t, 60, &out);
	assert_non_null(strstr(lag_buf_text(&out), "284.1 ms"));
	assert_non_null(strstr(lag_buf_text(&out), "61.2 %"));
	assert_non_null(strstr(lag_buf_text(&out), ".."));
	assert_non_null(strstr(lag_buf_text(&out), "share of the step"));
	for (line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(lag_fmt_width(line) <= 60);
	lag_buf_release(&out);
	lag_table_release(&t);
}

/* Lines that wrap cannot be read: what is too wide comes in blocks, each with the row's rank. */
static void a_table_wider_than_the_terminal_comes_in_blocks(void **state)
{
	struct lag_buf out = { 0 };
	struct lag_table t;
	char *line;
	int headings = 0;

	(void)state;
	fill(&t, "gemm");
	lag_table_note(&t, "a note that is longer than a line of the terminal is");
	render("text", &t, 28, &out);
	assert_non_null(strstr(lag_buf_text(&out), "longer than a\nline"));
	assert_non_null(strstr(lag_buf_text(&out), "gemm"));
	assert_non_null(strstr(lag_buf_text(&out), "284.1 ms"));
	assert_non_null(strstr(lag_buf_text(&out), "61.2 %"));
	assert_non_null(strstr(lag_buf_text(&out), "32 MiB"));
	for (line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n")) {
		headings += strncmp(line, columns[0].title, strlen(columns[0].title)) == 0;
		assert_true(lag_fmt_width(line) <= 28);
	}
	assert_true(headings > 1);
	lag_buf_release(&out);
	lag_table_release(&t);
}

static const struct lag_column told[] = {
	{ "rank", "rank", LAG_UNIT_ID, NULL },     { "kind", "kind", LAG_UNIT_TEXT, NULL },
	{ "sizes", "sizes", LAG_UNIT_TEXT, NULL }, { "count", "count", LAG_UNIT_COUNT, NULL },
	{ "text", "what", LAG_UNIT_PROSE, NULL },
};

#define SENTENCE \
	"the deciding words of a sentence stand at its very end, after much else, as here: READ"

static void tell(struct lag_table *t)
{
	lag_table_init(t, "test", told, sizeof(told) / sizeof(told[0]));
	for (int i = 0; i < 2; i++) {
		lag_table_row(t);
		lag_table_int(t, i);
		lag_table_text(t, "suspect");
		lag_table_text(t, i ? "4096x1x5120 -> 8192x1x5120" : NULL);
		lag_table_int(t, 1234 + i);
		lag_table_text(t, SENTENCE);
	}
}

/* Every word is there, and no line is wider than the terminal; each row is told in so many lines. */
static void check_told(int width, const char *want)
{
	struct lag_buf out = { 0 };
	struct lag_table t;

	tell(&t);
	render("text", &t, width, &out);
	if (want)
		assert_string_equal(lag_buf_text(&out), want);
	assert_null(strstr(lag_buf_text(&out), ".."));
	assert_non_null(strstr(lag_buf_text(&out), "READ"));
	assert_non_null(strstr(lag_buf_text(&out), "8192x1x5120"));
	for (char *line = strtok(out.text, "\n"); line && width; line = strtok(NULL, "\n"))
		assert_true(lag_fmt_width(line) <= (size_t)width);
	lag_buf_release(&out);
	lag_table_release(&t);
}

/* In a pipe a row is a line; on a terminal a sentence goes on in its column, else below its row, and with
 * it what has no room beside. */
static void sentences_are_never_cut(void **state)
{
	(void)state;
	check_told(0, "rank  kind     sizes                       count  what\n"
		      "-------------------------------------------------------"
		      "-------------------------------------------------------\n"
		      "   0  suspect  -                           1,234  " SENTENCE "\n"
		      "   1  suspect  4096x1x5120 -> 8192x1x5120  1,235  " SENTENCE "\n\n");
	check_told(92,
		   "rank  kind     sizes                       count  what\n"
		   "----------------------------------------------------------------------------"
		   "----------------\n"
		   "   0  suspect  -                           1,234  the deciding words of a "
		   "sentence stand at\n"
		   "                                                  its very end, after much "
		   "else, as here:\n"
		   "                                                  READ\n"
		   "   1  suspect  4096x1x5120 -> 8192x1x5120  1,235  the deciding words of a "
		   "sentence stand at\n"
		   "                                                  its very end, after much "
		   "else, as here:\n"
		   "                                                  READ\n\n");
	check_told(40, "rank  kind     count\n"
		       "--------------------\n"
		       "   0  suspect  1,234\n"
		       "    the deciding words of a sentence\n"
		       "    stand at its very end, after much\n"
		       "    else, as here: READ\n"
		       "   1  suspect  1,235\n"
		       "    the deciding words of a sentence\n"
		       "    stand at its very end, after much\n"
		       "    else, as here: READ\n"
		       "    sizes 4096x1x5120 -> 8192x1x5120\n\n");
	for (int width = 38; width <= 200; width++)
		check_told(width, NULL);
}

static void microseconds_have_their_sign_where_the_output_is_utf8(void **state)
{
	struct lag_buf out = { 0 };

	(void)state;
	lag_fmt_units(&out, "by 8.902 us (6 us), 5 used, v3 us_all, us", true);
	assert_string_equal(lag_buf_text(&out),
			    "by 8.902 \xc2\xb5s (6 \xc2\xb5s), 5 used, v3 us_all, us");
	lag_buf_clear(&out);
	lag_fmt_units(&out, "8.902 us", false);
	assert_string_equal(lag_buf_text(&out), "8.902 us");
	lag_buf_clear(&out);
	for (int utf8 = 0; utf8 < 2; utf8++) {
		static const char *const formats[] = { "text", "md" };
		const struct lag_render_opts opts = { .utf8 = utf8 };

		for (int i = 0; i < 2; i++) {
			struct lag_table t;

			fill(&t, "gemm");
			t.cells[2].i = 8902;
			lag_table_note(&t, "a note of 6 us");
			lag_renderer_find(formats[i])->render(&t, NULL, &opts, &out);
			assert_int_equal(strstr(lag_buf_text(&out), " us") == NULL, utf8);
			assert_int_equal(strstr(lag_buf_text(&out), "6 \xc2\xb5s") != NULL, utf8);
			lag_buf_clear(&out);
			lag_table_release(&t);
		}
	}
	lag_buf_release(&out);
}

static void notes_beyond_the_most_are_counted(void **state)
{
	struct lag_table t;

	(void)state;
	fill(&t, "gemm");
	for (int i = 1; i <= 1000; i++)
		lag_table_note(&t, "note %d", i);
	assert_true(t.n_notes < 1000);
	assert_int_equal(t.n_notes_more, 1000 - (t.n_notes - 1));
	assert_string_equal(lag_buf_text(&t.notes[t.n_notes - 2]), "note 255");
	assert_string_equal(lag_buf_text(&t.notes[t.n_notes - 1]), "and 745 more, not shown");
	lag_table_release(&t);
}

static void random_names_leave_json_strict_and_csv_rectangular(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct lag_buf json = { 0 }, csv = { 0 }, text = { 0 };
		struct lag_json_reader reader;
		struct lag_table t;
		struct lag_err err;
		enum lag_status status;
		char name[24] = { 0 };
		int quotes = 0, lines = 0;

		for (size_t i = 0; i + 1 < sizeof(name); i++)
			name[i] = (char)(1 + rand_r(&seed) % 255);
		fill(&t, name);
		render("json", &t, 0, &json);
		lag_json_init_bytes(&reader, lag_buf_text(&json), json.n, false);
		while ((status = lag_json_next(&reader, &err)) == LAG_OK)
			;
		assert_int_equal(status, LAG_END);
		lag_json_release(&reader);
		render("csv", &t, 0, &csv);
		for (const char *p = lag_buf_text(&csv); *p; p++) {
			quotes += *p == '"';
			lines += *p == '\n';
			assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
		}
		assert_int_equal(quotes % 2, 0);
		assert_int_equal(lines, 3);
		render("text", &t, 80, &text);
		for (const char *p = lag_buf_text(&text); *p; p++)
			assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
		lag_buf_release(&json);
		lag_buf_release(&csv);
		lag_buf_release(&text);
		lag_table_release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantities_read_well_at_every_size),
		cmocka_unit_test(hostile_names_are_shown_as_what_they_are),
		cmocka_unit_test(a_row_with_a_wrong_number_of_cells_is_an_error),
		cmocka_unit_test(numbers_are_never_cut_and_texts_are_where_it_is_narrow),
		cmocka_unit_test(a_table_wider_than_the_terminal_comes_in_blocks),
		cmocka_unit_test(sentences_are_never_cut),
		cmocka_unit_test(microseconds_have_their_sign_where_the_output_is_utf8),
		cmocka_unit_test(notes_beyond_the_most_are_counted),
		cmocka_unit_test(random_names_leave_json_strict_and_csv_rectangular),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
