/* SPDX-License-Identifier: Apache-2.0 */
/* An operation table's rows, by the names of its columns. A row that lacks what places it in time, or
 * cannot be true, is counted and left out. */
#include <string.h>

#include "merge/optable.h"
#include "merge/source.h"
#include "schema/base/csv.h"
#include "schema/base/json_read.h"
#include "schema/base/parse.h"

#define ROWS_MAX ((size_t)1 << 26)
#define AXIS_MAX 65536                        /* stages, data-parallel ranks, chunks */
#define SEQ_MAX  (1 << 24)                    /* operations of a kind in a step */
#define TIME_MAX INT64_C(2000000000000000000) /* ns */

enum column {
	COL_DP,
	COL_STAGE,
	COL_RANK,
	COL_STEP,
	COL_TYPE,
	COL_START,
	COL_DURATION,
	COL_SEQ,
	COL_CHUNK,
	COL_MICROBATCH,
	COL_LIMIT
};

static const struct {
	const char *name, *other;
	bool needed;
} columns[COL_LIMIT] = {
	[COL_DP] = { "dp_rank", "dp", true },
	[COL_STAGE] = { "stage", "pp_rank", true },
	[COL_RANK] = { "rank", "global_rank", false },
	[COL_STEP] = { "step", "iteration", true },
	[COL_TYPE] = { "optype", "op_type", true },
	[COL_START] = { "start_ts", "start", true },
	[COL_DURATION] = { "duration", "dur", true },
	[COL_SEQ] = { "seq_id", "seq", false },
	[COL_CHUNK] = { "mc", "model_chunk", false },
	[COL_MICROBATCH] = { "mb_id", "microbatch", false },
};

static void find_columns(const struct lag_csv *csv, int at[COL_LIMIT])
{
	for (int c = 0; c < COL_LIMIT; c++) {
		at[c] = -1;
		for (size_t i = 0; i < csv->n_fields && at[c] < 0; i++) {
			if (strcmp(csv->field[i], columns[c].name) == 0 ||
			    strcmp(csv->field[i], columns[c].other) == 0)
				at[c] = (int)i;
		}
	}
}

static const char *text_at(const struct lag_csv *csv, const int at[COL_LIMIT], enum column c)
{
	return at[c] >= 0 && (size_t)at[c] < csv->n_fields ? csv->field[at[c]] : "";
}

/* Integers, also where a spreadsheet made "3.0" of them. */
static int64_t integer(const char *text, int64_t least, int64_t most)
{
	int64_t v;

	if (!lag_json_to_fixed(text, strlen(text), 0, &v) || v < least || v > most)
		return LAG_NONE;
	return v;
}

/* Seconds to ns, exactly. */
static int64_t seconds(const char *text)
{
	int64_t v;

	if (!lag_json_to_fixed(text, strlen(text), 9, &v) || v < -TIME_MAX || v > TIME_MAX)
		return LAG_NONE;
	return v;
}

static int32_t place_or(int64_t v, int32_t otherwise)
{
	return v == LAG_NONE ? otherwise : (int32_t)v;
}

