/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the Kineto importer: one event as it stands in the file, and the state of one
 * import. Times are ns as written (relative when the file has a base) until the import ends. */
#ifndef MERGE_KINETO_H
#define MERGE_KINETO_H

#include "merge/importer.h"
#include "merge/kineto_event.h"

/* What a CPU event or a kernel says about a collective; string ids of the pool, 0 = nothing. */
struct lag_kineto_coll {
	int64_t tid, start_ns, end_ns; /* CPU events */
	int64_t external;
	int64_t in, out, size, first_rank, rank_stride, src, dst, seq, comms_id;
	uint32_t name, dtype, group, description, ranks;
	bool split;     /* unequal split sizes */
	bool has_group; /* says which process group */
};

/* A kernel or copy that carries communication. */
struct lag_kineto_carrier {
	enum lag_record_kind kind;
	size_t index; /* into the part's records */
	int64_t coll; /* index into colls, -1: the event says nothing itself */
	int64_t external;
};

struct lag_kineto_group {
	uint32_t name, description, ranks;
	int64_t size;
};

/* The recording of an event that some wait names. */
struct lag_kineto_recording {
	int64_t correlation, stream, event_id, context;
};

struct lag_kineto_device {
	int64_t id, cc_major, cc_minor, sm_count, memory_bytes;
	uint32_t name;
};

/* A range that has begun ('B') and not ended. */
struct lag_kineto_open {
	int64_t pid, tid, ts_ns;
	enum lag_kineto_cat cat;
	uint32_t name; /* string id */
};

/* What one process of the file recorded. */
struct lag_kineto_proc {
	struct lag_part part;
	struct lag_vec colls;      /* struct lag_kineto_coll, of kernels */
	struct lag_vec cpu_colls;  /* struct lag_kineto_coll, of CPU events */
	struct lag_vec carriers;   /* struct lag_kineto_carrier */
	struct lag_vec recordings; /* struct lag_kineto_recording */
	struct lag_vec open;       /* struct lag_kineto_open */
	struct lag_vec devices;    /* int64_t, those with events */
	int64_t pid;               /* in the file's events; LAG_NONE: all are of this process */
	int64_t rank;
	uint32_t host;
	uint64_t n_gpu, first_bad_at;
};

/* A string that was interned before, so that the table of all is asked once for most. */
struct lag_kineto_known {
	uint64_t hash;
	uint32_t id, n; /* id 0: this slot is empty */
	bool names_nccl;
};

/* The upper bits of a hash choose the slot. */
#ifndef LAG_KINETO_KNOWN_BITS /* fewer where collisions are to be met in short inputs */
#define LAG_KINETO_KNOWN_BITS  12
#define LAG_KINETO_CONFIG_BITS 8
#endif

struct lag_kineto {
	struct lag_kineto_scan scan;
	struct lag_pool *pool;
	const struct lag_import_opts *opts;
	struct lag_vec procs;      /* struct lag_kineto_proc; one, or those of a merged trace */
	struct lag_kineto_proc *p; /* that of the event, or the one being finished */
	struct lag_map proc_of;    /* pid -> index into procs, of exported traces */
	struct lag_vec groups;     /* struct lag_kineto_group, from distributedInfo */
	struct lag_vec devices;    /* struct lag_kineto_device */
	int64_t base_ns, world_size;
	bool saw_events, saw_header;
	bool exported; /* by laggard */
	uint64_t n_events, n_meta;
	uint64_t n_behind, behind_at; /* bytes after the document, and where they begin */
	uint64_t n_strange;           /* events of processes that the file does not list */
	uint64_t n_odd, odd_at;       /* values around the events that are no whole numbers, */
	char first_odd[40];           /* where the first one is, and how it is written */
	struct lag_rec_launch_config
		configs[1 << LAG_KINETO_CONFIG_BITS]; /* lately used; id 0: empty */
	struct lag_kineto_known known[1 << LAG_KINETO_KNOWN_BITS];
};

/* Kineto writes -1 where it does not know. */
static inline int64_t lag_kineto_not_negative(int64_t v)
{
	return v < 0 ? LAG_NONE : v;
}

/* import_kineto_emit.c: adds the event's records to the part. */
enum lag_status lag_kineto_emit(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* The same for a complete event ('X') with usable times. */
enum lag_status lag_kineto_emit_complete(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_half.c: a range's begin ('B') or end ('E'); after all events, those that never ended. */
enum lag_status lag_kineto_emit_half(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_kineto_add_open(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_sync.c: waits; after all events, the recordings that they wait for. */
enum lag_status lag_kineto_emit_sync(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_kineto_add_recordings(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_head.c: reads the value of top-level member `key`. */
enum lag_status lag_kineto_read_head(struct lag_kineto *k, const char *key, size_t n,
				     struct lag_err *err) LAG_MUST_USE;

/* import_kineto_proc.c: adds a process, made current. */
enum lag_status lag_kineto_add_proc(struct lag_kineto *k, const char *path,
				    struct lag_err *err) LAG_MUST_USE;
/* Makes the event's process current. False: the file says nothing of such a process. */
bool lag_kineto_set_proc(struct lag_kineto *k);
void lag_kineto_use_device(struct lag_kineto *k, int64_t device);
/* The current process is complete: rank, host, devices, operations, times, notes. */
enum lag_status lag_kineto_finish_proc(struct lag_kineto *k, const char *path,
				       struct lag_err *err) LAG_MUST_USE;
void lag_kineto_release_procs(struct lag_kineto *k);

/* import_kineto_ops.c: after all events, communicators and operations of the carriers. */
enum lag_status lag_kineto_add_ops(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;
/* import_kineto_coll.c: keeps what k->event says about a collective. */
enum lag_status lag_kineto_keep_coll(struct lag_kineto *k, struct lag_vec *to,
				     struct lag_err *err) LAG_MUST_USE;

/* import_kineto_name.c: what a file's name tells; LAG_NONE, and 0 for no host. */
int64_t lag_kineto_rank_of_path(const char *path);
size_t lag_kineto_host_of_path(const char *path, const char **host);

/* enum lag_datatype of PyTorch's spelling, LAG_NONE when unknown. */
int64_t lag_kineto_datatype(const char *name);

/* import_kineto_string.c: as lag_kineto_string, with what is known of the string. */
enum lag_status lag_kineto_name(struct lag_kineto *k, struct lag_span text,
				struct lag_kineto_known *known, struct lag_err *err) LAG_MUST_USE;
/* Index of the launch configuration in the pool, LAG_NONE without one or without memory. */
int64_t lag_kineto_config(struct lag_kineto *k);

/* Identity of a process group, equal in all files that give its name and list of ranks ("[0, 1]").
 * apart: 0, or what tells groups of one process from each other. */
int64_t lag_group_hash(const char *name, const char *ranks, uint64_t apart);

/* String id of the pool; LAG_ERR_SYSTEM without memory. */
enum lag_status lag_kineto_string(struct lag_kineto *k, struct lag_span text, uint32_t *id,
				  struct lag_err *err) LAG_MUST_USE;

#endif
