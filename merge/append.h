/* SPDX-License-Identifier: Apache-2.0 */
/* Late ranks are added to a merged trace: what it holds is loaded in place of the recordings it was made of.
 * Its hosts, sources, processes, communicators, instances, strings and configurations come first in the
 * merge's lists, with index + 1 (strings: index) for their id; what is behind them is new and is written.
 * Its processes have their operations only, with times on the common clock, and no clock of theirs moves:
 * new hosts are put on the clock that they are on. */
#ifndef MERGE_APPEND_H
#define MERGE_APPEND_H

#include "merge/align.h"
#include "schema/base/map.h"
#include "schema/base/mem.h"
#include "schema/db/db_write.h"

struct lag_merge;

/* A row of clock_map for the main device of an old process. */
struct lag_old_device {
	uint32_t proc;
	struct lag_align_device row; /* device is not set; from_ns as the map has it, raw */
};

/* What an instance was before. */
struct lag_old_instance {
	uint32_t n_members, n_recorded;
};

/* How much of a merge's lists was in the trace before. All zero: an ordinary merge. */
struct lag_old {
	bool is; /* late ranks are added */
	int fd;  /* of the trace, locked */
	uint32_t n_hosts, n_sources, n_procs, n_comms, n_instances;
	size_t n_strings, n_configs;
	int64_t last_id[LAG_TABLE_LIMIT];
	uint64_t n_quarantined, n_findings, n_warnings; /* findings that stay */
	int64_t world_size;                             /* LAG_NONE: no recording told it */
	char method[32];                                /* of alignment */
	char run[256];                                  /* the run's id; "" unknown */
	uint32_t reference_host;
	struct lag_vec
		segments; /* struct lag_align_segment: clock maps of the hosts, on raw times */
	struct lag_vec devices;   /* struct lag_old_device */
	struct lag_vec stale;     /* int64_t: ids of findings that are made anew */
	struct lag_vec instances; /* struct lag_old_instance */
	struct lag_map named;     /* ids of strings that are kernels' names already */
};

/* Locks the trace at path (LAG_ERR_USAGE: somebody else is adding to it) and loads it into m, whose lists
 * are empty. */
enum lag_status lag_append_load(struct lag_merge *m, const char *path,
				struct lag_err *err) LAG_MUST_USE;
void lag_append_release(struct lag_old *old);

/* Whether path still is the trace that was loaded. LAG_ERR_USAGE: another file took its place. */
enum lag_status lag_append_recheck(const struct lag_merge *m, const char *path,
				   struct lag_err *err) LAG_MUST_USE;

/* Every row of the trace, into the merge; lag_append_load does this, too. */
enum lag_status lag_append_read(struct lag_merge *m, struct lag_db *db,
				struct lag_err *err) LAG_MUST_USE;

/* LAG_ERR_INPUT: a new recording is of a rank that the trace has, or of another job. */
enum lag_status lag_append_check(const struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* The aligner's answer to observations (merge/clock_observe.h) for the new hosts and devices, the trace's
 * own maps for its own: into m->clock. */
struct lag_observations;
enum lag_status lag_append_align(struct lag_merge *m, const struct lag_aligner *aligner,
				 struct lag_observations *o, struct lag_err *err) LAG_MUST_USE;

/* Whether instance i is new or has other members than before: its times are found and written. */
bool lag_append_changed(const struct lag_merge *m, size_t i);

/* Copies the trace, and its mode, to fd, an empty file; shares its blocks where the file system can. */
enum lag_status lag_append_copy(struct lag_merge *m, int fd, struct lag_err *err) LAG_MUST_USE;

/* Takes out of the copy what lag_write_facts writes anew, and updates old instances. */
enum lag_status lag_append_change(struct lag_merge *m, struct lag_db_writer *db,
				  struct lag_err *err) LAG_MUST_USE;

#endif
