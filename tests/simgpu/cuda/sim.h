/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device, as libcuda.so.1 offers it to the other simulated libraries: operations on
 * streams whose start and end are computed, not waited for, and hooks that CUPTI's stand-in sets.
 * All times are true time (sim_true_ns) unless the name says otherwise. */
#ifndef SIM_CUDA_SIM_H
#define SIM_CUDA_SIM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum sim_op_kind {
	SIM_OP_KERNEL,
	SIM_OP_MEMCPY,
	SIM_OP_MEMSET,
	SIM_OP_COMM, /* a kernel whose end its poll function finds out */
	SIM_OP_MARK, /* event record */
	SIM_OP_WAIT, /* stream waits for an event */
	SIM_OP_HOST  /* host function */
};

enum sim_op_state {
	SIM_OP_QUEUED,
	SIM_OP_STARTED,
	SIM_OP_RESOLVED,
	SIM_OP_DONE
};

struct sim_op;
struct sim_stream;

/* Called on the engine thread, engine locked: advance the operation that starts at start_ns.
 * True when its end is known. Must not call the engine back. */
typedef bool (*sim_poll_fn)(void *ctx, int64_t start_ns, int64_t *end_ns);

struct sim_dim {
	uint32_t x, y, z;
};

struct sim_op {
	struct sim_op *next;
	struct sim_stream *stream;
	struct sim_op **deps; /* owned references: this one starts after all of them */
	unsigned n_deps;
	int refs;
	enum sim_op_kind kind;
	enum sim_op_state state;
	int64_t enqueued_ns, start_ns, end_ns, dur_ns;
	uint32_t corr;
	uint64_t nth; /* n-th launch of this process, for seeded noise */
	const char *name;
	struct sim_dim grid, block;
	uint32_t shared_bytes;
	uint64_t bytes;
	void *dst;
	const void *src;
	uint32_t value, value_size, copy_kind; /* copy_kind: CUpti_ActivityMemcpyKind */
	int src_device, dst_device;            /* -1: host */
	bool async;
	void (*host_fn)(void *);
	void *host_arg;
	sim_poll_fn poll;
	void (*release)(void *ctx);
	void *ctx;
	uint32_t event_id;
	int comm_slot;    /* place in the engine's list of communication intervals, or -1 */
	bool reserved;    /* CUPTI has set a place aside */
	void *cupti_slot; /* where */
};

struct sim_stream {
	struct sim_stream *next;
	struct sim_op *head, *tail, *unresolved;
	int64_t last_end_ns;
	uint32_t id, flags;
	int priority, device;
	unsigned n_ops;
	bool blocking, legacy, destroyed;
};

struct sim_event {
	struct sim_op *op; /* latest record, a reference; NULL: never recorded */
	uint32_t id, flags;
	uint64_t sync_id;
};

/* Engine. */
SIM_EXPORT void sim_init(void); /* starts the engine; runs CUDA injection once */
SIM_EXPORT struct sim_op *sim_op_new(enum sim_op_kind kind);
SIM_EXPORT void sim_op_unref(struct sim_op *op);
SIM_EXPORT struct sim_op *sim_op_ref(struct sim_op *op);
/* Hands the operation to the stream. Blocks while the stream's queue is full. The returned
 * reference is the caller's when `keep`, else NULL. */
SIM_EXPORT struct sim_op *sim_enqueue(struct sim_stream *s, struct sim_op *op, bool keep);
SIM_EXPORT void sim_op_after(struct sim_op *op, struct sim_op *dep); /* before enqueue only */
SIM_EXPORT void sim_op_wait(struct sim_op *op);                      /* host waits for its end */
SIM_EXPORT bool sim_op_done(struct sim_op *op);
SIM_EXPORT void sim_collect(void); /* tell hooks all that has happened until now */
SIM_EXPORT void sim_engine_lock(void);
SIM_EXPORT void sim_engine_unlock(void);
SIM_EXPORT void sim_engine_kick(void);
/* This process's doorbell as others can open it, and ring one that was opened. */
SIM_EXPORT int sim_doorbell_fd(void);
SIM_EXPORT void sim_doorbell_ring(uint32_t *bell);

