/* SPDX-License-Identifier: Apache-2.0 */
/* What every alignment method does besides estimating: identity maps, and counting what remains
 * impossible under a finished result. */
#ifndef MERGE_ALIGN_COMMON_H
#define MERGE_ALIGN_COMMON_H

#include "merge/align.h"

/* One segment a host that changes nothing, uncertainty unknown, bounds open. */
enum lag_status lag_align_identity(const struct lag_align_input *in, const char *method,
				   struct lag_align_result *out, struct lag_err *err) LAG_MUST_USE;

/* Sets n_violations and n_pairs: receives that end before their send starts; members of usable
 * collectives that end before the last one starts. */
void lag_align_count(const struct lag_align_input *in, struct lag_align_result *out);

#endif
