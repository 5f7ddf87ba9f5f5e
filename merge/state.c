/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a merge's memory, findings, progress, and the clock's use. */
#include "merge/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FINDINGS_MAX 100000

/* The calling thread, while others work. */
static bool tell(void *state)
{
	struct lag_merge *m = state;
	struct lag_merge_progress at = { m->phase, atomic_load(&m->done), m->total };

	if (at.done > at.total)
		at.done = at.total;
	if (m->opts->progress && !m->opts->progress(m->opts->progress_state, &at))
		atomic_store(&m->cancelled, true);
	return !atomic_load(&m->cancelled);
}

enum lag_status lag_merge_init(struct lag_merge *m, const struct lag_merge_opts *opts,
			       struct lag_err *err)
{
	*m = (struct lag_merge){
		.opts = opts,
		.pool_ids = LAG_VEC_INIT(struct lag_pool_ids),
		.sources = LAG_VEC_INIT(struct lag_source_row),
		.procs = LAG_VEC_INIT(struct lag_proc),
		.hosts = LAG_VEC_INIT(struct lag_host_row),
		.comms = LAG_VEC_INIT(struct lag_comm_row),
		.instances = LAG_VEC_INIT(struct lag_instance_row),
		.members = LAG_VEC_INIT(struct lag_instance_member),
		.quarantine = LAG_VEC_INIT(struct lag_quarantine_row),
		.findings = LAG_VEC_INIT(struct lag_finding_row),
		.device_host = LAG_VEC_INIT(uint32_t),
		.device_proc = LAG_VEC_INIT(uint32_t),
		.world_size = LAG_NONE,
	};
	m->findings.max = FINDINGS_MAX;
	m->instances.max = m->members.max = UINT32_MAX - 1;
	m->parallel = (struct lag_parallel){
		.n_threads = opts->n_threads ? opts->n_threads : lag_parallel_processors(),
		.tick = tell,
		.tick_state = m,
	};
	if (lag_failed(lag_pool_init(&m->pool)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	return LAG_OK;
}

/* The spill, where events live; half of the memory is for all else. */
enum lag_status lag_merge_open_spill(struct lag_merge *m, const char *folder, struct lag_err *err)
{
	uint64_t bytes = m->opts->memory_bytes ? m->opts->memory_bytes : LAG_MERGE_MEMORY;
	enum lag_status st = lag_spill_new(folder, (size_t)(bytes / 2), &m->spill, err);

	m->pool.spill = m->spill;
	m->instances.spill = m->members.spill = m->quarantine.spill = m->spill;
	return st;
}

void lag_proc_release(struct lag_proc *p)
{
	lag_part_release(&p->part);
	lag_vec_release(&p->gpu);
	lag_vec_release(&p->gpu_shapes);
	lag_vec_release(&p->launches);
	lag_vec_release(&p->op_links);
	lag_vec_release(&p->range_links);
	lag_vec_release(&p->devices);
	lag_map_release(&p->comm_of);
	lag_map_release(&p->comm_rank_of);
	lag_vec_release(&p->quarantine);
	lag_vec_release(&p->findings);
}

static void release_pool_ids(struct lag_merge *m)
{
	for (size_t i = 0; i < m->pool_ids.n; i++) {
		free(LAG_VEC_AT(&m->pool_ids, struct lag_pool_ids, i).strings);
		free(LAG_VEC_AT(&m->pool_ids, struct lag_pool_ids, i).configs);
	}
	lag_vec_release(&m->pool_ids);
}

void lag_merge_release(struct lag_merge *m)
{
	for (size_t i = 0; i < m->sources.n; i++)
		lag_source_release(&LAG_VEC_AT(&m->sources, struct lag_source_row, i));
	for (size_t i = 0; i < m->procs.n; i++)
		lag_proc_release(LAG_PROC_AT(m, i));
	for (size_t i = 0; i < m->comms.n; i++)
		lag_vec_release(&LAG_COMM_AT(m, i)->members);
	lag_vec_release(&m->sources);
	lag_vec_release(&m->procs);
	lag_vec_release(&m->hosts);
	lag_vec_release(&m->comms);
	lag_vec_release(&m->instances);
	lag_vec_release(&m->members);
	lag_vec_release(&m->quarantine);
	lag_vec_release(&m->findings);
	lag_vec_release(&m->device_host);
	lag_vec_release(&m->device_proc);
	lag_map_release(&m->rank_proc);
	lag_align_release(&m->clock);
	release_pool_ids(m);
	lag_append_release(&m->old);
	lag_pool_release(&m->pool);
	lag_spill_free(m->spill);
}

void lag_findings_add(struct lag_vec *findings, int severity, const char *kind,
		      struct lag_about about, const char *fmt, va_list ap)
{
	struct lag_finding_row *row = lag_vec_push(findings);

	if (!row)
		return;
	row->severity = severity;
	row->kind = kind;
	row->rank = about.rank;
	row->comm = about.comm;
	row->seq = LAG_NONE;
	row->count = about.count;
	(void)vsnprintf(row->text, sizeof(row->text), fmt, ap);
}

void lag_merge_find(struct lag_merge *m, int severity, const char *kind, struct lag_about about,
		    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	lag_findings_add(&m->findings, severity, kind, about, fmt, ap);
	va_end(ap);
}

void lag_proc_find(struct lag_proc *p, int severity, const char *kind, struct lag_about about,
		   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	lag_findings_add(&p->findings, severity, kind, about, fmt, ap);
	va_end(ap);
}

/* Findings are dropped where there are too many, rows are not. */
enum lag_status lag_merge_join(struct lag_merge *m, struct lag_err *err)
{
	for (size_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		for (size_t k = 0; k < p->findings.n; k++) {
			struct lag_finding_row *row = lag_vec_push(&m->findings);

			if (row)
				*row = LAG_VEC_AT(&p->findings, struct lag_finding_row, k);
		}
		for (size_t k = 0; k < p->quarantine.n; k++) {
			struct lag_quarantine_row *row = lag_vec_push(&m->quarantine);

			if (!row) {
				return lag_err_set(err, LAG_ERR_SYSTEM,
						   "no memory for quarantined events");
			}
			*row = LAG_VEC_AT(&p->quarantine, struct lag_quarantine_row, k);
		}
		lag_vec_release(&p->findings);
		lag_vec_release(&p->quarantine);
	}
	return LAG_OK;
}

void lag_merge_phase(struct lag_merge *m, enum lag_merge_phase phase, uint64_t total)
{
	m->phase = phase;
	m->total = total;
	atomic_store(&m->done, 0);
}

enum lag_status lag_merge_interrupted(struct lag_err *err)
{
	return lag_err_set(err, LAG_ERR_LIMIT, "interrupted, nothing was written");
}

enum lag_status lag_merge_advance(struct lag_merge *m, uint64_t done, struct lag_err *err)
{
	(void)atomic_fetch_add_explicit(&m->done, done, memory_order_relaxed);
	if (atomic_load_explicit(&m->cancelled, memory_order_relaxed))
		return lag_merge_interrupted(err);
	return LAG_OK;
}

enum lag_status lag_merge_tasks(struct lag_merge *m, size_t n, lag_task *task, void *state,
				struct lag_err *err)
{
	return lag_parallel_run(&m->parallel, n, task, state, err);
}

const char *lag_merge_text(const struct lag_merge *m, int64_t id)
{
	return lag_strtab_get(&m->pool.strings, id < 0 ? LAG_STR_NONE : (uint32_t)id);
}

uint32_t lag_merge_device(const struct lag_proc *p, int64_t device)
{
	for (size_t i = 0; i < p->devices.n; i++) {
		if (LAG_VEC_AT(&p->devices, struct lag_device_row, i).device == device)
			return LAG_VEC_AT(&p->devices, struct lag_device_row, i).dense;
	}
	return p->devices.n ? LAG_VEC_AT(&p->devices, struct lag_device_row, 0).dense
			    : LAG_HOST_CLOCK;
}

int64_t lag_merge_host_shift(const struct lag_merge *m, const struct lag_proc *p, int64_t at_ns)
{
	if (!p->devices.n)
		return 0;
	return lag_align_shift(&m->clock, LAG_VEC_AT(&p->devices, struct lag_device_row, 0).dense,
			       at_ns);
}

int64_t lag_merge_corrected(const struct lag_merge *m, const struct lag_proc *p, uint32_t dense,
			    int64_t raw_ns)
{
	struct lag_align_at at = { 0 };

	return lag_merge_corrected_at(m, p, &at, dense, raw_ns);
}