/* Streams and events. */
SIM_EXPORT struct sim_stream *sim_stream_new(uint32_t flags, int priority);
SIM_EXPORT void sim_stream_destroy(struct sim_stream *s);
SIM_EXPORT struct sim_stream *sim_stream_of(const void *handle); /* NULL, 1, 2: default streams */
SIM_EXPORT void sim_stream_wait_all(struct sim_stream *s);       /* NULL: every stream */
SIM_EXPORT bool sim_stream_idle(struct sim_stream *s);
SIM_EXPORT struct sim_event *sim_event_new(uint32_t flags);
SIM_EXPORT void sim_event_free(struct sim_event *e);
SIM_EXPORT void sim_event_record(struct sim_event *e, struct sim_stream *s, uint32_t corr);
SIM_EXPORT void sim_event_wait_on(struct sim_event *e, struct sim_stream *s, uint32_t corr);
SIM_EXPORT struct sim_op *sim_event_op(struct sim_event *e); /* a reference, or NULL */

/* Devices. */
SIM_EXPORT int sim_device_count(void);
SIM_EXPORT int sim_device_current(void);
SIM_EXPORT int sim_device_set(int device);       /* 0, or -1 when there is no such device */
SIM_EXPORT CUcontext sim_context_of(int device); /* makes the primary context */
SIM_EXPORT CUcontext sim_context_current(void);
SIM_EXPORT void sim_context_set(CUcontext ctx);
SIM_EXPORT int sim_context_device(CUcontext ctx);
SIM_EXPORT uint32_t sim_context_id(CUcontext ctx);
SIM_EXPORT const char *sim_device_name(void);
SIM_EXPORT void sim_device_uuid(int device, uint8_t out[16]);
SIM_EXPORT void sim_device_pci(int device, int *domain, int *bus, int *dev);

/* Memory: host memory that remembers whose it is. Only the first sim_copy_limit() bytes of a copy
 * or set are really carried out; time is charged for all. */
SIM_EXPORT void *sim_mem_alloc(size_t bytes, int device); /* device -1: pinned host memory */
SIM_EXPORT int sim_mem_free(void *p);
SIM_EXPORT int sim_mem_device(const void *p); /* -1: host, pinned or not; else the device */
SIM_EXPORT bool sim_mem_known(const void *p, void **base, size_t *bytes);
SIM_EXPORT size_t sim_mem_used(int device);
SIM_EXPORT size_t sim_copy_limit(void);

/* Kernels: named entries of PTX text. */
struct sim_kernel {
	const char *name;
	struct sim_kernel *next;
	int max_threads;
};

struct sim_module {
	struct sim_module *next;
	char *ptx;
	struct sim_kernel *kernels;
};
SIM_EXPORT struct sim_module *sim_module_new(const void *image);
SIM_EXPORT void sim_module_free(struct sim_module *m);
SIM_EXPORT struct sim_kernel *sim_module_kernel(struct sim_module *m, const char *name);

struct sim_launch {
	const struct sim_kernel *kernel;
	struct sim_dim grid, block;
	uint32_t shared_bytes, corr;
	void **params;
};

SIM_EXPORT void sim_launch(const struct sim_launch *l, struct sim_stream *s);
SIM_EXPORT void sim_host_fn(struct sim_stream *s, void (*fn)(void *), void *arg, uint32_t corr);

struct sim_copy {
	void *dst;
	const void *src;
	uint64_t bytes;
	uint32_t corr;
	bool async;
};

SIM_EXPORT void sim_copy(const struct sim_copy *c, struct sim_stream *s);
SIM_EXPORT void sim_set(void *dst, uint32_t value, uint32_t value_size, uint64_t count,
			struct sim_stream *s, uint32_t corr);

/* Host-side faults at a launch: one-off stall, launch number bookkeeping. Returns its number. */
SIM_EXPORT uint64_t sim_launch_number(void);

/* The calling host thread's own time (host/lateness.c). woke: it has got something that was due then;
 * waited: and that was device work; call and return: a driver call begins, and goes on from what
 * was done at since_ns. */
SIM_EXPORT int64_t sim_host_now(void);
SIM_EXPORT void sim_host_woke(int64_t due_ns);
SIM_EXPORT void sim_host_waited(int64_t due_ns);
SIM_EXPORT void sim_host_call(void);
SIM_EXPORT void sim_host_return(int64_t since_ns);

/* Reported time: what a CUPTI record shows for true time t. */
SIM_EXPORT uint64_t sim_report_host(int64_t t_ns);
SIM_EXPORT uint64_t sim_report_device(int64_t t_ns);

/* Truth file: one communication operation of this rank. */
struct sim_truth_comm {
	uint64_t comm;
	uint64_t seq;
	const char *func;
	uint64_t bytes;
	int rank, nranks, peer;
	int64_t start_ns, end_ns;
};

SIM_EXPORT void sim_truth_comm(const struct sim_truth_comm *t);

#include "tests/simgpu/cuda/sim_api.h"

#endif
