/* SPDX-License-Identifier: Apache-2.0 */
/* A part: everything one process recorded, decoded, in memory, whatever the source. Importers fill
 * it; pairing, matching, alignment and the database writer work on it. */
#ifndef MERGE_PART_H
#define MERGE_PART_H

#include "schema/base/mem.h"
#include "schema/base/strtab.h"
#include "schema/record/record.h"

/* Records in a part carry string ids of the merge's one string table, and launch_config ids that are
 * indices into `configs` of the merge. */
struct lag_part {
	char *path; /* owned; as the user would recognise it, archive members as "a.tar:member" */
	const char *format;             /* importer's name, static */
	struct lag_rec_process process; /* all fields seen, last wins; LAG_NONE where unknown */
	/* One vector per record kind (kind is the index) of struct lag_rec_<kind>; string,
	 * launch_config and process records are not kept as such. */
	struct lag_vec records[LAG_REC_LIMIT];
	/* Damage and losses found while reading. */
	uint64_t n_records, n_bad, n_unknown;
	uint64_t lost[LAG_REC_LIMIT]; /* said by the source, by kind */
	uint64_t lost_reason[LAG_LOSS_LIMIT];
	int clean_exit; /* -1 unknown, 0, 1 */
	/* What a person should know about this source, one line each; NUL-terminated strings. */
	struct lag_vec notes; /* char[LAG_ERR_TEXT_MAX] */
};

#define LAG_PART_VEC(part, kind_name) (&(part)->records[LAG_REC_##kind_name])
#define LAG_PART_AT(part, kind_name, i) \
	LAG_VEC_AT(&(part)->records[LAG_REC_##kind_name], struct lag_rec_##kind_name, i)
#define LAG_PART_COUNT(part, kind_name) ((part)->records[LAG_REC_##kind_name].n)

/* What all parts of a merge share. */
struct lag_pool {
	struct lag_strtab strings;
	struct lag_vec configs;    /* struct lag_rec_launch_config; id = index */
	struct lag_map config_ids; /* hash of the configuration -> 1 + index */
};

enum lag_status lag_pool_init(struct lag_pool *pool) LAG_MUST_USE;
void lag_pool_release(struct lag_pool *pool);

/* Index of an equal configuration, made when new; LAG_NONE without memory. */
int64_t lag_pool_config(struct lag_pool *pool, const struct lag_rec_launch_config *cfg);

enum lag_status lag_part_init(struct lag_part *part, const char *path,
			      const char *format) LAG_MUST_USE;
void lag_part_release(struct lag_part *part);

/* Adds rec (ids already of the pool). process records are merged into part->process; loss records
 * are kept and counted. string and launch_config records are a usage error. */
enum lag_status lag_part_add(struct lag_part *part, const struct lag_record *rec,
			     struct lag_err *err) LAG_MUST_USE;

/* Adds a note (cut to LAG_ERR_TEXT_MAX - 1). */
void lag_part_note(struct lag_part *part, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
