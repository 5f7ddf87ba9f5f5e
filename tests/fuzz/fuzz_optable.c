/* SPDX-License-Identifier: Apache-2.0 */
/* The importer of operation tables on any bytes: it ends, gives parts or one message, and each operation of a
 * part has its communicator and its kernel. */
#include "tests/fuzz/import.h"

static void check(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_ops = LAG_PART_COUNT(p, op), n_comms = LAG_PART_COUNT(p, comm), n_executed = 0;

	lag_fuzz_require(p->process.rank >= 0 && p->process.rank < p->process.world_size);
	for (size_t i = 0; i < n_ops; i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(p, op, i);
		bool known = false;

		for (size_t c = 0; c < n_comms && !known; c++)
			known = LAG_PART_AT(p, comm, c).comm_id == op->comm_id;
		lag_fuzz_require(known);
		lag_fuzz_require(op->seq >= 0 && op->func >= 0 && op->func < LAG_FUNC_LIMIT);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		lag_fuzz_require(k.start_ns > 0 && k.end_ns >= k.start_ns);
		lag_fuzz_require(k.name >= 0 && (size_t)k.name < lag_strtab_count(&pool->strings));
		n_executed += k.op_id != LAG_NONE;
	}
	lag_fuzz_require(n_executed == n_ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	lag_fuzz_import(&lag_importer_optable, "trace.csv", data, n, check);
	return 0;
}
