/* SPDX-License-Identifier: Apache-2.0 */
/* A merged trace's rows become the merge's lists, as if its recordings had been read, matched and aligned.
 * The trace may come from anywhere: what laggard would not have written is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/append_load.sql.h"
#include "merge/state.h"

#define RANKS_MAX (INT64_C(1) << 20)

struct loading {
	struct lag_merge *m;
	struct lag_err *err;
};

typedef enum lag_status take_row(struct loading *l, const struct lag_stmt *row);

static enum lag_status no_memory(struct loading *l)
{
	return lag_err_set(l->err, LAG_ERR_SYSTEM, "no memory for the trace");
}

static enum lag_status not_ours(struct loading *l, const char *table)
{
	return lag_err_set(l->err, LAG_ERR_INPUT,
			   "table %s is not as laggard writes it: merge all recordings again",
			   table);
}

/* Whether a column refers to one of n things whose ids count from 1; *at: its index. */
static bool refers(const struct lag_stmt *row, int column, size_t n, uint32_t *at)
{
	int64_t id = lag_stmt_int(row, column);

	if (id < 1 || (uint64_t)id > n)
		return false;
	*at = (uint32_t)(id - 1);
	return true;
}

static int64_t text_id(struct loading *l, const struct lag_stmt *row, int column)
{
	const char *text = lag_stmt_text(row, column);
	uint32_t id = lag_strtab_add(&l->m->pool.strings, text, strlen(text));

	return id == LAG_STR_NONE ? LAG_NONE : id;
}

static enum lag_status meta_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_old *old = &l->m->old;
	const char *key = lag_stmt_text(row, 0), *value = lag_stmt_text(row, 1);

	if (strcmp(key, "clock_method") == 0)
		(void)snprintf(old->method, sizeof(old->method), "%s", value);
	if (strcmp(key, "clock_reference_host") == 0)
		old->reference_host = (uint32_t)strtoul(value, NULL, 10) - 1;
	/* Becomes a string when these are read. */
	if (strcmp(key, "run_id") == 0)
		(void)snprintf(old->run, sizeof(old->run), "%s", value);
	return LAG_OK;
}

/* Bytes that were no text were replaced when they were written, so that two may have become equal: the id
 * is then taken by what no text is. */
static enum lag_status string_row(struct loading *l, const struct lag_stmt *row)
{
	size_t n = lag_strtab_count(&l->m->pool.strings);
	const char *text = lag_stmt_text(row, 1);
	char taken[32];

	if (lag_stmt_int(row, 0) == 0 && !text[0])
		return LAG_OK;
	if (lag_stmt_int(row, 0) != (int64_t)n)
		return not_ours(l, "string");
	if (lag_strtab_add(&l->m->pool.strings, text, strlen(text)) == n)
		return LAG_OK;
	(void)snprintf(taken, sizeof(taken), "%c%zu", 1, n);
	return lag_strtab_add(&l->m->pool.strings, taken, strlen(taken)) == n
		       ? LAG_OK
		       : not_ours(l, "string");
}

static enum lag_status config_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_record rec;
	size_t n = l->m->pool.configs.n;

	lag_record_init(&rec, LAG_REC_launch_config);
	rec.launch_config.grid_x = lag_stmt_int(row, 1);
	rec.launch_config.grid_y = lag_stmt_int(row, 2);
	rec.launch_config.grid_z = lag_stmt_int(row, 3);
	rec.launch_config.block_x = lag_stmt_int(row, 4);
	rec.launch_config.block_y = lag_stmt_int(row, 5);
	rec.launch_config.block_z = lag_stmt_int(row, 6);
	rec.launch_config.static_smem_bytes = lag_stmt_int(row, 7);
	rec.launch_config.dynamic_smem_bytes = lag_stmt_int(row, 8);
	rec.launch_config.registers = lag_stmt_int(row, 9);
	if (lag_stmt_int(row, 0) != (int64_t)n + 1 ||
	    lag_pool_config(&l->m->pool, &rec.launch_config) != (int64_t)n)
		return not_ours(l, "launch_config");
	return LAG_OK;
}

