/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in and out: what is valid is read exactly, what is broken is repaired and counted, and what is
 * written is always valid. */
#include "tests/unit/unit.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/decimal.h"
#include "schema/base/json_read.h"
#include "schema/base/json_write.h"

/* Everything the reader delivers, one character a token and texts in <>. */
static void trace_tokens(struct lag_json_reader *r, struct lag_buf *out, enum lag_status *last)
{
	struct lag_err err = { 0 };
	static const char marks[] = "?{}[]ksntf0";
	enum lag_status st;

	while ((st = lag_json_next(r, &err)) == LAG_OK) {
		lag_buf_putc(out, marks[r->kind]);
		if (r->kind == LAG_JSON_KEY || r->kind == LAG_JSON_STRING ||
		    r->kind == LAG_JSON_NUMBER) {
			lag_buf_putc(out, '<');
			lag_buf_add(out, r->text, r->n);
			lag_buf_putc(out, '>');
		}
	}
	*last = st;
}

static void expect_tokens(const char *json, bool tolerant, const char *tokens, enum lag_status end)
{
	struct lag_json_reader r;
	struct lag_buf out = { 0 };
	enum lag_status st;

	lag_json_init_bytes(&r, json, strlen(json), tolerant);
	trace_tokens(&r, &out, &st);
	assert_string_equal(lag_buf_text(&out), tokens);
	assert_int_equal(st, end);
	lag_json_release(&r);
	lag_buf_release(&out);
}

static void reads_valid_documents(void **state)
{
	(void)state;
	for (int tolerant = 0; tolerant < 2; tolerant++) {
		expect_tokens("{\"a\":[1,-2.5e3,true,false,null],\"b\":{}}", tolerant,
			      "{k<a>[n<1>n<-2.5e3>tf0]k<b>{}}", LAG_END);
		expect_tokens(" [ ] ", tolerant, "[]", LAG_END);
		expect_tokens("\"x\"", tolerant, "s<x>", LAG_END);
		expect_tokens("\xef\xbb\xbf{\"a\":0}", tolerant, "{k<a>n<0>}", LAG_END);
		expect_tokens("[\"\\u0041\\n\\/\\ud83d\\ude00\xc3\xa9\",\"\"]", tolerant,
			      "[s<A\n/\xf0\x9f\x98\x80\xc3\xa9>s<>]", LAG_END);
		expect_tokens("{\"k\\\"1\":\"v\",\"\":\"\"}", tolerant, "{k<k\"1>s<v>k<>s<>}",
			      LAG_END);
	}
}

static void strict_mode_refuses_each_defect(void **state)
{
	static const char *const bad[] = { "",           "{",         "[1,]",       "{\"a\":}",
					   "{\"a\":1,}", "[inf]",     "[01]",       "[1.]",
					   "[+1]",       "[\"\\x\"]", "[\"a\nb\"]", "[\"\xff\"]",
					   "{a\":1}",    "[1 2]",     "[1}",        "{\"a\" 1}",
					   "[\"a",       "nope" };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lag_json_reader r;
		struct lag_buf out = { 0 };
		enum lag_status st;

		lag_json_init_bytes(&r, bad[i], strlen(bad[i]), false);
		trace_tokens(&r, &out, &st);
		assert_int_equal(st, LAG_ERR_INPUT);
		lag_json_release(&r);
		lag_buf_release(&out);
	}
}

static void expect_repair(const char *json, const char *tokens, enum lag_json_repair what)
{
	struct lag_json_reader r;
	struct lag_buf out = { 0 };
	enum lag_status st;

	lag_json_init_bytes(&r, json, strlen(json), true);
	trace_tokens(&r, &out, &st);
	assert_string_equal(lag_buf_text(&out), tokens);
	assert_int_equal(st, LAG_END);
	assert_int_not_equal(r.repairs[what], 0);
	assert_true(r.first_at[what] <= strlen(json));
	lag_json_release(&r);
	lag_buf_release(&out);
}

