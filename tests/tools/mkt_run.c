/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up ranks, communicators and connections, and resolves a step: streams in order, waits between
 * them, collectives and messages with their partners. */
#include "tests/tools/mkt_run.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"

static uint64_t draw_bits(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	return lag_hash_u64(lag_hash_pair(lag_hash_pair(seed + 1, a), b) ^ lag_hash_u64(c + 77));
}

double mkt_uniform(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	return (double)(draw_bits(seed, a, b, c) >> 11) * 0x1p-52 - 1;
}

double mkt_draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	/* Sum of three uniforms: unit variance after doubling, never beyond 3. */
	uint64_t h = draw_bits(seed, a, b, c);
	double sum = (double)(h & 0x1fffff) + (double)(h >> 21 & 0x1fffff) +
		     (double)(h >> 42 & 0x1fffff);
	return 2 * (sum / (double)0x1fffff - 1.5);
}

double mkt_fault_factor(const struct mkt_run *run, enum mkt_fault_kind kind, int a, int b)
{
	double factor = 1;
	for (int i = 0; run->faults && i < run->opt->n_faults; i++) {
		const struct mkt_fault *f = &run->opt->faults[i];
		if (f->kind != kind || run->step < f->at || run->step >= f->until)
			continue;
		if (f->a == a && (kind != MKT_SLOW_LINK || f->b == b))
			factor *= f->factor;
	}
	return factor;
}

static struct mkt_comm *add_comm(struct mkt_run *run, const char *kind, int a, int b, int n)
{
	struct mkt_comm *c = &run->comms[run->n_comms++];
	if (n == run->n_ranks && !strcmp(kind, "world")) {
		snprintf(c->name, sizeof(c->name), "world");
	} else {
		snprintf(c->name, sizeof(c->name), "%s.%d.%d", kind, a, b);
	}
	c->n = n;
	c->ranks = lag_calloc((size_t)n, sizeof(*c->ranks));
	c->items = lag_calloc((size_t)n, sizeof(*c->items));
	return c->ranks && c->items ? c : NULL;
}

/* Position of a rank in a communicator. */
static int position(const struct mkt_comm *c, int rank)
{
	for (int i = 0; i < c->n; i++) {
		if (c->ranks[i] == rank)
			return i;
	}
	return -1;
}

static bool add_groups(struct mkt_run *run)
{
	const struct mkt_options *opt = run->opt;
	struct mkt_comm *c = add_comm(run, "world", 0, 0, run->n_ranks);
	for (int r = 0; c && r < run->n_ranks; r++)
		c->ranks[r] = r;
	for (int s = 0; c && s < opt->pp; s++) {
		for (int d = 0; c && opt->tp > 1 && d < opt->dp; d++) {
			c = add_comm(run, "tp", s, d, opt->tp);
			for (int t = 0; c && t < opt->tp; t++) {
				c->ranks[t] = mkt_rank_of(opt, (struct mkt_place){ s, d, t });
				run->ranks[c->ranks[t]].tp_comm = run->n_comms - 1;
			}
		}
		for (int t = 0; c && opt->dp > 1 && t < opt->tp; t++) {
			c = add_comm(run, "dp", s, t, opt->dp);
			for (int d = 0; c && d < opt->dp; d++) {
				c->ranks[d] = mkt_rank_of(opt, (struct mkt_place){ s, d, t });
				run->ranks[c->ranks[d]].dp_comm = run->n_comms - 1;
			}
		}
	}
	return c != NULL;
}

static bool connect(struct mkt_run *run, struct mkt_place at, bool back, int line_comm)
{
	const struct mkt_options *opt = run->opt;
	int src = mkt_rank_of(opt, at);
	struct mkt_conn *conn = &run->conns[2 * src + back];
	struct mkt_place to = at;
	to.stage += back ? -1 : 1;
	if (opt->chunks == 1 && (to.stage < 0 || to.stage >= opt->pp))
		return true;
	to.stage = (to.stage + opt->pp) % opt->pp;
	conn->src = src;
	conn->dst = mkt_rank_of(opt, to);
	conn->comm = line_comm;
	if (line_comm < 0) {
		struct mkt_comm *c = add_comm(run, back ? "pp.back" : "pp.pair", src, conn->dst, 2);
		if (!c)
			return false;
		c->ranks[0] = src;
		c->ranks[1] = conn->dst;
		conn->comm = run->n_comms - 1;
	}
	conn->src_in_comm = position(&run->comms[conn->comm], src);
	conn->dst_in_comm = position(&run->comms[conn->comm], conn->dst);
	return true;
}

