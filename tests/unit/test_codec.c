/* SPDX-License-Identifier: Apache-2.0 */
/* The wire form of records: any values of any kinds in any order come back, in few bytes where they are
 * usual; what is cut or corrupt is refused, what is newer is stepped over. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"
#include "schema/record/codec.h"
#include "tests/unit/unit.h"

#define BASE_NS INT64_C(1700000000000000000)

static uint64_t draw(uint64_t *state)
{
	return lag_hash_u64(*state += 0x9e3779b97f4a7c15u);
}

static unsigned draw_kind(uint64_t *state)
{
	unsigned kind;

	do {
		kind = (unsigned)(draw(state) % LAG_REC_LIMIT);
	} while (!lag_record_info_get(kind));
	return kind;
}

/* Extremes, neighbours of what was there before, and anything. */
static int64_t draw_value(uint64_t *state, int64_t before)
{
	static const int64_t extremes[] = { 0,
					    1,
					    -1,
					    63,
					    64,
					    127,
					    128,
					    BASE_NS,
					    INT64_MAX,
					    LAG_NONE,
					    INT64_MIN + 1,
					    INT64_MAX - 6,
					    INT32_MAX,
					    INT32_MIN,
					    UINT32_MAX,
					    LAG_NONE,
					    (int64_t)1 << 55,
					    (int64_t)1 << 56 };
	uint64_t how = draw(state), v = draw(state);

	switch (how % 6) {
	case 0:
		return extremes[v % (sizeof(extremes) / sizeof(extremes[0]))];
	case 1:
		return (int64_t)v;
	case 2:
		return (int64_t)(v >> (how >> 8) % 64);
	case 3:
		return (int64_t)((uint64_t)before + v % 16);
	case 4:
		return (int64_t)((uint64_t)before - v % 300);
	default:
		return before;
	}
}

static void draw_record(uint64_t *state, struct lag_record *rec, const struct lag_record *before)
{
	static const char text[] = "any text";
	const struct lag_record_info *info = lag_record_info_get(draw_kind(state));

	lag_record_init(rec, info->kind);
	for (size_t i = 0; i < info->n_fields; i++)
		rec->field[i] = draw_value(state, before[info->kind].field[i]);
	if (info->kind == LAG_REC_string) {
		rec->bytes = text;
		rec->n_bytes = draw(state) % sizeof(text);
	}
}

static void assert_same(const struct lag_record *a, const struct lag_record *b)
{
	const struct lag_record_info *info = lag_record_info_get(a->kind);

	assert_int_equal(a->kind, b->kind);
	assert_memory_equal(a->field, b->field, info->n_fields * sizeof(int64_t));
	assert_int_equal(a->n_bytes, b->n_bytes);
	assert_memory_equal(a->bytes, b->bytes, a->n_bytes);
}

static void any_records_in_any_order_come_back(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int chunk = 0; chunk < 300; chunk++) {
		static struct lag_record before[LAG_REC_LIMIT];
		struct lag_codec writer, reader, cut_reader;
		struct lag_record in, out;
		uint8_t wire[512];

		memset(before, 0, sizeof(before));
		lag_codec_start(&writer, BASE_NS);
		lag_codec_start(&reader, BASE_NS);
		for (int i = 0; i < 200; i++) {
			size_t n, used = 0, bound;

			draw_record(&seed, &in, before);
			bound = lag_record_bound(&in);
			assert_true(bound <= sizeof(wire));
			assert_int_equal(lag_record_encode(wire, bound - 1, &writer, &in), 0);
			n = lag_record_encode(wire, bound, &writer, &in);
			assert_true(n > 0 && n <= bound);
			for (size_t cut = 0; i < 40 && cut < n; cut++) {
				cut_reader = reader;
				assert_int_equal(
					lag_record_decode(wire, cut, &used, &cut_reader, &out),
					LAG_ERR_INPUT);
			}
			assert_int_equal(lag_record_decode(wire, n, &used, &reader, &out), LAG_OK);
			assert_int_equal(used, n);
			assert_same(&out, &in);
			before[in.kind] = in;
		}
	}
}

