/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of communicators, from who is in them and what they carry. Where a rank is in a data or tensor
 * group is its position among the group's members. */
#include <stdlib.h>
#include <string.h>

#include "viz/model/roles_internal.h"

#define CHATTY        64 /* collectives of a rank */
#define KERNELS_APART 32 /* compute kernels between two collectives: fewer is inside a layer */
#define ALIKE         0.9
#define DEFAULT_GROUP \
	"default_pg" /* PyTorch's, of all ranks: where DDP is, and tensor groups are not */

static double compute_kernels(const struct lag_trace *trace, uint32_t r)
{
	double n = 0;

	for (size_t i = trace->ranks[r].gpu_begin; i < trace->ranks[r].gpu_end; i++) {
		n += trace->gpu[i].kind == LAG_GPU_KERNEL &&
		     trace->gpu[i].class == LAG_CLASS_COMPUTE;
	}
	return n;
}

static void count_traffic(const struct lag_trace *trace, struct lag_comm_traffic *traffic,
			  uint8_t *called)
{
	uint32_t last_r = UINT32_MAX;
	double kernels = 0;

	for (size_t i = 0; i < trace->n_ops; i++) {
		const struct lag_op *op = &trace->ops[i];
		struct lag_comm_traffic *t = &traffic[op->comm];
		size_t mark = (size_t)op->comm * trace->n_ranks + op->r;

		if (op->r != last_r)
			kernels = compute_kernels(trace, op->r);
		last_r = op->r;
		if (!called[mark]) {
			called[mark] = 1;
			t->n_callers++;
			t->kernels += kernels;
		}
		if (op->func == LAG_FUNC_SEND || op->func == LAG_FUNC_RECV ||
		    op->func == LAG_FUNC_SEND_RECV) {
			t->n_messages++;
			t->n_unsplit += op->func == LAG_FUNC_SEND_RECV;
		} else {
			t->first_bytes = t->n_collectives ? t->first_bytes : op->bytes;
			t->n_alike += op->bytes == t->first_bytes;
			t->n_collectives++;
		}
		t->n_scatter_gather +=
			op->func == LAG_FUNC_REDUCE_SCATTER || op->func == LAG_FUNC_ALL_GATHER;
		t->n_all_to_all += op->func == LAG_FUNC_ALL_TO_ALL;
		if (op->bytes != LAG_NONE)
			t->bytes += (double)op->bytes;
	}
}

static int64_t world_size(const struct lag_trace *trace)
{
	return trace->world_size != LAG_NONE ? trace->world_size : (int64_t)trace->n_ranks;
}

/* What the members' places say: one stage, one pipeline, the ends of one pipeline? */
struct shape {
	bool same_stage, same_pipeline, ends_only, known, same_host;
};

static struct shape shape_of(const struct lag_trace *trace, const struct lag_roles *roles,
			     const struct lag_comm *comm)
{
	struct shape s = { true, true, true, comm->n_members > 0, true };
	int32_t stage = -2, pipeline = -2, host = -2;

	/* Members without a record are not even in the list where nothing tells who they are. */
	s.known = s.known && (int64_t)comm->n_members == comm->n_ranks;
	for (uint32_t m = 0; m < comm->n_members; m++) {
		int32_t r = trace->members[comm->first_member + m].r;
		const struct lag_rank_role *role;

		if (r < 0 || !trace->ranks[r].recorded) {
			s.known = false;
			continue;
		}
		role = &roles->ranks[r];
		if (stage == -2) {
			stage = role->stage;
			pipeline = role->pipeline;
			host = trace->ranks[r].host;
		}
		s.same_stage = s.same_stage && role->stage == stage;
		s.same_pipeline = s.same_pipeline && role->pipeline == pipeline && pipeline >= 0;
		s.same_host = s.same_host && trace->ranks[r].host == host;
		s.ends_only =
			s.ends_only && (role->stage == 0 || role->stage == roles->n_stages - 1);
	}
	return s;
}

