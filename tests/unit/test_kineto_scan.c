/* SPDX-License-Identifier: Apache-2.0 */
/* The fast way through a Kineto trace of several windows beside the careful one. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "merge/kineto_event.h"

struct text {
	const char *bytes;
	size_t n, at;
};

static long fill_text(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct text *r = state;
	size_t n = r->n - r->at;

	(void)err;
	n = n < room ? n : room;
	n = n < 50001 ? n : 50001;
	memcpy(buf, r->bytes + r->at, n);
	r->at += n;
	return (long)n;
}

/* Where a window of the input ends, an event is read again whole, and nothing is learnt from its part:
 * all but the last go the fast way, and say what the careful way says. */
static void the_windows_edges_make_no_event_slow(void **state)
{
	struct lag_kineto_scan *fast = calloc(1, sizeof(*fast)),
			       *careful = calloc(1, sizeof(*careful));
	struct lag_err err = { 0 };
	struct lag_buf json = { 0 };
	struct text r;
	size_t n = 20000;

	(void)state;
	assert_non_null(fast);
	assert_non_null(careful);
	lag_buf_puts(&json, "[");
	for (size_t i = 0; i < n; i++) {
		lag_buf_printf(
			&json,
			"%s\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%.*s\","
			"\n    \"ts\":                                        %zu.%03zu,     "
			"\"dur\":                                  1,\n    \"args\": {\n      "
			"\"stream\": 7, \"correlation\": %zu\n    }\n  }",
			i ? "," : "", (int)(i * 7 % 31), "abcdefghijklmnopqrstuvwxyz_0123456789", i,
			i % 1000, i);
	}
	lag_buf_puts(&json, "\n]");
	r = (struct text){ json.text, json.n, 0 };
	lag_kineto_scan_init(fast);
	lag_kineto_scan_init(careful);
	careful->careful = true;
	assert_int_equal(lag_json_init_fill(&fast->json, fill_text, &r, true), LAG_OK);
	lag_json_init_bytes(&careful->json, json.text, json.n, true);
	assert_int_equal(lag_json_next(&fast->json, &err), LAG_OK);
	assert_int_equal(lag_json_next(&careful->json, &err), LAG_OK);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(lag_kineto_next(fast, &err), LAG_OK);
		assert_int_equal(lag_kineto_next(careful, &err), LAG_OK);
		assert_int_equal(fast->event.ts_ns, careful->event.ts_ns);
		assert_int_equal(fast->event.i[LAG_KI_CORRELATION], (int64_t)i);
		assert_true(lag_span_is(fast->event.text[LAG_KT_NAME],
					careful->event.text[LAG_KT_NAME]));
	}
	assert_int_equal(lag_kineto_next(fast, &err), LAG_END);
	assert_true(fast->n_careful <= 2);
	assert_int_equal(careful->n_plain, 0);
	lag_json_release(&fast->json);
	lag_json_release(&careful->json);
	lag_kineto_scan_release(fast);
	lag_kineto_scan_release(careful);
	lag_buf_release(&json);
	free(fast);
	free(careful);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_windows_edges_make_no_event_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
