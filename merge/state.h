/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a merge holds in memory between reading and writing, and its stages in order. Indices are
 * dense and 32 bit; "ref" fields are 1 + index, 0 = none. Times are raw (the recording host's). */
#ifndef MERGE_STATE_H
#define MERGE_STATE_H

#include "merge/align.h"
#include "merge/gpu.h"
#include "merge/merge.h"
#include "merge/part.h"

enum lag_source_state {
	LAG_SOURCE_OK = 0,
	LAG_SOURCE_DAMAGED,
	LAG_SOURCE_EMPTY,
	LAG_SOURCE_DUPLICATE,
	LAG_SOURCE_REFUSED
};

struct lag_source_row {
	char *path; /* owned */
	const char *format;
	enum lag_source_state state;
	char note[LAG_ERR_TEXT_MAX];
	uint64_t n_records, n_bad;
};

/* What executes communication operations of one communicator: a kernel, or several of one group. */
struct lag_launch {
	int64_t start_ns, end_ns, group_id, stream;
	uint32_t comm, device; /* dense device index */
	uint32_t gpu_ref, n_ops, n_gpu;
};

/* Beside each op record of a part, at the same index. */
struct lag_op_link {
	uint32_t launch_ref, instance_ref;
	uint32_t comm;     /* global index */
	int64_t comm_rank; /* own rank in it, LAG_NONE unknown */
	int64_t seq;       /* as recorded, else counted here; LAG_NONE: not to be matched */
	uint32_t seen_ref; /* the part's op_seen record */
	bool by_order;     /* seq is only the place in the order of what this process recorded */
};

/* Beside each range record. */
struct lag_range_link {
	uint32_t depth_ref : 31; /* 0 where nesting has no meaning */
	uint32_t unclosed : 1;
};

struct lag_device_row {
	int64_t device; /* the process's number */
	uint32_t dense;
	uint64_t n_events;
};

/* One process. rank is LAG_NONE for helpers and for recordings another one replaces; only processes
 * with a rank have events in the result. */
struct lag_proc {
	struct lag_part part;
	uint32_t source, host;
	int64_t rank;
	int64_t first_ns, last_ns;   /* LAG_NONE without events */
	struct lag_vec gpu;          /* struct lag_gpu, by start */
	struct lag_vec gpu_shapes;   /* struct lag_gpu_shape */
	struct lag_vec launches;     /* struct lag_launch */
	struct lag_vec op_links;     /* struct lag_op_link */
	struct lag_vec range_links;  /* struct lag_range_link */
	struct lag_vec devices;      /* struct lag_device_row; the first has most events */
	struct lag_map comm_of;      /* comm_id -> global index */
	struct lag_map comm_rank_of; /* comm_id -> own communicator rank */
	bool unused; /* helper, duplicate, other run, earlier restart: its events are not written */
};

struct lag_host_row {
	const char *name;    /* borrowed from the string table */
	const char *boot_id; /* "" unknown */
};

struct lag_comm_member_row {
	int64_t comm_rank, rank; /* LAG_NONE unknown */
	uint32_t proc_ref;       /* set when that process recorded the communicator */
};

struct lag_comm_row {
	int64_t hash, nccl_hash, n_ranks;
	uint32_t parent_ref, n_recording;
	uint32_t name, description; /* string ids */
	struct lag_vec members;     /* struct lag_comm_member_row */
	uint64_t n_mismatched, n_unmatched, n_edge, n_twice, n_by_order, n_unordered;
};

struct lag_instance_member {
	uint32_t proc, op;
	uint32_t next_ref; /* of the same instance */
};

#define LAG_INSTANCE_MISMATCH 1u
#define LAG_INSTANCE_BY_ORDER 2u
#define LAG_INSTANCE_SHARED   4u

struct lag_instance_row {
	uint32_t comm, func, flags;
	int64_t seq, src, dst, bytes, datatype;
	uint32_t n_members, n_recorded, n_started, n_finished;
	uint32_t first_ref, last_ref; /* chain in instance_members */
	/* Corrected; filled after alignment. */
	int64_t first_start_ns, last_start_ns, first_end_ns, last_end_ns, lead_ns, last_rank;
};

struct lag_quarantine_row {
	uint32_t proc;
	const char *record, *reason;
	int64_t start_ns, end_ns, name, correlation;
};

struct lag_finding_row {
	int severity; /* 0 note, 1 warning, 2 error */
	const char *kind;
	int64_t rank, comm, seq; /* LAG_NONE = none; comm is an index */
	uint64_t count;
	char text[LAG_ERR_TEXT_MAX];
};

struct lag_merge {
	const struct lag_merge_opts *opts;
	struct lag_pool pool;
	struct lag_vec sources;    /* struct lag_source_row */
	struct lag_vec procs;      /* struct lag_proc */
	struct lag_vec hosts;      /* struct lag_host_row */
	struct lag_vec comms;      /* struct lag_comm_row */
	struct lag_vec instances;  /* struct lag_instance_row */
	struct lag_vec members;    /* struct lag_instance_member */
	struct lag_vec quarantine; /* struct lag_quarantine_row */
	struct lag_vec findings;   /* struct lag_finding_row */
	struct lag_map rank_proc;  /* rank -> proc index */
	int64_t world_size;        /* LAG_NONE unknown */
	uint32_t n_devices;
	struct lag_vec device_host; /* uint32_t by dense device */
	struct lag_vec device_proc; /* uint32_t by dense device */
	struct lag_align_result clock;
	struct lag_merge_progress progress;
};

#define LAG_PROC_AT(m, i)     (&LAG_VEC_AT(&(m)->procs, struct lag_proc, i))
#define LAG_COMM_AT(m, i)     (&LAG_VEC_AT(&(m)->comms, struct lag_comm_row, i))
#define LAG_INSTANCE_AT(m, i) (&LAG_VEC_AT(&(m)->instances, struct lag_instance_row, i))
#define LAG_GPU_AT(p, i)      (&LAG_VEC_AT(&(p)->gpu, struct lag_gpu, i))
#define LAG_LAUNCH_AT(p, i)   (&LAG_VEC_AT(&(p)->launches, struct lag_launch, i))
#define LAG_OP_LINK_AT(p, i)  (&LAG_VEC_AT(&(p)->op_links, struct lag_op_link, i))

enum lag_status lag_merge_init(struct lag_merge *m, const struct lag_merge_opts *opts,
			       struct lag_err *err) LAG_MUST_USE;
void lag_merge_release(struct lag_merge *m);

/* What a finding is about: a rank, a communicator (index), LAG_NONE for none; how many cases. */
struct lag_about {
	int64_t rank, comm;
	uint64_t count;
};

#define LAG_ABOUT(rank, comm, count) ((struct lag_about){ (rank), (comm), (count) })

/* Adds a finding; one that no memory is left for is dropped. */
void lag_merge_find(struct lag_merge *m, int severity, const char *kind, struct lag_about about,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Tells the caller where the merge is; LAG_ERR_LIMIT when it wants to end. */
enum lag_status lag_merge_step(struct lag_merge *m, enum lag_merge_phase phase, uint64_t done,
			       uint64_t total, struct lag_err *err) LAG_MUST_USE;

/* The text of a string id. */
const char *lag_merge_text(const struct lag_merge *m, int64_t id);

/* ---- stages, in order ---- */

/* Reads every input into sources and procs. */
enum lag_status lag_merge_intake(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* Bad times out; then ends of ranges and operations, kernels reported while running. One process. */
enum lag_status lag_merge_quarantine(struct lag_merge *m, uint32_t proc,
				     struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_pair(struct lag_merge *m, struct lag_proc *p,
			       struct lag_err *err) LAG_MUST_USE;

/* Hosts, duplicates, mixed runs, restarts, ranks, devices. */
enum lag_status lag_merge_identify(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* One array of GPU events by start, without those that overrun their stream, tied to the host calls
 * (then by start, too) that launched them. One process. */
enum lag_status lag_merge_gather(struct lag_merge *m, uint32_t proc,
				 struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_overruns(struct lag_merge *m, uint32_t proc,
				   struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_tie(struct lag_proc *p) LAG_MUST_USE;

/* Numbers the devices of all processes. */
enum lag_status lag_merge_devices(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* Communicators of all parts, by hash. */
enum lag_status lag_merge_comms(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* Operations tied to the GPU events that execute them. One process. */
enum lag_status lag_merge_link(struct lag_merge *m, uint32_t proc,
			       struct lag_err *err) LAG_MUST_USE;

/* What the host had seen, tied to the linked operations. */
enum lag_status lag_merge_seen(struct lag_proc *p, struct lag_err *err) LAG_MUST_USE;

/* Numbers operations whose source has none; instances over all ranks; what does not match. */
enum lag_status lag_merge_count(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_match(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* One clock, then starts, ends and waits of the instances on it. */
enum lag_status lag_merge_align(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;
void lag_merge_waits(struct lag_merge *m);

/* Losses, gaps, failures and whatever else speaks against the recordings, as findings. */
enum lag_status lag_merge_trust(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* The database at `path` (made by the caller, empty). */
enum lag_status lag_merge_write(struct lag_merge *m, const char *path,
				struct lag_merge_receipt *receipt,
				struct lag_err *err) LAG_MUST_USE;

/* ---- helpers that several stages share ---- */

/* Corrected time; LAG_NONE stays. `dense` is a dense device index, LAG_HOST_CLOCK for host times. */
#define LAG_HOST_CLOCK UINT32_MAX
int64_t lag_merge_corrected(const struct lag_merge *m, const struct lag_proc *p, uint32_t dense,
			    int64_t raw_ns);

/* Dense index of a process's device; the process's first when that device has no events. */
uint32_t lag_merge_device(const struct lag_proc *p, int64_t device);

#endif
