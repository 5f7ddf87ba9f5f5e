/* SPDX-License-Identifier: Apache-2.0 */
/* Layout, axis, level of detail, text and keys: pure functions, checked over their whole range. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "viz/tui/axis.h"
#include "viz/tui/glyphs.h"
#include "viz/tui/keymap.h"
#include "viz/tui/layout.h"
#include "viz/tui/list.h"
#include "viz/tui/lod.h"
#include "viz/tui/palette.h"
#include "viz/tui/text.h"

static uint32_t seed = 1;

static int random_below(int n)
{
	seed = seed * 1664525u + 1013904223u;
	return (int)((uint64_t)(seed >> 8) * (uint64_t)n >> 24);
}

static bool inside(const struct lag_box *box, int width, int height)
{
	return box->x >= 0 && box->y >= 0 && box->width >= 0 && box->height >= 0 &&
	       box->x + box->width <= width && box->y + box->height <= height;
}

static void parts_of_a_screen_never_overlap_or_leave_it(void **state)
{
	(void)state;
	for (int width = 20; width <= 400; width++) {
		for (int height = 5; height <= 120; height++) {
			struct lag_layout at = lag_layout_screen(width, height, true);

			assert_false(at.too_small);
			assert_true(inside(&at.top, width, height));
			assert_true(inside(&at.body, width, height));
			assert_true(inside(&at.bottom, width, height));
			assert_true(at.body.height >= 3);
			assert_true(at.body.y >= at.top.y + at.top.height + at.rules);
			assert_true(at.bottom.y >= at.body.y + at.body.height + at.rules);
		}
	}
	assert_true(lag_layout_screen(19, 24, true).too_small);
	assert_true(lag_layout_screen(80, 4, true).too_small);
}

static void timeline_parts_fit_at_every_size(void **state)
{
	(void)state;
	for (int width = 20; width <= 400; width++) {
		for (int height = 3; height <= 120; height++) {
			struct lag_timeline_layout at =
				lag_layout_timeline(width, height, random_below(200),
						    random_below(60), random_below(20));

			assert_true(at.rows >= 1 && at.chart >= 1);
			assert_true(1 + at.rows + at.detail <= height);
			assert_true(at.label + 1 + at.chart + (at.remark ? at.remark + 1 : 0) <=
				    width);
		}
	}
}

static void columns_fit_and_numbers_are_whole_or_gone(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct lag_fit fits[12];
		int n = 1 + random_below(12), width = 1 + random_below(200);

		for (int i = 0; i < n; i++) {
			bool text = random_below(3) == 0;

			fits[i] = (struct lag_fit){ .need = 1 + random_below(40) };
			fits[i].least = text ? 8 : fits[i].need;
			fits[i].weight = i == 0 ? 0 : 1 + random_below(5);
		}
		assert_true(lag_layout_fit(fits, n, width, 2) <= width);
		for (int i = 1; i < n; i++) {
			int least = fits[i].least < fits[i].need ? fits[i].least : fits[i].need;

			assert_true(fits[i].got == 0 || fits[i].got >= least ||
				    fits[0].got < fits[0].need);
			assert_true(fits[i].got <= fits[i].need);
		}
	}
}

static void zooming_keeps_the_cursor_in_its_place(void **state)
{
	const struct lag_axis limits = { 0, INT64_C(60000000000) };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		int width = 20 + random_below(380), before, after;
		struct lag_axis axis = { (int64_t)random_below(30000) * 1000000, 0 };
		int64_t t;
		double factor = random_below(2) ? 0.5 : 2.0;

		axis.t1 = axis.t0 + width + (int64_t)random_below(20000) * 1000000;
		t = lag_axis_time(&axis, width, random_below(width));
		before = lag_axis_column(&axis, width, t);
		lag_axis_zoom(&axis, factor, t, width, &limits);
		assert_true(axis.t0 >= limits.t0 && axis.t1 <= limits.t1 &&
			    axis.t1 - axis.t0 >= width);
		after = lag_axis_column(&axis, width, t);
		assert_true(after >= 0 && after < width);
		/* At the run's ends the window cannot follow. */
		if (axis.t0 > limits.t0 && axis.t1 < limits.t1)
			assert_true(abs(after - before) <= 1);
	}
}

