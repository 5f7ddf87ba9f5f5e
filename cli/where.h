/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what belongs to this program: beside it in a build folder, or installed. */
#ifndef CLI_WHERE_H
#define CLI_WHERE_H

#include <stddef.h>

#include "schema/base/err.h"

/* Absolute path of `name` looked up in the folder of the running program, then in the places where
 * `make install` puts it (../lib/laggard, ../libexec/laggard). LAG_ERR_INPUT when it is nowhere. */
enum lag_status lag_where(const char *name, char *path, size_t room,
			  struct lag_err *err) LAG_MUST_USE;

#endif
