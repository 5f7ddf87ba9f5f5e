/* SPDX-License-Identifier: Apache-2.0 */
/* One link: a queue of at most NC_SLOTS chunks and a window of bytes. Times travel with the chunks:
 * a chunk is there when its sender had credit and had pushed it, plus the link's latency. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/nccl/nc.h"

#include <math.h>
#include <string.h>

static struct nc_tx *tx_of(struct ncclComm *c, enum nc_channel ch, int to)
{
	return &c->tx[(int)ch * c->n + to];
}

static double noise(const struct ncclComm *c, int to, uint64_t nth)
{
	double sigma = c->link_sigma;
	uint64_t me = (uint64_t)c->members[c->rank].rank_in_world << 8 ^ (uint64_t)c->rank;
	uint64_t key = c->ordinal << 56 ^ me << 36 ^ ((uint64_t)to << 28) ^ nth;

	return sigma > 0.0 ? 1.0 + sigma * fabs(sim_rand_normal(SIM_RAND_LINK, key)) : 1.0;
}

/* Takes credits back until the chunk fits; false: the receiver has to take one first. */
static bool credit(struct ncclComm *c, struct nc_link *l, struct nc_tx *tx, int to,
		   const struct nc_chunk *k, int64_t *t_ns)
{
	while (l->sent - tx->freed >= NC_SLOTS ||
	       (l->sent > tx->freed && tx->bytes_out + k->bytes > k->limit)) {
		if (__atomic_load_n(&l->taken, __ATOMIC_SEQ_CST) <= tx->freed) {
			__atomic_store_n(&l->sender_waits, 1, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&l->taken, __ATOMIC_SEQ_CST) <= tx->freed) {
				return false;
			}
		}
		const struct nc_slot *s = &l->slots[tx->freed % NC_SLOTS];
		int64_t back = s->consumed_ns + llround(c->lag_ns[to]);
		*t_ns = back > *t_ns ? back : *t_ns;
		tx->bytes_out -= s->bytes;
		tx->freed++;
	}
	return true;
}

bool nc_link_send(struct ncclComm *c, enum nc_channel ch, int to, const struct nc_chunk *k,
		  int64_t *t_ns)
{
	struct nc_link *l = nc_link(c, ch, c->rank, to);
	struct nc_tx *tx = tx_of(c, ch, to);

	if (!credit(c, l, tx, to, k, t_ns)) {
		return false;
	}
	double f = noise(c, to, l->sent);
	unsigned i = (unsigned)(l->sent % NC_SLOTS);
	struct nc_slot *s = &l->slots[i];
	*t_ns += llround((double)k->bytes * c->ns_per_byte[to] * f);
	s->ready_ns = *t_ns + llround(c->lag_ns[to] * f);
	s->bytes = k->bytes;
	s->data_bytes = k->data_bytes * k->parts;
	for (size_t j = 0; j < k->parts && k->data_bytes > 0; j++) {
		memcpy(nc_payload(c, ch, c->rank, to, i) + j * k->data_bytes,
		       k->data + j * k->stride, k->data_bytes);
	}
	tx->bytes_out += k->bytes;
	__atomic_add_fetch(&l->sent, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&l->receiver_waits, 0, __ATOMIC_SEQ_CST)) {
		sim_doorbell_ring(c->bells[to]);
	}
	return true;
}

const struct nc_slot *nc_link_peek(struct ncclComm *c, enum nc_channel ch, int from,
				   const char **data)
{
	struct nc_link *l = nc_link(c, ch, from, c->rank);

	if (__atomic_load_n(&l->sent, __ATOMIC_SEQ_CST) == l->taken) {
		__atomic_store_n(&l->receiver_waits, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&l->sent, __ATOMIC_SEQ_CST) == l->taken) {
			return NULL;
		}
	}
	unsigned i = (unsigned)(l->taken % NC_SLOTS);
	*data = nc_payload(c, ch, from, c->rank, i);
	return &l->slots[i];
}

void nc_link_take(struct ncclComm *c, enum nc_channel ch, int from, int64_t t_ns)
{
	struct nc_link *l = nc_link(c, ch, from, c->rank);

	l->slots[l->taken % NC_SLOTS].consumed_ns = t_ns;
	__atomic_add_fetch(&l->taken, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&l->sender_waits, 0, __ATOMIC_SEQ_CST)) {
		sim_doorbell_ring(c->bells[from]);
	}
}