static enum lag_status name_row(struct loading *l, const struct lag_stmt *row)
{
	return lag_failed(lag_map_set(&l->m->old.named, (uint64_t)lag_stmt_int(row, 0), 1))
		       ? no_memory(l)
		       : LAG_OK;
}

static enum lag_status host_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_host_row *host;
	int64_t name = text_id(l, row, 1), boot = text_id(l, row, 2);

	if (lag_stmt_int(row, 0) != (int64_t)l->m->hosts.n + 1)
		return not_ours(l, "host");
	host = lag_vec_push(&l->m->hosts);
	if (!host || name == LAG_NONE || boot == LAG_NONE)
		return no_memory(l);
	host->name = lag_merge_text(l->m, name);
	host->boot_id = lag_merge_text(l->m, boot);
	return LAG_OK;
}

static enum lag_status source_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_source_row *source;

	if (lag_stmt_int(row, 0) != (int64_t)l->m->sources.n + 1)
		return not_ours(l, "source");
	source = lag_vec_push(&l->m->sources);
	if (!source)
		return no_memory(l);
	*source = (struct lag_source_row){ .path = strdup(lag_stmt_text(row, 1)), .format = "" };
	return source->path ? LAG_OK : no_memory(l);
}

/* The name that is given to a host that has none is no name. */
static int64_t host_name(struct loading *l, uint32_t host)
{
	const char *name = LAG_VEC_AT(&l->m->hosts, struct lag_host_row, host).name;
	char unknown[32];

	(void)snprintf(unknown, sizeof(unknown), "host-%u", host + 1);
	return strcmp(name, unknown) == 0 ? 0
					  : lag_strtab_add(&l->m->pool.strings, name, strlen(name));
}

static enum lag_status process_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_merge *m = l->m;
	uint32_t at = (uint32_t)m->procs.n, source, host;
	struct lag_proc *p;
	const char *boot;

	if (lag_stmt_int(row, 0) != (int64_t)at + 1 || !refers(row, 1, m->sources.n, &source) ||
	    !refers(row, 2, m->hosts.n, &host))
		return not_ours(l, "process");
	p = lag_vec_push(&m->procs);
	if (!p)
		return no_memory(l);
	*p = (struct lag_proc){ .source = source,
				.host = host,
				.old = true,
				.rank = lag_stmt_int(row, 3),
				.first_ns = lag_stmt_int(row, 8),
				.last_ns = lag_stmt_int(row, 9),
				.launches = LAG_VEC_SPILLED(struct lag_launch, m->spill),
				.op_links = LAG_VEC_SPILLED(struct lag_op_link, m->spill),
				.devices = LAG_VEC_INIT(struct lag_device_row) };
	if (lag_failed(lag_part_init(&p->part, &m->pool,
				     LAG_VEC_AT(&m->sources, struct lag_source_row, source).path,
				     "trace")))
		return no_memory(l);
	boot = LAG_VEC_AT(&m->hosts, struct lag_host_row, host).boot_id;
	p->unused = p->rank == LAG_NONE;
	p->part.process.rank = p->rank;
	p->part.process.world_size = lag_stmt_int(row, 4);
	p->part.process.local_rank = lag_stmt_int(row, 5);
	p->part.process.pid = lag_stmt_int(row, 6);
	p->part.process.restart = lag_stmt_int(row, 7);
	p->part.process.host = host_name(l, host);
	p->part.process.boot_id = lag_strtab_add(&m->pool.strings, boot, strlen(boot));
	p->part.process.run_id = m->run_id;
	p->part.clean_exit = lag_stmt_is_null(row, 10) ? -1 : lag_stmt_int(row, 10) != 0;
	if (p->part.process.world_size != LAG_NONE && !p->unused)
		m->old.world_size = p->part.process.world_size;
	return LAG_OK;
}

