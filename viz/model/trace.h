/* SPDX-License-Identifier: Apache-2.0 */
/* The merged trace in memory: what every analysis and view reads. Loaded once from the database;
 * read-only afterwards. Times are corrected ns relative to `origin_ns` (the earliest event), so that
 * they are small and can be subtracted without thought. "Index" is a position in an array here;
 * ids of the database are never kept. LAG_NONE = not recorded. */
#ifndef VIZ_MODEL_TRACE_H
#define VIZ_MODEL_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/record/record.h"
#include "viz/model/trace_trust.h"
#include "viz/model/window.h"

enum lag_class {
	LAG_CLASS_COMPUTE = 0,
	LAG_CLASS_COMM = 1,
	LAG_CLASS_COPY = 2
};

struct lag_gpu_event {
	int64_t start_ns, end_ns; /* end LAG_NONE: still running when recording ended */
	int64_t launch_start_ns, launch_end_ns; /* host call that launched it; LAG_NONE unknown */
	int64_t bytes;
	uint32_t r;          /* rank index */
	uint32_t name;       /* string index: short name */
	uint32_t full;       /* string index: demangled (or as recorded) */
	uint32_t lane;       /* index into lanes: the stream */
	int32_t launch;      /* index into launches, -1 = not communication */
	int32_t config;      /* index into configs, -1 */
	uint64_t launch_tid; /* thread of the launch call, 0 unknown */
	int64_t correlation;
	uint8_t kind;      /* enum lag_gpu_kind */
	uint8_t class;     /* enum lag_class */
	uint8_t copy_kind; /* CUPTI's number, 0 unknown */
	uint8_t flags;     /* bit 0 launch unknown */
};

struct lag_lane {
	uint32_t r;
	int64_t device, context, stream;
};

struct lag_range {
	int64_t start_ns, end_ns;
	uint32_t r, name, domain, category;
	uint64_t tid;
	int32_t depth;
	uint8_t kind;  /* enum lag_range_kind */
	uint8_t flags; /* bit 0 never closed */
};

struct lag_api {
	int64_t start_ns, end_ns, correlation;
	uint64_t tid;
	uint32_t r, name;
};

struct lag_sync {
	int64_t start_ns, end_ns;
	uint32_t r;
	uint8_t kind; /* enum lag_sync_kind */
	int64_t context, stream, event_id, sync_id, correlation, record_correlation;
};

/* One communication kernel (launch) of one rank. */
struct lag_launch {
	int64_t start_ns, end_ns; /* of the kernel; LAG_NONE unknown */
	uint32_t r, comm;
	uint32_t first_op, n_ops; /* ops are sorted so that a launch's ops are adjacent */
	int32_t gpu;              /* index into gpu, -1 */
};

struct lag_op {
	int64_t enter_ns, leave_ns;
	int64_t seq, count, bytes;
	uint32_t r, comm;
	int32_t launch, instance; /* -1 none */
	int32_t peer;             /* communicator rank, -1 */
	uint8_t func, datatype;   /* datatype 255 unknown */
	uint8_t sources;
};

/* A collective or matched send/receive over all its ranks; its ops are instance_ops[first .. +n]. */
struct lag_instance {
	int64_t seq, bytes;
	int64_t first_start_ns, last_start_ns, first_end_ns, last_end_ns;
	int64_t lead_ns;
	uint32_t comm;
	uint32_t first, n; /* into instance_ops (op indices) */
	int32_t n_members; /* of the communicator */
	int32_t last;      /* rank index that came last, -1 cannot tell */
	int32_t src, dst;  /* rank indices for pairs, -1 otherwise */
	uint8_t func;
	uint8_t flags; /* bit 0 arguments differ, 1 matched by order, 2 shares its kernel */
	bool complete; /* every member on record, started and finished */
};

struct lag_member {
	int32_t comm_rank;
	int32_t r; /* rank index, -1: rank not in this job's list */
	bool recorded;
};

struct lag_comm {
	int64_t hash, nccl_hash;
	int32_t n_ranks;                  /* -1 unknown */
	uint32_t first_member, n_members; /* into members, by comm_rank */
	bool complete;                    /* every rank of it recorded */
	const char *name, *description;
};