static void columns_and_times_agree(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		int width = 1 + random_below(400);
		struct lag_axis axis = { (int64_t)random_below(1 << 20) << random_below(24), 0 };

		axis.t1 = axis.t0 + width + ((int64_t)random_below(1 << 20) << random_below(24));
		for (int column = 0; column < width; column++) {
			int64_t t = lag_axis_time(&axis, width, column);

			assert_int_equal(lag_axis_column(&axis, width, t), column);
			assert_int_equal(
				lag_axis_column(&axis, width,
						lag_axis_time(&axis, width, column + 1) - 1),
				column);
		}
		assert_int_equal(lag_axis_time(&axis, width, width), axis.t1);
		assert_true(lag_axis_column(&axis, width, axis.t0 - 1) < 0);
		assert_true(lag_axis_column(&axis, width, axis.t1) >= width);
	}
}

static void ticks_are_round_and_far_enough_apart(void **state)
{
	(void)state;
	for (int64_t span = 100; span < INT64_C(1000000000000); span = span * 3 / 2 + 1) {
		struct lag_axis axis = { 0, span };
		int64_t tick = lag_axis_tick(&axis, 100, 10), digit = tick;

		assert_true((double)tick >= (double)span / 10);
		assert_true((double)tick <= (double)span / 10 * 2.6 + 2);
		while (digit % 10 == 0)
			digit /= 10;
		assert_true(digit == 1 || digit == 2 || digit == 5);
	}
}

static void sums_of_columns_equal_a_plain_count(void **state)
{
	enum {
		N = 1000
	};
	static struct lag_time_slice slices[N];
	struct lag_lod lod;
	struct lag_err err;
	int64_t at = 50;

	(void)state;
	for (int i = 0; i < N; i++) {
		at += random_below(3) ? 0 : random_below(20);
		slices[i] = (struct lag_time_slice){ at, at + 1 + random_below(30),
						     (uint8_t)random_below(LAG_TIME_LIMIT), -1 };
		at = slices[i].end_ns;
	}
	assert_int_equal(lag_lod_init(&lod, slices, N, &err), LAG_OK);
	for (int round = 0; round < 2000; round++) {
		int64_t t0 = random_below((int)at + 100), t1 = t0 + random_below((int)at);
		int64_t want[LAG_TIME_LIMIT] = { 0 }, got[LAG_TIME_LIMIT];

		for (int i = 0; i < N; i++) {
			int64_t from = slices[i].start_ns > t0 ? slices[i].start_ns : t0;
			int64_t to = slices[i].end_ns < t1 ? slices[i].end_ns : t1;

			want[slices[i].class] += to > from ? to - from : 0;
		}
		lag_lod_between(&lod, t0, t1, got);
		assert_memory_equal(got, want, sizeof(want));
	}
	lag_lod_release(&lod);
}

static void columns_of_a_row_add_up_to_the_window(void **state)
{
	static struct lag_time_slice slices[300];
	static int64_t columns[77 * LAG_TIME_LIMIT];
	const struct lag_axis axis = { 100, 2900 };
	struct lag_lod lod;
	struct lag_err err;
	int64_t sum = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		slices[i] = (struct lag_time_slice){ i * 10, i * 10 + 10,
						     (uint8_t)(i % LAG_TIME_LIMIT), -1 };
	}
	assert_int_equal(lag_lod_init(&lod, slices, 300, &err), LAG_OK);
	lag_lod_columns(&lod, &axis, 77, columns);
	for (int i = 0; i < 77 * LAG_TIME_LIMIT; i++)
		sum += columns[i];
	assert_int_equal(sum, 2800);
	lag_lod_release(&lod);
}

