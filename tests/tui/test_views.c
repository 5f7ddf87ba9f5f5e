/* SPDX-License-Identifier: Apache-2.0 */
/* Views as a whole: any size, any keys, hostile names; what survives a change of view; evidence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/fake.h"
#include "tests/unit/unit.h"
#include "viz/tui/app.h"
#include "viz/tui/script.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

static int setup(void **state)
{
	*state = fake_new();
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static struct lag_app *start(struct fake *fake, int width, int height, bool ascii)
{
	struct lag_app *app;
	struct lag_err err;

	assert_int_equal(lag_app_new(fake_data(fake), width, height, ascii, &app, &err), LAG_OK);
	return app;
}

/* Every cell can be shown: no control character, no half of a wide one without its other half. */
static void check_cells(const struct lag_screen *screen)
{
	for (int y = 0; y < screen->height; y++) {
		for (int x = 0; x < screen->width; x++) {
			const struct lag_screen_cell *cell = lag_screen_at(screen, x, y);

			if (cell->code == 0) {
				assert_true(x > 0);
				assert_int_equal(
					lag_text_cells(lag_screen_at(screen, x - 1, y)->code), 2);
				continue;
			}
			assert_true(cell->code >= 0x20 && cell->code != 0x7f);
			assert_false(cell->code >= 0x80 && cell->code < 0xa0);
			assert_true(!screen->ascii || cell->code < 0x80);
			if (lag_text_cells(cell->code) == 2 && x + 1 < screen->width)
				assert_int_equal(lag_screen_at(screen, x + 1, y)->code, 0);
		}
	}
}

static bool shows(struct lag_app *app, const char *text)
{
	struct lag_buf out = { 0 };
	bool found;

	lag_screen_print(lag_app_draw(app), &out);
	found = strstr(lag_buf_text(&out), text) != NULL;
	if (!found)
		fprintf(stderr, "not on this screen: %s\n%s", text, lag_buf_text(&out));
	lag_buf_release(&out);
	return found;
}

static void every_view_draws_at_every_size(void **state)
{
	static const int widths[] = { 1,   5,   19,  20,  21,  25,  33,  39,  40,  41, 49, 50,
				      59,  60,  61,  69,  70,  77,  79,  80,  81,  89, 90, 99,
				      100, 101, 105, 120, 160, 199, 200, 201, 300, 400 };
	static const int heights[] = { 1,  3,  4,  5,  6,  7,  8,  9,  10,
				       11, 12, 13, 16, 24, 25, 40, 60, 120 };
	struct lag_app *app = start(*state, 80, 24, false);
	struct lag_err err;

	for (int view = 0; lag_tui_views[view]; view++) {
		assert_true(lag_app_show(app, lag_tui_views[view]));
		for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
			for (size_t h = 0; h < sizeof(heights) / sizeof(heights[0]); h++) {
				assert_int_equal(lag_app_resize(app, widths[w], heights[h], &err),
						 LAG_OK);
				check_cells(lag_app_draw(app));
			}
		}
	}
	lag_app_free(app);
}

static void any_keys_at_any_size_do_no_harm(void **state)
{
	static const char *const keys[] = {
		"1",    "2",     "3",   "4",    "5",    "6",       "7",     "Tab", "Up", "Down",
		"Left", "Right", "g",   "G",    "PgUp", "PgDn",    "Enter", "+",   "-",  "0",
		"[",    "]",     "<",   ">",    "n",    "N",       "b",     "B",   "f",  "Space",
		"e",    "E",     "s",   "r",    ";",    "?",       "/",     "e",   ":",  "7",
		"Esc",  "F5",    "C-l", "Home", "End",  "BackTab",
	};
	uint32_t seed = 3;
	struct lag_app *app = start(*state, 80, 24, true);
	struct lag_err err;

	for (int round = 0; round < 6000; round++) {
		seed = seed * 1664525u + 1013904223u;
		lag_script_press(app, keys[(seed >> 8) % (sizeof(keys) / sizeof(keys[0]))]);
		if (round % 10 == 0) {
			assert_int_equal(lag_app_resize(app, 1 + (int)(seed >> 8) % 140,
							1 + (int)(seed >> 16) % 50, &err),
					 LAG_OK);
		}
		if (seed >> 28 == 0) {
			lag_app_click(app, (int)(seed >> 9) % 140, (int)(seed >> 17) % 50,
				      (int)(seed >> 24) % 3 - 1);
		}
		check_cells(lag_app_draw(app));
		if (lag_app_done(app)) {
			lag_app_free(app);
			app = start(*state, 80, 24, round % 2);
		}
	}
	lag_app_free(app);
}

static void hostile_names_reach_no_screen(void **state)
{
	struct fake *fake = *state;
	struct lag_app *app;

	fake_rename_kernels(fake, "\x1b]0;owned\a\xe2\x80\xae\xff\xe5\x90\x8d\x9b");
	app = start(fake, 80, 24, false);
	for (int view = 0; lag_tui_views[view]; view++) {
		lag_app_show(app, lag_tui_views[view]);
		lag_script_press(app, "Right Right Right Enter Down Right");
		check_cells(lag_app_draw(app));
	}
	lag_app_free(app);
}

