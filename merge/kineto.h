/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the Kineto importer: one event as it stands in the file, and the state of one
 * import. Times are ns as written (relative when the file has a base) until the import ends. */
#ifndef MERGE_KINETO_H
#define MERGE_KINETO_H

#include "merge/importer.h"
#include "schema/base/json_read.h"

enum lag_kineto_cat {
	LAG_KC_OTHER,
	LAG_KC_KERNEL,
	LAG_KC_MEMCPY,
	LAG_KC_MEMSET,
	LAG_KC_RUNTIME,
	LAG_KC_DRIVER,
	LAG_KC_CPU_OP,
	LAG_KC_PYTHON,
	LAG_KC_ANNOTATION,
	LAG_KC_GPU_ANNOTATION,
	LAG_KC_SYNC,
	LAG_KC_EVENT,
	LAG_KC_OVERHEAD,
	LAG_KC_TRACE,
};

/* Integer arguments. */
enum lag_kineto_int {
	LAG_KI_DEVICE,
	LAG_KI_STREAM,
	LAG_KI_CONTEXT,
	LAG_KI_CORRELATION,
	LAG_KI_EXTERNAL,
	LAG_KI_BYTES,
	LAG_KI_REGISTERS,
	LAG_KI_SHARED,
	LAG_KI_GRAPH,
	LAG_KI_GRAPH_NODE,
	LAG_KI_CBID,
	LAG_KI_PEER_DEVICE,
	LAG_KI_WAIT_CORRELATION,
	LAG_KI_WAIT_STREAM,
	LAG_KI_WAIT_EVENT,
	LAG_KI_IN_ELEMENTS,
	LAG_KI_OUT_ELEMENTS,
	LAG_KI_GROUP_SIZE,
	LAG_KI_FIRST_RANK,
	LAG_KI_RANK_STRIDE,
	LAG_KI_SRC_RANK,
	LAG_KI_DST_RANK,
	LAG_KI_SEQ,
	LAG_KI_COMMS_ID,       /* 64 bits, the pattern of an unsigned number */
	LAG_KI_INPUT_ELEMENTS, /* of the first tensor in "Input Dims" */
	LAG_KI_LIMIT,
};

enum lag_kineto_slot {
	LAG_KT_NAME, /* of the event */
	LAG_KT_META_NAME,
	LAG_KT_LABELS,
	LAG_KT_COLLECTIVE,
	LAG_KT_DTYPE,
	LAG_KT_GROUP_NAME,
	LAG_KT_GROUP_TEXT,
	LAG_KT_GROUP_RANKS,
	LAG_KT_IN_SPLIT,
	LAG_KT_SYNC_KIND,
	LAG_KT_COPY_KIND,
	LAG_KT_INPUT_TYPE,
	LAG_KT_LIMIT,
};

struct lag_kineto_event {
	char phase;
	enum lag_kineto_cat cat;
	int64_t ts_ns, dur_ns; /* LAG_NONE: absent or no number */
	int64_t pid, tid;      /* digits also where they come as "123" or "stream 7" */
	bool legacy_gpu;       /* pid "CUDA functions" of the old autograd profiler */
	int64_t i[LAG_KI_LIMIT];
	int64_t grid[3], block[3];
	struct lag_buf text[LAG_KT_LIMIT];
};

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
	bool used;
};

struct lag_kineto {
	struct lag_json_reader json;
	struct lag_part part;
	struct lag_pool *pool;
	const struct lag_import_opts *opts;
	struct lag_kineto_event event;
	struct lag_vec colls;      /* struct lag_kineto_coll, of kernels */
	struct lag_vec cpu_colls;  /* struct lag_kineto_coll, of CPU events */
	struct lag_vec carriers;   /* struct lag_kineto_carrier */
	struct lag_vec groups;     /* struct lag_kineto_group, from distributedInfo */
	struct lag_vec devices;    /* struct lag_kineto_device */
	struct lag_vec recordings; /* struct lag_kineto_recording */
	int64_t base_ns;
	int64_t rank, world_size;
	uint32_t host;
	bool saw_events, saw_header;
	uint64_t n_events, n_gpu, n_meta;
	uint64_t first_bad_at;
};

static inline int64_t lag_kineto_or(int64_t v, int64_t otherwise)
{
	return v != LAG_NONE ? v : otherwise;
}

/* Kineto writes -1 where it does not know. */
static inline int64_t lag_kineto_not_negative(int64_t v)
{
	return v < 0 ? LAG_NONE : v;
}

/* import_kineto_event.c: at an OBJECT token, reads it into k->event. LAG_END: cut inside. */
enum lag_status lag_kineto_read_event(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;
void lag_kineto_event_release(struct lag_kineto_event *event);

/* import_kineto_emit.c: adds k->event's records to the part. */
enum lag_status lag_kineto_emit(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_sync.c: waits; after all events, the recordings that they wait for. */
enum lag_status lag_kineto_emit_sync(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_kineto_add_recordings(struct lag_kineto *k, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_head.c: reads the value of top-level member `key`. */
enum lag_status lag_kineto_read_head(struct lag_kineto *k, const char *key, size_t n,
				     struct lag_err *err) LAG_MUST_USE;

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

/* String id of the pool; LAG_ERR_SYSTEM without memory. */
enum lag_status lag_kineto_string(struct lag_kineto *k, const char *text, size_t n, uint32_t *id,
				  struct lag_err *err) LAG_MUST_USE;

#endif
