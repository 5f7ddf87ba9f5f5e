/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a merge holds between reading and writing, and its stages in order. */
#ifndef MERGE_STATE_H
#define MERGE_STATE_H

#include <stdarg.h>
#include <stdatomic.h>

#include "merge/append.h"
#include "merge/merge.h"
#include "merge/parallel.h"
#include "merge/rows.h"
#include "schema/base/spill.h"

/* Ids of the merge's pool for those of a source's own; NULL: they are the same. */
struct lag_pool_ids {
	uint32_t *strings, *configs;
	size_t n_strings, n_configs;
};

struct lag_merge {
	const struct lag_merge_opts *opts;
	struct lag_spill *spill;
	struct lag_parallel parallel;
	struct lag_pool pool;
	struct lag_vec pool_ids;   /* struct lag_pool_ids, while parts have ids of other pools */
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
	int64_t run_id;            /* string, 0 unknown */
	size_t n_clocks;           /* hosts that ranks run on: the first ones */
	uint64_t n_other_runs;     /* recordings that are of another one */
	struct lag_old old;        /* what was merged before, where ranks are added to it */
	uint32_t n_devices;
	struct lag_vec device_host; /* uint32_t by dense device */
	struct lag_vec device_proc; /* uint32_t by dense device */
	struct lag_align_result clock;
	/* How far the phase is; any thread adds, the calling one tells. */
	enum lag_merge_phase phase;
	uint64_t total;
	_Atomic uint64_t done;
	atomic_bool cancelled;
};

#define LAG_PROC_AT(m, i)     (&LAG_VEC_AT(&(m)->procs, struct lag_proc, i))
#define LAG_COMM_AT(m, i)     (&LAG_VEC_AT(&(m)->comms, struct lag_comm_row, i))
#define LAG_INSTANCE_AT(m, i) (&LAG_VEC_AT(&(m)->instances, struct lag_instance_row, i))
#define LAG_GPU_AT(p, i)      (&LAG_VEC_AT(&(p)->gpu, struct lag_gpu, i))
#define LAG_LAUNCH_AT(p, i)   (&LAG_VEC_AT(&(p)->launches, struct lag_launch, i))
#define LAG_OP_LINK_AT(p, i)  (&LAG_VEC_AT(&(p)->op_links, struct lag_op_link, i))

