/* SPDX-License-Identifier: Apache-2.0 */
/* What record.def says of the kinds, and names of communication functions. */
#include <string.h>

#include "schema/record/record.h"
#include "tests/unit/unit.h"

static void every_kind_is_described(void **state)
{
	size_t n_kinds = 0;

	(void)state;
	for (unsigned kind = 0; kind < 2 * LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);
		struct lag_record rec;

		if (!info)
			continue;
		n_kinds++;
		assert_int_equal(info->kind, kind);
		assert_true(info->n_fields > 0 && info->n_fields <= LAG_RECORD_FIELDS_MAX);
		lag_record_init(&rec, info->kind);
		for (size_t i = 0; i < info->n_fields; i++) {
			enum lag_field_type type = info->fields[i].type;

			assert_int_equal(rec.field[i], type == LAG_F_STR ? 0 : LAG_NONE);
			/* What the codec counts on. */
			assert_true(type != LAG_F_TIME || i == 0);
			assert_true(type != LAG_F_AFTER || info->fields[0].type == LAG_F_TIME);
		}
	}
	assert_true(n_kinds >= 25);
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
		cmocka_unit_test(every_kind_is_described),
		cmocka_unit_test(functions_are_recognised_in_every_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
