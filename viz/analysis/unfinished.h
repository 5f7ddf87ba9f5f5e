/* SPDX-License-Identifier: Apache-2.0 */
/* Communication that had begun and had not ended when recording did: what each member had done by then. */
#ifndef VIZ_ANALYSIS_UNFINISHED_H
#define VIZ_ANALYSIS_UNFINISHED_H

#include "viz/model/trace.h"

struct lag_unfinished {
	int32_t instance; /* index */
	int64_t start_ns; /* of the first member that started */
	int64_t rank;     /* whom the text is about; LAG_NONE all members or cannot tell */
	char text[320];
};

/* Every instance with a member that started and did not end, earliest first. Three states are told
 * apart: called (by the host), started and ended (on the GPU). Communication is what hangs only where
 * every member is known to have started; a member that called and did not start has something before
 * it; one that never called stands elsewhere. Else: cannot tell. out holds struct lag_unfinished and is
 * the caller's to release. */
enum lag_status lag_unfinished_find(const struct lag_trace *trace, struct lag_vec *out,
				    struct lag_err *err) LAG_MUST_USE;

#endif
