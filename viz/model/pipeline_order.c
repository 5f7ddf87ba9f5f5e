/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward without annotations. Per rank and step, in the order of the host's launches,
 * sends and receives cut the compute into runs: a run is a forward when its input came from the
 * previous stage or its output goes to the next, a backward the other way round. Where two units
 * follow each other without a message between (both ends of the model), threads tell them apart,
 * else the names of kernels that occur on one side only elsewhere. */
#include <stdlib.h>

#include "viz/model/interval.h"
#include "viz/model/pipeline_internal.h"

enum side {
	SIDE_FORWARD = 0,
	SIDE_BACKWARD = 1,
	SIDE_OTHER = 2, /* optimizer and the like */
	SIDE_UNKNOWN = 3
};

/* Something a rank launched: compute, or a message of its pipeline. */
struct item {
	int64_t launch_ns;
	uint64_t tid;
	uint32_t gpu;
	int32_t step;
	bool message, sends;
	uint8_t side; /* of a message: the direction it travels */
};

/* Compute between two messages: items[from .. to). begin, end: what its messages say. */
struct run {
	size_t from, to;
	uint8_t begin, end;
	bool received; /* a message came right before it */
};

struct by_order {
	const struct lag_trace *trace;
	const struct lag_roles *roles;
	const struct lag_steps *steps;
	bool ring_of_two;     /* the rank being gathered */
	const bool *wanted;   /* by rank: has no other evidence */
	struct lag_vec items; /* struct item, of one rank after the other */
	struct lag_vec runs;  /* struct run */
	uint32_t (*seen)[3];  /* by string: kernels of that name in pure runs of each side */
};

static int by_launch(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->launch_ns != y->launch_ns)
		return x->launch_ns < y->launch_ns ? -1 : 1;
	return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

/* Where two stages pass messages in a ring, both directions join the same pair of ranks; there the
 * communicator tells: what a rank receives and sends first in a step is forward. */
struct first_comms {
	int32_t step, comm[2];
};

/* Two stages form a ring when more than two communicators join them: one for each way and direction. */
static bool is_ring_of_two(const struct by_order *b, size_t r)
{
	const struct lag_rank *rank = &b->trace->ranks[r];
	uint32_t seen[2];
	size_t n = 0;

	for (size_t i = rank->op_begin; b->roles->n_stages == 2 && i < rank->op_end; i++) {
		const struct lag_op *op = &b->trace->ops[i];

		if ((op->func != LAG_FUNC_SEND && op->func != LAG_FUNC_RECV) ||
		    (n > 0 && seen[0] == op->comm) || (n > 1 && seen[1] == op->comm))
			continue;
		if (n == 2)
			return true;
		seen[n++] = op->comm;
	}
	return false;
}

static uint8_t direction(const struct by_order *b, const struct lag_op *op, int32_t step,
			 struct first_comms *first)
{
	const struct lag_rank_role *mine = &b->roles->ranks[op->r];
	bool sends = op->func == LAG_FUNC_SEND;
	int32_t r = lag_trace_find_peer(b->trace, op->comm, op->peer);
	int32_t n = b->roles->n_stages, other = r < 0 ? -1 : b->roles->ranks[r].stage;

	if (other < 0 || n < 2 || mine->stage < 0)
		return SIDE_UNKNOWN;
	if (first->step != step)
		*first = (struct first_comms){ step, { -1, -1 } };
	if (first->comm[sends] < 0)
		first->comm[sends] = (int32_t)op->comm;
	if (b->ring_of_two)
		return first->comm[sends] == (int32_t)op->comm ? SIDE_FORWARD : SIDE_BACKWARD;
	if (n == 2) /* the plain order: nothing wraps around */
		return sends == (other > mine->stage) ? SIDE_FORWARD : SIDE_BACKWARD;
	if (other == (mine->stage + 1) % n)
		return sends ? SIDE_FORWARD : SIDE_BACKWARD;
	if (mine->stage == (other + 1) % n)
		return sends ? SIDE_BACKWARD : SIDE_FORWARD;
	return SIDE_UNKNOWN;
}

static enum lag_status add_messages(struct by_order *b, uint32_t gpu, const struct item *base,
				    struct first_comms *first)
{
	const struct lag_launch *launch = &b->trace->launches[b->trace->gpu[gpu].launch];

