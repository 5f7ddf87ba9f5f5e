/* SPDX-License-Identifier: Apache-2.0 */
/* Loads communication: launches, operations, and the instances that join ranks. */
#include <string.h>

#include "viz/model/load_instance.sql.h"
#include "viz/model/load_launch.sql.h"
#include "viz/model/load_op.sql.h"
#include "viz/model/trace_load.h"

#define SEQ_MAX (INT64_C(1) << 53)

static int32_t narrow(int64_t value)
{
	return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

/* Numbers count from 0; what no job can have counted to is none. */
static int64_t sane_seq(int64_t value)
{
	return value >= 0 && value <= SEQ_MAX ? value : LAG_NONE;
}

static enum lag_status launch_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_launch *launch = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 1));
	int32_t comm = lag_ids_find(&load->comms, lag_stmt_int(row, 2));

	launch->start_ns = lag_stmt_int(row, 3);
	launch->end_ns = lag_stmt_int(row, 4);
	launch->gpu = -1;
	if (r < 0)
		return LAG_END;
	if (comm < 0) {
		load->n_skipped++;
		return LAG_END;
	}
	if (launch->start_ns == LAG_NONE) {
		launch->end_ns = LAG_NONE;
	} else if (!lag_load_times(load, launch->start_ns, launch->end_ns)) {
		return LAG_END;
	}
	launch->r = (uint32_t)r;
	launch->comm = (uint32_t)comm;
	if (load->n_rows >= INT32_MAX ||
	    lag_failed(lag_ids_set(&load->launches, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	return LAG_OK;
}

/* Job rank index of a communicator's rank, -1 when it is not known. */
static int32_t member_rank(const struct lag_load *load, const struct lag_comm *comm,
			   int64_t comm_rank)
{
	const struct lag_member *members = load->trace->members + comm->first_member;
	uint32_t lo = 0, hi = comm->n_members;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (members[mid].comm_rank < comm_rank) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo < comm->n_members && members[lo].comm_rank == comm_rank ? members[lo].r : -1;
}

static void instance_times(struct lag_instance *in, const struct lag_stmt *row)
{
	in->first_start_ns = lag_stmt_int(row, 11);
	in->last_start_ns = lag_stmt_int(row, 12);
	in->first_end_ns = lag_stmt_int(row, 13);
	in->last_end_ns = lag_stmt_int(row, 14);
}

static bool instance_possible(struct lag_load *load, const struct lag_instance *in)
{
	return (in->first_start_ns == LAG_NONE ||
		lag_load_times(load, in->first_start_ns, in->last_start_ns)) &&
	       (in->first_end_ns == LAG_NONE ||
		lag_load_times(load, in->first_end_ns, in->last_end_ns));
}

static enum lag_status instance_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_instance *in = item;
	int32_t comm = lag_ids_find(&load->comms, lag_stmt_int(row, 1));
	int64_t members = lag_stmt_int(row, 7);

	instance_times(in, row);
	if (comm < 0) {
		load->n_skipped++;
		return LAG_END;
	}
	if (!instance_possible(load, in))
		return LAG_END;
	in->comm = (uint32_t)comm;
	in->func = (uint8_t)(lag_stmt_int(row, 2) & 255);
	in->seq = sane_seq(lag_stmt_int(row, 3));
	in->src = lag_stmt_is_null(row, 4)
			  ? -1
			  : member_rank(load, &load->trace->comms[comm], lag_stmt_int(row, 4));
	in->dst = lag_stmt_is_null(row, 5)
			  ? -1
			  : member_rank(load, &load->trace->comms[comm], lag_stmt_int(row, 5));
	in->bytes = lag_stmt_int(row, 6);
	in->n_members = narrow(members);
	in->complete = members > 0 && lag_stmt_int(row, 8) == members &&
		       lag_stmt_int(row, 9) == members && lag_stmt_int(row, 10) == members;
	in->last = lag_stmt_is_null(row, 15)
			   ? -1
			   : lag_trace_find_rank(load->trace, lag_stmt_int(row, 15));
	in->lead_ns = lag_stmt_int(row, 16);
	in->flags = (uint8_t)(lag_stmt_int(row, 17) & 255);
	if (load->n_rows >= INT32_MAX ||
	    lag_failed(lag_ids_set(&load->instances, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	return LAG_OK;
}

static enum lag_status op_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_op *op = item;
	int r = lag_load_rank(load, lag_stmt_int(row, 0));
	int32_t comm = lag_ids_find(&load->comms, lag_stmt_int(row, 1));
	int64_t datatype = lag_stmt_int(row, 6);

	op->enter_ns = lag_stmt_int(row, 8);
	op->leave_ns = lag_stmt_int(row, 9);
	if (r < 0 || !lag_load_times(load, op->enter_ns, op->leave_ns))
		return LAG_END;
	if (comm < 0) {
		load->n_skipped++;
		return LAG_END;
	}
	op->r = (uint32_t)r;
	op->comm = (uint32_t)comm;
	op->func = (uint8_t)(lag_stmt_int(row, 2) & 255);
	op->seq = sane_seq(lag_stmt_int(row, 3));
	op->peer = lag_stmt_is_null(row, 4) ? -1 : narrow(lag_stmt_int(row, 4));
	op->count = lag_stmt_int(row, 5);
	op->datatype = datatype >= 0 && datatype < 255 ? (uint8_t)datatype : 255;
	op->bytes = lag_stmt_int(row, 7);
	op->launch = lag_stmt_is_null(row, 10)
			     ? -1
			     : lag_ids_find(&load->launches, lag_stmt_int(row, 10));
	/* A launch belongs to one rank; anything else would break "a launch's ops are adjacent". */
	if (op->launch >= 0 && load->trace->launches[op->launch].r != op->r)
		op->launch = -1;
	op->instance = lag_stmt_is_null(row, 11)
			       ? -1
			       : lag_ids_find(&load->instances, lag_stmt_int(row, 11));
	op->sources = (uint8_t)(lag_stmt_int(row, 12) & 255);
	return LAG_OK;
}

enum lag_status lag_load_comm(struct lag_load *load)
{
	struct lag_trace *t = load->trace;
	enum lag_status status;

	status = lag_load_rows(load, lag_sql_load_launch, launch_row, sizeof(*t->launches),
			       &t->launches, &t->n_launches);
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_instance, instance_row,
				       sizeof(*t->instances), &t->instances, &t->n_instances);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_op, op_row, sizeof(*t->ops), &t->ops,
				       &t->n_ops);
	}
	return status;
}
