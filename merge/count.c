/* SPDX-License-Identifier: Apache-2.0 */
/* Operations whose source does not number them are numbered by their order, but only where all ranks
 * recorded equally many in a common window: after a loss or another start, order matches wrongly. */
#include <inttypes.h>

#include "merge/state.h"
#include "schema/base/fmt.h"
#include "schema/base/sort.h"

/* Which sequence an operation belongs to, and its place in time. */
struct entry {
	uint64_t sequence; /* communicator, or communicator, source, destination */
	uint32_t proc, op, comm;
	int64_t at_ns;
	uint8_t func;
};

static bool is_message(int64_t func)
{
	return func == LAG_FUNC_SEND || func == LAG_FUNC_RECV;
}

static bool numbered_by_source(const struct lag_rec_op *op)
{
	/* Where the numbers are the communicator's own, an operation without one has no place. */
	return (op->sources & LAG_OP_NUMBERED) ||
	       (op->seq != LAG_NONE &&
		(op->sources & (LAG_OP_FROM_CALL | LAG_OP_FROM_NVTX | LAG_OP_FROM_PLUGIN)));
}

static uint64_t sequence_of(const struct lag_rec_op *op, const struct lag_op_link *link)
{
	int64_t src = link->comm_rank, dst = op->peer;

	if (!is_message(op->func))
		return lag_hash_pair(1, link->comm);
	if (op->func == LAG_FUNC_RECV) {
		src = op->peer;
		dst = link->comm_rank;
	}
	return lag_hash_pair(lag_hash_pair(2, link->comm),
			     lag_hash_pair((uint64_t)src, (uint64_t)dst));
}

static int by_sequence(const void *left, const void *right, void *state)
{
	const struct entry *a = left, *b = right;

	(void)state;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	/* The two sides of a message are two sequences even in one process. */
	if (is_message(a->func) && a->func != b->func)
		return a->func < b->func ? -1 : 1;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->op < b->op ? -1 : a->op > b->op;
}

/* Communicators in which imported operations carry true numbers: those that do not start at 0 in every
 * recording, as an importer's own count would. */
static enum lag_status find_starts(const struct lag_merge *m, struct lag_map *true_numbers)
{
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);
		struct lag_map least = { 0 };

		for (uint32_t o = 0; o < p->op_links.n && st == LAG_OK; o++) {
			const struct lag_rec_op *op = &LAG_PART_AT(&p->part, op, o);
			uint64_t comm = LAG_OP_LINK_AT(p, o)->comm, low;

			if (is_message(op->func) || op->seq == LAG_NONE ||
			    op->sources == LAG_OP_FROM_NAME)
				continue;
			if (!lag_map_find(&least, comm, &low) || (uint64_t)op->seq < low)
				st = lag_map_set(&least, comm, (uint64_t)op->seq);
		}
		for (size_t s = 0; s < least.cap && st == LAG_OK; s++) {
			if (least.slots[s].used && least.slots[s].value != 0)
				st = lag_map_set(true_numbers, least.slots[s].key, 1);
		}
		lag_map_release(&least);
	}
	return st;
}

/* Sequences of messages in which a source that counts from the job's start has numbers: the order of what
 * another one recorded in between is not to be taken for such. */
static enum lag_status find_counted(const struct lag_merge *m, struct lag_map *counted)
{
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		for (uint32_t o = 0; o < p->op_links.n && st == LAG_OK; o++) {
			const struct lag_rec_op *op = &LAG_PART_AT(&p->part, op, o);

			if (is_message(op->func) && (op->sources & LAG_OP_NUMBERED) &&
			    op->seq != LAG_NONE)
				st = lag_map_set(counted, sequence_of(op, LAG_OP_LINK_AT(p, o)), 1);
		}
	}
	return st;
}

static enum lag_status list_entries(const struct lag_merge *m, const struct lag_map *true_numbers,
				    struct lag_vec *entries)
{
	for (uint32_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		for (uint32_t o = 0; o < p->op_links.n; o++) {
			const struct lag_rec_op *op = &LAG_PART_AT(&p->part, op, o);
			struct lag_op_link *link = LAG_OP_LINK_AT(p, o);
			const struct lag_launch *launch = LAG_LAUNCH_AT(p, link->launch_ref - 1);
			struct entry *e;
			uint64_t one;

			if (numbered_by_source(op) ||
			    (!is_message(op->func) && op->sources != LAG_OP_FROM_NAME &&
			     op->seq != LAG_NONE && lag_map_find(true_numbers, link->comm, &one)))
				continue;
			/* What was counted before stays so. */
			if (!p->old)
				link->seq = LAG_NONE;
			link->by_order = true;
			if (is_message(op->func) && (op->peer == LAG_NONE || link->comm_rank < 0))
				continue;
			e = lag_vec_push(entries);
			if (!e)
				return LAG_ERR_SYSTEM;
			/* Streams run what was enqueued first first: where the GPU's order is known
			 * it is the order of the operations. */
			*e = (struct entry){
				.sequence = sequence_of(op, link),
				.proc = i,
				.op = o,
				.comm = link->comm,
				.at_ns = launch->start_ns != LAG_NONE ? launch->start_ns
								      : op->enter_ns,
				.func = (uint8_t)op->func,
			};
		}
	}
	return lag_vec_sort(entries, by_sequence, NULL);
}

/* A recording's run of one sequence: entries [first, last). */
struct run {
	size_t first, last;
};

