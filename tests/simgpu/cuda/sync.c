/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits and queries, common to driver and runtime API, each with its CUPTI note. */
#include "tests/simgpu/cuda/engine.h"

static void note(enum sim_sync_type type, const struct sim_stream *s, const struct sim_event *e,
		 const struct sim_sync *times)
{
	struct sim_sync n = *times;

	n.type = type;
	n.end_ns = sim_host_now();
	n.device = s ? s->device : sim_device_current();
	n.stream_id = s ? s->id : UINT32_MAX; /* CUPTI_SYNCHRONIZATION_INVALID_VALUE */
	n.event_id = e ? e->id : UINT32_MAX;
	n.event_sync_id = e ? e->sync_id : 0;
	sim_note_sync(&n);
}

void sim_sync_stream(struct sim_stream *s, uint32_t corr)
{
	struct sim_sync t = { .start_ns = sim_host_now(), .corr = corr };

	sim_stream_wait_all(s);
	note(s ? SIM_SYNC_STREAM : SIM_SYNC_CONTEXT, s, NULL, &t);
}

void sim_sync_event(struct sim_event *e, uint32_t corr)
{
	struct sim_sync t = { .start_ns = sim_host_now(), .corr = corr };
	struct sim_op *op = sim_event_op(e);

	if (op) {
		sim_op_wait(op);
		sim_op_unref(op);
	}
	note(SIM_SYNC_EVENT, NULL, e, &t);
}

bool sim_query_stream(struct sim_stream *s, uint32_t corr)
{
	struct sim_sync t = { .start_ns = sim_host_now(), .corr = corr };
	bool done = sim_stream_idle(s);

	t.query_pending = !done;
	t.result = done ? 0 : CUDA_ERROR_NOT_READY;
	note(SIM_SYNC_STREAM, s, NULL, &t);
	return done;
}

bool sim_query_event(struct sim_event *e, uint32_t corr)
{
	struct sim_sync t = { .start_ns = sim_host_now(), .corr = corr };
	struct sim_op *op = sim_event_op(e);
	bool done = !op || sim_op_done(op);

	sim_op_unref(op);
	t.query_pending = !done;
	t.result = done ? 0 : CUDA_ERROR_NOT_READY;
	note(SIM_SYNC_EVENT, NULL, e, &t);
	return done;
}

void sim_sync_stream_wait(struct sim_stream *s, struct sim_event *e, uint32_t corr)
{
	struct sim_sync t = { .start_ns = sim_host_now(), .corr = corr };

	sim_event_wait_on(e, s, corr);
	note(SIM_SYNC_STREAM_WAIT, s, e, &t);
}

int sim_event_elapsed(struct sim_event *a, struct sim_event *b, float *ms)
{
	struct sim_op *x = sim_event_op(a), *y = sim_event_op(b);
	int rc = 0;

	if (!x || !y) {
		rc = -1;
	} else if (!sim_op_done(x) || !sim_op_done(y)) {
		rc = -2;
	} else {
		*ms = (float)((double)(y->end_ns - x->end_ns) / 1e6);
	}
	sim_op_unref(x);
	sim_op_unref(y);
	return rc;
}
