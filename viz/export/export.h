/* SPDX-License-Identifier: Apache-2.0 */
/* One exporter = one file = one line in exporters.def: a merged trace in the format of another tool,
 * written as a stream. */
#ifndef VIZ_EXPORT_EXPORT_H
#define VIZ_EXPORT_EXPORT_H

#include <stdio.h>

#include "viz/model/context.h"

enum lag_export_kind {
	LAG_EXPORT_KERNELS = 1, /* compute kernels */
	LAG_EXPORT_COPIES = 2,  /* copies and sets */
	LAG_EXPORT_NCCL = 4,    /* communication kernels and their host calls */
	LAG_EXPORT_NVTX = 8,    /* annotations */
	LAG_EXPORT_API = 16,    /* host calls that launch and synchronise */
	LAG_EXPORT_WAITS = 32,  /* waiting inside communication */
	LAG_EXPORT_TIME = 64,   /* bubbles, exposed waiting, host-bound: the ledger */
	LAG_EXPORT_STEPS = 128,
	LAG_EXPORT_FLOWS = 256,
	LAG_EXPORT_ALL = 511,
};

/* Ranks and steps are the context's. */
struct lag_export_opts {
	unsigned kinds;            /* enum lag_export_kind, or'ed */
	int64_t from_ns, until_ns; /* what overlaps [from, until) of the trace's relative time */
};

struct lag_forecast {
	uint64_t n_events, n_bytes; /* bytes before compression, an estimate */
	uint64_t n_ranks;
};

struct lag_export_out {
	enum lag_status (*write)(struct lag_export_out *out, const char *bytes, size_t n,
				 struct lag_err *err);
	void *state;
};

struct lag_exporter {
	const char *name;    /* "chrome" */
	const char *summary; /* one line for people */
	/* Calls `before`, where it is not NULL, once the size is known and before anything is written;
	 * what it returns other than LAG_OK ends the export with that status. */
	enum lag_status (*write)(struct lag_context *ctx, const struct lag_export_opts *opts,
				 enum lag_status (*before)(void *state,
							   const struct lag_forecast *forecast,
							   struct lag_err *err),
				 void *state, struct lag_export_out *out, struct lag_err *err);
};

#define LAG_EXPORTER(name) extern const struct lag_exporter lag_exporter_##name;
#include "viz/export/exporters.def"

/* All exporters, NULL-terminated. */
extern const struct lag_exporter *const lag_exporters[];

const struct lag_exporter *lag_exporter_find(const char *name); /* NULL = none */

/* "kernels,nccl,flows" to bits; LAG_ERR_USAGE names the word that is none. */
enum lag_status lag_export_kinds_parse(const char *text, unsigned *kinds,
				       struct lag_err *err) LAG_MUST_USE;
const char *lag_export_kinds_list(void); /* "kernels copies nccl ..." */

/* "10ms-20ms", "1s-", "-5s" to relative times. */
enum lag_status lag_export_time_parse(const char *text, int64_t *from_ns, int64_t *until_ns,
				      struct lag_err *err) LAG_MUST_USE;

struct lag_export_file; /* a file, compressed on the way when its name says so */

/* Writes beside `path` until closed, so that nobody sees half a file; "-" is standard output. A path
 * that ends in ".gz" is compressed. LAG_ERR_USAGE where the file exists and `force` is not set. */
enum lag_status lag_export_file_open(const char *path, bool force, struct lag_export_file **file,
				     struct lag_export_out *out, struct lag_err *err) LAG_MUST_USE;

/* Unfinished files of killed exports that were removed when it was opened. */
unsigned lag_export_file_cleared(const struct lag_export_file *file);

/* Puts the file in its place, or removes what was written when `keep` is not set. Frees it. */
enum lag_status lag_export_file_close(struct lag_export_file *file, bool keep,
				      struct lag_err *err) LAG_MUST_USE;

#endif