/* The communicator over all stages of a line, for one direction. */
static bool add_line(struct mkt_run *run, struct mkt_place at, bool back)
{
	struct mkt_comm *c = add_comm(run, back ? "pp.back" : "pp", at.dp, at.tp, run->opt->pp);
	for (at.stage = 0; c && at.stage < run->opt->pp; at.stage++)
		c->ranks[at.stage] = mkt_rank_of(run->opt, at);
	return c != NULL;
}

static bool add_pipelines(struct mkt_run *run)
{
	const struct mkt_options *opt = run->opt;
	bool pairs = opt->pair_comms || opt->order == MKT_INTERLEAVED, ok = true;
	for (int i = 0; i < run->n_conns; i++) {
		run->conns[i].dst = -1;
		run->conns[i].sends.item_size = run->conns[i].recvs.item_size = sizeof(int32_t);
	}
	for (int i = 0; ok && opt->pp > 1 && i < 2 * opt->dp * opt->tp; i++) {
		struct mkt_place at = { 0, i / 2 / opt->tp, i / 2 % opt->tp };
		bool back = i % 2;
		if (!pairs && !(back && opt->batch_p2p))
			ok = add_line(run, at, back);
		for (; ok && at.stage < opt->pp; at.stage++)
			ok = connect(run, at, back, pairs ? -1 : run->n_comms - 1);
	}
	return ok;
}

enum lag_status mkt_run_init(struct mkt_run *run, const struct mkt_options *opt, bool faults,
			     struct lag_err *err)
{
	int n = mkt_n_ranks(opt);
	*run = (struct mkt_run){ .opt = opt, .faults = faults, .n_ranks = n, .n_conns = 2 * n };
	run->n_hosts = (n + opt->ranks_per_host - 1) / opt->ranks_per_host;
	run->ranks = lag_calloc((size_t)n, sizeof(*run->ranks));
	run->conns = lag_calloc((size_t)run->n_conns, sizeof(*run->conns));
	/* world, tp and dp groups, and at most two communicators a rank for the pipeline. */
	run->comms = lag_calloc((size_t)n * 4 + 1, sizeof(*run->comms));
	run->queue = lag_calloc((size_t)n, sizeof(*run->queue));
	if (!run->ranks || !run->conns || !run->comms || !run->queue)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	for (int i = 0; i < n; i++) {
		struct mkt_rank *r = &run->ranks[i];
		r->rank = i;
		r->at = mkt_place_of(opt, i);
		r->host = i / opt->ranks_per_host;
		r->gpu_factor = 1 + opt->gpu_sigma * mkt_draw(opt->seed, (uint64_t)i, 4, 0);
		r->tp_comm = r->dp_comm = -1;
		r->items.item_size = sizeof(struct mkt_item);
	}
	if (!add_groups(run) || !add_pipelines(run))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	run->step = -1;
	return LAG_OK;
}

void mkt_run_release(struct mkt_run *run)
{
	for (int i = 0; run->ranks && i < run->n_ranks; i++)
		lag_vec_release(&run->ranks[i].items);
	for (int i = 0; run->conns && i < run->n_conns; i++) {
		lag_vec_release(&run->conns[i].sends);
		lag_vec_release(&run->conns[i].recvs);
	}
	for (int i = 0; i < run->n_comms; i++) {
		free(run->comms[i].ranks);
		free(run->comms[i].items);
	}
	free(run->ranks);
	free(run->conns);
	free(run->comms);
	free(run->queue);
}

static void wake(struct mkt_run *run, int rank)
{
	if (run->ranks[rank].queued)
		return;
	run->ranks[rank].queued = true;
	run->queue[run->n_queue++] = rank;
}

/* The last to come frees all; data then goes round the ring, so that ends differ by position. */
static void finish_collective(struct mkt_run *run, struct mkt_comm *c, const struct mkt_item *one,
			      uint64_t comm)
{
	const struct mkt_options *opt = run->opt;
	uint64_t id = (uint64_t)one->seq[0];
	double link = 1;
	for (int i = 0; i < c->n && run->opt->n_faults > 0; i++) {
		int next = c->ranks[(i + 1) % c->n];
		double f = mkt_fault_factor(run, MKT_SLOW_LINK, c->ranks[i], next);
		link = f > link ? f : link; /* a ring is as fast as its slowest link */
	}
	double noise = 1 + opt->comm_sigma * mkt_draw(opt->seed, comm, id, 5);
	int64_t end = c->last_ns + (int64_t)((double)one->dur_ns * noise * link);
	for (int i = 0; i < c->n; i++) {
		struct mkt_item *it = mkt_item_at(&run->ranks[c->ranks[i]], c->items[i]);
		int hops = (i - c->last + c->n) % c->n;
		double jitter = 0.1 * mkt_draw(opt->seed, comm, id, 100 + (uint64_t)i);
		double late = (double)hops / c->n + jitter;
		it->end_ns = end + (int64_t)((double)opt->ring_ns * (late > 0 ? late : 0));
		wake(run, c->ranks[i]);
	}
	c->n_arrived = 0;
}

