/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of archives; names in them come from anybody. */
#include "cli/packing.h"

#include <inttypes.h>

#include "cli/cmd.h"
#include "schema/base/fmt.h"

void lag_packing_say_notes(const char *cmd, const struct lag_pack_receipt *receipt)
{
	for (size_t i = 0; i < receipt->notes.n; i++) {
		struct lag_buf line = { 0 };

		lag_fmt_name(&line, (const char *)receipt->notes.items + i * LAG_ERR_TEXT_MAX);
		lag_say("%s: %s", cmd, lag_buf_text(&line));
		lag_buf_release(&line);
	}
	if (receipt->n_unsaid)
		lag_say("%s: %" PRIu64 " more like these", cmd, receipt->n_unsaid);
}