	/* Sends first: within a group they end what was computed, receives begin what follows. */
	for (int sends = 1; sends >= 0; sends--) {
		for (uint32_t k = 0; k < launch->n_ops; k++) {
			const struct lag_op *op = &b->trace->ops[launch->first_op + k];
			struct item *it;

			if (op->func != (sends ? LAG_FUNC_SEND : LAG_FUNC_RECV))
				continue;
			it = lag_vec_push(&b->items);
			if (!it)
				return LAG_ERR_SYSTEM;
			*it = *base;
			it->message = true;
			it->sends = sends;
			it->side = direction(b, op, base->step, first);
		}
	}
	return LAG_OK;
}

static enum lag_status gather(struct by_order *b, size_t r)
{
	const struct lag_rank *rank = &b->trace->ranks[r];
	struct first_comms first = { -1, { -1, -1 } };
	struct lag_vec order = LAG_VEC_INIT(struct item);
	enum lag_status status = LAG_OK;

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &b->trace->gpu[i];
		struct item *it;

		if (g->end_ns == LAG_NONE || g->launch_start_ns == LAG_NONE ||
		    b->steps->of_gpu[i] < 0)
			continue;
		if (g->class != LAG_CLASS_COMPUTE && (g->class != LAG_CLASS_COMM || g->launch < 0))
			continue;
		it = lag_vec_push(&order);
		if (!it) {
			status = LAG_ERR_SYSTEM;
			break;
		}
		*it = (struct item){ .launch_ns = g->launch_start_ns,
				     .tid = g->launch_tid,
				     .gpu = (uint32_t)i,
				     .step = b->steps->of_gpu[i] };
	}
	if (order.n)
		qsort(order.items, order.n, sizeof(struct item), by_launch);
	b->items.n = 0;
	b->ring_of_two = is_ring_of_two(b, r);
	for (size_t i = 0; !lag_failed(status) && i < order.n; i++) {
		const struct item *it = &LAG_VEC_AT(&order, struct item, i);
		struct item *copy;

		if (b->trace->gpu[it->gpu].class == LAG_CLASS_COMM) {
			status = add_messages(b, it->gpu, it, &first);
			continue;
		}
		copy = lag_vec_push(&b->items);
		if (copy) {
			*copy = *it;
		} else {
			status = LAG_ERR_SYSTEM;
		}
	}
	lag_vec_release(&order);
	return status;
}

/* Cuts items into runs at messages, steps and changes of thread. */
static enum lag_status cut(struct by_order *b)
{
	const struct item *items = b->items.items;
	size_t n = b->items.n, i = 0;

	b->runs.n = 0;
	while (i < n) {
		struct run *run;
		size_t from = i;

		if (items[i].message) {
			i++;
			continue;
		}
		while (i < n && !items[i].message && items[i].step == items[from].step &&
		       items[i].tid == items[from].tid)
			i++;
		run = lag_vec_push(&b->runs);
		if (!run)
			return LAG_ERR_SYSTEM;
		*run = (struct run){ from, i, SIDE_UNKNOWN, SIDE_UNKNOWN, false };
		for (size_t k = from;
		     k > 0 && items[k - 1].message && items[k - 1].step == items[from].step; k--) {
			if (!items[k - 1].sends) {
				run->begin = items[k - 1].side;
				run->received = true;
			}
		}
		if (i < n && items[i].message && items[i].sends &&
		    items[i].step == items[from].step)
			run->end = items[i].side;
	}
	return LAG_OK;
}

/* Threads: what the thread of a step's first kernel launches is forward until another thread has
 * launched, which is autograd's. */
static void mark_threads(struct by_order *b)
{
	const struct item *items = b->items.items;
	struct run *runs = b->runs.items;

	for (size_t i = 0; i < b->runs.n;) {
		size_t end = i, last_other = 0;
		uint64_t main = items[runs[i].from].tid;
		bool two = false;

		for (; end < b->runs.n && items[runs[end].from].step == items[runs[i].from].step;
		     end++) {
			if (items[runs[end].from].tid != main) {
				two = true;
				last_other = end;
			}
		}
		for (size_t k = i; two && k < end; k++) {
			bool is_main = items[runs[k].from].tid == main;
			uint8_t side = !is_main         ? SIDE_BACKWARD
				       : k < last_other ? SIDE_FORWARD
							: SIDE_OTHER;

			runs[k].begin = runs[k].end = side;
		}
		i = end;
	}
}

