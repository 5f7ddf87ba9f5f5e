/* SPDX-License-Identifier: Apache-2.0 */
/* Names of operation types. */
#include "schema/record/optype.h"

#include <stddef.h>
#include <string.h>

enum lag_optype lag_optype_of(const char *name)
{
	static const struct {
		const char *name;
		enum lag_optype type;
	} known[] = {
		{ "forward-compute", LAG_OT_FORWARD },
		{ "backward-compute", LAG_OT_BACKWARD },
		{ "forward-send", LAG_OT_FORWARD_SEND },
		{ "forward-recv", LAG_OT_FORWARD_RECV },
		{ "backward-send", LAG_OT_BACKWARD_SEND },
		{ "backward-recv", LAG_OT_BACKWARD_RECV },
		{ "params-all-gather", LAG_OT_PARAMS },
		{ "grads-reduce-scatter", LAG_OT_GRADS },
		{ "separate-grads-all-reduce", LAG_OT_SEPARATE },
		{ "embedding-grads-all-reduce", LAG_OT_EMBEDDING },
		{ "optimizer-clip-main-grad", LAG_OT_CLIP },
	};

	static const char *const others[] = { "send",    "recv",      "all-reduce", "all-gather",
					      "scatter", "broadcast", "all-to-all" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, name) == 0)
			return known[i].type;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strstr(name, others[i]))
			return LAG_OT_UNGROUPED;
	}
	return LAG_OT_LOCAL;
}