static void tolerant_mode_repairs_and_counts(void **state)
{
	(void)state;
	expect_repair("{\"a\":inf,\"b\":-nan}", "{k<a>0k<b>0}", LAG_JSON_BARE_WORD);
	expect_repair("[ncclFloat32,0x41]", "[s<ncclFloat32>s<0x41>]", LAG_JSON_BARE_WORD);
	expect_repair("{\"d\": ,\"e\":1}", "{k<d>0k<e>n<1>}", LAG_JSON_NO_VALUE);
	expect_repair("{\"d\":}", "{k<d>0}", LAG_JSON_NO_VALUE);
	expect_repair("[\"a\nb\x01\"]", "[s<a\nb\xef\xbf\xbd>]", LAG_JSON_CONTROL);
	expect_repair("[\"torch\\cuda\\__init__\"]", "[s<torch\\cuda\\__init__>]",
		      LAG_JSON_BAD_ESCAPE);
	expect_repair("[\"a\xff\xc3(\"]", "[s<a\xef\xbf\xbd\xef\xbf\xbd(>]", LAG_JSON_BAD_UTF8);
	expect_repair("[\"\\ud800x\\u0000\"]", "[s<\xef\xbf\xbdx\xef\xbf\xbd>]", LAG_JSON_BAD_UTF8);
	expect_repair("{\"ts\":1,\n tid\": 0}", "{k<ts>n<1>k<tid>n<0>}", LAG_JSON_NO_QUOTE);
	expect_repair("[1,,2,]", "[n<1>n<2>]", LAG_JSON_COMMA);
	expect_repair("{\"a\":1 \"b\":\"x\" \"c\":2}", "{k<a>n<1>k<b>s<x>k<c>n<2>}",
		      LAG_JSON_COMMA);
	expect_repair("{\"a\":1 ;)\"b\":2}", "{k<a>n<1>k<b>n<2>}", LAG_JSON_GARBAGE);
	expect_repair("{\"a\":[1}", "{k<a>[n<1>]}", LAG_JSON_GARBAGE);
	expect_repair("{\"a\":[{\"b\":1", "{k<a>[{k<b>n<1>", LAG_JSON_CUT);
	expect_repair("{\"a\":\"b", "{k<a>", LAG_JSON_CUT);
	expect_repair("", "", LAG_JSON_CUT);
}

static void unescaped_quotes_stay_inside_the_string(void **state)
{
	(void)state;
	expect_repair("{\"name\": \"x = Library(\"_test\", \"IMPL\")\n(1): <module>\", \"pid\": 7}",
		      "{k<name>s<x = Library(\"_test\", \"IMPL\")\n(1): <module>>k<pid>n<7>}",
		      LAG_JSON_STRAY_QUOTE);
	expect_repair("[\"a \"b\" c\",\"d\"]", "[s<a \"b\" c>s<d>]", LAG_JSON_STRAY_QUOTE);
}

struct dribble {
	const char *text;
	size_t n, at, step;
};

static long dribble_fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct dribble *d = state;
	size_t n = d->n - d->at;

	(void)err;
	n = n < d->step ? n : d->step;
	n = n < room ? n : room;
	memcpy(buf, d->text + d->at, n);
	d->at += n;
	return (long)n;
}

static void chunks_give_the_same_tokens_as_memory(void **state)
{
	struct lag_buf json = { 0 }, whole = { 0 }, pieces = { 0 };
	struct lag_json_reader r;
	struct dribble d = { .step = 777 };
	enum lag_status st;

	(void)state;
	lag_buf_putc(&json, '[');
	/* Long enough for several windows, with every kind of border in some window's end. */
	for (int i = 0; i < 30000; i++)
		lag_buf_printf(&json,
			       "%s{\"key %d\": \"text\\n %.*s\", \"n\": %d.%03d, \"\xc3\xa9\": []}",
			       i ? "," : "", i, i % 97,
			       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
			       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
			       i, i % 1000);
	lag_buf_putc(&json, ']');
	lag_json_init_bytes(&r, json.text, json.n, true);
	trace_tokens(&r, &whole, &st);
	assert_int_equal(st, LAG_END);
	assert_int_equal(r.n_repairs, 0);
	lag_json_release(&r);
	d.text = json.text;
	d.n = json.n;
	assert_int_equal(lag_json_init_fill(&r, dribble_fill, &d, true), LAG_OK);
	trace_tokens(&r, &pieces, &st);
	assert_int_equal(st, LAG_END);
	assert_int_equal(r.n_repairs, 0);
	assert_int_equal(pieces.n, whole.n);
	assert_memory_equal(pieces.text, whole.text, whole.n);
	lag_json_release(&r);
	lag_buf_release(&json);
	lag_buf_release(&whole);
	lag_buf_release(&pieces);
}

