/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle reader: plain data of every protocol, and a refusal by name and offset for all the rest. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/pickle.h"

static void put(struct lag_buf *out, const struct lag_datum *d, int depth)
{
	static const char open[] = "[({{", close[] = "])}}";

	if (depth > 8) {
		lag_buf_putc(out, '@');
		return;
	}
	switch (d->kind) {
	case LAG_DATUM_NONE:
		lag_buf_putc(out, 'n');
		return;
	case LAG_DATUM_BOOL:
		lag_buf_putc(out, d->i ? 't' : 'f');
		return;
	case LAG_DATUM_INT:
		lag_buf_printf(out, "%lld", (long long)d->i);
		return;
	case LAG_DATUM_BIG:
		lag_buf_putc(out, 'B');
		return;
	case LAG_DATUM_REAL:
		lag_buf_printf(out, "%g", d->d);
		return;
	case LAG_DATUM_TEXT:
	case LAG_DATUM_BYTES:
		lag_buf_putc(out, d->kind == LAG_DATUM_TEXT ? '\'' : '"');
		lag_buf_add(out, d->text, d->n);
		lag_buf_putc(out, d->kind == LAG_DATUM_TEXT ? '\'' : '"');
		return;
	default:
		lag_buf_putc(out, open[d->kind - LAG_DATUM_LIST]);
		for (uint32_t i = 0; i < d->n; i++) {
			lag_buf_puts(out, i ? " " : "");
			put(out, d->items[i], depth + 1);
		}
		lag_buf_putc(out, close[d->kind - LAG_DATUM_LIST]);
	}
}

static void expect_bytes(const void *bytes, size_t n, const char *text)
{
	struct lag_arena arena = { .max = 1 << 20 };
	struct lag_datum *root = NULL;
	struct lag_buf out = { 0 };
	struct lag_err err = { 0 };

	if (lag_failed(lag_pickle_read(bytes, n, &arena, &root, NULL, &err))) {
		lag_buf_puts(&out, err.text);
	} else {
		put(&out, root, 0);
	}
	assert_string_equal(lag_buf_text(&out), text);
	lag_buf_release(&out);
	lag_arena_release(&arena);
}

#define EXPECT(pickle, text) expect_bytes(pickle, sizeof(pickle) - 1, text)

static void reads_text_protocols(void **state)
{
	(void)state;
	EXPECT("I42\n.", "42");
	EXPECT("I01\n.", "t");
	EXPECT("I00\n.", "f");
	EXPECT("L-7L\n.", "-7");
	EXPECT("L123456789012345678901234567890L\n.", "B");
	EXPECT("F2.5\n.", "2.5");
	EXPECT("S'a\\n\\x41\\'b'\np0\n.", "'a\nA'b'");
	EXPECT("Vp\\u00e9\\u4e2d\n.", "'p\xc3\xa9\xe4\xb8\xad'");
	EXPECT("(lp0\nI1\naI2\na.", "[1 2]");
	EXPECT("(dp0\nS'k'\nI1\ns.", "{'k' 1}");
	EXPECT("(I1\nI2\nt.", "(1 2)");
	EXPECT("(I1\nI2\nl.", "[1 2]");
	EXPECT("(S'k'\nNd.", "{'k' n}");
	EXPECT("I5\np3\n0g3\n.", "5");
}

