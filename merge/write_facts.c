/* SPDX-License-Identifier: Apache-2.0 */
/* Everything in the database that is not an event: who recorded, what is known about communicators,
 * clocks, losses, and what the merge found. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "merge/write.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const source_states[] = { "ok", "damaged", "empty", "duplicate", "refused" };

static int64_t ref_id(uint32_t ref)
{
	return ref ? (int64_t)ref : LAG_NONE;
}

static enum lag_status meta(struct lag_writer *w, const char *key, const char *value,
			    struct lag_err *err)
{
	struct lag_value row[] = { LAG_TEXT(key), LAG_TEXT(value) };

	return lag_db_insert(w->db, LAG_TABLE_meta, row, COUNT(row), err);
}

static enum lag_status meta_int(struct lag_writer *w, const char *key, int64_t value,
				struct lag_err *err)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	return meta(w, key, text, err);
}

static enum lag_status write_meta(struct lag_writer *w, struct lag_err *err)
{
	const struct lag_align_result *clock = &w->m->clock;
	bool biased = clock->arriver_bias_ns >= 0 && clock->arriver_bias_ns < 9e18;
	enum lag_status st = meta(w, "laggard_version", LAG_VERSION, err);

	if (st == LAG_OK)
		st = meta_int(w, "world_size", w->m->world_size, err);
	if (st == LAG_OK && w->m->run_id)
		st = meta(w, "run_id", lag_merge_text(w->m, w->m->run_id), err);
	if (st == LAG_OK)
		st = meta(w, "clock_method", clock->method, err);
	if (st == LAG_OK)
		st = meta_int(w, "clock_reference_host", (int64_t)clock->reference_host + 1, err);
	if (st == LAG_OK)
		st = meta_int(w, "clock_pairs", (int64_t)clock->n_pairs, err);
	if (st == LAG_OK)
		st = meta_int(w, "clock_violations", (int64_t)clock->n_violations, err);
	if (st == LAG_OK && clock->n_repairs) {
		st = meta_int(w, "clock_repaired", (int64_t)clock->n_repaired, err);
		if (st == LAG_OK)
			st = meta_int(w, "clock_repair_max_ns", llround(clock->repair_max_ns), err);
	}
	if (st == LAG_OK && biased)
		st = meta_int(w, "clock_arriver_bias_ns", llround(clock->arriver_bias_ns), err);
	return st;
}

static enum lag_status write_sources(struct lag_writer *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->m->hosts.n && st == LAG_OK; i++) {
		const struct lag_host_row *h = &LAG_VEC_AT(&w->m->hosts, struct lag_host_row, i);
		char room[LAG_HOST_NAME_MAX];
		struct lag_value row[] = { LAG_INT((int64_t)i + 1),
					   LAG_TEXT(lag_merge_host_name(w->m, (uint32_t)i, room)),
					   LAG_TEXT(h->boot_id[0] ? h->boot_id : NULL) };

		st = lag_db_insert(w->db, LAG_TABLE_host, row, COUNT(row), err);
	}
	for (size_t i = w->m->old.n_sources; i < w->m->sources.n && st == LAG_OK; i++) {
		const struct lag_source_row *s =
			&LAG_VEC_AT(&w->m->sources, struct lag_source_row, i);
		struct lag_value row[] = {
			LAG_INT((int64_t)i + 1),   LAG_TEXT(s->path),
			LAG_TEXT(s->format),       LAG_TEXT(source_states[s->state]),
			LAG_TEXT(s->note),         LAG_INT((int64_t)s->n_records),
			LAG_INT((int64_t)s->n_bad)
		};

		st = lag_db_insert(w->db, LAG_TABLE_source, row, COUNT(row), err);
		if (st == LAG_OK)
			st = lag_write_source_facts(w, i, err);
	}
	return st;
}

static enum lag_status write_process_meta(struct lag_writer *w, uint32_t proc, struct lag_err *err)
{
	const struct lag_part *part = &LAG_PROC_AT(w->m, proc)->part;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < LAG_PART_COUNT(part, meta) && st == LAG_OK; i++) {
		const struct lag_rec_meta *r = &LAG_PART_AT(part, meta, i);
		struct lag_value row[] = { LAG_INT((int64_t)proc + 1),
					   LAG_TEXT(lag_merge_text(w->m, r->key)),
					   LAG_TEXT(lag_merge_text(w->m, r->value)) };

		st = lag_db_insert(w->db, LAG_TABLE_process_meta, row, COUNT(row), err);
	}
	return st;
}

static const char *text_or_null(const struct lag_writer *w, int64_t id)
{
	return id ? lag_merge_text(w->m, id) : NULL;
}

static enum lag_status write_process(struct lag_writer *w, uint32_t proc, struct lag_err *err)
{
	const struct lag_proc *p = LAG_PROC_AT(w->m, proc);
	const struct lag_rec_process *id = &p->part.process;
	struct lag_value row[] = {
		LAG_INT((int64_t)proc + 1),
		LAG_INT((int64_t)p->source + 1),
		LAG_INT((int64_t)p->host + 1),
		LAG_INT(p->rank),
		LAG_INT(id->world_size),
		LAG_INT(id->local_rank),
		LAG_INT(id->pid),
		LAG_INT(id->restart),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, id->start_ns)),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, p->first_ns)),
		LAG_INT(lag_merge_corrected(w->m, p, LAG_HOST_CLOCK, p->last_ns)),
		LAG_TEXT(text_or_null(w, id->argv)),
		LAG_TEXT(text_or_null(w, id->rank_source)),
		LAG_INT(p->part.clean_exit < 0 ? LAG_NONE : p->part.clean_exit),
	};
	enum lag_status st = lag_db_insert(w->db, LAG_TABLE_process, row, COUNT(row), err);

	return st == LAG_OK ? write_process_meta(w, proc, err) : st;
}

static enum lag_status write_ranks(struct lag_writer *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (int64_t r = 0; r < w->m->world_size && st == LAG_OK; r++) {
		int64_t row[4] = { r, LAG_NONE, LAG_NONE, LAG_NONE };
		uint64_t at;

		if (lag_map_find(&w->m->rank_proc, (uint64_t)r, &at)) {
			const struct lag_proc *p = LAG_PROC_AT(w->m, at);
			const struct lag_device_row *d = p->devices.items;

			row[1] = (int64_t)at + 1;
			row[2] = (int64_t)p->host + 1;
			row[3] = p->devices.n && d->n_events ? d->device : LAG_NONE;
		}
		st = lag_db_insert_ints(w->db, LAG_TABLE_rank, row, 4, err);
	}
	return st;
}

static enum lag_status write_device(struct lag_writer *w, const struct lag_proc *p,
				    const struct lag_rec_device *d, struct lag_err *err)
{
	struct lag_value row[] = { LAG_INT(p->rank),
				   LAG_INT(d->device == LAG_NONE ? 0 : d->device),
				   LAG_TEXT(text_or_null(w, d->uuid)),
				   LAG_TEXT(text_or_null(w, d->name)),
				   LAG_INT(d->cc_major),
				   LAG_INT(d->cc_minor),
				   LAG_INT(d->sm_count),
				   LAG_INT(d->memory_bytes) };

	return lag_db_insert(w->db, LAG_TABLE_device, row, COUNT(row), err);
}

/* Devices that events name, known or not; then what the recording says about each. */
static enum lag_status write_devices(struct lag_writer *w, const struct lag_proc *p,
				     struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->devices.n && st == LAG_OK; i++) {
		const struct lag_device_row *d = &LAG_VEC_AT(&p->devices, struct lag_device_row, i);
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_device);
		rec.device.device = d->device;
		if (d->n_events)
			st = write_device(w, p, &rec.device, err);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, device) && st == LAG_OK; i++)
		st = write_device(w, p, &LAG_PART_AT(&p->part, device, i), err);
	for (size_t i = 0; i < LAG_PART_COUNT(&p->part, thread) && st == LAG_OK; i++) {
		const struct lag_rec_thread *t = &LAG_PART_AT(&p->part, thread, i);
		struct lag_value row[] = { LAG_INT(p->rank),
					   LAG_INT(t->tid == LAG_NONE ? 0 : t->tid),
					   LAG_TEXT(lag_merge_text(w->m, t->name)) };

		st = lag_db_insert(w->db, LAG_TABLE_thread, row, COUNT(row), err);
	}
	return st;
}

