/* SPDX-License-Identifier: Apache-2.0 */
/* What a merge's lists hold. Indices are dense and 32 bit; "ref" fields are 1 + index, 0 = none. Times are
 * raw (the recording host's). */
#ifndef MERGE_ROWS_H
#define MERGE_ROWS_H

#include "merge/align.h"
#include "merge/gpu.h"
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
	uint64_t counts[LAG_REC_LIMIT]; /* of its records as read */
	uint64_t lost[LAG_LOSS_LIMIT];
	uint32_t n_parts;
	bool named_only;      /* its operations are known by kernels' names alone */
	struct lag_vec notes; /* char[LAG_ERR_TEXT_MAX]: all of them */
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
	/* Found by stages that run beside those of other processes; joined in order. */
	struct lag_vec quarantine; /* struct lag_quarantine_row */
	struct lag_vec findings;   /* struct lag_finding_row */
	uint32_t pool_ref;         /* 1 + index of the pool that the part's ids still are of */
	uint32_t part_of_ref; /* 1 + index of the process that this one's records were put into */
	bool combined;        /* with that of another source */
	bool old; /* of the trace that late ranks are added to: operations only, on the common clock */
	int64_t first_launch_id; /* of an old one */
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

#endif