static void arrive(struct mkt_run *run, struct mkt_rank *r, int32_t i)
{
	struct mkt_item *it = mkt_item_at(r, i);
	struct mkt_comm *c = &run->comms[it->comm];
	int pos = it->comm == 0 ? r->rank : it->comm == r->tp_comm ? r->at.tp : r->at.dp;
	c->items[pos] = i;
	if (c->n_arrived == 0 || it->start_ns > c->last_ns) {
		c->last_ns = it->start_ns;
		c->last = pos;
	}
	if (++c->n_arrived == c->n)
		finish_collective(run, c, it, (uint64_t)it->comm);
}

static void set_part(struct mkt_run *run, int rank, int32_t i, int dir, int64_t end)
{
	struct mkt_item *it = mkt_item_at(&run->ranks[rank], i);
	it->part_end[dir] = end;
	if (it->conn[!dir] >= 0 && it->part_end[!dir] == MKT_UNKNOWN)
		return;
	it->end_ns = it->part_end[0] > it->part_end[1] ? it->part_end[0] : it->part_end[1];
	wake(run, rank);
}

static int64_t started(const struct mkt_run *run, int rank, const struct lag_vec *list, size_t k)
{
	if (k >= list->n)
		return MKT_UNKNOWN;
	return mkt_item_at(&run->ranks[rank], LAG_VEC_AT(list, int32_t, k))->start_ns;
}

/* Gives the ends of the k-th message of a connection as far as they are decided. A sender may be
 * ahead of its receiver by eager_bytes. */
static void try_message(struct mkt_run *run, struct mkt_conn *conn, size_t k)
{
	const struct mkt_options *opt = run->opt;
	int64_t s = started(run, conn->src, &conn->sends, k);
	int64_t r = started(run, conn->dst, &conn->recvs, k);
	if (s == MKT_UNKNOWN)
		return;
	struct mkt_item *send =
		mkt_item_at(&run->ranks[conn->src], LAG_VEC_AT(&conn->sends, int32_t, k));
	double noise = mkt_draw(opt->seed, (uint64_t)conn->src, (uint64_t)send->seq[0],
				6 + (uint64_t)(conn->dst > conn->src));
	double link = mkt_fault_factor(run, MKT_SLOW_LINK, conn->src, conn->dst);
	double transfer = (double)opt->p2p_ns * (1 + opt->comm_sigma * noise) * link;
	int64_t t = (int64_t)transfer;
	int64_t both = s > r ? s : r;
	size_t ahead = (size_t)(opt->eager_bytes / opt->act_bytes);
	if (r != MKT_UNKNOWN) {
		int32_t i = LAG_VEC_AT(&conn->recvs, int32_t, k);
		if (mkt_item_at(&run->ranks[conn->dst], i)->part_end[1] == MKT_UNKNOWN)
			set_part(run, conn->dst, i, 1, both + t);
	}
	if (send->part_end[0] != MKT_UNKNOWN)
		return;
	int64_t end = s + t;
	if (ahead == 0) {
		if (r == MKT_UNKNOWN)
			return;
		double rest = 1 - (double)opt->eager_bytes / (double)opt->act_bytes;
		if (both + (int64_t)(transfer * rest) > end)
			end = both + (int64_t)(transfer * rest);
	} else if (k >= ahead) {
		int64_t freed = started(run, conn->dst, &conn->recvs, k - ahead);
		if (freed == MKT_UNKNOWN)
			return;
		if (freed + t > end)
			end = freed + t;
	}
	set_part(run, conn->src, LAG_VEC_AT(&conn->sends, int32_t, k), 0, end);
}

