/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel names: demangled, short, and whether a name is a communication kernel's. */
#ifndef MERGE_NAMES_H
#define MERGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/buf.h"
#include "schema/base/mem.h"

/* Longest readable name; longer ones count as not demanglable, or are cut. */
#define LAG_NAME_MAX 16384

/* Appends the readable form of an Itanium-mangled name ("_Z...") to out. False, with nothing appended,
 * when the name is not mangled, uses what this reader does not know, or grows beyond LAG_NAME_MAX. */
bool lag_demangle(const char *mangled, struct lag_buf *out);

/* Appends the name without return type, template arguments, parameters and what the compiler adds to
 * tell copies apart: "at::native::reduce_kernel". */
void lag_name_short(const char *full, struct lag_buf *out);

/* Known communication kernels: NCCL's and RCCL's, DeepEP's, NVSHMEM's, custom all-reduces. */
bool lag_name_is_communication(const char *name);

/* Rules "regex => name", one a line, blank lines and #-comments aside: POSIX extended expressions on
 * the full name; \1..\9 in the name stand for its groups. The first that matches wins. */
struct lag_renames {
	struct lag_vec rules; /* opaque */
};

enum lag_status lag_renames_load(const char *path, struct lag_renames *out,
				 struct lag_err *err) LAG_MUST_USE;

/* Appends the new name; false when no rule matches. */
bool lag_renames_apply(const struct lag_renames *renames, const char *full, struct lag_buf *out);

void lag_renames_release(struct lag_renames *renames);

#endif