static void what_is_as_before_takes_one_byte(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);
		struct lag_codec writer, reader;
		struct lag_record in, out;
		uint8_t wire[512];
		size_t n, used;

		if (!info)
			continue;
		lag_codec_start(&writer, BASE_NS);
		lag_codec_start(&reader, BASE_NS);
		lag_record_init(&in, info->kind);
		for (int i = 0; i < 3; i++) {
			n = lag_record_encode(wire, sizeof(wire), &writer, &in);
			assert_int_equal(lag_record_decode(wire, n, &used, &reader, &out), LAG_OK);
			assert_same(&out, &in);
		}
		assert_int_equal(n, kind == LAG_REC_string ? 2 : 1);
	}
}

/* A launch and its kernel, as back-to-back work on a GPU gives them. */
static void kernels_and_their_calls_take_seven_bytes(void **state)
{
	struct lag_codec codec;
	uint64_t seed = 7;
	int64_t host = BASE_NS, device = BASE_NS + 20000;
	size_t n = 0;

	(void)state;
	lag_codec_start(&codec, BASE_NS);
	for (int64_t i = 0; i < 8000; i++) {
		struct lag_record api, kernel;
		uint8_t wire[512];
		uint64_t what = draw(&seed) % 60;

		lag_record_init(&api, LAG_REC_api);
		api.api.start_ns = host += 1500 + (int64_t)(draw(&seed) % 4000);
		api.api.end_ns = host += 3000 + (int64_t)(draw(&seed) % 3000);
		api.api.tid = 4711;
		api.api.domain = LAG_API_RUNTIME;
		api.api.cbid = 211;
		api.api.correlation = 1000 + 3 * i + (int64_t)(draw(&seed) % 3);
		api.api.name = 3;
		api.api.result = 0;
		lag_record_init(&kernel, LAG_REC_kernel);
		kernel.kernel.start_ns = device += 800 + (int64_t)(draw(&seed) % 3000);
		kernel.kernel.end_ns = device += 2000 + (int64_t)(draw(&seed) % 30000);
		kernel.kernel.device = 3;
		kernel.kernel.context = 1;
		kernel.kernel.stream = draw(&seed) % 10 ? 7 : 13;
		kernel.kernel.correlation = api.api.correlation;
		kernel.kernel.name = 5 + (int64_t)what;
		kernel.kernel.config = 1 + (int64_t)(what * 7 % 63);
		n += lag_record_encode(wire, sizeof(wire), &codec, &api);
		n += lag_record_encode(wire, sizeof(wire), &codec, &kernel);
	}
	print_message("%.2f bytes an event\n", (double)n / 16000);
	assert_true(2 * n < 16000 * 15);
}

static void strings_carry_their_bytes(void **state)
{
	static char text[LAG_RECORD_BYTES_MAX + 1];
	static uint8_t wire[LAG_RECORD_BYTES_MAX + 512];
	struct lag_codec writer, reader;
	struct lag_record in, out;
	size_t n, used;

	(void)state;
	lag_codec_start(&writer, 0);
	lag_codec_start(&reader, 0);
	memset(text, 'x', sizeof(text));
	text[3] = '\0';
	lag_record_init(&in, LAG_REC_string);
	in.string.id = 5;
	in.bytes = text;
	in.n_bytes = LAG_RECORD_BYTES_MAX;
	n = lag_record_encode(wire, sizeof(wire), &writer, &in);
	assert_int_equal(lag_record_decode(wire, n, &used, &reader, &out), LAG_OK);
	assert_same(&out, &in);
	in.n_bytes++;
	assert_int_equal(lag_record_encode(wire, sizeof(wire), &writer, &in), 0);
}

#define GIVEN (3 << 6) /* the head byte of a record that gives its map */