struct lag_rank {
	int64_t rank; /* number in the job */
	int32_t host; /* index, -1 = not recorded */
	bool recorded;
	int64_t device;
	int64_t local_rank;
	size_t gpu_begin, gpu_end;     /* gpu[] is sorted by (r, start) */
	size_t range_begin, range_end; /* ranges[] by (r, start, -end) */
	size_t api_begin, api_end;     /* api[] by (r, start) */
	size_t sync_begin, sync_end;
	size_t op_begin, op_end;   /* ops[] by (r, enter) except that fused ones are adjacent */
	int64_t first_ns, last_ns; /* first start and last end of its events */
	int64_t started_ns;        /* its recording, by its source's word; LAG_NONE unknown */
	int64_t uncertainty_ns;    /* worst clock uncertainty of its device; INT64_MAX unknown */
	size_t clock_begin, clock_end; /* clock[] rows of its device, by from; may be none */
	uint64_t lost;                 /* records it lost */
	int clean_exit;                /* -1 unknown, 0 cut off, 1 orderly */
};

struct lag_host {
	const char *name;
};

struct lag_clock_row {
	int32_t host;                       /* index */
	int32_t device_rank;                /* rank index, -1 = the host */
	int64_t from_ns, ref_ns, offset_ns; /* as recorded */
	int64_t at_ns;                      /* from_ns on the common clock */
	double drift_ppm;
	int64_t uncertainty_ns, bound_lo_ns, bound_hi_ns, own_ns; /* LAG_NONE unknown */
	const char *method, *basis;
	int64_t n_observations;
};

struct lag_trace {
	struct lag_db *db; /* open while the trace lives; export streams from it */
	char *path;
	int64_t origin_ns; /* Unix time of relative time 0 */
	int64_t span_ns;   /* last end */
	struct lag_window window;
	struct lag_rank *ranks;
	size_t n_ranks; /* sorted by rank number; unrecorded ones included */
	struct lag_host *hosts;
	size_t n_hosts;
	struct lag_gpu_event *gpu;
	size_t n_gpu;
	struct lag_lane *lanes; /* by (r, device, stream) */
	size_t n_lanes;
	struct lag_range *ranges;
	size_t n_ranges;
	struct lag_api *api;
	size_t n_api;
	struct lag_sync *syncs;
	size_t n_syncs;
	struct lag_launch *launches;
	size_t n_launches;
	struct lag_op *ops;
	size_t n_ops;
	struct lag_instance *instances; /* by last_start */
	size_t n_instances;
	uint32_t *instance_ops;
	struct lag_comm *comms;
	size_t n_comms;
	struct lag_member *members;
	struct lag_rec_launch_config *configs;
	size_t n_configs;
	struct lag_clock_row *clock;
	size_t n_clock;
	struct lag_finding *findings;
	size_t n_findings;
	struct lag_loss_row *losses;
	size_t n_losses;
	struct lag_source_row *sources;
	size_t n_sources;
	struct lag_gap_row *gaps;
	size_t n_gaps;
	struct lag_quarantine_row *quarantine; /* by rank, most first */
	size_t n_quarantine;
	int64_t n_quarantined; /* events in all of them */
	struct lag_unrecorded_row *unrecorded;
	size_t n_unrecorded;
	int64_t world_size;   /* LAG_NONE unknown */
	const char **strings; /* by string index; "" at 0 */
	size_t n_strings;
	void *memory; /* what backs the above */
};

/* Opens and loads a merged trace. The file is opened read-only. *out is the caller's to close. */
enum lag_status lag_trace_open(const char *path, struct lag_trace **out,
			       struct lag_err *err) LAG_MUST_USE;
void lag_trace_close(struct lag_trace *trace);

static inline const char *lag_trace_text(const struct lag_trace *trace, uint32_t index)
{
	return index < trace->n_strings ? trace->strings[index] : "";
}

/* Index of a rank number, -1 when the job has no such rank. */
int lag_trace_find_rank(const struct lag_trace *trace, int64_t rank);

/* Rank index of communicator rank `peer` of communicator index comm; -1 when it is not known who that is. */
int32_t lag_trace_find_peer(const struct lag_trace *trace, uint32_t comm, int32_t peer);

/* Worst clock error of a recorded rank against the common clock; two ranks of different hosts may differ
 * by the root of both squares (lag_waits). LAG_NONE: not known, or there are no two ranks. */
int64_t lag_trace_clock_error(const struct lag_trace *trace);
size_t lag_trace_n_recorded(const struct lag_trace *trace);

/* First gpu event of rank index r that ends after ns; gpu_end of the rank if none. Among events that
 * started before ns only the last LAG_FIND_GPU_BACK are looked at. */
#define LAG_FIND_GPU_BACK 4096
size_t lag_trace_find_gpu(const struct lag_trace *trace, size_t r, int64_t ns);

#endif