/* A run whose messages agree, or that has none after the step's last message, is pure. */
static uint8_t pure_side(const struct run *run)
{
	if (run->begin == SIDE_UNKNOWN)
		return run->end;
	return run->end == SIDE_UNKNOWN || run->end == run->begin ? run->begin : SIDE_UNKNOWN;
}

/* Runs after the last message of a step, without a sign of either side. */
static bool trails(const struct by_order *b, size_t i)
{
	const struct run *runs = b->runs.items;
	const struct item *items = b->items.items;

	if (runs[i].begin != SIDE_UNKNOWN || runs[i].end != SIDE_UNKNOWN)
		return false;
	return runs[i].to == b->items.n || items[runs[i].to].step != items[runs[i].from].step ||
	       !items[runs[i].to].message;
}

static bool ends_step(const struct by_order *b, const struct run *run)
{
	const struct item *items = b->items.items;

	return run->to == b->items.n || items[run->to].step != items[run->from].step;
}

static void learn(struct by_order *b)
{
	const struct item *items = b->items.items;
	const struct run *runs = b->runs.items;

	for (size_t i = 0; i < b->runs.n; i++) {
		uint8_t side = trails(b, i) ? SIDE_OTHER : pure_side(&runs[i]);

		/* Behind the last backward the optimizer may follow without a message: not pure. */
		if (side == SIDE_UNKNOWN || (side != SIDE_OTHER && ends_step(b, &runs[i])))
			continue;
		for (size_t k = runs[i].from; k < runs[i].to; k++)
			b->seen[b->trace->gpu[items[k].gpu].full][side]++;
	}
}

static bool only(const struct by_order *b, const struct item *it, uint8_t side, uint8_t not_side)
{
	const uint32_t *seen = b->seen[b->trace->gpu[it->gpu].full];

	return seen[side] > 0 && seen[not_side] == 0;
}

/* Where a run of `first` followed by `second` changes: fewest kernels on the wrong side; among equal
 * places the middle. */
static size_t split(const struct by_order *b, const struct run *run, uint8_t first, uint8_t second)
{
	const struct item *items = b->items.items;
	int64_t cost = 0, best;
	size_t lo = run->from, hi = run->from;

	for (size_t k = run->from; k < run->to; k++)
		cost += only(b, &items[k], first, second);
	best = cost;
	for (size_t k = run->from; k < run->to; k++) {
		cost += only(b, &items[k], second, first);
		cost -= only(b, &items[k], first, second);
		if (cost < best) {
			best = cost;
			lo = hi = k + 1;
		} else if (cost == best) {
			hi = k + 1;
		}
	}
	return (lo + hi + 1) / 2;
}

/* The block of items[from .. to). chunk: -2 marks a forward that took nothing from a peer, until the
 * chunks are numbered. */
static enum lag_status add_block(const struct by_order *b, size_t r, size_t from, size_t to,
				 uint8_t side, bool received, struct lag_vec *blocks)
{
	const struct item *items = b->items.items;
	struct lag_intervals busy = { 0 };
	enum lag_status status = LAG_OK;
	struct lag_block *block;

	if (from == to || side > SIDE_BACKWARD)
		return LAG_OK;
	for (size_t k = from; k < to && !lag_failed(status); k++) {
		const struct lag_gpu_event *g = &b->trace->gpu[items[k].gpu];

		status = lag_intervals_add(&busy, g->start_ns, g->end_ns);
	}
	lag_intervals_normalize(&busy);
	if (!lag_failed(status) && busy.n) {
		block = lag_vec_push(blocks);
		status = block ? LAG_OK : LAG_ERR_SYSTEM;
		if (block) {
			*block = (struct lag_block){ .start_ns = busy.at[0].start_ns,
						     .end_ns = busy.at[busy.n - 1].end_ns,
						     .busy_ns = lag_intervals_length(&busy),
						     .r = (uint32_t)r,
						     .step = items[from].step,
						     .microbatch = -1,
						     .chunk = received ? -1 : -2,
						     .kind = side };
		}
	}
	lag_intervals_release(&busy);
	return status;
}

static enum lag_status tag(const struct by_order *b, size_t r, struct lag_vec *blocks)
{
	enum lag_status status = LAG_OK;