/* What the bottom line offers works, and what works is offered. */
static void keys_are_offered_where_they_do_something(void **state)
{
	static const struct lag_view *const views[] = {
#define LAG_VIEW(NAME, id, title, brief, summary) &lag_view_##id,
#include "viz/tui/views.def"
	};
	struct lag_app *app = start(*state, 80, 24, false);

	for (int i = 0; i < LAG_VIEW_LIMIT; i++) {
		assert_int_equal(lag_keymap_find('/', (enum lag_view_id)i) != LAG_INTENT_NONE,
				 views[i]->find != NULL);
	}
	lag_script_press(app, "4");
	assert_false(shows(app, "/ find"));
	lag_script_press(app, "/");
	assert_true(shows(app, "this key does nothing here"));
	lag_script_press(app, "7");
	assert_false(shows(app, "open"));
	lag_script_press(app, "?");
	assert_false(shows(app, "open the evidence"));
	lag_app_free(app);
}

static void more_than_a_screen_says_so(void **state)
{
	struct lag_app *app = start(*state, 80, 24, false);

	lag_script_press(app, "2 ?");
	assert_true(shows(app, "▾ 22 more"));
	lag_script_press(app, "PgDn");
	assert_true(shows(app, "▴ 19 more"));
	lag_script_press(app, "G");
	assert_true(shows(app, "▴ 22 more"));
	assert_false(shows(app, "▾"));
	lag_app_free(app);
}

static void a_finding_leads_to_its_evidence_and_back(void **state)
{
	struct lag_app *app = start(*state, 105, 28, false);

	assert_true(shows(app, "▸ rank 5 (node2"));
	lag_script_press(app, "Enter");
	assert_true(shows(app, "chronic, slow GPU ×1.31"));
	assert_true(shows(app, "rank 5 in step"));
	lag_script_press(app, "Enter");
	assert_true(shows(app, "◂ slow 12/12"));
	assert_true(shows(app, "on rank 5"));
	lag_script_press(app, "q");
	assert_true(shows(app, "rank 5 in step"));
	lag_script_press(app, "q");
	assert_true(shows(app, "Findings"));
	assert_false(lag_app_done(app));
	lag_script_press(app, "q");
	assert_true(lag_app_done(app));
	lag_app_free(app);
}

static void time_and_selection_survive_a_change_of_view(void **state)
{
	struct lag_app *app = start(*state, 105, 28, false);
	struct lag_buf before = { 0 }, after = { 0 };

	lag_script_press(app,
			 "2 : rank Space 3 Enter : step Space 4 Enter Right Right Right Right + +");
	assert_true(shows(app, "step 4"));
	lag_screen_print(lag_app_draw(app), &before);
	lag_script_press(app, "6 4");
	assert_true(shows(app, "rank 3 in step 4"));
	lag_script_press(app, "3");
	assert_true(shows(app, "step 4"));
	lag_script_press(app, "2");
	lag_screen_print(lag_app_draw(app), &after);
	assert_string_equal(lag_buf_text(&before), lag_buf_text(&after));
	lag_buf_release(&before);
	lag_buf_release(&after);
	lag_app_free(app);
}

static void late_arrivals_and_bubbles_are_found_in_order(void **state)
{
	struct lag_app *app = start(*state, 105, 28, false);

	lag_script_press(app, "2 n");
	assert_true(shows(app, "came last"));
	lag_script_press(app, "n Down n Down");
	lag_script_press(app, "b");
	assert_true(shows(app, "bubble of"));
	for (int i = 0; i < 2000; i++)
		lag_script_press(app, "n");
	assert_true(shows(app, "no later late arrival"));
	lag_app_free(app);
}

static void what_cannot_be_found_is_said(void **state)
{
	struct lag_app *app = start(*state, 105, 28, false);

	lag_script_press(app, "2 / nosuchkernel Enter");
	assert_true(shows(app, "not found: nosuchkernel"));
	lag_script_press(app, ": step Space 99 Enter");
	assert_true(shows(app, "no step 99"));
	lag_script_press(app, ": rank Space 99 Enter");
	assert_true(shows(app, "no rank 99"));
	lag_script_press(app, ": nonsense Enter");
	assert_true(shows(app, "go to what?"));
	lag_app_free(app);
}

static void printing_needs_no_keys_and_shows_everything(void **state)
{
	struct lag_tui_opts opts = { .view = "stragglers" };
	struct lag_buf out = { 0 };
	struct lag_err err;

	assert_int_equal(lag_tui_print(fake_data(*state), &opts, 100, 0, &out, &err), LAG_OK);
	for (int r = 0; r < 8; r++) {
		char text[16];

		snprintf(text, sizeof(text), "rank %d", r);
		assert_non_null(strstr(lag_buf_text(&out), text));
	}
	assert_null(strstr(lag_buf_text(&out), "? help"));
	lag_buf_release(&out);
	opts.view = "nonsense";
	assert_int_equal(lag_tui_print(fake_data(*state), &opts, 100, 0, &out, &err),
			 LAG_ERR_USAGE);
	lag_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_view_draws_at_every_size, setup, teardown),
		cmocka_unit_test_setup_teardown(any_keys_at_any_size_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_names_reach_no_screen, setup, teardown),
		cmocka_unit_test_setup_teardown(a_finding_leads_to_its_evidence_and_back, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keys_are_offered_where_they_do_something, setup,
						teardown),
		cmocka_unit_test_setup_teardown(more_than_a_screen_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(time_and_selection_survive_a_change_of_view, setup,
						teardown),
		cmocka_unit_test_setup_teardown(late_arrivals_and_bubbles_are_found_in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_found_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(printing_needs_no_keys_and_shows_everything, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