/* LAG_END: the row is bad. */
static enum lag_status take_row(struct lag_optable *t, const struct lag_csv *csv,
				const int at[COL_LIMIT], int64_t *rank, struct lag_err *err)
{
	int64_t dp = integer(text_at(csv, at, COL_DP), 0, AXIS_MAX - 1);
	int64_t stage = integer(text_at(csv, at, COL_STAGE), 0, AXIS_MAX - 1);
	int64_t step = integer(text_at(csv, at, COL_STEP), 0, INT32_MAX);
	int64_t start = seconds(text_at(csv, at, COL_START));
	int64_t dur = seconds(text_at(csv, at, COL_DURATION));
	const char *type = text_at(csv, at, COL_TYPE);
	struct lag_optable_row *row;

	*rank = integer(text_at(csv, at, COL_RANK), 0, INT32_MAX);
	if (dp == LAG_NONE || stage == LAG_NONE || step == LAG_NONE || start == LAG_NONE ||
	    dur == LAG_NONE || dur < 0 || !type[0])
		return LAG_END;
	row = lag_vec_push(&t->rows);
	if (!row)
		return lag_err_set(err, LAG_ERR_LIMIT, "more rows than memory or %zu", ROWS_MAX);
	*row = (struct lag_optable_row){
		.step = step,
		.start_ns = start,
		.dur_ns = dur,
		.stage = (int32_t)stage,
		.dp = (int32_t)dp,
		.seq = place_or(integer(text_at(csv, at, COL_SEQ), 0, SEQ_MAX), -1),
		.chunk = place_or(integer(text_at(csv, at, COL_CHUNK), 0, AXIS_MAX - 1), 0),
		.microbatch = place_or(integer(text_at(csv, at, COL_MICROBATCH), 0, SEQ_MAX), -1),
		.pair = -1,
		.kind = (uint8_t)lag_optype_of(type),
	};
	t->n_stages = row->stage >= t->n_stages ? row->stage + 1 : t->n_stages;
	t->n_dp = row->dp >= t->n_dp ? row->dp + 1 : t->n_dp;
	t->n_chunks = row->chunk >= t->n_chunks ? row->chunk + 1 : t->n_chunks;
	return lag_optable_string(t, type, &row->type, err);
}

/* Finds or makes the worker of a row; a rank that differs from row to row is none. */
static enum lag_status take_worker(struct lag_optable *t, struct lag_map *known, int64_t rank,
				   struct lag_err *err)
{
	struct lag_optable_row *row = LAG_OPTABLE_ROW(t, t->rows.n - 1);
	uint64_t key = (uint64_t)row->stage << 32 | (uint32_t)row->dp, at;
	struct lag_optable_worker *w;

	if (!lag_map_find(known, key, &at)) {
		at = t->workers.n;
		w = lag_vec_push(&t->workers);
		if (!w || lag_failed(lag_map_set(known, key, at)))
			return lag_err_set(err, LAG_ERR_LIMIT, "more workers than %d", AXIS_MAX);
		*w = (struct lag_optable_worker){ .rank = rank,
						  .stage = row->stage,
						  .dp = row->dp };
	}
	w = LAG_OPTABLE_WORKER(t, at);
	if (w->rank != rank)
		w->rank = LAG_NONE;
	row->worker = (int32_t)at;
	return LAG_OK;
}

static enum lag_status read_rows(struct lag_optable *t, struct lag_csv *csv, struct lag_err *err)
{
	struct lag_map known = { 0 };
	int at[COL_LIMIT];
	enum lag_status st = lag_csv_next(csv, err);

	if (st == LAG_END)
		return lag_err_set(err, LAG_ERR_INPUT, "an operation table without a header");
	find_columns(csv, at);
	for (int c = 0; c < COL_LIMIT && st == LAG_OK; c++) {
		if (columns[c].needed && at[c] < 0) {
			st = lag_err_set(err, LAG_ERR_INPUT, "an operation table without column %s",
					 columns[c].name);
		}
	}
	while (st == LAG_OK && (st = lag_csv_next(csv, err)) == LAG_OK) {
		int64_t rank;

		st = take_row(t, csv, at, &rank, err);
		if (st == LAG_OK) {
			st = take_worker(t, &known, rank, err);
		} else if (st == LAG_END) {
			t->first_bad_at = t->n_bad++ ? t->first_bad_at : csv->at;
			st = LAG_OK;
		}
	}
	lag_map_release(&known);
	return st == LAG_END ? LAG_OK : st;
}

enum lag_status lag_optable_read(struct lag_optable *t, struct lag_input *in, struct lag_err *err)
{
	struct lag_csv csv;
	enum lag_status st;

	t->rows.max = ROWS_MAX;
	t->workers.max = AXIS_MAX;
	if (lag_failed(lag_csv_init(&csv, lag_input_fill, in, ',')))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	st = read_rows(t, &csv, err);
	t->cut = csv.unclosed || csv.n_cut;
	lag_csv_release(&csv);
	if (st == LAG_OK && !t->rows.n && !t->n_bad) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "an operation table with a header and no row");
	}
	if (st == LAG_OK && !t->rows.n) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "an operation table without a usable row (%llu are not)",
				   (unsigned long long)t->n_bad);
	}
	return st;
}