static double calls_per_rank(const struct lag_comm_traffic *t)
{
	return t->n_callers ? (double)t->n_collectives / t->n_callers : 0;
}

/* Many calls, few kernels between them: as inside the layers of a model, not once they are through. */
static bool is_between_kernels(const struct lag_comm_traffic *t)
{
	return calls_per_rank(t) >= CHATTY && t->n_scatter_gather == 0 &&
	       t->kernels < KERNELS_APART * (double)t->n_collectives;
}

/* Most collective calls per rank on any communicator smaller than the world: tensor parallelism calls
 * several times per layer and microbatch, data parallelism a few times per step. */
static enum lag_comm_role data_or_tensor(const struct lag_trace *trace,
					 const struct lag_comm_traffic *traffic, size_t c,
					 bool same_host)
{
	const struct lag_comm *comm = &trace->comms[c];
	double mine = calls_per_rank(&traffic[c]), fewest = mine, most = mine;

	for (size_t k = 0; k < trace->n_comms; k++) {
		double calls = calls_per_rank(&traffic[k]);
		bool shares = false;

		if (k == c || calls <= 0 || trace->comms[k].n_ranks == world_size(trace))
			continue;
		for (uint32_t a = 0; a < comm->n_members && !shares; a++) {
			for (uint32_t b = 0; b < trace->comms[k].n_members && !shares; b++) {
				shares = trace->members[comm->first_member + a].r ==
					 trace->members[trace->comms[k].first_member + b].r;
			}
		}
		if (!shares)
			continue;
		fewest = calls < fewest ? calls : fewest;
		most = calls > most ? calls : most;
	}
	if (most >= 4 * fewest && mine * 2 > most)
		return LAG_ROLE_TENSOR;
	if (most >= 4 * fewest)
		return LAG_ROLE_DATA;
	/* Only one kind: gradients are scattered or few; a chatty all-reduce inside a host is tensor. */
	if (is_between_kernels(&traffic[c]))
		return same_host ? LAG_ROLE_TENSOR : LAG_ROLE_UNSURE;
	return LAG_ROLE_DATA;
}

/* Where no smaller communicator is used and there is no pipeline, the whole job is one data-parallel
 * group; of several communicators over all ranks, that is the one with most to carry. */
static bool is_whole_data(const struct lag_trace *trace, const struct lag_roles *roles,
			  const struct lag_comm_traffic *traffic, size_t c)
{
	if (roles->n_stages != 1)
		return false;
	for (size_t k = 0; k < trace->n_comms; k++) {
		bool whole = trace->comms[k].n_ranks == world_size(trace);

		if (k == c || traffic[k].n_collectives == 0)
			continue;
		if ((!whole && trace->comms[k].n_ranks > 1) ||
		    (whole && traffic[k].bytes > traffic[c].bytes) ||
		    (whole && traffic[k].bytes >= traffic[c].bytes && k < c))
			return false;
	}
	return true;
}

/* One group of the whole job that reduces the same amount between every few kernels may be a tensor
 * group or gradients: nothing tells, but that it is the group DDP uses. */
static enum lag_comm_role whole_data_or_unsure(const struct lag_comm *comm,
					       const struct lag_comm_traffic *t)
{
	return is_between_kernels(t) && (double)t->n_alike >= ALIKE * (double)t->n_collectives &&
			       strcmp(comm->description, DEFAULT_GROUP) != 0
		       ? LAG_ROLE_UNSURE
		       : LAG_ROLE_DATA;
}

