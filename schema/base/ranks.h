/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ranks as users write them: "0,8-15,every:8". No allocation: also used in traced programs. */
#ifndef SCHEMA_BASE_RANKS_H
#define SCHEMA_BASE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the text is such a list. The empty list is one: it means every rank. */
bool lag_ranks_valid(const char *list);

/* Whether rank is in a valid list. A process of unknown rank (negative) is only in the empty list. */
bool lag_ranks_contain(const char *list, int64_t rank);

#endif