static void long_strings_and_deep_nests_are_bounded(void **state)
{
	size_t n = 3 * LAG_JSON_STRING_MAX;
	char *text = malloc(n + 4);
	struct lag_json_reader r;
	struct lag_err err = { 0 };
	struct lag_buf out = { 0 };
	enum lag_status st;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', n + 4);
	memcpy(text, "[\"", 2);
	memcpy(text + n + 2, "\"]", 2);
	lag_json_init_bytes(&r, text, n + 4, true);
	assert_int_equal(lag_json_next(&r, &err), LAG_OK);
	assert_int_equal(lag_json_next(&r, &err), LAG_OK);
	assert_int_equal(r.n, LAG_JSON_STRING_MAX);
	assert_int_equal(r.repairs[LAG_JSON_LONG_STRING], 1);
	assert_int_equal(lag_json_next(&r, &err), LAG_OK);
	assert_int_equal(r.kind, LAG_JSON_ARRAY_END);
	lag_json_release(&r);
	memset(text, '[', n);
	lag_json_init_bytes(&r, text, n, false);
	trace_tokens(&r, &out, &st);
	assert_int_equal(st, LAG_ERR_LIMIT);
	assert_int_equal(out.n, LAG_JSON_DEPTH_MAX);
	lag_json_release(&r);
	/* The tolerant mode reads what is not too deep. */
	lag_buf_clear(&out);
	text[0] = '{';
	memcpy(text + 1, "\"a\":", 4);
	memset(text + n / 2, ']', n / 2 - 5);
	memcpy(text + n - 5, ",\"b\":", 5);
	text[n] = '1';
	text[n + 1] = '}';
	lag_json_init_bytes(&r, text, n + 2, true);
	trace_tokens(&r, &out, &st);
	assert_int_equal(st, LAG_END);
	assert_int_equal(r.repairs[LAG_JSON_TOO_DEEP], 1);
	assert_int_equal(r.n_repairs, 1);
	assert_int_equal(r.depth, 0);
	lag_json_release(&r);
	lag_buf_release(&out);
	free(text);
}

static void skip_steps_over_one_value(void **state)
{
	static const char json[] = "{\"a\":{\"x\":[1,{}]},\"b\":5,\"c\":[[],[1]],\"d\":1}";
	struct lag_json_reader r;
	struct lag_err err = { 0 };
	char keys[8] = "";
	size_t n = 0;

	(void)state;
	lag_json_init_bytes(&r, json, sizeof(json) - 1, false);
	assert_int_equal(lag_json_next(&r, &err), LAG_OK);
	while (lag_json_next(&r, &err) == LAG_OK && r.kind == LAG_JSON_KEY) {
		keys[n++] = r.text[0];
		assert_int_equal(lag_json_skip(&r, &err), LAG_OK);
	}
	assert_string_equal(keys, "abcd");
	assert_int_equal(r.kind, LAG_JSON_OBJECT_END);
	lag_json_release(&r);
}