static enum lag_status rank_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_device_row *device;
	int64_t rank = lag_stmt_int(row, 0);
	struct lag_proc *p;
	uint32_t at;

	if (rank < 0 || rank >= RANKS_MAX || !refers(row, 1, l->m->procs.n, &at))
		return not_ours(l, "rank");
	p = LAG_PROC_AT(l->m, at);
	if (p->rank != rank || p->devices.n)
		return not_ours(l, "rank");
	device = lag_vec_push(&p->devices);
	if (!device || lag_failed(lag_map_set(&l->m->rank_proc, (uint64_t)rank, at)))
		return no_memory(l);
	device->n_events = !lag_stmt_is_null(row, 2);
	device->device = device->n_events ? lag_stmt_int(row, 2) : 0;
	return LAG_OK;
}

static struct lag_proc *proc_of(struct loading *l, const struct lag_stmt *row, int column)
{
	uint64_t at;

	if (!lag_map_find(&l->m->rank_proc, (uint64_t)lag_stmt_int(row, column), &at))
		return NULL;
	return LAG_PROC_AT(l->m, at);
}

static enum lag_status comm_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_comm_row *comm;
	int64_t name = text_id(l, row, 5), description = text_id(l, row, 6);
	int64_t parent = lag_stmt_int(row, 4), n_ranks = lag_stmt_int(row, 3);

	if (lag_stmt_int(row, 0) != (int64_t)l->m->comms.n + 1 ||
	    (n_ranks != LAG_NONE && (n_ranks < 0 || n_ranks > RANKS_MAX)) ||
	    (parent != LAG_NONE && (parent < 1 || parent >= UINT32_MAX)))
		return not_ours(l, "communicator");
	comm = lag_vec_push(&l->m->comms);
	if (!comm || name == LAG_NONE || description == LAG_NONE)
		return no_memory(l);
	*comm = (struct lag_comm_row){ .hash = lag_stmt_int(row, 1),
				       .nccl_hash = lag_stmt_int(row, 2),
				       .n_ranks = n_ranks,
				       .parent_ref = parent == LAG_NONE ? 0 : (uint32_t)parent,
				       .name = (uint32_t)name,
				       .description = (uint32_t)description,
				       .members = LAG_VEC_INIT(struct lag_comm_member_row) };
	return LAG_OK;
}

/* A process's numbers for its communicators are the merge's here. */
static enum lag_status member_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_comm_member_row *member;
	int64_t comm_rank = lag_stmt_int(row, 1), rank = lag_stmt_int(row, 2);
	struct lag_proc *p;
	uint64_t proc = 0;
	uint32_t at;

	if (!refers(row, 0, l->m->comms.n, &at) || comm_rank < 0 || comm_rank > RANKS_MAX)
		return not_ours(l, "comm_member");
	member = lag_vec_push(&LAG_COMM_AT(l->m, at)->members);
	if (!member)
		return no_memory(l);
	*member = (struct lag_comm_member_row){ comm_rank, rank, 0 };
	if (lag_stmt_int(row, 3) != 1)
		return LAG_OK;
	if (rank < 0 || !lag_map_find(&l->m->rank_proc, (uint64_t)rank, &proc))
		return not_ours(l, "comm_member");
	member->proc_ref = (uint32_t)proc + 1;
	p = LAG_PROC_AT(l->m, proc);
	return lag_failed(lag_map_set(&p->comm_rank_of, at, (uint64_t)comm_rank)) ? no_memory(l)
										  : LAG_OK;
}

