/* SPDX-License-Identifier: Apache-2.0 */
/* From solved lines to the result that callers see: causality bounds, segments where a clock was
 * set, device rows back on raw times. */
#ifndef MERGE_CLOCK_RESULT_H
#define MERGE_CLOCK_RESULT_H

#include "merge/clock_trust.h"

/* trust may be NULL: then a host's uncertainty is the farthest that its bound allows. */
enum lag_status lag_clock_result(const struct lag_clock_solved *s,
				 const struct lag_clock_trust *trust, const char *method,
				 struct lag_align_result *out, struct lag_err *err) LAG_MUST_USE;

#endif
