/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the Nsight Systems importer: the state of one import. Times are of the wall clock
 * (the session's start and the ns since then, which is what the file has). */
#ifndef MERGE_NSYS_H
#define MERGE_NSYS_H

#include "merge/importer.h"
#include "schema/base/buf.h"
#include "schema/db/foreign.h"

/* Process and thread in one number: the thread's id is the lowest 24 bits. */
#define LAG_NSYS_KEY(global) ((uint64_t)(global) >> 24)
#define LAG_NSYS_TID(global) ((int64_t)((uint64_t)(global)&0xffffff))
#define LAG_NSYS_PID(key)    ((int64_t)((key)&0xffffff))

/* A string of the file. */
struct lag_nsys_name {
	uint32_t id;        /* of the pool */
	enum lag_func func; /* of a communication kernel */
	bool nccl, mangled, readable, looked_at;
};

/* A kernel that carries communication. */
struct lag_nsys_carrier {
	int64_t start_ns, correlation, stream, device;
	uint32_t name; /* index into names */
};

/* The call that launched a carrier or recorded an event. */
struct lag_nsys_launch {
	int64_t tid, enter_ns, leave_ns;
};

/* What NCCL's own annotations say: a call, or the brackets of a group. */
enum lag_nsys_call_kind {
	LAG_NSYS_OP,
	LAG_NSYS_INIT,
	LAG_NSYS_GROUP_START,
	LAG_NSYS_GROUP_END
};

struct lag_nsys_call {
	int64_t tid, start_ns, end_ns;
	int64_t bytes, peer, n_ranks, comm_rank, device;
	int64_t op_id, group_id, datatype;
	uint64_t comm; /* NCCL's id of the communicator */
	enum lag_nsys_call_kind kind;
	enum lag_func func;
	bool has_comm;
};

struct lag_nsys_proc {
	uint64_t key;
	struct lag_part part;
	struct lag_vec devices;  /* int64_t, CUDA's numbers, of those with GPU events */
	struct lag_vec carriers; /* struct lag_nsys_carrier */
	struct lag_vec calls;    /* struct lag_nsys_call */
	struct lag_vec pending;  /* struct lag_rec_sync: recordings that have their call's time */
	struct lag_vec launches; /* struct lag_nsys_launch */
	struct lag_map wanted;   /* correlation -> 1 + launch; 0 = not seen */
	uint64_t n_gpu, n_graphs;
	bool has_payloads;
	/* Of its largest communicator that it says its place in; and the first GPU it used. */
	uint64_t world_comm;
	int64_t world_ranks, world_rank, gpu;
};

struct lag_nsys_field {
	int64_t domain, schema, type, offset;
	int what; /* index of a known field, import_nsys_payload.c */
};

/* A GPU of the machine; name and uuid are strings of the pool. */
struct lag_nsys_gpu {
	int64_t id, cuda, sm_count, memory_bytes, cc_major, cc_minor, name, uuid;
};

/* Which GPU a process calls by which number. */
struct lag_nsys_cuda {
	int64_t gpu, cuda, pid;
};

#define LAG_NSYS_LAUNCHERS_MAX 16

struct lag_nsys {
	struct lag_input *in;
	struct lag_foreign *db;
	struct lag_pool *pool;
	const struct lag_import_opts *opts;
	struct lag_vec procs;          /* struct lag_nsys_proc */
	struct lag_map proc_of;        /* key -> index */
	struct lag_vec names;          /* struct lag_nsys_name */
	struct lag_map name_of;        /* id in the file -> index */
	struct lag_foreign_rows *rows; /* StringIds, by number; NULL where that cannot be */
	struct lag_map domains;        /* (process, domain) -> string id */
	struct lag_map categories;     /* (process, domain, category) -> string id */
	struct lag_vec fields;         /* struct lag_nsys_field */
	struct lag_map nccl_domains;   /* (process, domain) or domain of a payload -> 1 */
	struct lag_map process_names;  /* key -> string id */
	struct lag_vec gpus;           /* struct lag_nsys_gpu */
	struct lag_vec cuda;           /* struct lag_nsys_cuda */
	struct lag_buf meta;           /* "key=value" lines */
	struct lag_buf notes;          /* lines about the file as a whole */
	struct lag_buf scratch;
	int64_t base_ns, rank, world_size;
	uint32_t host, rank_source, argv;
	uint64_t default_key;
	uint64_t told; /* bytes that stand for the rows read */
	uint64_t n_rows, n_bad, n_damaged, n_nameless, n_operators, n_os_calls;
	uint64_t n_errors_noted;
	int64_t told_rank[LAG_NSYS_LAUNCHERS_MAX]; /* 1 + rank, 0 = not told */
	int64_t told_world[LAG_NSYS_LAUNCHERS_MAX];
	bool has_default, has_wall, normalized;
};

/* ---- import_nsys.c ---- */

/* Calls `row` for each row of `table`, where there is one. */
enum lag_status lag_nsys_each(struct lag_nsys *s, const char *table, const char *const *columns,
			      size_t n_columns,
			      enum lag_status (*row)(struct lag_nsys *s, struct lag_foreign_rows *r,
						     struct lag_err *err),
			      struct lag_err *err) LAG_MUST_USE;
#define LAG_NSYS_EACH(s, table, columns, row, err) \
	lag_nsys_each(s, table, columns, sizeof(columns) / sizeof((columns)[0]), row, err)

/* The process of a globalPid or globalTid (LAG_NONE: the only one of the file), made when new. *out is
 * valid until the next call. LAG_ERR_LIMIT beyond as many as a report can have. */
enum lag_status lag_nsys_proc(struct lag_nsys *s, int64_t global, struct lag_nsys_proc **out,
			      struct lag_err *err) LAG_MUST_USE;

/* Index of the name with that id in the file; 0, which is "", where it has none. */
enum lag_status lag_nsys_name(struct lag_nsys *s, int64_t id, size_t *index,
			      struct lag_err *err) LAG_MUST_USE;

static inline const struct lag_nsys_name *lag_nsys_name_at(const struct lag_nsys *s, size_t index)
{
	return &LAG_VEC_AT(&s->names, struct lag_nsys_name, index);
}

/* Id of the pool. */
enum lag_status lag_nsys_string(struct lag_nsys *s, const char *text, size_t n, int64_t *id,
				struct lag_err *err) LAG_MUST_USE;

/* A time of the file on the wall clock; out of range stays out of range. */
int64_t lag_nsys_time(const struct lag_nsys *s, int64_t t);

/* One line about the file. */
void lag_nsys_note(struct lag_nsys *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- in order ---- */

/* import_nsys_info.c: session, machine, environment, names of processes; before all else. Then what
 * is known of devices and threads, for the processes that have events. */
enum lag_status lag_nsys_read_info(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_nsys_read_devices(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_nsys_read_losses(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;

/* import_nsys_gpu.c */
enum lag_status lag_nsys_read_gpu(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;

/* import_nsys_host.c: events, calls, overhead; after the GPU's. */
enum lag_status lag_nsys_read_host(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;

/* import_nsys_nvtx.c */
enum lag_status lag_nsys_read_nvtx(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;

/* import_nsys_payload.c: layouts of payloads; one annotation of NCCL's. */
enum lag_status lag_nsys_read_layouts(struct lag_nsys *s, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_nsys_keep_call(struct lag_nsys *s, struct lag_nsys_proc *p,
				   struct lag_nsys_call call, const char *name, const char *payload,
				   size_t n_payload, struct lag_err *err) LAG_MUST_USE;

/* import_nsys_comm.c: communicators and operations of one process; last. */
enum lag_status lag_nsys_add_ops(struct lag_nsys *s, struct lag_nsys_proc *p,
				 struct lag_err *err) LAG_MUST_USE;

#endif