static enum lag_status instance_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_instance_row *in;
	struct lag_old_instance *before;
	uint32_t comm;

	if (lag_stmt_int(row, 0) != (int64_t)l->m->instances.n + 1 ||
	    !refers(row, 1, l->m->comms.n, &comm))
		return not_ours(l, "instance");
	in = lag_vec_push(&l->m->instances);
	before = lag_vec_push(&l->m->old.instances);
	if (!in || !before)
		return no_memory(l);
	*in = (struct lag_instance_row){ .comm = comm,
					 .func = (uint32_t)lag_stmt_int(row, 2),
					 .seq = lag_stmt_int(row, 3),
					 .src = lag_stmt_int(row, 4),
					 .dst = lag_stmt_int(row, 5),
					 .bytes = lag_stmt_int(row, 6),
					 .datatype = lag_stmt_int(row, 7),
					 .n_members = (uint32_t)lag_stmt_int(row, 8),
					 .flags = (uint32_t)lag_stmt_int(row, 10) };
	*before = (struct lag_old_instance){ in->n_members, (uint32_t)lag_stmt_int(row, 9) };
	return LAG_OK;
}

static enum lag_status launch_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_proc *p = proc_of(l, row, 1);
	int64_t id = lag_stmt_int(row, 0);
	struct lag_launch *launch;
	uint32_t comm;

	if (!p || !refers(row, 2, l->m->comms.n, &comm) || id < 1 || id > INT64_MAX / 2)
		return not_ours(l, "nccl_launch");
	/* Those of a rank follow each other. */
	if (!p->launches.n)
		p->first_launch_id = id;
	if (id != p->first_launch_id + (int64_t)p->launches.n)
		return not_ours(l, "nccl_launch");
	launch = lag_vec_push(&p->launches);
	if (!launch)
		return no_memory(l);
	*launch = (struct lag_launch){ .start_ns = lag_stmt_int(row, 6),
				       .end_ns = lag_stmt_int(row, 7),
				       .group_id = lag_stmt_int(row, 3),
				       .stream = lag_stmt_int(row, 5),
				       .comm = comm,
				       .n_ops = (uint32_t)lag_stmt_int(row, 4),
				       .n_gpu = !lag_stmt_is_null(row, 6) };
	return LAG_OK;
}

/* Index + 1 of the launch in a column; of an empty one where there is none. */
static uint32_t launch_ref(struct lag_proc *p, const struct lag_stmt *row, int column)
{
	int64_t id = lag_stmt_int(row, column);
	struct lag_launch *none;

	if (id != LAG_NONE) {
		return id >= p->first_launch_id &&
				       (uint64_t)id - (uint64_t)p->first_launch_id < p->launches.n
			       ? (uint32_t)(id - p->first_launch_id) + 1
			       : 0;
	}
	none = lag_vec_push(&p->launches);
	if (!none)
		return 0;
	none->start_ns = none->end_ns = none->group_id = none->stream = LAG_NONE;
	none->n_ops = 1;
	return (uint32_t)p->launches.n;
}

static enum lag_status op_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_proc *p = proc_of(l, row, 0);
	struct lag_op_link *link;
	struct lag_record rec;
	uint64_t place = 0;
	uint32_t comm, in;

	if (!p || !refers(row, 1, l->m->comms.n, &comm))
		return not_ours(l, "nccl_op");
	lag_record_init(&rec, LAG_REC_op);
	rec.op.comm_id = comm;
	rec.op.func = lag_stmt_int(row, 2);
	rec.op.seq = lag_stmt_int(row, 3);
	rec.op.peer = lag_stmt_int(row, 4);
	rec.op.count = lag_stmt_int(row, 5);
	rec.op.datatype = lag_stmt_int(row, 6);
	rec.op.redop = lag_stmt_int(row, 7);
	rec.op.enter_ns = lag_stmt_int(row, 8);
	rec.op.leave_ns = lag_stmt_int(row, 9);
	rec.op.group_id = lag_stmt_int(row, 10);
	rec.op.sources = lag_stmt_int(row, 13);
	rec.op.result = lag_stmt_int(row, 14);
	link = lag_vec_push(&p->op_links);
	if (!link || lag_failed(lag_part_add(&p->part, &rec, NULL)))
		return no_memory(l);
	*link = (struct lag_op_link){ .launch_ref = launch_ref(p, row, 11),
				      .comm = comm,
				      .comm_rank = LAG_NONE,
				      .seq = rec.op.seq };
	if (!link->launch_ref)
		return not_ours(l, "nccl_op");
	if (lag_map_find(&p->comm_rank_of, comm, &place))
		link->comm_rank = (int64_t)place;
	if (lag_stmt_is_null(row, 12))
		return LAG_OK;
	if (!refers(row, 12, l->m->instances.n, &in) || LAG_INSTANCE_AT(l->m, in)->comm != comm)
		return not_ours(l, "nccl_op");
	link->instance_ref = in + 1;
	return LAG_OK;
}

