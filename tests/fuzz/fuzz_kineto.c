/* SPDX-License-Identifier: Apache-2.0 */
/* The Kineto importer on any bytes: it ends, gives one part or one message, and what it gives is
 * consistent: each operation has its communicator and its kernel. */
#include "tests/fuzz/import.h"

static void check(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_ops = LAG_PART_COUNT(p, op), n_comms = LAG_PART_COUNT(p, comm);

	for (size_t i = 0; i < n_ops; i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(p, op, i);

		lag_fuzz_require(op->comm_id >= 1 && (size_t)op->comm_id <= n_comms);
		lag_fuzz_require(op->op_id >= 1 && (size_t)op->op_id <= n_ops);
		lag_fuzz_require(op->func >= 0 && op->func < LAG_FUNC_LIMIT);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		lag_fuzz_require(k.start_ns != LAG_NONE);
		lag_fuzz_require(k.name >= 0 && (size_t)k.name < lag_strtab_count(&pool->strings));
		lag_fuzz_require(k.op_id == LAG_NONE || (k.op_id >= 1 && (size_t)k.op_id <= n_ops));
		lag_fuzz_require(k.config == LAG_NONE ||
				 (k.config >= 0 && (size_t)k.config < pool->configs.n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	lag_fuzz_import(&lag_importer_kineto, "rank0_fuzz.json", data, n, check);
	return 0;
}
