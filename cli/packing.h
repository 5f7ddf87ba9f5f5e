/* SPDX-License-Identifier: Apache-2.0 */
/* What pack and unpack have to say in the same words. */
#ifndef CLI_PACKING_H
#define CLI_PACKING_H

#include "merge/pack.h"

/* One line a note on stderr. */
void lag_packing_say_notes(const char *cmd, const struct lag_pack_receipt *receipt);

#endif
