/* SPDX-License-Identifier: Apache-2.0 */
/* From ids of the database to positions in an array: an array where ids are dense, as the merge
 * writes them, a hash map for those that are not. */
#ifndef VIZ_MODEL_IDS_H
#define VIZ_MODEL_IDS_H

#include "schema/base/map.h"

/* Zero-initialise; release when done. */
struct lag_ids {
	int32_t *dense; /* by id, -1 none */
	size_t cap, n;
	struct lag_map sparse;
};

enum lag_status lag_ids_set(struct lag_ids *ids, int64_t id, int32_t position) LAG_MUST_USE;
int32_t lag_ids_find(const struct lag_ids *ids, int64_t id); /* -1 = none */
void lag_ids_release(struct lag_ids *ids);

#endif
