/* SPDX-License-Identifier: Apache-2.0 */
/* The tables the analyses would return for the made-up run: the columns of the JSON contract, figures
 * written down, so that a screen can be compared with them. */
#ifndef TESTS_TUI_FAKE_TABLES_H
#define TESTS_TUI_FAKE_TABLES_H

#include "viz/tui/tui.h"

struct fake_tables; /* opaque */

struct fake_tables *fake_tables_new(const struct lag_tui_data *data);
void fake_tables_free(struct fake_tables *tables);
const struct lag_table *fake_tables_find(const struct fake_tables *tables, const char *name);

#endif
