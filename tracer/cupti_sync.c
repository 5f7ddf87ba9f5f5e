/* SPDX-License-Identifier: Apache-2.0 */
/* Order between streams: event records and waits. CUPTI's event records carry no time, which comes
 * from the API record of the same correlation, before or after it. Writer thread only; all tables
 * are of fixed size, and what they cannot hold is left to the merge, which sees the same ids. */
#include "tracer/clock.h"
#include "tracer/cupti_api.h"

#define N_CALLS   8192u /* powers of two */
#define N_PENDING 1024u
#define N_EVENTS  4096u

static struct {
	struct {
		uint32_t correlation;
		int64_t start_ns, end_ns;
	} calls[N_CALLS];

	struct lag_rec_sync pending[N_PENDING]; /* events whose call has not come yet */
	size_t n_pending;

	/* The last two recordings of an event: a wait means the latest one before it. */
	struct {
		uint32_t event;
		uint32_t correlation[2];
	} events[N_EVENTS];
} seen;

static void append(struct lag_trace_producer *prod, const struct lag_rec_sync *sync)
{
	struct lag_record rec = { .kind = LAG_REC_sync, .sync = *sync };

	(void)lag_trace_append(prod, &rec);
}

void lag_cupti_see_call(struct lag_trace_producer *prod, uint32_t correlation, int64_t start_ns,
			int64_t end_ns)
{
	size_t slot = correlation % N_CALLS;

	seen.calls[slot].correlation = correlation;
	seen.calls[slot].start_ns = start_ns;
	seen.calls[slot].end_ns = end_ns;
	for (size_t i = 0; i < seen.n_pending; i++) {
		struct lag_rec_sync *sync = &seen.pending[i];

		if (sync->correlation != correlation)
			continue;
		sync->start_ns = start_ns;
		sync->end_ns = end_ns;
		append(prod, sync);
		*sync = seen.pending[--seen.n_pending];
		return;
	}
}

static uint32_t *recordings(uint32_t event)
{
	size_t slot = (event * 2654435761u) % N_EVENTS;

	if (seen.events[slot].event != event) {
		seen.events[slot].event = event;
		seen.events[slot].correlation[0] = seen.events[slot].correlation[1] = 0;
	}
	return seen.events[slot].correlation;
}

void lag_cupti_see_event(struct lag_trace_producer *prod, const uint8_t *rec, size_t stride)
{
	uint32_t correlation = lag_u32(rec, 4), event = lag_u32(rec, 16);
	size_t slot = correlation % N_CALLS;
	uint32_t *last = recordings(event);
	struct lag_rec_sync sync = {
		.start_ns = LAG_NONE,
		.end_ns = LAG_NONE,
		.kind = LAG_SYNC_EVENT_RECORD,
		.context = lag_u32(rec, 8),
		.stream = lag_u32(rec, 12),
		.event_id = event,
		.sync_id = stride >= 56 && lag_u64(rec, 48) ? (int64_t)lag_u64(rec, 48) : LAG_NONE,
		.correlation = correlation,
		.record_correlation = LAG_NONE,
	};

	if (correlation > last[0]) {
		last[1] = last[0];
		last[0] = correlation;
	} else if (correlation > last[1]) {
		last[1] = correlation; /* buffers of several threads come in any order */
	}
	if (seen.calls[slot].correlation == correlation) {
		sync.start_ns = seen.calls[slot].start_ns;
		sync.end_ns = seen.calls[slot].end_ns;
		append(prod, &sync);
	} else if (seen.n_pending < N_PENDING) {
		seen.pending[seen.n_pending++] = sync;
	} else {
		/* The oldest goes without its call: a time is needed, and order by correlation stays. */
		seen.pending[0].start_ns = lag_clock_now();
		append(prod, &seen.pending[0]);
		memmove(seen.pending, seen.pending + 1, sizeof(seen.pending) - sizeof(sync));
		seen.pending[N_PENDING - 1] = sync;
	}
}

static int64_t kind_of(uint32_t type)
{
	switch (type) {
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
		return LAG_SYNC_EVENT;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
		return LAG_SYNC_STREAM_WAIT;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
		return LAG_SYNC_STREAM;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
		return LAG_SYNC_CONTEXT;
	default:
		return 0;
	}
}

void lag_cupti_see_sync(struct lag_trace_producer *prod, const uint8_t *rec, size_t stride)
{
	uint32_t stream = lag_u32(rec, 32), event = lag_u32(rec, 36);
	bool about_event;
	struct lag_rec_sync sync = {
		.start_ns = (int64_t)lag_u64(rec, 8),
		.end_ns = lag_u64(rec, 16) ? (int64_t)lag_u64(rec, 16) : LAG_NONE,
		.kind = kind_of(lag_u32(rec, 4)),
		.context = lag_u32(rec, 28),
		.stream = stream == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? LAG_NONE : stream,
		.event_id = LAG_NONE,
		.sync_id = LAG_NONE,
		.correlation = lag_u32(rec, 24),
		.record_correlation = LAG_NONE,
	};

	about_event = sync.kind == LAG_SYNC_EVENT || sync.kind == LAG_SYNC_STREAM_WAIT;
	if (about_event && event != CUPTI_SYNCHRONIZATION_INVALID_VALUE) {
		const uint32_t *last = recordings(event);

		sync.event_id = event;
		if (stride >= 56 && lag_u64(rec, 40))
			sync.sync_id = (int64_t)lag_u64(rec, 40);
		for (int i = 0; i < 2 && sync.record_correlation == LAG_NONE; i++) {
			if (last[i] && last[i] < sync.correlation)
				sync.record_correlation = last[i];
		}
	}
	if (sync.kind && sync.start_ns)
		append(prod, &sync);
}
