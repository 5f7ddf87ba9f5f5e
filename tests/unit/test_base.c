/* SPDX-License-Identifier: Apache-2.0 */
/* The base library's containers and parsers. */
#include <stdio.h>
#include <string.h>

#include "schema/base/buf.h"
#include "schema/base/parse.h"
#include "schema/base/strtab.h"
#include "tests/unit/unit.h"

static void a_map_keeps_every_key(void **state)
{
	struct lag_map map = { 0 };
	uint64_t v = 0;

	(void)state;
	assert_false(lag_map_find(&map, 0, &v));
	for (uint64_t k = 0; k < 5000; k++)
		assert_int_equal(lag_map_set(&map, k << 40, k), LAG_OK);
	assert_int_equal(lag_map_set(&map, 0, 77), LAG_OK);
	assert_int_equal(map.n, 5000);
	for (uint64_t k = 1; k < 5000; k++) {
		assert_true(lag_map_find(&map, k << 40, &v));
		assert_int_equal(v, k);
	}
	assert_true(lag_map_find(&map, 0, &v));
	assert_int_equal(v, 77);
	assert_false(lag_map_find(&map, 3, &v));
	lag_map_release(&map);
}

static void equal_strings_get_equal_ids(void **state)
{
	struct lag_strtab tab;
	char text[32];

	(void)state;
	assert_int_equal(lag_strtab_init(&tab), LAG_OK);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) {
			int n = snprintf(text, sizeof(text), "name %d", i);

			assert_int_equal(lag_strtab_add(&tab, text, (size_t)n), i + 1);
		}
	}
	assert_int_equal(lag_strtab_add(&tab, "a\0b", 3), 3001);
	assert_int_equal(lag_strtab_add(&tab, "a", 1), 3002);
	assert_string_equal(lag_strtab_get(&tab, 1), "name 0");
	assert_string_equal(lag_strtab_get(&tab, 99999), "");
	lag_strtab_release(&tab);
}

static void a_vector_stops_at_its_maximum(void **state)
{
	struct lag_vec vec = LAG_VEC_INIT(int);

	(void)state;
	vec.max = 3;
	for (int i = 0; i < 3; i++)
		assert_non_null(lag_vec_push(&vec));
	assert_null(lag_vec_push(&vec));
	assert_int_equal(lag_vec_reserve(&vec, SIZE_MAX), LAG_ERR_LIMIT);
	lag_vec_release(&vec);
}

static void numbers_are_read_strictly(void **state)
{
	int64_t v = 0;

	(void)state;
	assert_true(lag_parse_i64("-12", &v) && v == -12);
	assert_false(lag_parse_i64("12x", &v) || lag_parse_i64("", &v) || lag_parse_i64(" 1", &v) ||
		     lag_parse_i64("99999999999999999999", &v));
	assert_true(lag_parse_size("4G", &v) && v == (int64_t)4 << 30);
	assert_true(lag_parse_size("1.5KiB", &v) && v == 1536);
	assert_false(lag_parse_size("G", &v) || lag_parse_size("4Q", &v) ||
		     lag_parse_size("-1", &v) || lag_parse_size("0x10", &v) ||
		     lag_parse_size("1e30", &v));
	assert_true(lag_parse_duration("250us", &v) && v == 250000);
	assert_true(lag_parse_duration("2m", &v) && v == INT64_C(120000000000));
	assert_true(lag_parse_duration("1.5", &v) && v == 1500000000);
	assert_false(lag_parse_duration("1 s", &v) || lag_parse_duration("inf", &v));
}

static void lists_hold_numbers_ranges_and_multiples(void **state)
{
	static const char *const bad[] = {
		"",        "x",      "1,", ",1",  "3-1",
		"1--2",    "1-2-3",  " 1", "1 2", "-3",
		"every:0", "every:", "a",  "7-4", "0,99999999999999999999"
	};

	(void)state;
	assert_true(lag_list_has("0,4-7", 0) && lag_list_has("0,4-7", 7));
	assert_false(lag_list_has("0,4-7", 3) || lag_list_has("0,4-7", 8));
	assert_true(lag_list_has("12-", 1000) && lag_list_has("12-", INT64_MAX));
	assert_true(lag_list_has("every:8", 16));
	assert_false(lag_list_has("every:8", 12));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (lag_list_valid(bad[i]))
			fail_msg("'%s' is no list", bad[i]);
	}
}

static void a_buffer_grows_and_formats(void **state)
{
	struct lag_buf buf = { 0 };

	(void)state;
	assert_string_equal(lag_buf_text(&buf), "");
	for (int i = 0; i < 1000; i++)
		lag_buf_printf(&buf, "%d,", i);
	assert_int_equal(buf.n, 3890);
	assert_memory_equal(buf.text, "0,1,2,", 6);
	lag_buf_clear(&buf);
	lag_buf_putc(&buf, 'x');
	assert_string_equal(lag_buf_text(&buf), "x");
	assert_false(buf.failed);
	lag_buf_release(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_keeps_every_key),
		cmocka_unit_test(equal_strings_get_equal_ids),
		cmocka_unit_test(a_vector_stops_at_its_maximum),
		cmocka_unit_test(numbers_are_read_strictly),
		cmocka_unit_test(lists_hold_numbers_ranges_and_multiples),
		cmocka_unit_test(a_buffer_grows_and_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
