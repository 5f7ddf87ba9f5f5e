/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as it may be kept. */
#ifndef TRACER_ARGV_H
#define TRACER_ARGV_H

#include <stddef.h>

/* From NUL-separated arguments to one line, blanks between, values that look like secrets replaced by
 * "***"; cut to room. Returns the length. Pure. */
size_t lag_argv_clean(char *out, size_t room, const char *args, size_t n);

#endif
