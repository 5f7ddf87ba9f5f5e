/* SPDX-License-Identifier: Apache-2.0 */
/* Parts and the pool they share: plain storage, driven by record.def's sizes. */
#include "merge/part.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t record_size[LAG_REC_LIMIT] = {
#define LAG_RECORD(name, number) [number] = sizeof(struct lag_rec_##name),
#include "schema/record/record.def"
};

enum lag_status lag_pool_init(struct lag_pool *pool)
{
	*pool = (struct lag_pool){ .configs = LAG_VEC_INIT(struct lag_rec_launch_config) };
	return lag_strtab_init(&pool->strings);
}

void lag_pool_release(struct lag_pool *pool)
{
	lag_strtab_release(&pool->strings);
	lag_vec_release(&pool->configs);
	lag_map_release(&pool->config_ids);
}

static bool same_config(const struct lag_rec_launch_config *a,
			const struct lag_rec_launch_config *b)
{
	return memcmp(&a->grid_x, &b->grid_x, sizeof(*a) - sizeof(a->id)) == 0;
}

_Static_assert(offsetof(struct lag_rec_launch_config, grid_x) == sizeof(int64_t),
	       "the id stands first and all else is compared");

int64_t lag_pool_config(struct lag_pool *pool, const struct lag_rec_launch_config *cfg)
{
	struct lag_rec_launch_config *slot;
	uint64_t key = lag_hash_bytes(&cfg->grid_x, sizeof(*cfg) - sizeof(cfg->id));
	uint64_t at = 0;

	/* Two configurations with one hash take neighbouring keys. */
	for (; lag_map_find(&pool->config_ids, key, &at); key++) {
		if (same_config(&LAG_VEC_AT(&pool->configs, struct lag_rec_launch_config, at - 1),
				cfg))
			return (int64_t)(at - 1);
	}
	slot = lag_vec_push(&pool->configs);
	if (!slot)
		return LAG_NONE;
	*slot = *cfg;
	slot->id = (int64_t)(pool->configs.n - 1);
	if (lag_failed(lag_map_set(&pool->config_ids, key, pool->configs.n)))
		return LAG_NONE;
	return slot->id;
}

enum lag_status lag_part_init(struct lag_part *part, const struct lag_pool *pool, const char *path,
			      const char *format)
{
	struct lag_record process;

	memset(part, 0, sizeof(*part));
	part->format = format;
	part->spill = pool->spill;
	part->clean_exit = -1;
	lag_record_init(&process, LAG_REC_process);
	part->process = process.process;
	for (unsigned i = 0; i < LAG_REC_LIMIT; i++) {
		const struct lag_compact_info *info = lag_compact_info_get(i);

		part->records[i].item_size = info ? lag_compact_size(info) : record_size[i];
		part->records[i].spill = pool->spill;
		if (info)
			lag_shapes_init(&part->shapes[i], record_size[i], pool->spill);
	}
	part->notes.item_size = LAG_ERR_TEXT_MAX;
	part->notes.max = 1000;
	part->path = strdup(path);
	return part->path ? LAG_OK : LAG_ERR_SYSTEM;
}

void lag_part_release(struct lag_part *part)
{
	free(part->path);
	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		lag_vec_release(&part->records[i]);
		lag_shapes_release(&part->shapes[i]);
	}
	lag_vec_release(&part->notes);
	memset(part, 0, sizeof(*part));
}

void lag_part_know(struct lag_rec_process *known, const struct lag_rec_process *newer)
{
	const struct lag_record_info *info = lag_record_info_get(LAG_REC_process);
	struct lag_record all = { .process = *known };
	struct lag_record rec = { .process = *newer };

	for (size_t i = 0; i < info->n_fields; i++) {
		int64_t unset = info->fields[i].type == LAG_F_STR ? 0 : LAG_NONE;

		if (rec.field[i] != unset)
			all.field[i] = rec.field[i];
	}
	*known = all.process;
}

static void count_loss(struct lag_part *part, const struct lag_rec_loss *loss)
{
	uint64_t n = loss->count > 0 ? (uint64_t)loss->count : 0;
	uint64_t kind = (uint64_t)loss->kind < LAG_REC_LIMIT ? (uint64_t)loss->kind : 0;
	uint64_t reason = (uint64_t)loss->reason < LAG_LOSS_LIMIT ? (uint64_t)loss->reason : 0;

	part->lost[kind] += n;
	part->lost_reason[reason] += n;
}

enum lag_status lag_part_add(struct lag_part *part, const struct lag_record *rec,
			     struct lag_err *err)
{
	enum lag_status st;
	void *slot;

	if (rec->kind == LAG_REC_string || rec->kind == LAG_REC_launch_config ||
	    (unsigned)rec->kind >= LAG_REC_LIMIT || !record_size[rec->kind]) {
		return lag_err_set(err, LAG_ERR_USAGE, "record kind %d has no place in a part",
				   (int)rec->kind);
	}
	part->n_records++;
	if (rec->kind == LAG_REC_process) {
		lag_part_know(&part->process, &rec->process);
		return LAG_OK;
	}
	if (rec->kind == LAG_REC_loss)
		count_loss(part, &rec->loss);
	if (rec->kind == LAG_REC_receipt && rec->receipt.clean_exit != LAG_NONE)
		part->clean_exit = rec->receipt.clean_exit != 0;
	slot = lag_vec_add(&part->records[rec->kind]);
	st = slot ? lag_part_set(part, part->records[rec->kind].n - 1, rec) : LAG_ERR_SYSTEM;
	if (st != LAG_OK) {
		return lag_err_set(err, LAG_ERR_SYSTEM,
				   "%s: no memory for more than %zu %s records", part->path,
				   part->records[rec->kind].n,
				   lag_record_info_get(rec->kind)->name);
	}
	return LAG_OK;
}

