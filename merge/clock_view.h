/* SPDX-License-Identifier: Apache-2.0 */
/* The alignment's input with what brackets alone can repair already repaired: steps of a host's
 * wall clock (seen against its monotonic clock) and a device's own conversion error (seen in brackets
 * of that device). Times are still each host's own. */
#ifndef MERGE_CLOCK_VIEW_H
#define MERGE_CLOCK_VIEW_H

#include <stdbool.h>

#include "merge/align.h"
#include "schema/base/mem.h"

/* From raw time from_ns on, the host's clock is ahead of its beginning's by shift_ns. Within margin_ns
 * around it a time may belong to either side. */
struct lag_clock_break {
	uint32_t host;
	int64_t from_ns, shift_ns, step_ns, margin_ns;
};

/* From raw time from_ns on, offset_ns brings the device's times to its host's clock. */
struct lag_clock_own {
	uint32_t device;
	int64_t from_ns;
	double offset_ns, spread_ns;
	bool own; /* by the device's own clock: nothing else is off then */
};

struct lag_clock_view {
	const struct lag_align_input *in;
	struct lag_align_member *members; /* repaired copies, owned */
	struct lag_align_message *messages;
	struct lag_vec breaks;       /* struct lag_clock_break, by host, then from_ns */
	struct lag_vec own;          /* struct lag_clock_own, by device, then from_ns */
	int64_t *origin_ns;          /* by host: middle of its repaired times; 0 without any */
	int64_t *first_ns, *last_ns; /* by host; first > last without any */
	double span_ns;              /* half the longest host's range, at least 1 ms */
	bool exchanges; /* hardly any n-to-n operation is there: grouped exchanges of two count too */
};

/* A clock that was set, as something else than brackets shows it: from_ns and margin_ns as above. */
struct lag_clock_set {
	uint32_t host;
	int64_t from_ns, step_ns, margin_ns;
};

/* sets (by any order) are taken out beside those that brackets show. */
enum lag_status lag_clock_view_init(struct lag_clock_view *view, const struct lag_align_input *in,
				    const struct lag_clock_set *sets, size_t n_sets,
				    struct lag_err *err) LAG_MUST_USE;
void lag_clock_view_release(struct lag_clock_view *view);

/* What the copies hold for a raw time of this host and device. */
int64_t lag_clock_repair(const struct lag_clock_view *view, uint32_t host, uint32_t device,
			 int64_t raw_ns);

/* What was taken off: raw time = repaired time + shift (a device's own offset apart). */
int64_t lag_clock_shift(const struct lag_clock_view *view, uint32_t host, int64_t repaired_ns);
bool lag_clock_own_known(const struct lag_clock_view *view,
			 uint32_t device); /* its own clock was read */
double lag_clock_own_spread(const struct lag_clock_view *view, uint32_t device, int64_t raw_ns);
double lag_clock_own_offset(const struct lag_clock_view *view, uint32_t device, int64_t raw_ns);

/* Both times are recorded and in order. */
bool lag_clock_known(const struct lag_align_member *m);

/* A repaired time on the scale of the fits: about -1..1. */
double lag_clock_x(const struct lag_clock_view *view, uint32_t host, int64_t repaired_ns);

/* True for about one number in `stride`, in no regular pattern: steps repeat themselves, and every
 * n-th operation could always be the same one. */
bool lag_clock_pick(uint64_t i, size_t stride);

/* Ends of this kind are nearly simultaneous: every member needs every other's part. */
bool lag_clock_usable(enum lag_func func, int64_t bytes);

/* Ends of this one are used: those, and exchanges where they must do. A side of an exchange may only
 * send, so that it bounds nothing. */
bool lag_clock_used(const struct lag_clock_view *view, const struct lag_align_collective *c);

/* Fewer operations than this do not join two hosts. */
#define LAG_CLOCK_OFTEN 8

#endif
