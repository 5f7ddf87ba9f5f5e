/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: inferred from traffic, checked against the size of the job, or taken from --layout. */
#include "viz/model/roles.h"
#include "schema/base/fmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viz/model/roles_internal.h"

static const char *const role_names[LAG_ROLE_LIMIT] = {
	[LAG_ROLE_UNSURE] = "unsure",     [LAG_ROLE_WORLD] = "world",
	[LAG_ROLE_PIPELINE] = "pipeline", [LAG_ROLE_DATA] = "data",
	[LAG_ROLE_TENSOR] = "tensor",     [LAG_ROLE_EXPERT] = "expert",
	[LAG_ROLE_CONTEXT] = "context",   [LAG_ROLE_EMBEDDING] = "embedding",
};

const char *lag_comm_role_name(enum lag_comm_role role)
{
	return role_names[role < LAG_ROLE_LIMIT ? role : LAG_ROLE_UNSURE];
}

/* "PP 4 x DP 2": dimensions of size one are left out. */
static void describe(struct lag_roles *out, size_t n_ranks)
{
	const struct {
		const char *name;
		int32_t size;
	} dims[] = { { "PP", out->n_stages }, { "DP", out->n_dp }, { "TP", out->n_tp } };

	size_t at = 0;

	out->shape[0] = '\0';
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
		if (dims[i].size < 0) {
			(void)snprintf(out->shape, sizeof(out->shape), "unsure");
			return;
		}
		if (dims[i].size > 1) {
			at += (size_t)snprintf(out->shape + at, sizeof(out->shape) - at, "%s%s %d",
					       at ? " \xc3\x97 " : "", dims[i].name, dims[i].size);
		}
	}
	if (at == 0) {
		(void)snprintf(out->shape, sizeof(out->shape),
			       n_ranks == 1 ? "single rank" : "unsure");
	}
}

/* A product that is not the job's size means that a dimension was missed or misjudged. */
static void check_product(const struct lag_trace *trace, struct lag_roles *out)
{
	int64_t world = trace->world_size != LAG_NONE ? trace->world_size : (int64_t)trace->n_ranks;
	int64_t product = (int64_t)out->n_stages * out->n_dp * out->n_tp;

	if (out->n_stages < 0 || out->n_dp < 0 || out->n_tp < 0) {
		out->confidence = 0;
		(void)snprintf(out->why, sizeof(out->why),
			       "groups of one dimension differ in size");
	} else if (product != world) {
		out->confidence *= 0.5;
		(void)snprintf(out->why, sizeof(out->why),
			       "stages \xc3\x97 data \xc3\x97 tensor is %lld, the job has %lld %s",
			       (long long)product, (long long)world,
			       LAG_PLURAL(world, "rank", "ranks"));
	} else {
		(void)snprintf(out->why, sizeof(out->why),
			       "from communicators and send/receive traffic");
	}
}

static bool parse_layout(const char *layout, int32_t dims[3])
{
	static const char *const keys[] = { "pp=", "dp=", "tp=" };
	const char *p = layout;

	dims[0] = dims[1] = dims[2] = 1;
	while (*p) {
		size_t i = 0;
		char *end;
		long v;

		while (i < 3 && strncmp(p, keys[i], 3) != 0)
			i++;
		if (i == 3)
			return false;
		v = strtol(p + 3, &end, 10);
		if (end == p + 3 || v < 1 || v > 1 << 20 || (*end && *end != ','))
			return false;
		dims[i] = (int32_t)v;
		p = *end ? end + 1 : end;
	}
	return true;
}

/* Megatron's order: tensor fastest, then data, then pipeline. */
static enum lag_status apply_layout(const struct lag_trace *trace, const char *layout,
				    struct lag_roles *out, struct lag_err *err)
{
	int64_t world = trace->world_size != LAG_NONE ? trace->world_size : (int64_t)trace->n_ranks;
	int32_t dims[3];

	if (!parse_layout(layout, dims)) {
		return lag_err_set(err, LAG_ERR_USAGE, "layout '%s': expected pp=N,dp=N,tp=N",
				   layout);
	}
	if ((int64_t)dims[0] * dims[1] * dims[2] != world) {
		return lag_err_set(err, LAG_ERR_USAGE, "layout '%s' has %lld %s, the job has %lld",
				   layout, (long long)dims[0] * dims[1] * dims[2],
				   LAG_PLURAL(dims[0] * dims[1] * dims[2], "rank", "ranks"),
				   (long long)world);
	}
	out->n_stages = dims[0];
	out->n_dp = dims[1];
	out->n_tp = dims[2];
	out->n_pipelines = dims[0] > 1 ? dims[1] * dims[2] : 0;
	for (size_t i = 0; i < trace->n_ranks; i++) {
		int64_t rank = trace->ranks[i].rank;
		struct lag_rank_role *role = &out->ranks[i];

		role->tp = (int32_t)(rank % dims[2]);
		role->dp = (int32_t)(rank / dims[2] % dims[1]);
		role->stage = (int32_t)(rank / ((int64_t)dims[2] * dims[1]));
		role->pipeline = dims[0] > 1 ? role->dp * dims[2] + role->tp : -1;
	}
	out->overridden = true;
	out->confidence = 1;
	(void)snprintf(out->why, sizeof(out->why), "given by --layout");
	return LAG_OK;
}

enum lag_status lag_roles_infer(const struct lag_trace *trace, const char *layout,
				struct lag_roles *out, struct lag_err *err)
{
	double order = 1, comms = 1;
	enum lag_status status;

	*out = (struct lag_roles){ .n_stages = 1, .n_dp = 1, .n_tp = 1 };
	out->comm_role = lag_calloc(trace->n_comms, sizeof(*out->comm_role));
	out->ranks = lag_calloc(trace->n_ranks, sizeof(*out->ranks));
	if (!out->comm_role || !out->ranks) {
		lag_roles_release(out);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for roles");
	}
	for (size_t r = 0; r < trace->n_ranks; r++)
		out->ranks[r] = (struct lag_rank_role){ -1, -1, -1, -1 };
	status = lag_roles_pipelines(trace, out, &order, err);
	if (!lag_failed(status))
		status = lag_roles_communicators(trace, out, &comms, err);
	out->confidence = order < comms ? order : comms;
	if (!lag_failed(status))
		check_product(trace, out);
	if (!lag_failed(status) && layout)
		status = apply_layout(trace, layout, out, err);
	if (lag_failed(status)) {
		lag_roles_release(out);
		return status;
	}
	describe(out, trace->n_ranks);
	return LAG_OK;
}

void lag_roles_release(struct lag_roles *roles)
{
	free(roles->comm_role);
	free(roles->ranks);
	*roles = (struct lag_roles){ 0 };
}