static enum lag_status write_comms(struct lag_writer *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->m->comms.n && st == LAG_OK; i++) {
		const struct lag_comm_row *c = LAG_COMM_AT(w->m, i);
		struct lag_value row[] = { LAG_INT((int64_t)i + 1),
					   LAG_INT(c->hash),
					   LAG_INT(c->nccl_hash),
					   LAG_INT(c->n_ranks),
					   LAG_INT(ref_id(c->parent_ref)),
					   LAG_TEXT(lag_merge_text(w->m, c->name)),
					   LAG_TEXT(lag_merge_text(w->m, c->description)) };

		st = lag_db_insert(w->db, LAG_TABLE_communicator, row, COUNT(row), err);
		for (size_t k = 0; k < c->members.n && st == LAG_OK; k++) {
			const struct lag_comm_member_row *member =
				&LAG_VEC_AT(&c->members, struct lag_comm_member_row, k);
			int64_t ints[4] = { (int64_t)i + 1, member->comm_rank, member->rank,
					    member->proc_ref != 0 };

			st = lag_db_insert_ints(w->db, LAG_TABLE_comm_member, ints, 4, err);
		}
	}
	return st;
}

static enum lag_status write_quarantine(struct lag_writer *w, struct lag_err *err)
{
	int64_t first_id = w->m->old.last_id[LAG_TABLE_quarantine] + 1;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->m->quarantine.n && st == LAG_OK; i++) {
		const struct lag_quarantine_row *q =
			&LAG_VEC_AT(&w->m->quarantine, struct lag_quarantine_row, i);
		struct lag_value row[] = { LAG_INT(first_id + (int64_t)i),
					   LAG_INT(LAG_PROC_AT(w->m, q->proc)->rank),
					   LAG_TEXT(q->record),
					   LAG_TEXT(q->reason),
					   LAG_INT(q->start_ns),
					   LAG_INT(q->end_ns),
					   LAG_INT(q->name),
					   LAG_INT(q->correlation) };

		st = lag_db_insert(w->db, LAG_TABLE_quarantine, row, COUNT(row), err);
	}
	return st;
}

