/* SPDX-License-Identifier: Apache-2.0 */
/* Another user of CUPTI's activity interface (a framework's own profiler) takes the buffers over without
 * a word: its callbacks replace ours. All that shows is that none come any more while NCCL calls do. */
#include "tracer/watch.h"

#include "tracer/clock.h"
#include "tracer/cupti_door.h"
#include "tracer/nccl_door.h"
#include "tracer/self.h"

#define SILENCE_NS 3000000000 /* beyond a forced flush, which would have brought something */
#define MIN_OPS    8

static struct {
	uint64_t buffers;
	int64_t ops;
	int64_t since_ns, since_real_ns; /* last sign of life, or the end of the last gap record */
} watch;

void lag_watch_tick(struct lag_trace_producer *prod, int64_t now_ns)
{
	uint64_t buffers = lag_cupti_completed();
	int64_t ops = lag_nccl_n_ops(), now_real = lag_clock_now();
	struct lag_record rec;

	if (!lag_cupti_is_active() || buffers != watch.buffers || !watch.since_ns) {
		watch.buffers = buffers;
	} else if (now_ns - watch.since_ns < SILENCE_NS || ops - watch.ops < MIN_OPS) {
		return;
	} else {
		static const char what[] = "CUPTI",
				  why[] = "no buffers came: another tool took them over";

		lag_record_init(&rec, LAG_REC_gap);
		rec.gap.from_ns = watch.since_real_ns;
		rec.gap.until_ns = now_real;
		rec.gap.what = lag_trace_string(prod, what, sizeof(what) - 1);
		rec.gap.reason = lag_trace_string(prod, why, sizeof(why) - 1);
		(void)lag_trace_append(prod, &rec);
	}
	watch.ops = ops;
	watch.since_ns = now_ns;
	watch.since_real_ns = now_real;
}