static double real_or(const struct lag_stmt *row, int column, double unknown)
{
	return lag_stmt_is_null(row, column) ? unknown : (double)lag_stmt_int(row, column);
}

static enum lag_align_basis basis_of(const char *name)
{
	for (int b = LAG_ALIGN_NOTHING; b <= LAG_ALIGN_WALL; b++) {
		if (strcmp(name, lag_align_basis_name((enum lag_align_basis)b)) == 0)
			return (enum lag_align_basis)b;
	}
	return LAG_ALIGN_NOTHING;
}

static enum lag_status device_clock_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_proc *p = proc_of(l, row, 1);
	struct lag_old_device *device = lag_vec_push(&l->m->old.devices);

	if (!device)
		return no_memory(l);
	if (!p)
		return not_ours(l, "clock_map");
	*device = (struct lag_old_device){
		.proc = (uint32_t)(p - LAG_PROC_AT(l->m, 0)),
		.row = { .from_ns = lag_stmt_int(row, 2),
			 .offset_ns = real_or(row, 4, 0),
			 .uncertainty_ns = real_or(row, 6, -1),
			 .own_ns = real_or(row, 10, -1) },
	};
	return LAG_OK;
}

static enum lag_status clock_row(struct loading *l, const struct lag_stmt *row)
{
	struct lag_align_segment *s;
	double drift = lag_stmt_real(row, 5);
	uint32_t host;

	if (!refers(row, 0, l->m->hosts.n, &host) || !isfinite(drift))
		return not_ours(l, "clock_map");
	if (!lag_stmt_is_null(row, 1))
		return device_clock_row(l, row);
	s = lag_vec_push(&l->m->old.segments);
	if (!s)
		return no_memory(l);
	*s = (struct lag_align_segment){ .host = host,
					 .from_ns = lag_stmt_int(row, 2),
					 .ref_ns = lag_stmt_int(row, 3),
					 .offset_ns = real_or(row, 4, 0),
					 .drift = drift / 1e6,
					 .uncertainty_ns = real_or(row, 6, -1),
					 .bound_lo_ns = real_or(row, 7, -INFINITY),
					 .bound_hi_ns = real_or(row, 8, INFINITY),
					 .n_observations = (uint32_t)lag_stmt_int(row, 9),
					 .basis = basis_of(lag_stmt_text(row, 11)) };
	return LAG_OK;
}

/* Kinds that speak of all ranks together: they are found again with the new ones. */
static bool is_remade(const char *kind)
{
	static const char *const kinds[] = {
		"missing_rank",   "mismatch",         "unmatched",      "unmatched_edge",
		"numbered_twice", "matched_by_order", "unordered",      "world_size",
		"clock_unjoined", "clock_wall",       "clock_state",    "clock_violation",
		"cut_off",        "quarantine",       "clock_unaligned"
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	}
	return false;
}

static enum lag_status finding_row(struct loading *l, const struct lag_stmt *row)
{
	int64_t *stale;

	if (!is_remade(lag_stmt_text(row, 2))) {
		l->m->old.n_findings++;
		l->m->old.n_warnings += lag_stmt_int(row, 1) > 0;
		return LAG_OK;
	}
	stale = lag_vec_push(&l->m->old.stale);
	if (!stale)
		return no_memory(l);
	*stale = lag_stmt_int(row, 0);
	return LAG_OK;
}

