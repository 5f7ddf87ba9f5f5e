/* SPDX-License-Identifier: Apache-2.0 */
/* From operations to programs: rings, trees, chains and point-to-point lanes. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/nccl/nc.h"

#include <stdlib.h>
#include <string.h>

static size_t data_limit(void)
{
	int64_t n = sim_env_i64("SIMGPU_NCCL_DATA_BYTES", 4096);

	return n < 16 ? 16 : n > NC_PAYLOAD ? NC_PAYLOAD : (size_t)n;
}

static unsigned chunks_for(uint64_t bytes, unsigned most)
{
	uint64_t n = (bytes + NC_CHUNK_BYTES - 1) / NC_CHUNK_BYTES;

	return n < 1 ? 1 : n > most ? most : (unsigned)n;
}

static struct nc_lane *lane_new(struct nc_work *w)
{
	w->lanes = realloc(w->lanes, (w->n_lanes + 1) * sizeof *w->lanes);
	if (!w->lanes) {
		abort();
	}
	struct nc_lane *l = &w->lanes[w->n_lanes++];
	memset(l, 0, sizeof *l);
	return l;
}

static void lane_add(struct nc_lane *l, const struct nc_step *s)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 16;
		l->steps = realloc(l->steps, l->cap * sizeof *l->steps);
		if (!l->steps) {
			abort();
		}
	}
	l->steps[l->n++] = *s;
}

static void prep_add(struct nc_work *w, struct nc_prep p)
{
	if (p.dst == p.src && p.scale == 1.0) {
		return;
	}
	w->preps = realloc(w->preps, (w->n_preps + 1) * sizeof *w->preps);
	if (!w->preps) {
		abort();
	}
	w->preps[w->n_preps++] = p;
}

/* What the builders need to know of one operation. */
struct plan {
	struct nc_work *w;
	struct nc_lane *lane;
	const struct nc_op *o;
	int n, r, prev, next;
	size_t esize, share; /* share: most real bytes of each of n parts */
	size_t part_data;    /* real bytes of a part of count elements */
	const char *send;
	char *recv;
};

static struct nc_step pass(int from, int to, uint64_t bytes)
{
	struct nc_step s = {
		.from = from, .n_to = to >= 0, .chunks = 1, .bytes = bytes, .parts = 1
	};

	s.to[0] = to;
	return s;
}