static void post(struct mkt_run *run, const struct mkt_item *it)
{
	size_t ahead = (size_t)(run->opt->eager_bytes / run->opt->act_bytes);
	for (int dir = 0; dir < 2; dir++) {
		if (it->conn[dir] < 0)
			continue;
		struct mkt_conn *conn = &run->conns[it->conn[dir]];
		size_t k = (size_t)(it->seq[dir] - (dir ? conn->received : conn->sent));
		try_message(run, conn, k);
		if (dir == 1 && ahead > 0)
			try_message(run, conn, k + ahead);
	}
}

/* When an item may start, or MKT_UNKNOWN while something before it is open. */
static int64_t ready(const struct mkt_run *run, const struct mkt_rank *r, const struct mkt_item *it)
{
	int64_t at = it->call_ns + run->opt->launch_delay_ns;
	if (it->after_ns > at)
		at = it->after_ns;
	if (r->stream_end[it->stream] + run->opt->gap_ns > at)
		at = r->stream_end[it->stream] + run->opt->gap_ns;
	for (int d = 0; d < MKT_DEPS; d++) {
		if (it->dep[d] < 0)
			continue;
		int64_t end = mkt_item_at(r, it->dep[d])->end_ns;
		if (end == MKT_UNKNOWN)
			return MKT_UNKNOWN;
		if (end + run->opt->gap_ns > at)
			at = end + run->opt->gap_ns;
	}
	return at;
}

static bool advance_stream(struct mkt_run *run, struct mkt_rank *r, enum mkt_stream s)
{
	bool moved = false;
	while (r->head[s] >= 0) {
		int32_t i = r->head[s];
		struct mkt_item *it = mkt_item_at(r, i);
		if (it->start_ns == MKT_UNKNOWN) {
			it->start_ns = ready(run, r, it);
			if (it->start_ns == MKT_UNKNOWN)
				break;
			if (it->kind == MKT_I_COLL) {
				arrive(run, r, i);
			} else if (it->kind == MKT_I_P2P) {
				post(run, it);
			} else {
				it->end_ns = it->start_ns + it->dur_ns;
			}
		}
		if (it->end_ns == MKT_UNKNOWN)
			break;
		r->stream_end[s] = it->end_ns;
		r->head[s] = it->next;
		moved = true;
	}
	return moved;
}

static void advance(struct mkt_run *run, struct mkt_rank *r)
{
	bool moved = true;
	while (moved) {
		moved = false;
		for (int s = 0; s < MKT_N_STREAMS; s++)
			moved |= advance_stream(run, r, (enum mkt_stream)s);
	}
}

/* The host goes on when what it synchronised with has ended. */
static void finish_host(struct mkt_rank *r)
{
	int64_t done = r->stream_end[MKT_S_COMPUTE] + 2000;
	int64_t shift = 0;
	for (size_t i = 0; i < r->items.n; i++) {
		struct mkt_item *it = mkt_item_at(r, (int32_t)i);
		it->call_ns += shift;
		it->leave_ns += shift;
		if (it->kind == MKT_I_SYNC && done > it->leave_ns) {
			shift = done - it->leave_ns;
			it->leave_ns = done;
		}
	}
	r->host_ns += shift;
}

enum lag_status mkt_run_step(struct mkt_run *run, struct lag_err *err)
{
	run->step++;
	for (int i = 0; i < run->n_conns; i++) {
		struct mkt_conn *conn = &run->conns[i];
		conn->sent += (int32_t)conn->sends.n;
		conn->received += (int32_t)conn->recvs.n;
		conn->sends.n = conn->recvs.n = 0;
	}
	for (int i = 0; i < run->n_ranks; i++) {
		struct mkt_rank *r = &run->ranks[i];
		r->items.n = 0;
		r->n_draws = 0;
		for (int s = 0; s < MKT_N_STREAMS; s++) {
			r->head[s] = r->tail[s] = -1;
			r->pending_after[s] = INT64_MIN;
			for (int d = 0; d < MKT_DEPS; d++)
				r->pending[s][d] = -1;
		}
		if (mkt_program_fill(run, r))
			return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
		wake(run, i);
	}
	while (run->n_queue > 0) {
		struct mkt_rank *r = &run->ranks[run->queue[--run->n_queue]];
		r->queued = false;
		advance(run, r);
	}
	for (int i = 0; i < run->n_ranks; i++) {
		for (int s = 0; s < MKT_N_STREAMS; s++) {
			if (run->ranks[i].head[s] >= 0) {
				return lag_err_set(err, LAG_ERR_LIMIT,
						   "step %d: rank %d waits for ever on stream %d",
						   run->step, i, s);
			}
		}
		finish_host(&run->ranks[i]);
	}
	return LAG_OK;
}