static void hostile_names_come_out_harmless(void **state)
{
	static const char *const names[] = {
		"\x1b[2J\x1b]0;title\a",
		"\x9b"
		"31m",
		"a\xff\xfe",
		"\xe2\x80\xae"
		"evil",
		"tab\there",
		"\xf4\x90\x80\x80",
		"\xed\xa0\x80",
		"line\nbreak",
		"e\xcc\x81",
		"\xef\xbb\xbf",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int ascii = 0; ascii < 2; ascii++) {
			const char *text = names[i];
			uint32_t unit[LAG_TEXT_UNIT_MAX];
			int n;

			while ((n = lag_text_next(&text, ascii, unit)) > 0) {
				for (int k = 0; k < n; k++) {
					assert_true(unit[k] >= 0x20 && unit[k] != 0x7f);
					assert_false(unit[k] >= 0x80 && unit[k] < 0xa0);
					assert_true(unit[k] != 0x202e && unit[k] != 0xfeff);
					assert_true(!ascii || unit[k] < 0x80);
				}
			}
			assert_int_equal(*text, 0);
		}
	}
	assert_int_equal(lag_text_width("\x1b[m", false), 6);
	assert_int_equal(lag_text_width("µ×", false), 2);
	assert_int_equal(lag_text_fold("one two three", 8, false), 7);
	assert_int_equal(lag_text_fold("one two three", 7, false), 7);
	assert_int_equal(lag_text_fold("one two three", 13, false), 13);
	assert_int_equal(lag_text_fold("unbroken", 3, false), 3);
	assert_int_equal(lag_text_fold("名前 名", 1, false), 3);
	assert_int_equal(lag_text_fold("", 8, false), 0);
	assert_int_equal(lag_text_width("±6 µs", true), 6);
	assert_int_equal(lag_text_width("名前", false), 4);
}

static void each_class_and_heat_has_a_glyph_of_its_own(void **state)
{
	(void)state;
	for (int a = 0; a < LAG_TIME_LIMIT; a++) {
		for (int b = 0; b < a; b++) {
			uint32_t x = lag_glyph_of_class((enum lag_time_class)a).code;
			uint32_t y = lag_glyph_of_class((enum lag_time_class)b).code;

			assert_int_not_equal(x, y);
			assert_int_not_equal(lag_text_ascii(x), lag_text_ascii(y));
		}
	}
	for (int i = 0; i < 4; i++) {
		static const float heat[] = { 1.0F, 1.1F, 1.2F, 1.3F };

		for (int k = 0; k < i; k++) {
			assert_int_not_equal(lag_text_ascii(lag_glyph_of_heat(heat[i]).code),
					     lag_text_ascii(lag_glyph_of_heat(heat[k]).code));
		}
	}
}

static void a_column_shows_what_fills_most_of_it(void **state)
{
	int64_t ns[LAG_TIME_LIMIT] = { 0 }, owed[LAG_TIME_LIMIT] = { 0 };

	(void)state;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code, ' ');
	ns[LAG_TIME_COMPUTE] = 100;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code, 0x2588);
	ns[LAG_TIME_COMPUTE] = 50;
	ns[LAG_TIME_IDLE] = 50;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code, 0x258c); /* half a block */
	ns[LAG_TIME_IDLE] = 0;
	ns[LAG_TIME_BUBBLE] = 50;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code,
			 0x2588); /* compute has precedence */
	memset(owed, 0, sizeof(owed));
	ns[LAG_TIME_BUBBLE] = 60;
	ns[LAG_TIME_COMPUTE] = 40;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code, 0xb7);
}

static void over_a_row_each_class_gets_its_share_of_cells(void **state)
{
	int64_t ns[LAG_TIME_LIMIT] = { 0 }, owed[LAG_TIME_LIMIT] = { 0 };
	int n = 0;

	(void)state;
	ns[LAG_TIME_COMPUTE] = 7;
	ns[LAG_TIME_HOST] = 93;
	for (int i = 0; i < 200; i++)
		n += lag_glyph_of_column(ns, 100, owed).code == 0x2588;
	assert_in_range(n, 13, 15);
	/* A cell of one class shows nothing else, whatever is owed. */
	owed[LAG_TIME_COMPUTE] = 90;
	ns[LAG_TIME_COMPUTE] = 0;
	ns[LAG_TIME_HOST] = 100;
	assert_int_equal(lag_glyph_of_column(ns, 100, owed).code, 0x2591);
	assert_int_equal(owed[LAG_TIME_COMPUTE], 0);
}

static void without_colours_styles_still_differ(void **state)
{
	struct lag_look selected = lag_palette_look(LAG_COLOURS_MONO, LAG_STYLE_SELECTED);

	(void)state;
	assert_true(selected.reverse);
	for (unsigned style = 0; style < LAG_STYLE_LIMIT; style++) {
		struct lag_look look = lag_palette_look(LAG_COLOURS_MONO, style);

		assert_true(look.fg == -1 && look.bg == -1);
		look = lag_palette_look(LAG_COLOURS_8, style);
		assert_true(look.fg < 8 && look.bg < 8);
		look = lag_palette_look(LAG_COLOURS_16, style);
		assert_true(look.fg < 16 && look.bg < 16);
	}
	assert_true(lag_palette_look(LAG_COLOURS_MONO, LAG_STYLE_LATE).bold);
	assert_int_equal(lag_palette_step(256, true), LAG_COLOURS_MONO);
	assert_int_equal(lag_palette_step(-1, false), LAG_COLOURS_MONO);
	assert_int_equal(lag_palette_step(8, false), LAG_COLOURS_8);
	assert_int_equal(lag_palette_step(1 << 24, false), LAG_COLOURS_TRUE);
}

