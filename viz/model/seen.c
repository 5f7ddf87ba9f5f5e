/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what hosts had seen. Rows that refer to no rank or communicator of the trace are left out. */
#include "viz/model/seen.h"

#include <string.h>

#include "schema/db/db.h"
#include "viz/model/ids.h"
#include "viz/model/load_comm.sql.h"
#include "viz/model/load_progress.sql.h"
#include "viz/model/load_seen.sql.h"

#define SEQ_MAX  (INT64_C(1) << 53)
#define TIME_MAX INT64_C(4200000000000000000)

struct reader {
	const struct lag_trace *t;
	struct lag_seen *out;
	struct lag_ids comms;
	uint32_t n_comms;
};

typedef enum lag_status read_row(struct reader *rd, const struct lag_stmt *row);

static enum lag_status each(struct reader *rd, const char *sql, read_row *row, struct lag_err *err)
{
	struct lag_stmt *stmt;
	enum lag_status st = lag_stmt_prepare(rd->t->db, sql, NULL, &stmt, err);

	if (st != LAG_OK)
		return st;
	while ((st = lag_stmt_step(stmt, err)) == LAG_OK) {
		st = row(rd, stmt);
		if (lag_failed(st)) {
			(void)lag_err_set(err, st, "no memory for what hosts had seen");
			break;
		}
	}
	lag_stmt_free(stmt);
	return st == LAG_END ? LAG_OK : st;
}

static enum lag_status comm_row(struct reader *rd, const struct lag_stmt *row)
{
	/* The trace's communicators are these rows in this order. */
	return lag_ids_set(&rd->comms, lag_stmt_int(row, 0), (int32_t)rd->n_comms++);
}

static bool find(const struct reader *rd, const struct lag_stmt *row, uint32_t *r, uint32_t *comm)
{
	int32_t at = lag_ids_find(&rd->comms, lag_stmt_int(row, 1));
	int rank = lag_trace_find_rank(rd->t, lag_stmt_int(row, 0));

	*r = (uint32_t)rank;
	*comm = (uint32_t)at;
	return rank >= 0 && at >= 0 && (size_t)at < rd->t->n_comms;
}

static int64_t number(int64_t value)
{
	return value >= 0 && value <= SEQ_MAX ? value : LAG_NONE;
}

static enum lag_status op_row(struct reader *rd, const struct lag_stmt *row)
{
	int64_t at = lag_stmt_int(row, 5), state = lag_stmt_int(row, 6);
	int64_t peer = lag_stmt_int(row, 4);
	const char *sizes = lag_stmt_text(row, 8);
	struct lag_seen_op *op;
	uint32_t r, comm;

	if (!find(rd, row, &r, &comm) || at < 0 || at > TIME_MAX)
		return LAG_OK;
	op = lag_vec_push(&rd->out->ops);
	if (!op)
		return LAG_ERR_SYSTEM;
	op->r = r;
	op->comm = comm;
	op->func = (uint8_t)(lag_stmt_int(row, 2) & 255);
	op->seq = number(lag_stmt_int(row, 3));
	op->peer = peer >= 0 && peer <= INT32_MAX ? (int32_t)peer : -1;
	op->enqueued_ns = at - rd->t->origin_ns;
	op->state = state >= LAG_OP_ENQUEUED && state <= LAG_OP_COMPLETED ? (uint8_t)state : 0;
	op->timeout_ns = lag_stmt_int(row, 7);
	op->sizes = lag_strtab_add(&rd->out->sizes, sizes, strlen(sizes));
	return op->sizes == LAG_STR_NONE ? LAG_ERR_SYSTEM : LAG_OK;
}

static enum lag_status progress_row(struct reader *rd, const struct lag_stmt *row)
{
	struct lag_seen_progress *p;
	uint32_t r, comm;

	if (!find(rd, row, &r, &comm))
		return LAG_OK;
	p = lag_vec_push(&rd->out->progress);
	if (!p)
		return LAG_ERR_SYSTEM;
	*p = (struct lag_seen_progress){ .r = r,
					 .comm = comm,
					 .enqueued = number(lag_stmt_int(row, 2)),
					 .started = number(lag_stmt_int(row, 3)),
					 .completed = number(lag_stmt_int(row, 4)) };
	return LAG_OK;
}

enum lag_status lag_seen_load(const struct lag_trace *trace, struct lag_seen *out,
			      struct lag_err *err)
{
	struct reader rd = { .t = trace, .out = out };
	enum lag_status st;

	*out = (struct lag_seen){ .ops = LAG_VEC_INIT(struct lag_seen_op),
				  .progress = LAG_VEC_INIT(struct lag_seen_progress) };
	st = lag_strtab_init(&out->sizes);
	if (st != LAG_OK)
		return lag_err_set(err, st, "no memory for what hosts had seen");
	if (!trace->db)
		return LAG_OK;
	st = each(&rd, lag_sql_load_comm, comm_row, err);
	if (st == LAG_OK)
		st = each(&rd, lag_sql_load_seen, op_row, err);
	if (st == LAG_OK)
		st = each(&rd, lag_sql_load_progress, progress_row, err);
	lag_ids_release(&rd.comms);
	return st;
}

void lag_seen_release(struct lag_seen *seen)
{
	lag_vec_release(&seen->ops);
	lag_vec_release(&seen->progress);
	lag_strtab_release(&seen->sizes);
}