/* Where part i of n nearly equal parts of whole elements begins. */
static size_t part_at(const struct plan *p, int i)
{
	return p->o->count * (size_t)i / (size_t)p->n * p->esize;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Each part is reduced around the ring, then handed around it; real data are each part's head. */
static void all_reduce_ring(struct plan *p)
{
	size_t part = p->o->count * p->esize / (size_t)p->n;
	unsigned chunks = chunks_for(part, 2);

	for (int k = 0; k <= 2 * p->n - 2; k++) {
		int seg = ((p->r - k) % p->n + p->n) % p->n;
		struct nc_step s = pass(k ? p->prev : -1, k < 2 * p->n - 2 ? p->next : -1, part);
		size_t at = part_at(p, seg);
		s.chunks = chunks;
		s.mine = p->send + at;
		s.into = p->recv + at;
		s.data_bytes = smaller(part_at(p, seg + 1) - at, p->share);
		s.reduce = k > 0 && k < p->n;
		s.last = k == p->n - 1;
		lane_add(p->lane, &s);
	}
}

/* One chunk on its way up: from each child in turn, then to the parent, or back down at the root. */
static void tree_up(struct plan *p, struct nc_step s, int parent, const int *child, int n_child)
{
	s.from = -1;
	s.n_to = n_child == 0;
	s.to[0] = parent;
	s.mine = p->send;
	if (n_child == 0) {
		lane_add(p->lane, &s);
		return;
	}
	s.reduce = true;
	for (int i = 0; i < n_child; i++) {
		bool end = i + 1 == n_child;
		s.from = child[i];
		s.last = parent < 0 && end;
		if (end) {
			s.n_to = parent >= 0 ? 1 : n_child;
			s.to[0] = parent >= 0 ? parent : child[0];
			s.to[1] = child[1];
		}
		lane_add(p->lane, &s);
		s.mine = p->recv;
	}
}

static void all_reduce_tree(struct plan *p)
{
	size_t bytes = p->o->count * p->esize;
	unsigned chunks = chunks_for(bytes, NC_MAX_CHUNKS);
	int parent = p->r ? (p->r - 1) / 2 : -1;
	int child[2] = { 2 * p->r + 1, 2 * p->r + 2 };
	int n_child = child[1] < p->n ? 2 : child[0] < p->n ? 1 : 0;
	struct nc_lane *down = p->w->n_lanes < 2 ? lane_new(p->w) : &p->w->lanes[1];
	bool split = p->o->count >= (size_t)p->n;
	size_t parts = split ? (size_t)p->n : 1;
	size_t part = p->o->count / parts * p->esize;

	p->lane = &p->w->lanes[0]; /* the array may have moved */
	for (unsigned c = 0; c < chunks; c++) {
		struct nc_step s = pass(-1, -1, bytes / chunks);
		s.into = p->recv;
		s.parts = parts;
		s.stride = part;
		s.data_bytes = c + 1 == chunks ? smaller(part, p->share) : 0;
		tree_up(p, s, parent, child, n_child);
		if (parent >= 0) {
			s.from = parent;
			s.n_to = n_child;
			memcpy(s.to, child, sizeof child);
			lane_add(down, &s);
		}
	}
}

static void reduce_scatter(struct plan *p)
{
	size_t part = p->o->count * p->esize;

	p->w->scratch = malloc(p->part_data + 1);
	if (!p->w->scratch) {
		abort();
	}
	for (int k = 0; k < p->n; k++) {
		int seg = ((p->r - 1 - k) % p->n + p->n) % p->n;
		bool end = k == p->n - 1;
		struct nc_step s = pass(k ? p->prev : -1, end ? -1 : p->next, part);
		s.chunks = chunks_for(part, 2);
		s.mine = p->send + (size_t)seg * part;
		s.into = end ? p->recv : p->w->scratch;
		s.data_bytes = p->part_data;
		s.reduce = k > 0;
		s.last = end;
		lane_add(p->lane, &s);
	}
}

static void all_gather(struct plan *p)
{
	size_t part = p->o->count * p->esize;
	char *own = p->recv + (size_t)p->r * part;

	prep_add(p->w, (struct nc_prep){ own, p->send, p->part_data, 1.0 });
	for (int k = 0; k < p->n; k++) {
		int seg = ((p->r - k) % p->n + p->n) % p->n;
		struct nc_step s = pass(k ? p->prev : -1, k < p->n - 1 ? p->next : -1, part);
		s.chunks = chunks_for(part, 2);
		s.mine = p->send;
		s.into = p->recv + (size_t)seg * part;
		s.data_bytes = p->part_data;
		lane_add(p->lane, &s);
	}
}

static size_t whole_data(const struct plan *p)
{
	size_t bytes = p->o->count * p->esize, limit = data_limit();

	return bytes < limit ? bytes : limit / p->esize * p->esize;
}

/* Chain from the root around the ring. */
static void broadcast(struct plan *p)
{
	int at = ((p->r - p->o->peer) % p->n + p->n) % p->n;
	uint64_t bytes = p->o->count * p->esize;
	struct nc_step s = pass(at ? p->prev : -1, at < p->n - 1 ? p->next : -1, bytes);

	s.chunks = chunks_for(bytes, NC_MAX_CHUNKS);
	s.mine = p->send;
	s.into = p->recv;
	s.data_bytes = whole_data(p);
	if (at == 0) {
		prep_add(p->w, (struct nc_prep){ p->recv, p->send, s.data_bytes, 1.0 });
	}
	lane_add(p->lane, &s);
}

/* Chain that ends at the root. */
static void reduce(struct plan *p)
{
	int at = ((p->r - p->o->peer - 1) % p->n + p->n) % p->n;
	uint64_t bytes = p->o->count * p->esize;
	bool end = at == p->n - 1;
	struct nc_step s = pass(at ? p->prev : -1, end ? -1 : p->next, bytes);

	s.chunks = chunks_for(bytes, NC_MAX_CHUNKS);
	s.mine = p->send;
	s.data_bytes = whole_data(p);
	s.reduce = at > 0;
	s.last = end;
	if (!end) {
		p->w->scratch = malloc(s.data_bytes + 1);
		if (!p->w->scratch) {
			abort();
		}
	}
	s.into = end ? p->recv : p->w->scratch;
	lane_add(p->lane, &s);
}

/* A reduction with a factor works on a scaled copy of the input, made when the kernel starts. */
static void prescale(struct plan *p)
{
	double scale = nc_op_scale(p->w->comm, p->o->op);
	size_t bytes =
		p->o->count * p->esize * (p->o->func == NC_REDUCE_SCATTER ? (size_t)p->n : 1);

	if (scale == 1.0 || p->o->op < ncclNumOps) {
		return;
	}
	char *copy = sim_mem_alloc(bytes, -1);
	if (!copy) {
		abort();
	}
	prep_add(p->w, (struct nc_prep){ copy, p->send, bytes, scale });
	p->send = copy;
}

static void collective(struct nc_work *w, const struct nc_op *o)
{
	struct ncclComm *c = w->comm;
	struct plan p = { .w = w, .o = o, .n = c->n, .r = c->rank };
	size_t limit = data_limit();

	p.lane = &w->lanes[0];
	p.prev = (c->rank + c->n - 1) % c->n;
	p.next = (c->rank + 1) % c->n;
	p.esize = nc_type_size(o->type);
	p.send = o->send;
	p.recv = o->recv;
	p.share = limit / (size_t)c->n / p.esize * p.esize;
	p.share = p.share ? p.share : p.esize;
	p.part_data = smaller(o->count * p.esize, p.share);
	prescale(&p);
	switch (o->func) {
	case NC_ALL_REDUCE:
		if (c->tree) {
			all_reduce_tree(&p);
		} else {
			all_reduce_ring(&p);
		}
		break;
	case NC_REDUCE_SCATTER:
		reduce_scatter(&p);
		break;
	case NC_ALL_GATHER:
		all_gather(&p);
		break;
	case NC_BROADCAST:
		broadcast(&p);
		break;
	default:
		reduce(&p);
	}
}

/* Sends to one peer share a lane, in order; so do receives from one. */
static struct nc_lane *p2p_lane(struct nc_work *w, const struct nc_op *o)
{
	bool sends = o->func == NC_SEND;

	for (size_t i = 0; i < w->n_lanes; i++) {
		const struct nc_step *s = w->lanes[i].steps;
		if (sends ? s->from < 0 && s->to[0] == o->peer : s->from == o->peer) {
			return &w->lanes[i];
		}
	}
	return lane_new(w);
}

static void p2p(struct nc_work *w, const struct nc_op *o)
{
	size_t esize = nc_type_size(o->type), bytes = o->count * esize, limit = data_limit();
	bool sends = o->func == NC_SEND;
	struct nc_step s = {
		.from = sends ? -1 : o->peer,
		.n_to = sends,
		.channel = NC_P2P,
		.chunks = chunks_for(bytes, NC_MAX_CHUNKS),
		.bytes = bytes,
		.mine = o->send,
		.into = o->recv,
		.data_bytes = bytes < limit ? bytes : limit / esize * esize,
		.parts = 1,
	};

	s.to[0] = sends ? o->peer : -1;
	lane_add(p2p_lane(w, o), &s);
}

struct nc_work *nc_work_new(const struct nc_op *ops, size_t n)
{
	struct nc_work *w = calloc(1, sizeof *w);

	if (!w) {
		abort();
	}
	w->comm = ops[0].comm;
	__atomic_add_fetch(&w->comm->refs, 1, __ATOMIC_RELAXED);
	w->type = ops[0].type;
	w->op = ops[0].op;
	w->n_ops = n;
	w->ops = malloc(n * sizeof *ops);
	if (!w->ops) {
		abort();
	}
	memcpy(w->ops, ops, n * sizeof *ops);
	if (ops[0].func < NC_SEND) {
		lane_new(w);
	}
	for (size_t i = 0; i < n; i++) {
		if (ops[i].func < NC_SEND) {
			collective(w, &ops[i]);
		} else {
			p2p(w, &ops[i]);
		}
	}
	return w;
}

void nc_work_free(void *work)
{
	struct nc_work *w = work;

	for (size_t i = 0; i < w->n_lanes; i++) {
		free(w->lanes[i].steps);
	}
	for (size_t i = 0; i < w->n_preps; i++) {
		if (w->preps[i].scale != 1.0) {
			sim_mem_free(w->preps[i].dst);
		}
	}
	free(w->lanes);
	free(w->preps);
	free(w->scratch);
	free(w->ops);
	nc_comm_unref(w->comm);
	free(w);
}