	for (size_t i = 0; !lag_failed(status) && i < b->runs.n; i++) {
		const struct run *run = &LAG_VEC_AT(&b->runs, struct run, i);
		uint8_t first = run->begin, second = run->end;
		size_t at = run->to;

		if (trails(b, i))
			continue;
		if (first == SIDE_UNKNOWN)
			first = second;
		if (second == SIDE_UNKNOWN || second == first)
			second = ends_step(b, run) && first == SIDE_BACKWARD ? SIDE_OTHER : first;
		if (second != first)
			at = split(b, run, first, second);
		status = add_block(b, r, run->from, at, first, run->received, blocks);
		if (!lag_failed(status))
			status = add_block(b, r, at, run->to, second, false, blocks);
	}
	return status;
}

/* Chunks of one rank: the k-th forward (backward) of a step has its place in the interleaved order,
 * with v known from the first stage, where only the first chunk's forwards take no message. */
static void number_chunks(struct lag_vec *blocks, size_t from, int32_t n_stages, int32_t v)
{
	int32_t step = -1, turn[2] = { 0, 0 };

	for (size_t i = from; i < blocks->n; i++) {
		struct lag_block *u = &LAG_VEC_AT(blocks, struct lag_block, i);
		int32_t k, chunk;

		if (u->step != step) {
			step = u->step;
			turn[0] = turn[1] = 0;
		}
		k = turn[u->kind]++;
		chunk = k % (n_stages * v) / n_stages;
		u->microbatch = v == 1 ? k : k / (n_stages * v) * n_stages + k % n_stages;
		u->chunk = u->kind == LAG_BLOCK_FORWARD ? chunk : v - 1 - chunk;
	}
}

static int32_t count_chunks(const struct lag_vec *blocks, size_t from, size_t to)
{
	int32_t forwards = 0, alone = 0;

	for (size_t i = from; i < to; i++) {
		const struct lag_block *u = &LAG_VEC_AT(blocks, struct lag_block, i);

		forwards += u->kind == LAG_BLOCK_FORWARD;
		alone += u->kind == LAG_BLOCK_FORWARD && u->chunk == -2;
	}
	return alone > 0 && forwards % alone == 0 ? forwards / alone : 1;
}

static enum lag_status each_rank(struct by_order *b, struct lag_vec *blocks, bool tagging)
{
	size_t *from = lag_calloc(b->trace->n_ranks + 1, sizeof(*from));
	enum lag_status status = from ? LAG_OK : LAG_ERR_SYSTEM;
	int32_t v = 1;

	for (size_t r = 0; !lag_failed(status) && r < b->trace->n_ranks; r++) {
		from[r] = blocks->n;
		if (!b->wanted[r])
			continue;
		status = gather(b, r);
		if (!lag_failed(status))
			status = cut(b);
		if (lag_failed(status))
			break;
		mark_threads(b);
		if (tagging) {
			status = tag(b, r, blocks);
		} else {
			learn(b);
		}
		if (tagging && b->roles->ranks[r].stage == 0)
			v = count_chunks(blocks, from[r], blocks->n);
	}
	for (size_t r = b->trace->n_ranks; tagging && !lag_failed(status) && r-- > 0;) {
		size_t end = r + 1 < b->trace->n_ranks ? from[r + 1] : blocks->n;
		size_t all = blocks->n;

		blocks->n = end;
		number_chunks(blocks, from[r], b->roles->n_stages > 0 ? b->roles->n_stages : 1, v);
		blocks->n = all;
	}
	free(from);
	return status;
}

enum lag_status lag_pipeline_from_order(const struct lag_trace *trace,
					const struct lag_steps *steps,
					const struct lag_roles *roles, const bool *wanted,
					struct lag_vec *blocks)
{
	struct by_order b = { .trace = trace,
			      .roles = roles,
			      .steps = steps,
			      .wanted = wanted,
			      .items = LAG_VEC_INIT(struct item),
			      .runs = LAG_VEC_INIT(struct run) };
	enum lag_status status = LAG_ERR_SYSTEM;

	b.seen = lag_calloc(trace->n_strings, sizeof(*b.seen));
	if (b.seen)
		status = each_rank(&b, blocks, false);
	if (!lag_failed(status))
		status = each_rank(&b, blocks, true);
	lag_vec_release(&b.items);
	lag_vec_release(&b.runs);
	free(b.seen);
	return status;
}
