/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that turn a Kineto trace's communication into communicators and operations. */
#ifndef MERGE_KINETO_COMM_H
#define MERGE_KINETO_COMM_H

#include "merge/kineto.h"

struct lag_kineto_comm {
	int64_t comm_id, size, own_rank;
	int64_t first_rank, rank_stride; /* LAG_NONE unknown */
	uint32_t name, description, ranks;
	int64_t device; /* assumed communicators of a process with several devices */
	bool assumed;
	int64_t stream;          /* of an assumed one */
	struct lag_vec members;  /* int64_t job rank by communicator rank; empty = not known */
	struct lag_map peer_seq; /* (peer, direction) -> next number */
	int64_t next_seq, last_source_seq;
	bool ordered; /* the source's own numbers rise */
};

struct lag_kineto_op {
	struct lag_kineto_carrier carrier;
	struct lag_kineto_coll coll;
	int64_t start_ns, correlation, stream, device;
	int64_t enter_ns, leave_ns, tid;
	enum lag_func func;
	bool from_name;
	size_t comm;
};

struct lag_kineto_work {
	struct lag_kineto *k;
	struct lag_vec ops;                 /* struct lag_kineto_op */
	struct lag_vec comms;               /* struct lag_kineto_comm */
	struct lag_map by_group, by_stream; /* what operations say of theirs -> index in comms */
	struct lag_map
		by_external;   /* external id -> 1 + index of the CPU event about a collective */
	struct lag_map launch; /* correlation -> 1 + api index, of those wanted; 0 = wanted */
	bool several_devices;
	bool several_streams; /* of operations without a group: they are of several groups */
};

static inline const char *lag_kineto_text(const struct lag_kineto_work *w, uint32_t id)
{
	return lag_strtab_get(&w->k->pool->strings, id);
}

/* import_kineto_coll.c: what is known of op's collective, from its kernel, the CPU event around its
 * launch call, or the kernel's name. CPU events are sorted by lag_kineto_by_thread. */
void lag_kineto_set_coll(struct lag_kineto_work *w, struct lag_kineto_op *op);
int lag_kineto_by_thread(const void *a, const void *b);

/* import_kineto_comm.c: finds or makes op's communicator; its records. */
enum lag_status lag_kineto_set_comm(struct lag_kineto_work *w, struct lag_kineto_op *op,
				    struct lag_err *err) LAG_MUST_USE;
enum lag_status lag_kineto_emit_comm(struct lag_kineto_work *w, const struct lag_kineto_comm *comm,
				     struct lag_err *err) LAG_MUST_USE;
/* Communicator rank of a peer as the trace gives it; LAG_NONE unknown. */
int64_t lag_kineto_peer(const struct lag_kineto_comm *comm, int64_t rank);

#endif
