/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulated libcupti share. Locks: buffers have their own; see cu_buffer.c. */
#ifndef SIM_CUPTI_CU_H
#define SIM_CUPTI_CU_H

#include "tests/simgpu/cuda/sim.h"

#include <cupti.h>
#include <pthread.h>

enum cu_mode {
	CU_NORMAL,
	CU_NO_DRIVER,
	CU_TAKEN
};

/* version.c: which CUPTI this pretends to be (SIMGPU_CUPTI_VERSION, e.g. 12.4 -> 1204). */
int cu_release(void);
uint32_t cu_api_version(void);
enum cu_mode cu_mode(void);
/* Bytes of one record of this kind in this release; 0: the kind has no record. */
size_t cu_record_size(uint32_t kind);

/* Remembers r for cuptiGetLastError and returns it. */
CUptiResult cu_return(CUptiResult r);
/* 999 when there is no driver, 39 when another tool holds CUPTI, else success. */
CUptiResult cu_gate(void);

/* control.c */
bool cu_enabled(CUpti_ActivityKind kind);
bool cu_api_enabled(enum sim_domain domain, uint32_t cbid);
bool cu_all_syncs(void);
bool cu_event_timestamps(void);
bool cu_latency_timestamps(void);
bool cu_per_thread(void);
uint32_t cu_thread_id(void);

/* buffer.c: where records go. */
void cu_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request,
			 CUpti_BuffersCallbackCompleteFunc complete);
bool cu_buffer_registered(void);
/* Appends n records that lie one after the other, to one buffer, for this thread. */
void cu_put(const void *records, size_t bytes, unsigned n);
/* Device records: a place set aside when the work starts, written when it ends. */
void cu_slot_open(struct sim_op *op, size_t bytes);
void cu_slot_close(struct sim_op *op, const void *record, size_t bytes);
unsigned cu_flush(bool forced); /* number of buffers handed over */
size_t cu_dropped_take(void);
void cu_worker_start(void);
void cu_worker_period(uint32_t ms);

/* record.c: builds records. The device record of op; ended: with its end. 0: none wanted. */
size_t cu_record_of(const struct sim_op *op, bool ended, void *out, size_t size);
void cu_hooks_install(void);
void cu_note_flush(int64_t start_ns);

/* external.c: the calling thread's external ids, as records before an API record. */
size_t cu_external_records(uint32_t corr, CUpti_ActivityExternalCorrelation *out, size_t max);

/* callback.c: subscriber. */
void cu_call_api(struct sim_api *a, bool enter);
void cu_call_resource(enum sim_resource what, CUcontext ctx, const void *handle);
bool cu_in_callback(void);
void cu_callback_enter(void);
void cu_callback_leave(void);

#endif
