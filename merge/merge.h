/* SPDX-License-Identifier: Apache-2.0 */
/* The merge: recordings of many processes in, one SQLite trace on one clock out. */
#ifndef MERGE_MERGE_H
#define MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/db/db_write.h"

#define LAG_MERGE_THREADS_MAX 256
#define LAG_MERGE_MEMORY      ((uint64_t)512 << 20)
#define LAG_MERGE_MEMORY_MIN  ((uint64_t)1 << 20)

struct lag_outfile;

enum lag_merge_phase {
	LAG_MERGE_READ = 0, /* done and total are bytes of input */
	LAG_MERGE_MATCH,    /* done and total are steps of work */
	LAG_MERGE_WRITE,    /* done and total are events */
};

/* What the caller's progress function sees, often (every few ms). */
struct lag_merge_progress {
	enum lag_merge_phase phase;
	uint64_t done, total;
};

struct lag_merge_opts {
	const char *const *inputs; /* run directories, trace files, archives */
	size_t n_inputs;
	const char *output; /* NULL = made from the first input's name */
	const char *
		append; /* merged trace that the inputs are added to, which is the output; or NULL */
	/* NULL, or an empty file that becomes the trace instead, under its unfinished name: the caller's, to
	 * be read and closed. output is not used then. */
	struct lag_outfile *scratch;
	bool force;              /* overwrite output */
	const char *align;       /* aligner's name; NULL = "collective" */
	bool repair_order;       /* move what contradicts cause and effect on the common clock */
	const char *from;        /* importer that reads every input; NULL = as their content says */
	const char *rename_path; /* file of "regex => name" lines, or NULL */
	bool keep_empty;         /* write a trace without ranks rather than fail */
	bool cpu_ops;            /* keep framework operators of imported traces */
	bool no_pyramid;         /* no level of detail: to measure what it costs */
	enum lag_db_writer_kind writer;
	uint64_t memory_bytes; /* beyond it, data go to a temporary file; 0 = LAG_MERGE_MEMORY */
	const char *tmp;       /* its folder; NULL = $TMPDIR, else the output's */
	unsigned n_threads;    /* 0 = one for each processor */
	/* Called now and then when not NULL, by the calling thread; false cancels the merge (nothing is
	 * left behind). */
	bool (*progress)(void *state, const struct lag_merge_progress *progress);
	void *progress_state;
};

/* For the closing line. */
struct lag_merge_receipt {
	char output[4096];
	uint64_t n_added; /* ranks, of n_ranks; events are counted as added ones then */
	uint64_t n_files, n_processes, n_ranks, world_size, n_hosts;
	uint64_t n_other_runs;        /* recordings that are of another run and left out */
	uint64_t n_events;            /* rows in EVENT tables */
	uint64_t spill_bytes;         /* size of the temporary file; 0: none was needed */
	int64_t clock_uncertainty_ns; /* worst of all ranks; LAG_NONE = unknown */
	const char *clock_method;
	bool hangs;         /* a source says that operations had not ended */
	unsigned n_cleared; /* unfinished traces of killed merges that were removed beside output */
	uint64_t n_findings, n_warnings; /* all, and those that are not mere notes */
};

/* With append: what is in the trace is kept as it is, save what the new ranks change; any failure, and any
 * interruption, leaves the old file.
 *
 * LAG_OK: output exists and is whole. LAG_WARN: the same, and a finding is a warning or an error.
 * Failures leave no file: LAG_ERR_INPUT (nothing usable), LAG_ERR_USAGE (unknown aligner, output
 * exists or came into being meanwhile), LAG_ERR_SYSTEM, LAG_ERR_LIMIT (cancelled). */
enum lag_status lag_merge_run(const struct lag_merge_opts *opts, struct lag_merge_receipt *receipt,
			      struct lag_err *err) LAG_MUST_USE;

#endif
