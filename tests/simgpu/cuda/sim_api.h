/* SPDX-License-Identifier: Apache-2.0 */
/* The bracket around simulated API calls, and the hooks through which CUPTI's stand-in hears of them
 * and of device work. Included by sim.h. */
#ifndef SIM_CUDA_SIM_API_H
#define SIM_CUDA_SIM_API_H

#include "tests/simgpu/cuda/sim.h"

/* API calls: every simulated function is bracketed by these two. */
enum sim_domain {
	SIM_DOMAIN_DRIVER = 1,
	SIM_DOMAIN_RUNTIME = 2
};

struct sim_api {
	enum sim_domain domain;
	uint32_t cbid, corr;
	const char *function;
	const char *symbol; /* kernel's name, for callbacks */
	const void *params;
	int64_t entered_ns, t0_ns; /* t0: 0 when nobody listens */
	int result;
	uint64_t user; /* correlationData of callbacks */
	bool nested;   /* inside another simulated call: not an API call of the program */
};

SIM_EXPORT void sim_api_enter(struct sim_api *a);
SIM_EXPORT void sim_api_leave(struct sim_api *a, int result);

enum sim_sync_type {
	SIM_SYNC_EVENT = 1,
	SIM_SYNC_STREAM_WAIT,
	SIM_SYNC_STREAM,
	SIM_SYNC_CONTEXT
};

struct sim_sync {
	enum sim_sync_type type;
	int64_t start_ns, end_ns;
	uint32_t corr, stream_id, event_id;
	int device;
	uint64_t event_sync_id;
	int result;
	bool query_pending; /* a query of work that was not finished */
};

SIM_EXPORT void sim_note_sync(const struct sim_sync *s);
/* The host's waits and queries, shared by both APIs; they report themselves to CUPTI. Queries are
 * true when the work has finished. A NULL stream means the whole device. */
SIM_EXPORT void sim_sync_stream(struct sim_stream *s, uint32_t corr);
SIM_EXPORT void sim_sync_event(struct sim_event *e, uint32_t corr);
SIM_EXPORT bool sim_query_stream(struct sim_stream *s, uint32_t corr);
SIM_EXPORT bool sim_query_event(struct sim_event *e, uint32_t corr);
SIM_EXPORT void sim_sync_stream_wait(struct sim_stream *s, struct sim_event *e, uint32_t corr);
/* ms between two recorded events; -1: not recorded, -2: not finished. */
SIM_EXPORT int sim_event_elapsed(struct sim_event *a, struct sim_event *b, float *ms);

enum sim_resource {
	SIM_RES_CONTEXT_CREATED,
	SIM_RES_CONTEXT_DESTROYED,
	SIM_RES_STREAM_CREATED,
	SIM_RES_STREAM_DESTROYED,
	SIM_RES_MODULE_LOADED
};

struct sim_hooks {
	void (*api_enter)(struct sim_api *a);
	void (*api_leave)(struct sim_api *a);
	void (*op_started)(struct sim_op *op); /* running now, end not reached */
	void (*op_ended)(struct sim_op *op);
	void (*event_recorded)(const struct sim_op *op, const struct sim_event *e, int64_t now_ns);
	void (*synced)(const struct sim_sync *s);
	void (*resource)(enum sim_resource what, CUcontext ctx, const void *handle);
	bool (*in_callback)(void);
};

SIM_EXPORT void sim_hooks_set(const struct sim_hooks *h);
SIM_EXPORT const struct sim_hooks *sim_hooks_get(void);

#endif
