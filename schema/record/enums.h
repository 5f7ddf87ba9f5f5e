/* SPDX-License-Identifier: Apache-2.0 */
/* The closed sets that records, database and analyses share. Numbers are on disk: never reuse one. */
#ifndef SCHEMA_RECORD_ENUMS_H
#define SCHEMA_RECORD_ENUMS_H

#include <stddef.h>
#include <stdint.h>

enum lag_api_domain {
	LAG_API_DRIVER = 1,
	LAG_API_RUNTIME = 2
};

enum lag_sync_kind {
	LAG_SYNC_EVENT_RECORD = 1,
	LAG_SYNC_STREAM_WAIT = 2, /* stream waits for event */
	LAG_SYNC_EVENT = 3,       /* host waits for event */
	LAG_SYNC_STREAM = 4,      /* host waits for stream */
	LAG_SYNC_CONTEXT = 5,     /* host waits for the device */
};

enum lag_range_kind {
	LAG_RANGE_PUSH = 1,   /* nested, of one thread */
	LAG_RANGE_START = 2,  /* free, by id */
	LAG_RANGE_MARK = 3,   /* a moment */
	LAG_RANGE_CPU_OP = 4, /* a framework operator (imports) */
	LAG_RANGE_GPU = 5,    /* an annotation projected to the GPU by the source */
};

/* Where the state of a host's clock was read. */
enum lag_clock_source {
	LAG_CLOCK_NONE = 0, /* nowhere: the system would not say */
	LAG_CLOCK_ADJTIMEX = 1,
};

/* Communication functions. */
enum lag_func {
	LAG_FUNC_UNKNOWN = 0,
	LAG_FUNC_ALL_REDUCE = 1,
	LAG_FUNC_ALL_GATHER = 2,
	LAG_FUNC_REDUCE_SCATTER = 3,
	LAG_FUNC_BROADCAST = 4,
	LAG_FUNC_REDUCE = 5,
	LAG_FUNC_ALL_TO_ALL = 6,
	LAG_FUNC_GATHER = 7,
	LAG_FUNC_SCATTER = 8,
	LAG_FUNC_SEND = 9,
	LAG_FUNC_RECV = 10,
	LAG_FUNC_SEND_RECV = 11, /* a grouped exchange that the source does not take apart */
	LAG_FUNC_BARRIER = 12,
	LAG_FUNC_LIMIT,
};

/* ncclDataType_t's numbers. */
enum lag_datatype {
	LAG_DT_INT8 = 0,
	LAG_DT_UINT8 = 1,
	LAG_DT_INT32 = 2,
	LAG_DT_UINT32 = 3,
	LAG_DT_INT64 = 4,
	LAG_DT_UINT64 = 5,
	LAG_DT_FLOAT16 = 6,
	LAG_DT_FLOAT32 = 7,
	LAG_DT_FLOAT64 = 8,
	LAG_DT_BFLOAT16 = 9,
	LAG_DT_FLOAT8_E4M3 = 10,
	LAG_DT_FLOAT8_E5M2 = 11,
	LAG_DT_LIMIT,
};

/* Where an operation's record came from. */
enum lag_op_source {
	LAG_OP_FROM_CALL = 1,   /* interposed call */
	LAG_OP_FROM_NVTX = 2,   /* NCCL's own annotations */
	LAG_OP_FROM_PLUGIN = 4, /* NCCL's profiler plugin */
	LAG_OP_FROM_META = 8,   /* metadata on the kernel or CPU operator of an imported trace */
	LAG_OP_FROM_NAME = 16,  /* only the kernel's name */
	LAG_OP_NUMBERED =
		32, /* seq is the communicator's own number, not a count of what is on record */
};

/* What a host had seen of an operation. */
enum lag_op_state {
	LAG_OP_ENQUEUED = 1,
	LAG_OP_STARTED = 2,
	LAG_OP_COMPLETED = 3,
};

enum lag_comm_state {
	LAG_COMM_FINALIZED = 1,
	LAG_COMM_DESTROYED = 2,
	LAG_COMM_ABORTED = 3,
	LAG_COMM_ERROR = 4
};

enum lag_loss_reason {
	LAG_LOSS_NO_CHUNK = 1, /* the pool was empty */
	LAG_LOSS_DISK_FULL = 2,
	LAG_LOSS_SIZE_CAP = 3, /* --max-size reached */
	LAG_LOSS_IO = 4,
	LAG_LOSS_CUPTI_DROPPED = 5, /* CUPTI says it dropped them */
	LAG_LOSS_CUPTI_BAD = 6,     /* records without usable times, or of an unknown layout */
	LAG_LOSS_TOO_LONG = 7,
	LAG_LOSS_CORRUPT = 8, /* found by a reader */
	LAG_LOSS_REENTRY = 9, /* a signal handler's, while its thread was recording */
	LAG_LOSS_LIMIT,
};

/* What a GPU event is to the analyses. */
enum lag_gpu_kind {
	LAG_GPU_KERNEL = 0,
	LAG_GPU_COPY = 1,
	LAG_GPU_SET = 2
};

/* Names for people and JSON: "all_reduce", "bfloat16", "disk_full"; "unknown" beyond the set. */
const char *lag_func_name(int64_t func);
const char *lag_datatype_name(int64_t datatype);
const char *lag_loss_reason_name(int64_t reason);

/* Bytes of one element; 0 for an unknown type. */
size_t lag_datatype_size(int64_t datatype);

/* From a source's spelling, any case, with or without '_', "nccl", "ncclDevKernel": 0 when unknown. */
enum lag_func lag_func_parse(const char *text, size_t n);

#endif
