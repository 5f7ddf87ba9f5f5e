/* SPDX-License-Identifier: Apache-2.0 */
/* Who is who: hosts, recordings of one process that came twice, restarts, and the rank of each process that
 * did GPU work. Content decides, never file names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/combine.h"
#include "schema/base/buf.h"
#include "schema/base/fmt.h"

static uint64_t count_work(const struct lag_part *part)
{
	return (uint64_t)LAG_PART_COUNT(part, kernel) + LAG_PART_COUNT(part, memcpy) +
	       LAG_PART_COUNT(part, memset) + LAG_PART_COUNT(part, op);
}

bool lag_merge_may_be_rank(const struct lag_part *part)
{
	return count_work(part) > 0 || (part->process.rank != LAG_NONE &&
					LAG_PART_COUNT(part, range) + LAG_PART_COUNT(part, api) +
							LAG_PART_COUNT(part, comm_progress) >
						0);
}

/* ---- hosts ---- */

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "."), k = strcspn(b, ".");

	/* "node3" and "node3.cluster" are one machine. */
	return n == k && strncasecmp(a, b, n) == 0 && (!a[n] || !b[k] || strcasecmp(a, b) == 0);
}

bool lag_merge_hosts_differ(const struct lag_merge *m, const struct lag_rec_process *a,
			    const struct lag_rec_process *b)
{
	if (a->boot_id && b->boot_id)
		return a->boot_id != b->boot_id;
	return a->host && b->host &&
	       !same_name(lag_merge_text(m, a->host), lag_merge_text(m, b->host));
}

/* Boot ids by host name, where the recordings tell both; 0 for a name that two machines have. */
static enum lag_status learn_names(const struct lag_merge *m, struct lag_map *boot_of)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		const struct lag_rec_process *id = &LAG_PROC_AT(m, i)->part.process;
		uint64_t boot;

		if (!id->boot_id || !id->host)
			continue;
		if (!lag_map_find(boot_of, (uint64_t)id->host, &boot)) {
			st = lag_map_set(boot_of, (uint64_t)id->host, (uint64_t)id->boot_id);
		} else if (boot != (uint64_t)id->boot_id) {
			st = lag_map_set(boot_of, (uint64_t)id->host, 0);
		}
	}
	return st;
}

/* Containers of one machine have names of their own and one boot id: one clock. A source that knows the
 * name alone belongs to the machine that another one tells by both. Without either, nothing says that
 * two processes share a clock. */
static uint64_t host_key(const struct lag_map *boot_of, const struct lag_rec_process *id, size_t i)
{
	uint64_t boot = (uint64_t)id->boot_id;

	if (!boot && id->host)
		(void)lag_map_find(boot_of, (uint64_t)id->host, &boot);
	if (boot)
		return lag_hash_pair(1, boot);
	return id->host ? lag_hash_pair(2, (uint64_t)id->host) : lag_hash_pair(3, i);
}

static enum lag_status place(struct lag_merge *m, struct lag_map *known, uint64_t key,
			     struct lag_proc *p)
{
	const struct lag_rec_process *id = &p->part.process;
	struct lag_host_row *row;
	uint64_t at = 0;

	if (p->old)
		return lag_map_set(known, key, p->host);
	if (lag_map_find(known, key, &at)) {
		p->host = (uint32_t)at;
		row = &LAG_VEC_AT(&m->hosts, struct lag_host_row, at);
		if (!row->boot_id[0])
			row->boot_id = lag_merge_text(m, id->boot_id);
		return LAG_OK;
	}
	p->host = (uint32_t)m->hosts.n;
	row = lag_vec_push(&m->hosts);
	if (!row)
		return LAG_ERR_SYSTEM;
	row->name = lag_merge_text(m, id->host);
	row->boot_id = lag_merge_text(m, id->boot_id);
	return lag_map_set(known, key, p->host);
}

/* Hosts of ranks come first: the clocks of others, whose processes have no events, are nothing to put
 * right. */
static enum lag_status find_hosts(struct lag_merge *m)
{
	struct lag_map known = { 0 }, boot_of = { 0 };
	enum lag_status st = learn_names(m, &boot_of);

	for (int unused = 0; unused < 2 && st == LAG_OK; unused++) {
		for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
			struct lag_proc *p = LAG_PROC_AT(m, i);

			if (!p->part_of_ref && (p->unused && !p->old) == unused)
				st = place(m, &known, host_key(&boot_of, &p->part.process, i), p);
		}
		if (!unused)
			m->n_clocks = m->hosts.n;
	}
	for (size_t i = 0; i < m->procs.n; i++) {
		if (LAG_PROC_AT(m, i)->part_of_ref) {
			LAG_PROC_AT(m, i)->host =
				LAG_PROC_AT(m, LAG_PROC_AT(m, i)->part_of_ref - 1)->host;
		}
	}
	lag_map_release(&known);
	lag_map_release(&boot_of);
	return st;
}

