/* SPDX-License-Identifier: Apache-2.0 */
/* Every record kind survives a round trip with any field values; cut and corrupt input is refused. */
#include <string.h>

#include "schema/base/map.h"
#include "schema/record/record.h"
#include "tests/unit/unit.h"

static const int64_t samples[] = {
	0, 1, -1, 127, 128, 1700000000000000000, INT64_MAX, INT64_MIN + 1, LAG_NONE
};

#define N_SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* UINT, STR and OPT hold non-negative values; only AFTER and OPT may be LAG_NONE. */
static int64_t legal(enum lag_field_type type, int64_t v)
{
	bool optional = type == LAG_F_AFTER || type == LAG_F_OPT;

	if (v == LAG_NONE)
		return optional || type == LAG_F_HASH ? v : 7;
	if (type == LAG_F_OPT && v < 0)
		return -(v + 1);
	return v;
}

static void fill(struct lag_record *rec, const struct lag_record_info *info, size_t round)
{
	int64_t time = 0;

	for (size_t i = 0; i < info->n_fields; i++) {
		enum lag_field_type type = info->fields[i].type;
		int64_t v = legal(type, samples[lag_hash_pair(round, i) % N_SAMPLES]);

		if (type == LAG_F_TIME)
			time = v;
		/* A difference of exactly 2^63 ns (292 years) is the one that AFTER cannot hold. */
		if (type == LAG_F_AFTER && (uint64_t)v - (uint64_t)time == UINT64_C(1) << 63)
			v = time;
		rec->field[i] = v;
	}
}

static void every_kind_and_value_survives_a_round_trip(void **state)
{
	size_t n_kinds = 0;

	(void)state;
	for (unsigned kind = 0; kind < LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);

		if (!info)
			continue;
		n_kinds++;
		for (size_t round = 0; round < 200; round++) {
			struct lag_record in, out;
			uint8_t wire[1024];
			int64_t wrote = 1000, read = 1000;
			size_t n, used;

			lag_record_init(&in, info->kind);
			fill(&in, info, round);
			n = lag_record_encode(wire, sizeof(wire), &wrote, &in);
			assert_true(n > 0);
			assert_int_equal(lag_record_decode(wire, n, &used, &read, &out), LAG_OK);
			assert_int_equal(used, n);
			assert_int_equal(out.kind, in.kind);
			assert_int_equal(wrote, read);
			assert_memory_equal(out.field, in.field, info->n_fields * sizeof(int64_t));
			for (size_t cut = 0; cut < n; cut++) {
				int64_t time = 1000;

				if (lag_record_decode(wire, cut, &used, &time, &out) == LAG_OK)
					fail_msg("%s cut at %zu of %zu was accepted", info->name,
						 cut, n);
			}
			wrote = 1000;
			assert_int_equal(lag_record_encode(wire, n - 1, &wrote, &in), 0);
			assert_int_equal(wrote, 1000);
		}
	}
	assert_true(n_kinds >= 25);
}

static void strings_carry_their_bytes(void **state)
{
	struct lag_record in, out;
	uint8_t wire[LAG_RECORD_WIRE_MAX];
	static char text[LAG_RECORD_BYTES_MAX + 1];
	int64_t time = 0;
	size_t n, used;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[3] = '\0';
	lag_record_init(&in, LAG_REC_string);
	in.string.id = 5;
	in.bytes = text;
	in.n_bytes = LAG_RECORD_BYTES_MAX;
	n = lag_record_encode(wire, sizeof(wire), &time, &in);
	assert_int_equal(lag_record_decode(wire, n, &used, &time, &out), LAG_OK);
	assert_int_equal(out.n_bytes, LAG_RECORD_BYTES_MAX);
	assert_memory_equal(out.bytes, text, out.n_bytes);
	in.n_bytes++;
	assert_int_equal(lag_record_encode(wire, sizeof(wire), &time, &in), 0);
}

static void fields_that_an_older_writer_lacks_are_not_recorded(void **state)
{
	/* kind meta (3), payload of one byte: key 9, no value field. */
	static const uint8_t wire[] = { LAG_REC_kernel, 2, 10, 0 };
	struct lag_record rec;
	int64_t time = 100;
	size_t used;

	(void)state;
	assert_int_equal(lag_record_decode(wire, sizeof(wire), &used, &time, &rec), LAG_OK);
	assert_int_equal(rec.kernel.start_ns, 105);
	assert_int_equal(rec.kernel.end_ns, LAG_NONE);
	assert_int_equal(rec.kernel.stream, LAG_NONE);
	assert_int_equal(rec.kernel.name, 0);
}

static void unknown_kinds_are_stepped_over_and_nonsense_is_refused(void **state)
{
	static const uint8_t unknown[] = { 63, 2, 1, 1 }, zero[] = { 0, 2, 1, 1 },
			     high[] = { 200, 0, 0 };
	static const uint8_t endless[] = { 10,   0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 1 };
	struct lag_record rec;
	int64_t time = 0;
	size_t used = 0;

	(void)state;
	assert_int_equal(lag_record_decode(unknown, sizeof(unknown), &used, &time, &rec), LAG_WARN);
	assert_int_equal(used, 4);
	assert_int_equal(lag_record_decode(zero, sizeof(zero), &used, &time, &rec), LAG_ERR_INPUT);
	assert_int_equal(lag_record_decode(high, sizeof(high), &used, &time, &rec), LAG_ERR_INPUT);
	assert_int_equal(lag_record_decode(endless, sizeof(endless), &used, &time, &rec),
			 LAG_ERR_INPUT);
}

static void functions_are_recognised_in_every_spelling(void **state)
{
	static const struct {
		const char *text;
		enum lag_func func;
	} known[] = {
		{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		  LAG_FUNC_ALL_REDUCE },
		{ "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
		  LAG_FUNC_ALL_REDUCE },
		{ "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", LAG_FUNC_SEND_RECV },
		{ "ncclKernel_Broadcast_RING_LL_Sum_int8_t", LAG_FUNC_BROADCAST },
		{ "_reduce_scatter_base", LAG_FUNC_REDUCE_SCATTER },
		{ "all_to_allv", LAG_FUNC_ALL_TO_ALL },
		{ "allgather", LAG_FUNC_ALL_GATHER },
		{ "ncclSymkDevKernel_AllGather_LL", LAG_FUNC_ALL_GATHER },
		{ "recv", LAG_FUNC_RECV },
		{ "send", LAG_FUNC_SEND },
		{ "gemm", LAG_FUNC_UNKNOWN },
		{ "", LAG_FUNC_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (lag_func_parse(known[i].text, strlen(known[i].text)) != known[i].func)
			fail_msg("%s", known[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_and_value_survives_a_round_trip),
		cmocka_unit_test(strings_carry_their_bytes),
		cmocka_unit_test(fields_that_an_older_writer_lacks_are_not_recorded),
		cmocka_unit_test(unknown_kinds_are_stepped_over_and_nonsense_is_refused),
		cmocka_unit_test(functions_are_recognised_in_every_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