enum lag_status lag_part_set(struct lag_part *part, size_t i, const struct lag_record *rec)
{
	const struct lag_compact_info *info = lag_compact_info_get(rec->kind);
	struct lag_vec *vec = &part->records[rec->kind];

	if (info) {
		return lag_compact_pack(info, &part->shapes[rec->kind], rec,
					lag_part_compact(vec, i));
	}
	memcpy((char *)vec->items + i * vec->item_size, rec->field, record_size[rec->kind]);
	return LAG_OK;
}

struct lag_record lag_part_get(const struct lag_part *part, enum lag_record_kind kind, size_t i)
{
	const struct lag_compact_info *info = lag_compact_info_get(kind);
	const struct lag_vec *vec = &part->records[kind];
	struct lag_record rec;

	/* Not the fields that the kind does not have. */
	rec.kind = kind;
	rec.newer = 0;
	rec.bytes = NULL;
	rec.n_bytes = 0;
	if (info) {
		lag_compact_unpack(info, &part->shapes[kind], lag_part_compact(vec, i), rec.field);
	} else {
		memcpy(rec.field, (const char *)vec->items + i * vec->item_size, vec->item_size);
	}
	return rec;
}

static void shift_field(void *items, size_t n, size_t size, size_t field, int64_t ns)
{
	for (size_t i = 0; i < n; i++) {
		int64_t *v = (int64_t *)(void *)((char *)items + i * size) + field;

		if (*v != LAG_NONE)
			*v = (int64_t)((uint64_t)*v + (uint64_t)ns);
	}
}

void lag_part_shift(struct lag_part *part, int64_t ns)
{
	for (unsigned kind = 0; kind < LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);
		struct lag_vec *vec = &part->records[kind];
		bool compact = lag_compact_info_get(kind);

		/* Ends are relative, but for those that shapes hold. */
		if (compact)
			shift_field(vec->items, vec->n, vec->item_size, 0, ns);
		if (compact)
			vec = &part->shapes[kind].records;
		for (size_t f = compact; info && vec->n && f < info->n_fields; f++) {
			if (info->fields[f].type == LAG_F_TIME ||
			    info->fields[f].type == LAG_F_AFTER)
				shift_field(vec->items, vec->n, vec->item_size, f, ns);
		}
	}
}

static int64_t renamed(int64_t id, bool is_config, const struct lag_part_ids *ids)
{
	if (is_config) {
		if (id == LAG_NONE || !ids->configs)
			return id;
		return (uint64_t)id < ids->n_configs ? ids->configs[id] : LAG_NONE;
	}
	if (id == LAG_NONE || !ids->strings)
		return id;
	return (uint64_t)id < ids->n_strings ? ids->strings[id] : 0;
}

static void rename_field(struct lag_vec *vec, size_t field, bool is_config,
			 const struct lag_part_ids *ids)
{
	for (size_t i = 0; i < vec->n; i++) {
		int64_t *v = (int64_t *)(void *)((char *)vec->items + i * vec->item_size) + field;

		*v = renamed(*v, is_config, ids);
	}
}

static void rename_slot(struct lag_vec *vec, size_t slot, bool is_config,
			const struct lag_part_ids *ids)
{
	for (size_t i = 0; i < vec->n; i++) {
		uint32_t *s = &lag_part_compact(vec, i)->slot[slot], now;

		if (!*s || *s == LAG_SLOT_SHAPE)
			continue;
		/* Most stay; what is not changed needs no page of its own. */
		now = lag_slot_of(renamed((int64_t)*s - 1, is_config, ids));
		if (now != *s)
			*s = now;
	}
}

void lag_part_rename_ids(struct lag_part *part, const struct lag_part_ids *ids)
{
	struct lag_record all = { .process = part->process };

	for (unsigned kind = 0; kind < LAG_REC_LIMIT; kind++) {
		const struct lag_record_info *info = lag_record_info_get(kind);
		const struct lag_compact_info *compact = lag_compact_info_get(kind);
		struct lag_vec *vec = &part->records[kind];

		for (size_t f = 0; info && f < info->n_fields; f++) {
			bool is_config =
				kind == LAG_REC_kernel &&
				f == offsetof(struct lag_rec_kernel, config) / sizeof(int64_t);

			if (info->fields[f].type != LAG_F_STR && !is_config)
				continue;
			if (kind == LAG_REC_process)
				all.field[f] = renamed(all.field[f], false, ids);
			for (size_t s = 0; compact && s < compact->n_slots; s++) {
				if (compact->field[s] == f)
					rename_slot(vec, s, is_config, ids);
			}
			rename_field(compact ? &part->shapes[kind].records : vec, f, is_config,
				     ids);
		}
	}
	part->process = all.process;
}

void lag_part_note(struct lag_part *part, const char *fmt, ...)
{
	char *note = lag_vec_push(&part->notes);
	va_list ap;

	/* Past the maximum a thousand notes say enough. */
	if (!note)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(note, LAG_ERR_TEXT_MAX, fmt, ap);
	va_end(ap);
}
