/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a merge's memory, findings, progress, and the clock's use. */
#include "merge/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FINDINGS_MAX 100000

enum lag_status lag_merge_init(struct lag_merge *m, const struct lag_merge_opts *opts,
			       struct lag_err *err)
{
	*m = (struct lag_merge){
		.opts = opts,
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
	if (lag_failed(lag_pool_init(&m->pool)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	return LAG_OK;
}

static void release_proc(struct lag_proc *p)
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
}

void lag_merge_release(struct lag_merge *m)
{
	for (size_t i = 0; i < m->sources.n; i++)
		free(LAG_VEC_AT(&m->sources, struct lag_source_row, i).path);
	for (size_t i = 0; i < m->procs.n; i++)
		release_proc(LAG_PROC_AT(m, i));
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
	lag_pool_release(&m->pool);
}

void lag_merge_find(struct lag_merge *m, int severity, const char *kind, struct lag_about about,
		    const char *fmt, ...)
{
	struct lag_finding_row *row = lag_vec_push(&m->findings);
	va_list ap;

	if (!row)
		return;
	row->severity = severity;
	row->kind = kind;
	row->rank = about.rank;
	row->comm = about.comm;
	row->seq = LAG_NONE;
	row->count = about.count;
	va_start(ap, fmt);
	(void)vsnprintf(row->text, sizeof(row->text), fmt, ap);
	va_end(ap);
}

enum lag_status lag_merge_step(struct lag_merge *m, enum lag_merge_phase phase, uint64_t done,
			       uint64_t total, struct lag_err *err)
{
	m->progress = (struct lag_merge_progress){ phase, done, total };
	if (m->opts->progress && !m->opts->progress(m->opts->progress_state, &m->progress))
		return lag_err_set(err, LAG_ERR_LIMIT, "interrupted, nothing was written");
	return LAG_OK;
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

int64_t lag_merge_corrected(const struct lag_merge *m, const struct lag_proc *p, uint32_t dense,
			    int64_t raw_ns)
{
	if (raw_ns == LAG_NONE)
		return LAG_NONE;
	return lag_align_apply(&m->clock, p->host, dense, raw_ns);
}