static bool same_run(const struct entry *a, const struct entry *b)
{
	return a->proc == b->proc && (!is_message(a->func) || a->func == b->func);
}

/* Equally many, and the same function at each place. */
static bool agree(const struct entry *e, const struct run *runs, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (runs[i].last - runs[i].first != runs[0].last - runs[0].first)
			return false;
		for (size_t k = 0; k < runs[i].last - runs[i].first; k++) {
			uint8_t a = e[runs[0].first + k].func, b = e[runs[i].first + k].func;

			if (a != b && !(is_message(a) && is_message(b)))
				return false;
		}
	}
	return true;
}

static void narrow(const struct lag_merge *m, const struct entry *e, struct run *runs, size_t n)
{
	int64_t from = INT64_MIN, until = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct lag_proc *p = LAG_PROC_AT(m, e[runs[i].first].proc);

		from = p->first_ns > from ? p->first_ns : from;
		until = p->last_ns < until ? p->last_ns : until;
	}
	for (size_t i = 0; i < n; i++) {
		while (runs[i].first < runs[i].last && e[runs[i].first].at_ns < from)
			runs[i].first++;
		while (runs[i].last > runs[i].first && e[runs[i].last - 1].at_ns > until)
			runs[i].last--;
	}
}

/* Whether those that were counted in an earlier merge have the numbers that they would get now. */
static bool counted_alike(const struct lag_merge *m, const struct entry *e, const struct run *runs,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, e[runs[i].first].proc);

		for (size_t k = runs[i].first; k < runs[i].last && p->old; k++) {
			if (LAG_OP_LINK_AT(p, e[k].op)->seq != (int64_t)(k - runs[i].first))
				return false;
		}
	}
	return true;
}

static void number(struct lag_merge *m, const struct entry *e, const struct run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = runs[i].first; k < runs[i].last; k++) {
			LAG_OP_LINK_AT(LAG_PROC_AT(m, e[k].proc), e[k].op)->seq =
				(int64_t)(k - runs[i].first);
		}
	}
}

/* Entries [first, last) are one sequence over all recordings. */
static enum lag_status number_sequence(struct lag_merge *m, const struct entry *e, size_t first,
				       size_t last)
{
	struct lag_vec runs = LAG_VEC_SPILLED(struct run, m->spill);
	bool good;

	for (size_t i = first; i < last; i++) {
		struct run *run = runs.n ? &LAG_VEC_AT(&runs, struct run, runs.n - 1) : NULL;

		if (!run || !same_run(&e[run->first], &e[i])) {
			run = lag_vec_push(&runs);
			if (!run) {
				lag_vec_release(&runs);
				return LAG_ERR_SYSTEM;
			}
			run->first = i;
		}
		run->last = i + 1;
	}
	good = agree(e, runs.items, runs.n);
	if (!good) {
		narrow(m, e, runs.items, runs.n);
		good = agree(e, runs.items, runs.n);
	}
	good = good && counted_alike(m, e, runs.items, runs.n);
	if (good) {
		number(m, e, runs.items, runs.n);
	} else {
		LAG_COMM_AT(m, e[first].comm)->n_unordered += last - first;
	}
	if (good && runs.n > 1)
		LAG_COMM_AT(m, e[first].comm)->n_by_order += last - first;
	lag_vec_release(&runs);
	return LAG_OK;
}

static void report(struct lag_merge *m)
{
	for (size_t i = 0; i < m->comms.n; i++) {
		const struct lag_comm_row *c = LAG_COMM_AT(m, i);

		if (c->n_by_order) {
			lag_merge_find(
				m, 0, "matched_by_order",
				LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_by_order),
				"%" PRIu64 " %s no number and are matched by "
				"their order: all ranks recorded equally many",
				c->n_by_order,
				LAG_PLURAL(c->n_by_order, "operation carries", "operations carry"));
		}
		if (c->n_unordered) {
			lag_merge_find(m, 1, "unordered",
				       LAG_ABOUT(LAG_NONE, (int64_t)i, c->n_unordered),
				       "%" PRIu64 " %s no number and the ranks "
				       "recorded different ones: they are not matched",
				       c->n_unordered,
				       LAG_PLURAL(c->n_unordered, "operation carries",
						  "operations carry"));
		}
	}
}

enum lag_status lag_merge_count(struct lag_merge *m, struct lag_err *err)
{
	struct lag_vec entries = LAG_VEC_SPILLED(struct entry, m->spill);
	struct lag_map true_numbers = { 0 }, counted = { 0 };
	enum lag_status st = find_starts(m, &true_numbers);
	uint64_t one;

	if (st == LAG_OK)
		st = find_counted(m, &counted);
	if (st == LAG_OK)
		st = list_entries(m, &true_numbers, &entries);
	for (size_t i = 0, j; i < entries.n && st == LAG_OK; i = j) {
		const struct entry *e = entries.items;

		for (j = i + 1; j < entries.n && e[j].sequence == e[i].sequence; j++)
			continue;
		if (lag_map_find(&counted, e[i].sequence, &one)) {
			LAG_COMM_AT(m, e[i].comm)->n_unordered += j - i;
		} else {
			st = number_sequence(m, e, i, j);
		}
	}
	lag_vec_release(&entries);
	lag_map_release(&true_numbers);
	lag_map_release(&counted);
	if (st != LAG_OK)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory to number operations");
	report(m);
	return LAG_OK;
}
