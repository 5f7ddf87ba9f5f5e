/* SPDX-License-Identifier: Apache-2.0 */
/* One importer = one file = one line in importers.def: it recognises a format by content and turns one
 * input into parts. */
#ifndef MERGE_IMPORTER_H
#define MERGE_IMPORTER_H

#include <stdbool.h>

#include "merge/part.h"

/* A readable input: a file on disk, or a member of an archive, plain or gzip (already inflated for
 * the importer). Sequential; whole inputs may be mapped where they lie on disk. */
struct lag_input {
	const char *path;     /* for messages */
	const uint8_t *bytes; /* the whole input when it is mapped or in memory, else NULL */
	size_t n;
	const int *file; /* the open file when the input is a plain one, else NULL */
	/* Reads up to `room` bytes; 0 at the end, -1 on error (err is set). Works in both cases. */
	long (*read)(struct lag_input *in, void *buf, size_t room, struct lag_err *err);
	void *state;
	/* For importers that do not read(): tells that they are at offset, now and then (every few ms);
	 * false when they are to give up, with LAG_ERR_LIMIT. NULL: nobody wants to know. */
	bool (*watch)(struct lag_input *in, uint64_t offset);
	uint64_t size_hint; /* uncompressed size where known, else 0; for progress */
	uint64_t offset;    /* bytes read so far, uncompressed */
	const char *damage; /* at the end: why that came early (one line), else NULL */
};

/* Receives finished parts; takes ownership of what is inside *part. */
struct lag_part_sink {
	enum lag_status (*take)(struct lag_part_sink *sink, struct lag_part *part,
				struct lag_err *err);
	void *state;
};

struct lag_import_opts {
	bool cpu_ops; /* keep framework operators and python functions as ranges */
};

#define LAG_OUR_CLOCK "the host's wall clock, into which the driver converts the GPU's"

struct lag_importer {
	const char *name;  /* "lag", "kineto" */
	const char *clock; /* what its times are, for people */
	bool tells_gaps;   /* says itself what it did not record: none of a kind is none */
	/* True when the first n (<= 4096) bytes of the inflated input look like this format. */
	bool (*probe)(const uint8_t *head, size_t n);
	/* LAG_WARN: usable, with damage noted in the part. */
	enum lag_status (*import)(struct lag_input *in, struct lag_pool *pool,
				  const struct lag_import_opts *opts, struct lag_part_sink *sink,
				  struct lag_err *err);
};

#define LAG_IMPORTER(name) extern const struct lag_importer lag_importer_##name;
#include "merge/importers.def"

/* All importers, NULL-terminated, in probing order. */
extern const struct lag_importer *const lag_importers[];

/* By name; NULL: there is none. */
const struct lag_importer *lag_importer_find(const char *name);

#endif
