/* SPDX-License-Identifier: Apache-2.0 */
/* How communicators are called and who is in them, for people. */
#ifndef VIZ_MODEL_COMM_TEXT_H
#define VIZ_MODEL_COMM_TEXT_H

#include "schema/base/buf.h"
#include "viz/model/trace.h"

/* Job ranks of a communicator's members, runs shortened: "0-3,8,...". Replaces out. */
void lag_comm_members(const struct lag_trace *t, size_t at, struct lag_buf *out);

/* Its name, else its identity. Replaces out. */
void lag_comm_label(const struct lag_trace *t, size_t at, struct lag_buf *out);

#endif