static void decimals_become_integers_exactly(void **state)
{
	static const struct {
		const char *text;
		int digits;
		bool ok;
		int64_t value;
	} cases[] = {
		{ "1694128201435418", 3, true, 1694128201435418000 },
		{ "1713000000123456.789", 3, true, 1713000000123456789 },
		{ "4458676522690.655", 3, true, 4458676522690655 },
		{ "102.95699890136719", 3, true, 102957 },
		{ "0.0004", 3, true, 0 },
		{ "0.0005", 3, true, 1 },
		{ "-5.25", 3, true, -5250 },
		{ "-0", 0, true, 0 },
		{ "1.5e3", 0, true, 1500 },
		{ "1.694128201435418e15", 3, true, 1694128201435418000 },
		{ "25e-1", 0, true, 3 },
		{ "9223372036854775807", 0, true, INT64_MAX },
		{ "9223372036854775808", 0, false, 0 },
		{ "10159970886766084423", 0, false, 0 },
		{ "1e400", 0, false, 0 },
		{ "0e400", 0, true, 0 },
		{ "1e-400", 3, true, 0 },
		{ "stream 7", 0, false, 0 },
		{ "", 0, false, 0 },
		{ "0.00000000000000000000000000000000000000000000000000005e52", 3, true, 500 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t v = 77;

		assert_int_equal(lag_json_to_fixed(cases[i].text, strlen(cases[i].text),
						   cases[i].digits, &v),
				 cases[i].ok);
		assert_int_equal(v, cases[i].ok ? cases[i].value : 77);
	}
}

static void written_text_is_escaped_and_valid(void **state)
{
	struct lag_buf out = { 0 };
	struct lag_json w = { .out = &out };

	(void)state;
	lag_json_begin(&w, '{');
	lag_json_key(&w, "q\"");
	lag_json_text(&w, "a\\b\"c\n\x01\x7f\xff\xc3\xa9");
	lag_json_key(&w, "r");
	lag_json_begin(&w, '[');
	lag_json_real(&w, 0.1);
	lag_json_real(&w, NAN);
	lag_json_real(&w, -INFINITY);
	lag_json_text(&w, NULL);
	lag_json_bool(&w, true);
	lag_json_end(&w, ']');
	lag_json_end(&w, '}');
	assert_string_equal(lag_buf_text(&out),
			    "{\"q\\\"\":\"a\\\\b\\\"c\\u000a\\u0001\\u007f\xef\xbf\xbd\xc3\xa9\","
			    "\"r\":[0.1,null,null,null,true]}");
	lag_buf_release(&out);
}

static void decimals_of_every_length_are_those_of_printf(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (int i = 0; i < 20; i++, power *= 10) {
		for (int d = -1; d <= 1; d++) {
			uint64_t v = power + (uint64_t)d;
			int64_t ns = (int64_t)v;
			char text[LAG_DECIMAL_MAX + 1], expected[LAG_DECIMAL_MAX + 1];

			*lag_decimal_put_unsigned(text, v) = '\0';
			(void)snprintf(expected, sizeof(expected), "%" PRIu64, v);
			assert_string_equal(text, expected);
			*lag_decimal_put_us(text, ns) = '\0';
			(void)snprintf(expected, sizeof(expected), "%s%" PRIu64 ".%03" PRIu64,
				       ns < 0 ? "-" : "", lag_magnitude(ns) / 1000,
				       lag_magnitude(ns) % 1000);
			assert_string_equal(text, expected);
		}
	}
}

static void integers_and_microseconds_are_written_exactly(void **state)
{
	struct lag_buf out = { 0 };
	struct lag_json w = { .out = &out, .spaced = true };

	(void)state;
	lag_json_begin(&w, '[');
	lag_json_int(&w, 0);
	lag_json_int(&w, INT64_MIN);
	lag_json_int(&w, INT64_MAX);
	lag_json_us(&w, 0);
	lag_json_us(&w, 7);
	lag_json_us(&w, -1234567);
	w.exact = true;
	lag_json_int(&w, 9007199254740992);
	lag_json_int(&w, 9007199254740993);
	lag_json_int(&w, -9007199254740993);
	lag_json_end(&w, ']');
	assert_string_equal(lag_buf_text(&out),
			    "[0, -9223372036854775808, 9223372036854775807, 0.000, 0.007, "
			    "-1234.567, 9007199254740992, \"9007199254740993\", "
			    "\"-9007199254740993\"]");
	lag_buf_release(&out);
}

/* By definition: the fewest digits, from 6 on, that read back equal. */
static void reals_are_as_short_as_they_can_be(void **state)
{
	static const double given[] = { 0,      -0.0,   1e6,    1234567, 1e22,    0.1,     100.5,
					5e-324, 1e-310, 3e-308, DBL_MIN, DBL_MAX, 1.0 / 3, 2e15 };
	unsigned seed = 7;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		struct lag_buf out = { 0 };
		struct lag_json w = { .out = &out };
		uint64_t bits = (uint64_t)rand_r(&seed) << 42 ^ (uint64_t)rand_r(&seed) << 21 ^
				(uint64_t)rand_r(&seed);
		double value;
		char text[40];

		memcpy(&value, &bits, sizeof(value));
		if (i < sizeof(given) / sizeof(given[0])) {
			value = given[i];
		} else if (i % 2) {
			value = (double)(bits % 100000) / (double)(1 + bits % 4096);
		}
		if (!isfinite(value))
			continue;
		for (int digits = 6; digits <= 17; digits++) {
			(void)snprintf(text, sizeof(text), "%.*g", digits, value);
			if (strtod(text, NULL) == value)
				break;
		}
		lag_json_real(&w, value);
		assert_string_equal(lag_buf_text(&out), text);
		lag_buf_release(&out);
	}
}