static void reads_binary_protocols(void **state)
{
	(void)state;
	EXPECT("\x80\x02]q\x00(K\x01M\x02\x01J\xff\xff\xff\xff\x88\x89Ne.", "[1 258 -1 t f n]");
	EXPECT("\x80\x02\x8a\x08\x15\x81\xe9\x7d\xf4\x10\x22\x11.", "1234567890123456789");
	EXPECT("\x80\x02\x8a\x01\xff.", "-1");
	EXPECT("\x80\x02\x8a\x00.", "0");
	EXPECT("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "B");
	EXPECT("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00.", "9223372036854775807");
	EXPECT("\x80\x02\x8b\x02\x00\x00\x00\x00\x01.", "256");
	EXPECT("\x80\x02}q\x00X\x01\x00\x00\x00kG?\xf8\x00\x00\x00\x00\x00\x00s.", "{'k' 1.5}");
	EXPECT("\x80\x02}(X\x01\x00\x00\x00"
	       "aK\x01X\x01\x00\x00\x00"
	       "bK\x02u.",
	       "{'a' 1 'b' 2}");
	EXPECT("\x80\x02K\x01K\x02\x86K\x03\x85\x86.", "((1 2) (3))");
	EXPECT("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94.", "'hi'");
	EXPECT("\x80\x04\x8c\x01x\x94]\x94(h\x00h\x00"
	       "e.",
	       "['x' 'x']");
	EXPECT("\x80\x04\x8f\x94(K\x01\x90.", "{1}");
	EXPECT("\x80\x03"
	       "C\x02hi.",
	       "\"hi\"");
	EXPECT("\x80\x02U\x02hi.", "'hi'");
	EXPECT("\x80\x02K\x01(K\x02"
	       "1.",
	       "1");
	EXPECT("\x80\x02]2a.", "[[[[[[[[[@]]]]]]]]]"); /* a list in itself */
}

static void refuses_more_than_data(void **state)
{
	(void)state;
	EXPECT("cos\nsystem\n(S'true'\ntR.",
	       "pickle: GLOBAL at byte 0 would make more than plain data: refused");
	EXPECT("\x80\x04\x8c\x02os\x8c\x06system\x93.",
	       "pickle: STACK_GLOBAL at byte 14 would make more than plain data: refused");
	EXPECT("\x80\x02K\x01)R.",
	       "pickle: REDUCE at byte 5 would make more than plain data: refused");
	EXPECT("\x80\x02}}b.", "pickle: BUILD at byte 4 would make more than plain data: refused");
	EXPECT("(ios\nsystem\n.",
	       "pickle: INST at byte 1 would make more than plain data: refused");
	EXPECT("(o.", "pickle: OBJ at byte 1 would make more than plain data: refused");
	EXPECT("P1\n.", "pickle: PERSID at byte 0 would make more than plain data: refused");
	EXPECT("K\x01Q.", "pickle: BINPERSID at byte 2 would make more than plain data: refused");
	EXPECT("))\x81.", "pickle: NEWOBJ at byte 2 would make more than plain data: refused");
	EXPECT("\x82\x01.", "pickle: EXT1 at byte 0 would make more than plain data: refused");
	EXPECT("\x97.", "pickle: NEXT_BUFFER at byte 0 would make more than plain data: refused");
}

static void refuses_broken_ones(void **state)
{
	(void)state;
	EXPECT("", "pickle: cut off at byte 0: no STOP");
	EXPECT("K\x01", "pickle: cut off at byte 2: no STOP");
	EXPECT(".", "pickle: STOP at byte 0 finds nothing on the stack");
	EXPECT("\x80\x06N.", "pickle: PROTO at byte 0 is of a protocol above 5");
	EXPECT("\xffN.", "pickle: byte 0xff at byte 0 is no opcode");
	EXPECT("X\xff\xff\xff\xffx.",
	       "pickle: BINUNICODE at byte 0 goes beyond the end of the file");
	EXPECT("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
	       "pickle: BINUNICODE8 at byte 0 goes beyond the end of the file");
	EXPECT("I12", "pickle: INT at byte 0 goes beyond the end of the file");
	EXPECT("I1x\n.", "pickle: INT at byte 0 is no integer");
	EXPECT("Fnumber\n.", "pickle: FLOAT at byte 0 is no number");
	EXPECT("Sx\n.", "pickle: STRING at byte 0 is no quoted text");
	EXPECT("h\x07.", "pickle: BINGET at byte 0 asks for what was never memoised");
	EXPECT("e.", "pickle: APPENDS at byte 0 has nothing to add to");
	EXPECT("K\x01(K\x02"
	       "e.",
	       "pickle: APPENDS at byte 5 adds to something of another kind");
	EXPECT("](K\x01u.", "pickle: SETITEMS at byte 4 adds to something of another kind");
	EXPECT("}(K\x01u.", "pickle: SETITEMS at byte 4 has a key without a value");
	EXPECT("](a.", "pickle: APPEND at byte 2 finds nothing on the stack"); /* below the mark */
	EXPECT("t.", "pickle: TUPLE at byte 0 has no mark");
	EXPECT("N\x86.", "pickle: TUPLE2 at byte 1 finds nothing on the stack");
	EXPECT("N2\x87.", "pickle: TUPLE3 at byte 2 finds nothing on the stack");
}

static void keeps_to_limits(void **state)
{
	struct lag_arena arena = { .max = 4096 };
	struct lag_datum *root = NULL;
	struct lag_err err = { 0 };
	char deep[LAG_PICKLE_NESTING_MAX + 2], many[2048];

	(void)state;
	memset(deep, '(', sizeof(deep));
	assert_int_equal(lag_pickle_read(deep, sizeof(deep), &arena, &root, NULL, &err),
			 LAG_ERR_LIMIT);
	memset(many, 'N', sizeof(many));
	assert_int_equal(lag_pickle_read(many, sizeof(many), &arena, &root, NULL, &err),
			 LAG_ERR_LIMIT);
	assert_true(arena.used <= arena.max + sizeof(max_align_t));
	lag_arena_release(&arena);
}

static void reads_json_the_same(void **state)
{
	static const char json[] =
		"{\"a\":[1,-2.5,true,null,\"x\"],\"b\":{\"c\":12345678901234567890}} ";
	struct lag_arena arena = { .max = 1 << 20 };
	struct lag_json_reader r;
	struct lag_datum *root = NULL;
	struct lag_buf out = { 0 };
	struct lag_err err = { 0 };

	(void)state;
	lag_json_init_bytes(&r, json, sizeof(json) - 1, true);
	assert_int_equal(lag_datum_read_json(&r, &arena, &root, &err), LAG_OK);
	put(&out, root, 0);
	assert_string_equal(lag_buf_text(&out), "{'a' [1 -2.5 t n 'x'] 'b' {'c' B}}");
	lag_json_release(&r);
	lag_buf_clear(&out);
	lag_json_init_bytes(&r, json, 26, true); /* cut in the list */
	assert_int_equal(lag_datum_read_json(&r, &arena, &root, &err), LAG_OK);
	assert_int_equal(lag_datum_count(lag_datum_get(root, "a")), 5);
	assert_null(lag_datum_get(root, "b"));
	lag_json_release(&r);
	lag_buf_release(&out);
	lag_arena_release(&arena);
}

static void asks_politely(void **state)
{
	struct lag_arena arena = { .max = 1 << 20 };
	struct lag_datum *root = NULL;
	struct lag_err err = { 0 };

	(void)state;
	assert_int_equal(lag_pickle_read("(dS'a'\nI1\nsS'a'\nI2\nsS't'\nS'17'\ns.", 34, &arena,
					 &root, NULL, &err),
			 LAG_OK);
	assert_int_equal(lag_datum_int(lag_datum_get(root, "a")), 2); /* of equal keys the last */
	assert_int_equal(lag_datum_int(lag_datum_get(root, "t")), 17);
	assert_int_equal(lag_datum_int(lag_datum_get(root, "none")), INT64_MIN);
	assert_string_equal(lag_datum_text(lag_datum_get(root, "a")), "");
	assert_int_equal(lag_datum_count(root), 0);
	lag_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_text_protocols),   cmocka_unit_test(reads_binary_protocols),
		cmocka_unit_test(refuses_more_than_data), cmocka_unit_test(refuses_broken_ones),
		cmocka_unit_test(keeps_to_limits),        cmocka_unit_test(reads_json_the_same),
		cmocka_unit_test(asks_politely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
