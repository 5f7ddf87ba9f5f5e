/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the Flight Recorder importer: the state of one dump's import. */
#ifndef MERGE_FLIGHT_H
#define MERGE_FLIGHT_H

#include "merge/importer.h"
#include "schema/base/datum.h"

/* A process group. */
struct lag_flight_group {
	uint32_t name, description, ranks; /* string ids; ranks as "[0, 1]", 0 = not known */
	int64_t number;                    /* its name as a number, LAG_NONE */
	int64_t pg_id; /* the process's own number for it, LAG_NONE: no entry and no order tells */
	struct lag_vec members; /* int64_t, ranks of the job by group rank; empty = not known */
};

struct lag_flight {
	struct lag_part part;
	struct lag_pool *pool;
	const struct lag_datum *root;
	struct lag_vec groups;   /* struct lag_flight_group; comm_id = 1 + index */
	struct lag_map of_name;  /* hash of (name, description) -> index */
	struct lag_map of_pg_id; /* pg_id -> index, from entries */
	struct lag_map numbered; /* (group, seq) of collectives seen */
	struct lag_map messages; /* (group, direction, peer) -> number of the next */
	struct lag_map threads;  /* tid -> seen */
	int64_t rank;
	uint64_t budget; /* how much more may be looked at: data may be shared a thousandfold */
	uint64_t n_entries, n_unfinished, n_states, n_contradictions, n_bad_groups;
	uint64_t n_unnumbered; /* messages */
	bool whole;            /* all that the process ever recorded is in the dump */
};

#define LAG_FLIGHT_GROUP(f, i) (&LAG_VEC_AT(&(f)->groups, struct lag_flight_group, i))

/* False when the budget is spent. */
bool lag_flight_spend(struct lag_flight *f, uint64_t n);

enum lag_status lag_flight_string(struct lag_flight *f, const char *text, size_t n, uint32_t *id,
				  struct lag_err *err) LAG_MUST_USE;

/* import_flight_group.c: groups from pg_config; the group an entry names (made where pg_config lacks
 * it); whose dump it is; then communicators, members and progress as records. */
enum lag_status lag_flight_read_groups(struct lag_flight *f, struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_flight_group_of(struct lag_flight *f, const struct lag_datum *entry,
				    size_t *group, struct lag_err *err) LAG_MUST_USE;
int64_t lag_flight_own_rank(struct lag_flight *f);
enum lag_status lag_flight_emit_groups(struct lag_flight *f, struct lag_err *err) LAG_MUST_USE;

/* import_flight_op.c: one operation for each entry. */
enum lag_status lag_flight_emit_ops(struct lag_flight *f, struct lag_err *err) LAG_MUST_USE;

/* "nccl:send 0->1": who talks to whom in the group; false for anything else. */
bool lag_flight_message(const char *profiling_name, int64_t *own, int64_t *peer);

#endif