const char *lag_merge_host_name(const struct lag_merge *m, uint32_t host,
				char room[LAG_HOST_NAME_MAX])
{
	const char *name = LAG_VEC_AT(&m->hosts, struct lag_host_row, host).name;

	if (name[0])
		return name;
	(void)snprintf(room, LAG_HOST_NAME_MAX, "host-%u", host + 1);
	return room;
}

/* ---- recordings that are not used ---- */

void lag_merge_set_aside(struct lag_merge *m, struct lag_proc *p, enum lag_source_state state,
			 const char *why)
{
	struct lag_source_row *row = &LAG_VEC_AT(&m->sources, struct lag_source_row, p->source);

	p->unused = true;
	if (state != LAG_SOURCE_OK)
		row->state = state;
	(void)strncpy(row->note, why, sizeof(row->note) - 1);
}

static uint64_t process_key(const struct lag_proc *p)
{
	const struct lag_rec_process *id = &p->part.process;
	uint64_t key = lag_hash_pair((uint64_t)id->host, (uint64_t)id->boot_id);

	key = lag_hash_pair(key, (uint64_t)id->pid_namespace);
	key = lag_hash_pair(key, (uint64_t)id->pid);
	key = lag_hash_pair(key, (uint64_t)id->rank);
	return lag_hash_pair(key,
			     (uint64_t)(id->start_ns != LAG_NONE ? id->start_ns : p->first_ns));
}

static enum lag_status drop_duplicates(struct lag_merge *m)
{
	struct lag_map seen = { 0 };
	enum lag_status st = LAG_OK;

	for (size_t i = m->old.n_procs; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i), *other, *less;
		uint64_t key = process_key(p), at = 0;

		if (!lag_map_find(&seen, key, &at)) {
			st = lag_map_set(&seen, key, i);
			continue;
		}
		other = LAG_PROC_AT(m, at);
		less = p->part.n_records > other->part.n_records ? other : p;
		if (less == other)
			st = lag_map_set(&seen, key, i);
		lag_merge_set_aside(m, less, LAG_SOURCE_DUPLICATE,
				    "the same process as another file");
		lag_merge_find(m, 1, "duplicate", LAG_ABOUT(less->part.process.rank, LAG_NONE, 1),
			       "%s: the same process as %s, which has %s records; not used",
			       less->part.path, (less == p ? other : p)->part.path,
			       p->part.n_records == other->part.n_records ? "as many" : "more");
	}
	lag_map_release(&seen);
	return st;
}

/* ---- ranks ---- */

/* Whether a's recording of a rank is to be used rather than b's: the last restart, then the one with
 * GPU work, then the later one. */
static bool supersedes(const struct lag_proc *a, const struct lag_proc *b)
{
	int64_t ra = a->part.process.restart, rb = b->part.process.restart;
	uint64_t wa = count_work(&a->part), wb = count_work(&b->part);

	if ((wa > 0) != (wb > 0))
		return wa > 0;
	if (a->combined != b->combined)
		return a->combined;
	if (ra != rb)
		return ra > rb;
	if (a->first_ns != b->first_ns)
		return a->first_ns > b->first_ns;
	return wa > wb;
}

/* Why a recording of a rank is not the one that is used. */
static const char *why_not(const struct lag_proc *loser, const struct lag_proc *winner)
{
	if (!count_work(&loser->part) && count_work(&winner->part))
		return "its rank did no GPU work in it, not used";
	if (loser->first_ns == LAG_NONE || loser->first_ns < winner->first_ns)
		return "an earlier recording of its rank, not used";
	return "another recording of its rank, not used";
}

static enum lag_status take_told_ranks(struct lag_merge *m)
{
	enum lag_status st = LAG_OK;

	for (size_t i = m->old.n_procs; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i), *other, *loser;
		int64_t rank = p->part.process.rank;
		uint64_t at = 0;

		if (p->unused || rank < 0 || !lag_merge_may_be_rank(&p->part))
			continue;
		if (rank >= LAG_RANKS_MAX) {
			lag_merge_find(m, 1, "rank", LAG_ABOUT(LAG_NONE, LAG_NONE, 1),
				       "%s: rank %" PRId64 " is impossible and ignored",
				       p->part.path, rank);
			continue;
		}
		p->rank = rank;
		if (!lag_map_find(&m->rank_proc, (uint64_t)rank, &at)) {
			st = lag_map_set(&m->rank_proc, (uint64_t)rank, i);
			continue;
		}
		other = LAG_PROC_AT(m, at);
		loser = supersedes(p, other) ? other : p;
		if (loser == other)
			st = lag_map_set(&m->rank_proc, (uint64_t)rank, i);
		loser->rank = LAG_NONE;
		lag_merge_set_aside(m, loser, LAG_SOURCE_OK,
				    why_not(loser, loser == p ? other : p));
		lag_merge_find(m, 1, "rank_twice", LAG_ABOUT(rank, LAG_NONE, 1),
			       "rank %" PRId64
			       " was recorded more than once: %s is used, %s is not",
			       rank, (loser == p ? other : p)->part.path, loser->part.path);
	}
	return st;
}

