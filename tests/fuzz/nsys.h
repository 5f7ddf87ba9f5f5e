/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every part that the Nsight Systems importer gives: names and configurations are of the
 * pool, operations have a communicator. */
#ifndef TESTS_FUZZ_NSYS_H
#define TESTS_FUZZ_NSYS_H

#include "tests/fuzz/import.h"

static inline void lag_fuzz_check_nsys(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_names = lag_strtab_count(&pool->strings);
	size_t n_comms = LAG_PART_COUNT(p, comm);

	for (size_t i = 0; i < LAG_PART_COUNT(p, op); i++) {
		struct lag_rec_op op = LAG_PART_GET(p, op, i);

		lag_fuzz_require(op.comm_id >= 1 && (size_t)op.comm_id <= n_comms);
		lag_fuzz_require(op.op_id >= 1 && op.func >= 0 && op.func < LAG_FUNC_LIMIT);
		lag_fuzz_require(op.count == LAG_NONE || op.datatype != LAG_NONE);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		lag_fuzz_require(k.start_ns != LAG_NONE);
		lag_fuzz_require(k.name >= 0 && (size_t)k.name < n_names);
		lag_fuzz_require(k.config == LAG_NONE ||
				 (k.config >= 0 && (size_t)k.config < pool->configs.n));
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, range); i++) {
		struct lag_rec_range r = LAG_PART_GET(p, range, i);

		lag_fuzz_require((size_t)r.name < n_names && (size_t)r.domain < n_names &&
				 (size_t)r.category < n_names);
	}
}

#endif