static enum lag_status write_findings(struct lag_writer *w, struct lag_err *err)
{
	int64_t first_id = w->m->old.last_id[LAG_TABLE_finding] + 1;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < w->m->findings.n && st == LAG_OK; i++) {
		const struct lag_finding_row *f =
			&LAG_VEC_AT(&w->m->findings, struct lag_finding_row, i);
		struct lag_value row[] = { LAG_INT(first_id + (int64_t)i),
					   LAG_INT(f->severity),
					   LAG_TEXT(f->kind),
					   LAG_INT(f->rank),
					   LAG_INT(f->comm == LAG_NONE ? LAG_NONE : f->comm + 1),
					   LAG_INT(f->seq),
					   LAG_INT((int64_t)f->count),
					   LAG_TEXT(f->text) };

		st = lag_db_insert(w->db, LAG_TABLE_finding, row, COUNT(row), err);
	}
	return st;
}

static enum lag_status write_pool(struct lag_writer *w, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = w->m->old.n_configs; i < w->m->pool.configs.n && st == LAG_OK; i++) {
		const struct lag_rec_launch_config *c =
			&LAG_VEC_AT(&w->m->pool.configs, struct lag_rec_launch_config, i);
		int64_t row[10] = { (int64_t)i + 1,
				    c->grid_x,
				    c->grid_y,
				    c->grid_z,
				    c->block_x,
				    c->block_y,
				    c->block_z,
				    c->static_smem_bytes,
				    c->dynamic_smem_bytes,
				    c->registers };

		st = lag_db_insert_ints(w->db, LAG_TABLE_launch_config, row, 10, err);
	}
	for (size_t i = w->m->old.n_strings;
	     i < lag_strtab_count(&w->m->pool.strings) && st == LAG_OK; i++) {
		struct lag_value row[] = { LAG_INT((int64_t)i),
					   LAG_TEXT(lag_merge_text(w->m, (int64_t)i)) };

		st = lag_db_insert(w->db, LAG_TABLE_string, row, COUNT(row), err);
	}
	return st;
}

enum lag_status lag_write_facts(struct lag_writer *w, struct lag_err *err)
{
	enum lag_status (*const tables[])(struct lag_writer *, struct lag_err *) = {
		write_meta,      write_sources,    write_ranks,    write_comms,
		lag_write_clock, write_quarantine, write_findings, write_pool
	};
	enum lag_status st = LAG_OK;

	for (uint32_t i = w->m->old.n_procs; i < w->m->procs.n && st == LAG_OK; i++) {
		st = write_process(w, i, err);
		if (st == LAG_OK && LAG_PROC_AT(w->m, i)->rank != LAG_NONE)
			st = write_devices(w, LAG_PROC_AT(w->m, i), err);
		if (st == LAG_OK && LAG_PROC_AT(w->m, i)->rank != LAG_NONE)
			st = lag_write_progress(w, LAG_PROC_AT(w->m, i), err);
		if (st == LAG_OK)
			st = lag_write_losses(w, i, err);
	}
	for (size_t i = 0; i < w->procs.n && st == LAG_OK; i++)
		st = lag_write_seen(w, LAG_WRITE_PROC_AT(w, i), err);
	for (size_t i = 0; i < COUNT(tables) && st == LAG_OK; i++)
		st = tables[i](w, err);
	return st;
}