static void every_key_of_the_table_means_something(void **state)
{
	(void)state;
	for (size_t i = 0; i < lag_key_lines_n; i++) {
		const struct lag_key_line *line = &lag_key_lines[i];
		const char *keys = line->keys;

		while (*keys) {
			size_t n = strcspn(keys, " ");
			uint32_t key = lag_key_parse(keys, n);
			bool found = false;

			assert_true(key != 0);
			for (int view = 0; view < LAG_VIEW_LIMIT; view++) {
				found = found || lag_keymap_find(key, (enum lag_view_id)view) ==
							 line->intent;
			}
			assert_true(found);
			keys += n + strspn(keys + n, " ");
		}
	}
	assert_int_equal(lag_keymap_find('n', LAG_VIEW_TIMELINE), LAG_INTENT_LATE_NEXT);
	assert_int_equal(lag_keymap_find('n', LAG_VIEW_KERNELS), LAG_INTENT_AGAIN);
	assert_int_equal(lag_keymap_find('+', LAG_VIEW_KERNELS), LAG_INTENT_NONE);
	assert_int_equal(lag_key_parse("F10", 3), LAG_KEY_F1 + 9);
	assert_int_equal(lag_key_parse("F1x", 3), 0);
}

static void lists_stay_in_range_whatever_happens(void **state)
{
	static const enum lag_intent intents[] = { LAG_INTENT_UP,      LAG_INTENT_DOWN,
						   LAG_INTENT_PAGE_UP, LAG_INTENT_PAGE_DOWN,
						   LAG_INTENT_FIRST,   LAG_INTENT_LAST };
	struct lag_list list = { 0 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		int n = random_below(50), page = 1 + random_below(30);

		lag_list_fit(&list, n, page);
		assert_true(lag_list_act(&list, intents[random_below(6)]));
		lag_list_fit(&list, n, page);
		assert_true(list.selected >= 0 && (n == 0 || list.selected < n));
		assert_true(list.top >= 0 && list.selected >= list.top &&
			    list.selected < list.top + page);
		assert_true(list.top == 0 || list.top + page <= n);
	}
}

static void numbers_read_well(void **state)
{
	char out[LAG_NUM_MAX];

	(void)state;
	assert_string_equal(lag_num_ns(out, 284100000), "284.1 ms");
	assert_string_equal(lag_num_ns(out, 8902), "8.902 µs");
	assert_string_equal(lag_num_error(out, 6100), "6.1 µs");
	assert_string_equal(lag_num_error(out, 38200), "38 µs");
	assert_string_equal(lag_num_ms(out, 112480000), "112.480 ms");
	assert_string_equal(lag_num_share(out, 0.612), "61.2 %");
	assert_true(lag_text_has("ampere_GEMM_bf16", "gemm"));
	assert_false(lag_text_has("ampere", "gemm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_screen_never_overlap_or_leave_it),
		cmocka_unit_test(timeline_parts_fit_at_every_size),
		cmocka_unit_test(columns_fit_and_numbers_are_whole_or_gone),
		cmocka_unit_test(zooming_keeps_the_cursor_in_its_place),
		cmocka_unit_test(columns_and_times_agree),
		cmocka_unit_test(ticks_are_round_and_far_enough_apart),
		cmocka_unit_test(sums_of_columns_equal_a_plain_count),
		cmocka_unit_test(columns_of_a_row_add_up_to_the_window),
		cmocka_unit_test(hostile_names_come_out_harmless),
		cmocka_unit_test(each_class_and_heat_has_a_glyph_of_its_own),
		cmocka_unit_test(a_column_shows_what_fills_most_of_it),
		cmocka_unit_test(over_a_row_each_class_gets_its_share_of_cells),
		cmocka_unit_test(without_colours_styles_still_differ),
		cmocka_unit_test(every_key_of_the_table_means_something),
		cmocka_unit_test(lists_stay_in_range_whatever_happens),
		cmocka_unit_test(numbers_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
