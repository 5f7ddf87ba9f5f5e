/* SPDX-License-Identifier: Apache-2.0 */
/* What the tracer says about the process and about itself: identity, facts, gaps, losses, receipt. */
#ifndef TRACER_SELF_H
#define TRACER_SELF_H

#include "tracer/config.h"
#include "tracer/rank.h"
#include "tracer/sink.h"

struct lag_self {
	struct lag_trace_header head;
	struct lag_rank rank;
	char boot_id[40];
};

/* Reads host, boot, pid namespace, rank; the start is now. */
void lag_self_read(struct lag_self *self);

/* process record and the first meta records. */
void lag_self_write(const struct lag_self *self, struct lag_trace_producer *prod);

void lag_self_meta(struct lag_trace_producer *prod, const char *key, const char *value);
void lag_self_gap(struct lag_trace_producer *prod, int64_t from_ns, const char *what,
		  const char *reason);

/* Loss records for what the counters gained since the last call, and a receipt. */
void lag_self_receipt(struct lag_trace_producer *prod, int64_t thread_ns, bool clean);

#endif