static enum lag_status last_row(struct loading *l, const struct lag_stmt *row)
{
	static const enum lag_table tables[] = { LAG_TABLE_gpu_event,   LAG_TABLE_api_call,
						 LAG_TABLE_gpu_sync,    LAG_TABLE_nvtx_range,
						 LAG_TABLE_nccl_launch, LAG_TABLE_nccl_op,
						 LAG_TABLE_quarantine,  LAG_TABLE_pyramid_lane,
						 LAG_TABLE_finding };

	const int n = sizeof(tables) / sizeof(tables[0]);

	for (int i = 0; i < n; i++) {
		l->m->old.last_id[tables[i]] = lag_stmt_int(row, i);
		/* Room for the new ones. */
		if (lag_stmt_int(row, i) < 0 || lag_stmt_int(row, i) > INT64_MAX / 2)
			return not_ours(l, "of events");
	}
	l->m->old.n_quarantined = (uint64_t)lag_stmt_int(row, n);
	return LAG_OK;
}

static enum lag_status load_table(struct loading *l, struct lag_db *db, const char **sql,
				  take_row *take)
{
	struct lag_stmt *stmt = NULL;
	enum lag_status st = lag_stmt_prepare(db, *sql, sql, &stmt, l->err);
	size_t n = 0;

	while (st == LAG_OK && (st = lag_stmt_step(stmt, l->err)) == LAG_OK) {
		st = take(l, stmt);
		if (st == LAG_OK && lag_merge_cancelled(l->m, n++))
			st = lag_merge_interrupted(l->err);
		if (st != LAG_OK)
			break;
	}
	lag_stmt_free(stmt);
	return st == LAG_END ? LAG_OK : st;
}

/* The run's number is known before, and its string after the strings are read. */
static enum lag_status end_strings(struct loading *l)
{
	const char *run = l->m->old.run;
	uint32_t id;

	l->m->old.n_strings = lag_strtab_count(&l->m->pool.strings);
	if (!run[0])
		return LAG_OK;
	id = lag_strtab_add(&l->m->pool.strings, run, strlen(run));
	l->m->run_id = id;
	return id == LAG_STR_NONE ? no_memory(l) : LAG_OK;
}

enum lag_status lag_append_read(struct lag_merge *m, struct lag_db *db, struct lag_err *err)
{
	static take_row *const before[] = { meta_row, string_row };
	static take_row *const after[] = { config_row,   name_row,   host_row, source_row,
					   process_row,  rank_row,   comm_row, member_row,
					   instance_row, launch_row, op_row,   clock_row,
					   finding_row,  last_row };
	struct loading l = { .m = m, .err = err };
	const char *sql = lag_sql_append_load;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && st == LAG_OK; i++)
		st = load_table(&l, db, &sql, before[i]);
	if (st == LAG_OK)
		st = end_strings(&l);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]) && st == LAG_OK; i++)
		st = load_table(&l, db, &sql, after[i]);
	if (st != LAG_OK)
		return st;
	m->old.n_configs = m->pool.configs.n;
	m->old.n_hosts = (uint32_t)m->hosts.n;
	m->old.n_sources = (uint32_t)m->sources.n;
	m->old.n_procs = (uint32_t)m->procs.n;
	m->old.n_comms = (uint32_t)m->comms.n;
	m->old.n_instances = (uint32_t)m->instances.n;
	for (size_t i = 0; i < m->comms.n; i++) {
		if (LAG_COMM_AT(m, i)->parent_ref > m->comms.n)
			return not_ours(&l, "communicator");
	}
	if (strstr(m->old.method, "repaired")) {
		return lag_err_set(
			err, LAG_ERR_INPUT,
			"the order of its times was repaired: merge all recordings again");
	}
	if (!m->hosts.n || m->old.reference_host >= m->hosts.n)
		return not_ours(&l, "meta");
	return LAG_OK;
}
