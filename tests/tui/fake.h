/* SPDX-License-Identifier: Apache-2.0 */
/* A run made up in memory for the screens' tests: 4 stages x 2 data-parallel places on 4 hosts, 1F1B
 * with 8 microbatches, 12 steps, rank 5 computing 1.3 times slower. Same bytes every time. */
#ifndef TESTS_TUI_FAKE_H
#define TESTS_TUI_FAKE_H

#include "viz/tui/tui.h"

struct fake; /* opaque */

/* Aborts the test when memory runs out. */
struct fake *fake_new(void);
void fake_free(struct fake *fake);
const struct lag_tui_data *fake_data(const struct fake *fake);

/* For tests of hostile input: every kernel gets this name. */
void fake_rename_kernels(struct fake *fake, const char *name);

#endif
