/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the importer for operation tables: one row an operation, several rows a worker. */
#ifndef MERGE_OPTABLE_H
#define MERGE_OPTABLE_H

#include "merge/importer.h"
#include "schema/record/optype.h"

struct lag_optable_row {
	int64_t step, start_ns, dur_ns;
	int32_t stage, dp, seq, chunk, microbatch;
	int32_t worker;  /* place in workers */
	int32_t at_step; /* place in steps */
	int32_t pair;    /* messages: place among those that are exchanged, -1 = none */
	uint32_t type;   /* string id */
	uint8_t kind;    /* enum lag_optype */
};

struct lag_optable_worker {
	int64_t rank; /* in the job; before they are numbered: as the table says, LAG_NONE */
	int32_t stage, dp;
	size_t first, n; /* rows */
};

struct lag_optable_step {
	int64_t number, begin_ns, end_ns, offset_ns; /* offset: added to times of the table */
};

struct lag_optable {
	const char *path;
	struct lag_pool *pool;
	struct lag_part_sink *sink;
	struct lag_vec rows;    /* struct lag_optable_row; by worker and start once read */
	struct lag_vec workers; /* struct lag_optable_worker, by rank */
	struct lag_vec steps;   /* struct lag_optable_step, in order */
	int32_t n_stages, n_dp, n_chunks, max_seq;
	uint64_t n_bad, first_bad_at, n_idle; /* idle: sends and receives that exchange nothing */
	bool restarts, renumbered, cut;
	uint32_t host, rank_source, domain;
};

#define LAG_OPTABLE_ROW(t, i)    (&LAG_VEC_AT(&(t)->rows, struct lag_optable_row, i))
#define LAG_OPTABLE_WORKER(t, i) (&LAG_VEC_AT(&(t)->workers, struct lag_optable_worker, i))
#define LAG_OPTABLE_STEP(t, i)   (&LAG_VEC_AT(&(t)->steps, struct lag_optable_step, i))

/* import_optable_read.c: the rows of the table. LAG_ERR_INPUT: it lacks a column, or has no rows. */
enum lag_status lag_optable_read(struct lag_optable *t, struct lag_input *in,
				 struct lag_err *err) LAG_MUST_USE;

/* import_optable_emit.c: one part a worker. */
enum lag_status lag_optable_emit(struct lag_optable *t, struct lag_err *err) LAG_MUST_USE;

/* String id; LAG_ERR_SYSTEM without memory. */
enum lag_status lag_optable_string(struct lag_optable *t, const char *text, uint32_t *id,
				   struct lag_err *err) LAG_MUST_USE;

#endif