/* Whatever the bytes, the strict reader takes back what the writer wrote. */
static void any_bytes_survive_writing_and_reading(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char bytes[40];
		struct lag_buf out = { 0 }, tokens = { 0 };
		struct lag_json w = { .out = &out };
		struct lag_json_reader r;
		enum lag_status st;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)(rand_r(&seed) >> 7);
		bytes[sizeof(bytes) - 1] = '\0';
		lag_json_text(&w, bytes);
		lag_json_init_bytes(&r, out.text, out.n, false);
		trace_tokens(&r, &tokens, &st);
		assert_int_equal(st, LAG_END);
		assert_int_equal(lag_buf_text(&tokens)[0], 's');
		lag_json_release(&r);
		lag_buf_release(&out);
		lag_buf_release(&tokens);
	}
}

static void what_follows_the_document_is_counted(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		uint64_t rest, at;
	} cases[] = {
		{ "{\"a\":1}", 7, 0, 0 },
		{ "[1] \r\n\t\n", 8, 0, 0 },
		{ "[1]\0\0\0\n", 7, 0, 0 },
		{ "[1]\n[2]\n", 8, 3, 4 },
		{ "[1]]", 4, 1, 3 },
		{ "[1]\0x\0y\0", 8, 3, 4 },
		{ "[1", 2, 0, 0 },
		{ "", 0, 0, 0 },
		{ "\xef\xbb\xbf[] {}", 8, 2, 6 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		size_t c = i / 2;
		struct dribble d = { .text = cases[c].text, .n = cases[c].n, .step = 2 };
		struct lag_json_reader r;
		struct lag_buf tokens = { 0 };
		uint64_t n = 99, at = 99;
		enum lag_status st;

		if (i % 2) {
			assert_int_equal(lag_json_init_fill(&r, dribble_fill, &d, true), LAG_OK);
		} else {
			lag_json_init_bytes(&r, cases[c].text, cases[c].n, true);
		}
		trace_tokens(&r, &tokens, &st);
		assert_int_equal(st, LAG_END);
		assert_int_equal(lag_json_rest(&r, &n, &at, NULL), LAG_OK);
		assert_int_equal(n, cases[c].rest);
		assert_int_equal(at, cases[c].at);
		lag_json_release(&r);
		lag_buf_release(&tokens);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_valid_documents),
		cmocka_unit_test(strict_mode_refuses_each_defect),
		cmocka_unit_test(tolerant_mode_repairs_and_counts),
		cmocka_unit_test(unescaped_quotes_stay_inside_the_string),
		cmocka_unit_test(chunks_give_the_same_tokens_as_memory),
		cmocka_unit_test(long_strings_and_deep_nests_are_bounded),
		cmocka_unit_test(skip_steps_over_one_value),
		cmocka_unit_test(decimals_become_integers_exactly),
		cmocka_unit_test(written_text_is_escaped_and_valid),
		cmocka_unit_test(decimals_of_every_length_are_those_of_printf),
		cmocka_unit_test(reals_are_as_short_as_they_can_be),
		cmocka_unit_test(integers_and_microseconds_are_written_exactly),
		cmocka_unit_test(any_bytes_survive_writing_and_reading),
		cmocka_unit_test(what_follows_the_document_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
