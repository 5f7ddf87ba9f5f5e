/* SPDX-License-Identifier: Apache-2.0 */
/* The Flight Recorder importer, with the pickle reader below it, on any bytes: it ends within its limits,
 * gives one part or one message, and each operation of the part has its communicator. */
#include "tests/fuzz/import.h"

static void check(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_ops = LAG_PART_COUNT(p, op), n_comms = LAG_PART_COUNT(p, comm);

	(void)pool;
	for (size_t i = 0; i < n_ops; i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(p, op, i);

		lag_fuzz_require(op->comm_id >= 1 && (size_t)op->comm_id <= n_comms);
		lag_fuzz_require(op->op_id >= 1 && (size_t)op->op_id <= n_ops);
		lag_fuzz_require(op->func >= 0 && op->func < LAG_FUNC_LIMIT);
		lag_fuzz_require(op->enter_ns > 0);
	}
	lag_fuzz_require(LAG_PART_COUNT(p, op_seen) == n_ops);
	for (size_t i = 0; i < LAG_PART_COUNT(p, comm_progress); i++) {
		const struct lag_rec_comm_progress *c = &LAG_PART_AT(p, comm_progress, i);

		lag_fuzz_require(c->comm_id >= 1 && (size_t)c->comm_id <= n_comms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	lag_fuzz_import(&lag_importer_flight, "_dump_3", data, n, check);
	return 0;
}