static void unknown_kinds_are_stepped_over(void **state)
{
	/* Kind 63: a map of two fields, twice by number; then a kernel. */
	static const uint8_t wire[] = { 63 | GIVEN, 0x05, 0x80,       0x01, 0x02, 63,
					0x03,       0x04, 10 | GIVEN, 0x01, 0x0a };
	struct lag_codec codec;
	struct lag_record rec;
	size_t used = 0;

	(void)state;
	lag_codec_start(&codec, 100);
	assert_int_equal(lag_record_decode(wire, sizeof(wire), &used, &codec, &rec), LAG_WARN);
	assert_int_equal(used, 5);
	assert_int_equal(lag_record_decode(wire + 5, sizeof(wire) - 5, &used, &codec, &rec),
			 LAG_WARN);
	assert_int_equal(used, 3);
	assert_int_equal(lag_record_decode(wire + 8, sizeof(wire) - 8, &used, &codec, &rec),
			 LAG_OK);
	assert_int_equal(rec.kernel.start_ns, 105);
	assert_int_equal(rec.kernel.end_ns, LAG_NONE);
	assert_int_equal(rec.kernel.name, 0);
}

static void newer_fields_travel_along(void **state)
{
	/* A clock_step with its time, and two fields that come after those known. */
	static const uint8_t wire[] = { 43 | GIVEN, 0x0d, 0x02, 0xff, 0x01, 0x07 };
	struct lag_codec reader, writer;
	struct lag_record rec;
	uint8_t again[512];
	size_t used = 0;

	(void)state;
	lag_codec_start(&reader, 0);
	lag_codec_start(&writer, 0);
	assert_int_equal(lag_record_decode(wire, sizeof(wire), &used, &reader, &rec), LAG_OK);
	assert_int_equal(used, sizeof(wire));
	assert_int_equal(rec.clock_step.at_ns, 1);
	assert_int_equal(rec.newer, 0x0c);
	assert_int_equal(rec.n_bytes, 3);
	assert_int_equal(lag_record_encode(again, sizeof(again), &writer, &rec), sizeof(wire));
	assert_memory_equal(again, wire, sizeof(wire));
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		uint8_t n, bytes[16];
	} bad[] = {
		{ 2, { 0 | GIVEN, 0 } },   /* no kind is 0 */
		{ 2, { 10, 1 } },          /* repeats a map that none gave */
		{ 2, { 10 | 2 << 6, 1 } }, /* likewise */
		{ 6,
		  { 10 | GIVEN, 0x80, 0x80, 0x80, 0x80, 1 } }, /* more fields than there can be */
		{ 6, { 60 | GIVEN, 0x80, 0x80, 0x80, 0x08, 1 } }, /* likewise, unknown kind */
		{ 12,
		  { 10 | GIVEN, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 } }, /* 65 bits */
		{ 13, { 10 | GIVEN, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } },
		{ 4, { 1 | GIVEN, 0, 2, 'x' } },                /* a string beyond the end */
		{ 6, { 1 | GIVEN, 0, 0x81, 0x80, 0x02, 'x' } }, /* longer than any */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lag_codec codec;
		struct lag_record rec;
		size_t used;

		lag_codec_start(&codec, 0);
		if (lag_record_decode(bad[i].bytes, bad[i].n, &used, &codec, &rec) != LAG_ERR_INPUT)
			fail_msg("case %zu was accepted", i);
	}
}

static void any_bytes_are_read_to_an_end(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = draw(&seed) % 60, at = 0, used = 0;
		uint8_t *wire = malloc(n + 1);
		struct lag_codec codec;
		struct lag_record rec;

		assert_non_null(wire);
		for (size_t i = 0; i < n; i++)
			wire[i] = (uint8_t)(draw(&seed) >> (round % 3 ? 0 : 3));
		lag_codec_start(&codec, BASE_NS);
		wire = realloc(wire, n ? n : 1); /* exact, for sanitizers */
		assert_non_null(wire);
		while (at < n &&
		       !lag_failed(lag_record_decode(wire + at, n - at, &used, &codec, &rec))) {
			assert_true(used > 0 && used <= n - at);
			at += used;
		}
		free(wire);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_records_in_any_order_come_back),
		cmocka_unit_test(what_is_as_before_takes_one_byte),
		cmocka_unit_test(kernels_and_their_calls_take_seven_bytes),
		cmocka_unit_test(strings_carry_their_bytes),
		cmocka_unit_test(unknown_kinds_are_stepped_over),
		cmocka_unit_test(newer_fields_travel_along),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(any_bytes_are_read_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