static enum lag_comm_role role_of(const struct lag_trace *trace, const struct lag_roles *roles,
				  const struct lag_comm_traffic *traffic, size_t c)
{
	const struct lag_comm *comm = &trace->comms[c];
	const struct lag_comm_traffic *t = &traffic[c];
	struct shape s = shape_of(trace, roles, comm);
	bool whole = comm->n_ranks == world_size(trace);

	/* A communicator of one is no parallelism; one of unknown size may be anything. */
	if (comm->n_ranks < 0 || (t->n_collectives == 0 && t->n_messages == 0) ||
	    (comm->n_ranks == 1 && !whole))
		return LAG_ROLE_UNSURE;
	/* Messages to ranks that nothing is known of may be a pipeline's as well, and what is known by its
	 * kernel's name only may be an all-to-all. */
	if (t->n_collectives == 0 && (!s.known || t->n_unsplit))
		return LAG_ROLE_UNSURE;
	if (t->n_collectives == 0)
		return s.same_pipeline ? LAG_ROLE_PIPELINE : LAG_ROLE_CONTEXT;
	if (whole) {
		return is_whole_data(trace, roles, traffic, c) ? whole_data_or_unsure(comm, t)
							       : LAG_ROLE_WORLD;
	}
	if (t->n_all_to_all * 2 > t->n_collectives)
		return LAG_ROLE_EXPERT;
	if (roles->n_stages > 1 && s.known && comm->n_ranks == 2 && s.same_pipeline && s.ends_only)
		return LAG_ROLE_EMBEDDING;
	if (s.same_stage)
		return data_or_tensor(trace, traffic, c, s.same_host);
	return LAG_ROLE_UNSURE;
}

static void place_ranks(const struct lag_trace *trace, struct lag_roles *out,
			enum lag_comm_role role)
{
	int32_t *size = role == LAG_ROLE_DATA ? &out->n_dp : &out->n_tp;

	for (size_t c = 0; c < trace->n_comms; c++) {
		const struct lag_comm *comm = &trace->comms[c];

		if (out->comm_role[c] != role)
			continue;
		*size = *size == 1 || *size == comm->n_ranks ? comm->n_ranks : -1;
		for (uint32_t m = 0; m < comm->n_members; m++) {
			const struct lag_member *member = &trace->members[comm->first_member + m];

			if (member->r < 0)
				continue;
			if (role == LAG_ROLE_DATA) {
				out->ranks[member->r].dp = member->comm_rank;
			} else {
				out->ranks[member->r].tp = member->comm_rank;
			}
		}
	}
}

/* Pipelines without a data-parallel communicator of their own are still copies of one another. */
static void place_by_pipeline(const struct lag_trace *trace, struct lag_roles *out)
{
	if (out->n_dp != 1 || out->n_tp != 1 || out->n_pipelines < 2)
		return;
	out->n_dp = out->n_pipelines;
	for (size_t r = 0; r < trace->n_ranks; r++)
		out->ranks[r].dp = out->ranks[r].pipeline;
}

enum lag_status lag_roles_communicators(const struct lag_trace *trace, struct lag_roles *out,
					double *confidence, struct lag_err *err)
{
	struct lag_comm_traffic *traffic = lag_calloc(trace->n_comms, sizeof(*traffic));
	uint8_t *called = lag_calloc(trace->n_comms * trace->n_ranks, 1);
	size_t n_unsure = 0, n_used = 0;

	if (!traffic || !called) {
		free(traffic);
		free(called);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu communicators",
				   trace->n_comms);
	}
	count_traffic(trace, traffic, called);
	for (size_t c = 0; c < trace->n_comms; c++) {
		bool used = traffic[c].n_collectives + traffic[c].n_messages > 0 &&
			    (trace->comms[c].n_ranks != 1 || trace->n_ranks == 1);

		out->comm_role[c] = role_of(trace, out, traffic, c);
		n_used += used;
		n_unsure += used && out->comm_role[c] == LAG_ROLE_UNSURE;
	}
	out->n_dp = out->n_tp = 1;
	place_ranks(trace, out, LAG_ROLE_DATA);
	place_ranks(trace, out, LAG_ROLE_TENSOR);
	place_by_pipeline(trace, out);
	*confidence = n_used ? 1 - (double)n_unsure / (double)n_used : 1;
	free(traffic);
	free(called);
	return LAG_OK;
}
