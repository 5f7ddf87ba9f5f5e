/* SPDX-License-Identifier: Apache-2.0 */
/* A part: everything one process recorded, decoded, in memory, whatever the source. Importers fill
 * it; pairing, matching, alignment and the database writer work on it. */
#ifndef MERGE_PART_H
#define MERGE_PART_H

#include <string.h>

#include "merge/compact.h"
#include "schema/base/mem.h"
#include "schema/base/strtab.h"
#include "schema/record/record.h"

/* Records in a part carry string ids of the merge's one string table, and launch_config ids that are
 * indices into `configs` of the merge. */
struct lag_part {
	char *path; /* owned; as the user would recognise it, archive members as "a.tar:member" */
	const char *format;             /* importer's name, static */
	struct lag_spill *spill;        /* where its records live, and what is made of them */
	struct lag_rec_process process; /* all fields seen, last wins; LAG_NONE where unknown */
	bool world_is_least; /* the process only knows that there are so many ranks, maybe more */
	/* One vector per record kind (kind is the index) of struct lag_rec_<kind>, or of struct
	 * lag_compact for the kinds of which there are many; string, launch_config and process records
	 * are not kept as such. */
	struct lag_vec records[LAG_REC_LIMIT];
	struct lag_shapes shapes[LAG_REC_LIMIT]; /* of the compact kinds */
	/* Damage and losses found while reading. */
	uint64_t n_records, n_bad, n_unknown;
	uint64_t lost[LAG_REC_LIMIT]; /* said by the source, by kind */
	uint64_t lost_reason[LAG_LOSS_LIMIT];
	int clean_exit; /* -1 unknown, 0, 1 */
	/* What a person should know about this source, one line each; NUL-terminated strings. */
	struct lag_vec notes; /* char[LAG_ERR_TEXT_MAX] */
};

#define LAG_PART_VEC(part, kind_name)   (&(part)->records[LAG_REC_##kind_name])
#define LAG_PART_COUNT(part, kind_name) ((part)->records[LAG_REC_##kind_name].n)

/* Record i by value, of any kind: LAG_PART_GET(part, kernel, i).start_ns. */
#define LAG_PART_GET(part, kind_name, i) (lag_part_get(part, LAG_REC_##kind_name, i).kind_name)

/* Record i where it lies, to be read and changed; only of kinds that are not kept compact (for others
 * this does not compile). */
#define LAG_PART_AT(part, kind_name, i)                                               \
	LAG_VEC_AT(&(part)->records[LAG_REC_##kind_name], struct lag_rec_##kind_name, \
		   (i) + 0 * sizeof(LAG_PLAIN_ONLY(LAG_REC_##kind_name)))

#define LAG_PLAIN_ONLY(kind)                                                                \
	struct {                                                                            \
		_Static_assert(!LAG_IS_COMPACT(kind), "kept compact: LAG_PART_GET has it"); \
		char none;                                                                  \
	}

/* What stands for a record that is kept compact. */
#define LAG_PART_COMPACT(part, kind_name, i) \
	lag_part_compact(&(part)->records[LAG_REC_##kind_name], i)

/* What all parts of a merge share. */
struct lag_pool {
	struct lag_strtab strings;
	struct lag_vec configs;    /* struct lag_rec_launch_config; id = index */
	struct lag_map config_ids; /* hash of the configuration -> 1 + index */
	struct lag_spill *spill;   /* where the events of parts live; NULL: plain memory */
};

enum lag_status lag_pool_init(struct lag_pool *pool) LAG_MUST_USE;
void lag_pool_release(struct lag_pool *pool);

/* Index of an equal configuration, made when new; LAG_NONE without memory. */
int64_t lag_pool_config(struct lag_pool *pool, const struct lag_rec_launch_config *cfg);

/* The part's ids are of pool, and its memory comes from where the pool's does. */
enum lag_status lag_part_init(struct lag_part *part, const struct lag_pool *pool, const char *path,
			      const char *format) LAG_MUST_USE;
void lag_part_release(struct lag_part *part);

/* Adds rec (ids already of the pool). process records are merged into part->process; loss records
 * are kept and counted. string and launch_config records are a usage error. */
enum lag_status lag_part_add(struct lag_part *part, const struct lag_record *rec,
			     struct lag_err *err) LAG_MUST_USE;

struct lag_record lag_part_get(const struct lag_part *part, enum lag_record_kind kind, size_t i);

/* Replaces record i of rec's kind. LAG_ERR_SYSTEM without memory. */
enum lag_status lag_part_set(struct lag_part *part, size_t i,
			     const struct lag_record *rec) LAG_MUST_USE;

static inline struct lag_compact *lag_part_compact(const struct lag_vec *vec, size_t i)
{
	return (struct lag_compact *)(void *)((char *)vec->items + i * vec->item_size);
}

/* Start and end (first and second field) of a record of a kind that has both. */
struct lag_times {
	int64_t start_ns, end_ns;
};

static inline struct lag_times lag_part_times(const struct lag_part *part,
					      enum lag_record_kind kind, size_t i)
{
	const struct lag_vec *vec = &part->records[kind];
	const struct lag_compact *item = lag_part_compact(vec, i);
	struct lag_times at;

	if (lag_compact_info_get(kind)) {
		return (struct lag_times){ item->start_ns,
					   lag_compact_end(item, &part->shapes[kind]) };
	}
	memcpy(&at, (const char *)vec->items + i * vec->item_size, sizeof(at));
	return at;
}

/* Replaces every string and configuration id by what stands at its place; NULL: they stay. Ids beyond
 * the arrays become 0 and LAG_NONE. */
struct lag_part_ids {
	const uint32_t *strings, *configs;
	size_t n_strings, n_configs;
};

void lag_part_rename_ids(struct lag_part *part, const struct lag_part_ids *ids);

/* Adds ns to every time of every record (not the process's). */
void lag_part_shift(struct lag_part *part, int64_t ns);

/* A field that is set in the newer record replaces the known one; what it does not tell stays. */
void lag_part_know(struct lag_rec_process *known, const struct lag_rec_process *newer);

#define LAG_RANKS_MAX (INT64_C(1) << 20) /* of a job */

/* Whether a job can be of `world` ranks and have this one; each may be LAG_NONE. */
static inline bool lag_part_may_be_of(int64_t rank, int64_t world)
{
	return world <= 0 || (world <= LAG_RANKS_MAX && rank < world);
}

/* Adds a note (cut to LAG_ERR_TEXT_MAX - 1). */
void lag_part_note(struct lag_part *part, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
