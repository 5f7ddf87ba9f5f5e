/* SPDX-License-Identifier: Apache-2.0 */
/* Loads what the job is made of: strings, hosts, ranks, launch configurations, communicators. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/load_comm.sql.h"
#include "viz/model/load_comm_member.sql.h"
#include "viz/model/load_config.sql.h"
#include "viz/model/load_host.sql.h"
#include "viz/model/load_kernel_name.sql.h"
#include "viz/model/load_rank.sql.h"
#include "viz/model/load_string.sql.h"
#include "viz/model/trace_load.h"

#define RANKS_MAX (1 << 20)

static enum lag_status string_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	const char *text = lag_stmt_text(row, 1);
	uint32_t at = lag_strtab_add(load->texts, text, strlen(text));

	(void)item; /* the string table keeps them */
	if (at >= INT32_MAX ||
	    lag_failed(lag_ids_set(&load->strings, lag_stmt_int(row, 0), (int32_t)at)))
		return lag_load_no_memory(load);
	return LAG_END;
}

static enum lag_status kernel_name_row(struct lag_load *load, const struct lag_stmt *row,
				       void *item)
{
	struct lag_kernel_name *name = item;

	if (lag_failed(lag_ids_set(&load->names, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	name->full = lag_load_string(load, lag_stmt_int(row, 1));
	name->brief = lag_load_string(load, lag_stmt_int(row, 2));
	name->class = lag_stmt_int(row, 3) == 1 ? LAG_CLASS_COMM : LAG_CLASS_COMPUTE;
	return LAG_OK;
}

static enum lag_status host_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_host *host = item;

	if (lag_failed(lag_ids_set(&load->hosts, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	host->name = lag_load_text(load, row, 1);
	return LAG_OK;
}

static enum lag_status rank_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_rank *rank = item;

	if (load->n_rows >= RANKS_MAX)
		return lag_err_set(load->err, LAG_ERR_LIMIT, "more than %d ranks", RANKS_MAX);
	rank->rank = lag_stmt_int(row, 0);
	rank->recorded = !lag_stmt_is_null(row, 1);
	rank->host =
		lag_stmt_is_null(row, 2) ? -1 : lag_ids_find(&load->hosts, lag_stmt_int(row, 2));
	rank->device = lag_stmt_int(row, 3);
	rank->local_rank = lag_stmt_int(row, 4);
	rank->clean_exit = lag_stmt_is_null(row, 5) ? -1 : lag_stmt_int(row, 5) != 0;
	rank->lost = lag_stmt_int(row, 6) > 0 ? (uint64_t)lag_stmt_int(row, 6) : 0;
	rank->uncertainty_ns = INT64_MAX;
	rank->started_ns = lag_stmt_int(row, 8);
	if (lag_stmt_int(row, 7) > load->trace->world_size)
		load->trace->world_size = lag_stmt_int(row, 7);
	return LAG_OK;
}

static enum lag_status config_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_rec_launch_config *cfg = item;

	if (lag_failed(lag_ids_set(&load->configs, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	*cfg = (struct lag_rec_launch_config){
		.id = (int64_t)load->n_rows,
		.grid_x = lag_stmt_int(row, 1),
		.grid_y = lag_stmt_int(row, 2),
		.grid_z = lag_stmt_int(row, 3),
		.block_x = lag_stmt_int(row, 4),
		.block_y = lag_stmt_int(row, 5),
		.block_z = lag_stmt_int(row, 6),
		.static_smem_bytes = lag_stmt_int(row, 7),
		.dynamic_smem_bytes = lag_stmt_int(row, 8),
		.registers = lag_stmt_int(row, 9),
	};
	return LAG_OK;
}

static enum lag_status comm_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	struct lag_comm *comm = item;
	int64_t n = lag_stmt_int(row, 3);

	if (lag_failed(lag_ids_set(&load->comms, lag_stmt_int(row, 0), (int32_t)load->n_rows)))
		return lag_load_no_memory(load);
	comm->hash = lag_stmt_int(row, 1);
	comm->nccl_hash = lag_stmt_int(row, 2);
	comm->n_ranks = n > 0 && n <= RANKS_MAX ? (int32_t)n : -1;
	comm->name = lag_load_text(load, row, 4);
	comm->description = lag_load_text(load, row, 5);
	return LAG_OK;
}

static enum lag_status member_row(struct lag_load *load, const struct lag_stmt *row, void *item)
{
	int32_t at = lag_ids_find(&load->comms, lag_stmt_int(row, 0));
	int64_t comm_rank = lag_stmt_int(row, 1);
	struct lag_member *member = item;
	struct lag_comm *comm;

	if (at < 0 || comm_rank < 0 || comm_rank > RANKS_MAX) {
		load->n_skipped++;
		return LAG_END;
	}
	comm = &load->trace->comms[at];
	if (!comm->n_members++)
		comm->first_member = (uint32_t)load->n_rows;
	member->comm_rank = (int32_t)comm_rank;
	member->r = lag_stmt_is_null(row, 2)
			    ? -1
			    : lag_trace_find_rank(load->trace, lag_stmt_int(row, 2));
	member->recorded = lag_stmt_int(row, 3) == 1 && member->r >= 0;
	return LAG_OK;
}

/* Complete: every rank of it is known and recorded. */
static void check_comms(struct lag_trace *t, size_t n_members)
{
	for (size_t i = 0; i < t->n_comms; i++) {
		struct lag_comm *comm = &t->comms[i];

		comm->complete = comm->n_ranks > 0 && comm->n_members == (uint32_t)comm->n_ranks;
		for (uint32_t m = 0; m < comm->n_members && comm->first_member + m < n_members;
		     m++) {
			if (!t->members[comm->first_member + m].recorded)
				comm->complete = false;
		}
	}
}

enum lag_status lag_load_job(struct lag_load *load)
{
	struct lag_trace *t = load->trace;
	void *no_array = NULL;
	size_t n = 0;
	enum lag_status status;

	status = lag_load_rows(load, lag_sql_load_string, string_row, 1, &no_array, &n);
	free(no_array);
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_kernel_name, kernel_name_row,
				       sizeof(*load->kernel_names), &load->kernel_names,
				       &load->n_kernel_names);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_host, host_row, sizeof(*t->hosts),
				       &t->hosts, &t->n_hosts);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_rank, rank_row, sizeof(*t->ranks),
				       &t->ranks, &t->n_ranks);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_config, config_row, sizeof(*t->configs),
				       &t->configs, &t->n_configs);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_comm, comm_row, sizeof(*t->comms),
				       &t->comms, &t->n_comms);
	}
	if (!lag_failed(status)) {
		status = lag_load_rows(load, lag_sql_load_comm_member, member_row,
				       sizeof(*t->members), &t->members, &n);
	}
	if (!lag_failed(status))
		check_comms(t, n);
	return status;
}