/* Files without a rank get the next free number, in the order of their paths. */
static enum lag_status give_ranks(struct lag_merge *m)
{
	enum lag_status st = LAG_OK;
	uint64_t next = 0, taken;

	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		if (p->unused || p->rank != LAG_NONE || !count_work(&p->part))
			continue;
		while (lag_map_find(&m->rank_proc, next, &taken))
			next++;
		p->rank = (int64_t)next;
		st = lag_map_set(&m->rank_proc, next, i);
		lag_merge_find(m, m->procs.n > 1, "rank_assigned", LAG_ABOUT(p->rank, LAG_NONE, 1),
			       "%s does not tell its rank: it is shown as rank %" PRId64,
			       p->part.path, p->rank);
	}
	return st;
}

static void find_world(struct lag_merge *m)
{
	int64_t most = -1, told = LAG_NONE;
	bool differ = false;

	for (size_t i = 0; i < m->procs.n; i++) {
		const struct lag_proc *p = LAG_PROC_AT(m, i);
		int64_t size = p->part.process.world_size;

		if (p->rank == LAG_NONE)
			continue;
		most = p->rank > most ? p->rank : most;
		if (size <= 0 || size > LAG_RANKS_MAX)
			continue;
		differ = differ || (told != LAG_NONE && lag_merge_other_world(&p->part, told));
		told = size > told ? size : told;
	}
	m->world_size = told > most ? told : most + 1;
	if (differ) {
		lag_merge_find(m, 1, "world_size", LAG_ABOUT(LAG_NONE, LAG_NONE, 1),
			       "the recordings disagree about the number of ranks; the largest, "
			       "%" PRId64 ", is used",
			       m->world_size);
	}
}

/* "3, 5-7": ranks without a recording. */
static uint64_t list_missing(const struct lag_merge *m, struct lag_buf *out)
{
	uint64_t n = 0, at;
	int64_t from = -1;

	for (int64_t r = 0; r <= m->world_size; r++) {
		bool missing = r < m->world_size && !lag_map_find(&m->rank_proc, (uint64_t)r, &at);

		n += missing;
		if (missing && from < 0)
			from = r;
		if (missing || from < 0)
			continue;
		lag_buf_printf(out, "%s%" PRId64, lag_buf_text(out)[0] ? ", " : "", from);
		if (r - 1 > from)
			lag_buf_printf(out, "-%" PRId64, r - 1);
		from = -1;
	}
	return n;
}

static void name_missing(struct lag_merge *m)
{
	struct lag_buf list = { 0 };
	uint64_t n = list_missing(m, &list);

	if (n) {
		lag_merge_find(m, 1, "missing_rank", LAG_ABOUT(LAG_NONE, LAG_NONE, n),
			       "no recording of %" PRIu64 " of %" PRId64 " ranks: %.300s", n,
			       m->world_size, lag_buf_text(&list));
	}
	lag_buf_release(&list);
}

static void name_helpers(struct lag_merge *m)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		if (p->unused || p->rank != LAG_NONE)
			continue;
		p->unused = true;
		n++;
	}
	if (n) {
		lag_merge_find(m, 0, "helper", LAG_ABOUT(LAG_NONE, LAG_NONE, n), "%" PRIu64 "%s", n,
			       n == 1 ? " process did no GPU work and counts as a helper"
				      : " processes did no GPU work and count as helpers");
	}
}

enum lag_status lag_merge_identify(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status st = drop_duplicates(m);

	if (st == LAG_OK)
		st = lag_merge_one_run(m, err);
	if (st == LAG_OK)
		st = lag_merge_combine(m);
	if (st == LAG_OK)
		st = take_told_ranks(m);
	if (st == LAG_OK)
		st = give_ranks(m);
	if (st == LAG_OK && m->rank_proc.n) {
		find_world(m);
		name_missing(m);
		name_helpers(m);
	}
	if (st == LAG_OK)
		st = find_hosts(m);
	if (st == LAG_ERR_INPUT)
		return st;
	return st == LAG_OK ? st
			    : lag_err_set(err, LAG_ERR_SYSTEM, "no memory to identify processes");
}