enum lag_status lag_merge_init(struct lag_merge *m, const struct lag_merge_opts *opts,
			       struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_open_spill(struct lag_merge *m, const char *folder,
				     struct lag_err *err) LAG_MUST_USE;
void lag_proc_release(struct lag_proc *p);

/* Adds what a part read from the source to its receipt, before stages take the part apart. */
void lag_source_count(struct lag_source_row *row, const struct lag_part *part);
void lag_source_release(struct lag_source_row *row);
void lag_merge_release(struct lag_merge *m);

/* What a finding is about: a rank, a communicator (index), LAG_NONE for none; how many cases. */
struct lag_about {
	int64_t rank, comm;
	uint64_t count;
};

#define LAG_ABOUT(rank, comm, count) ((struct lag_about){ (rank), (comm), (count) })

void lag_findings_add(struct lag_vec *findings, int severity, const char *kind,
		      struct lag_about about, const char *fmt, va_list ap)
	__attribute__((format(printf, 5, 0)));

/* Adds a finding; one that no memory is left for is dropped. */
void lag_merge_find(struct lag_merge *m, int severity, const char *kind, struct lag_about about,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The same for a process, by stages that run beside those of others. */
void lag_proc_find(struct lag_proc *p, int severity, const char *kind, struct lag_about about,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Moves what processes found into the merge's lists, in the processes' order. */
enum lag_status lag_merge_join(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* A phase of `total` units of work begins; then so many more are done. The latter is for any thread, and
 * for every few ms: LAG_ERR_LIMIT when the caller wants to end. */
void lag_merge_phase(struct lag_merge *m, enum lag_merge_phase phase, uint64_t total);
enum lag_status lag_merge_interrupted(struct lag_err *err);
enum lag_status lag_merge_advance(struct lag_merge *m, uint64_t done,
				  struct lag_err *err) LAG_MUST_USE;

/* In loops over events: now and then, whether to go on. */
#define LAG_MERGE_EVERY 65536

static inline bool lag_merge_cancelled(struct lag_merge *m, size_t i)
{
	return i % LAG_MERGE_EVERY == 0 &&
	       atomic_load_explicit(&m->cancelled, memory_order_relaxed);
}

/* Runs tasks [0, n) of state on the merge's threads. */
enum lag_status lag_merge_tasks(struct lag_merge *m, size_t n, lag_task *task, void *state,
				struct lag_err *err) LAG_MUST_USE;

/* The text of a string id. */
const char *lag_merge_text(const struct lag_merge *m, int64_t id);

/* ---- stages, in order ---- */

/* Reads every input into sources and procs. */
enum lag_status lag_merge_intake(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* Bad times out; then ends of ranges and operations, kernels reported while running. One process. */
enum lag_status lag_merge_quarantine(struct lag_merge *m, uint32_t proc,
				     struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_pair(struct lag_proc *p, struct lag_err *err) LAG_MUST_USE;

/* Ids of the part's own pool become those of the merge's. One process. */
void lag_merge_rename_ids(struct lag_merge *m, struct lag_proc *p);

/* Hosts, duplicates, mixed runs, restarts, ranks, devices. */
enum lag_status lag_merge_identify(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* Sets recordings of other runs aside; with append they are refused. */
enum lag_status lag_merge_one_run(struct lag_merge *m, struct lag_err *err) LAG_MUST_USE;

/* The process's events are not used; why goes into its source's note, and state where it is not OK. */
void lag_merge_set_aside(struct lag_merge *m, struct lag_proc *p, enum lag_source_state state,
			 const char *why);

/* As the trace will call it. */
#define LAG_HOST_NAME_MAX 32
const char *lag_merge_host_name(const struct lag_merge *m, uint32_t host,
				char room[LAG_HOST_NAME_MAX]);

/* Whether both tell where they ran, and it is not one machine. */
bool lag_merge_hosts_differ(const struct lag_merge *m, const struct lag_rec_process *a,
			    const struct lag_rec_process *b);

/* Whether the part's number of ranks cannot be `world`. */
static inline bool lag_merge_other_world(const struct lag_part *part, int64_t world)
{
	int64_t size = part->process.world_size;

	return part->world_is_least ? size > world : size != world;
}

/* Ranges and calls without any GPU or communication event are a helper's, unless it says its rank. */
bool lag_merge_may_be_rank(const struct lag_part *part);

/* One array of GPU events by start, without those that overrun their stream, tied to the host calls
 * (then by start, too) that launched them. One process. */
enum lag_status lag_merge_gather(struct lag_merge *m, uint32_t proc,
				 struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_overruns(struct lag_merge *m, uint32_t proc,
				   struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_merge_tie(struct lag_merge *m, struct lag_proc *p) LAG_MUST_USE;

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

/* What a process did on its host goes with its device where the order was repaired. */
int64_t lag_merge_host_shift(const struct lag_merge *m, const struct lag_proc *p, int64_t at_ns);

/* The same for many times in a row of one process; see lag_align_apply_at. */
static inline int64_t lag_merge_corrected_at(const struct lag_merge *m, const struct lag_proc *p,
					     struct lag_align_at *at, uint32_t dense,
					     int64_t raw_ns)
{
	int64_t at_ns;

	/* What is old is on the common clock already. */
	if (raw_ns == LAG_NONE || p->old)
		return raw_ns;
	at_ns = lag_align_apply_at(&m->clock, at, p->host, dense, raw_ns);
	if (dense == LAG_HOST_CLOCK && m->clock.n_repairs)
		at_ns += lag_merge_host_shift(m, p, at_ns);
	return at_ns;
}

/* Dense index of a process's device; the process's first when that device has no events. */
uint32_t lag_merge_device(const struct lag_proc *p, int64_t device);

#endif
