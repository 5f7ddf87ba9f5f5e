/* SPDX-License-Identifier: Apache-2.0 */
/* Derived models, each made on first use and kept. */
#include "viz/model/context.h"

#include <stdlib.h>

#include "schema/base/parse.h"

struct lag_context {
	struct lag_trace *trace;
	struct lag_model_opts opts;
	struct lag_roles roles;
	struct lag_steps steps;
	struct lag_waits waits;
	struct lag_pipeline pipeline;
	struct lag_ledger ledger;
	struct lag_peers peers;
	struct lag_replay *replay;
	struct lag_ready ready;
	struct lag_stragglers stragglers;
	bool has_roles, has_steps, has_waits, has_pipeline, has_ledger, has_peers, has_ready,
		has_stragglers;
};

/* NULL and "" are no restriction. */
static bool is_all(const char *list)
{
	return !list || !*list;
}

static enum lag_status check_list(const char *what, const char *list, struct lag_err *err)
{
	if (is_all(list) || lag_list_valid(list))
		return LAG_OK;
	return lag_err_set(err, LAG_ERR_USAGE,
			   "%s '%s': expected numbers and ranges such as 0,4-7,12-", what, list);
}

enum lag_status lag_context_new(struct lag_trace *trace, const struct lag_model_opts *opts,
				struct lag_context **out, struct lag_err *err)
{
	struct lag_context *ctx = lag_calloc(1, sizeof(*ctx));
	enum lag_status status;

	*out = NULL;
	if (!ctx) {
		lag_trace_close(trace);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	}
	ctx->trace = trace;
	if (opts)
		ctx->opts = *opts;
	if (ctx->opts.all_time)
		lag_window_widen(trace);
	status = check_list("steps", ctx->opts.steps, err);
	if (!lag_failed(status))
		status = check_list("ranks", ctx->opts.ranks, err);
	if (lag_failed(status)) {
		lag_context_free(ctx);
		return status;
	}
	*out = ctx;
	return LAG_OK;
}

void lag_context_free(struct lag_context *ctx)
{
	if (!ctx)
		return;
	if (ctx->has_stragglers)
		lag_stragglers_release(&ctx->stragglers);
	if (ctx->has_ready)
		lag_ready_release(&ctx->ready);
	lag_replay_free(ctx->replay);
	if (ctx->has_peers)
		lag_peers_release(&ctx->peers);
	if (ctx->has_ledger)
		lag_ledger_release(&ctx->ledger);
	if (ctx->has_pipeline)
		lag_pipeline_release(&ctx->pipeline);
	if (ctx->has_waits)
		lag_waits_release(&ctx->waits);
	if (ctx->has_steps)
		lag_steps_release(&ctx->steps);
	if (ctx->has_roles)
		lag_roles_release(&ctx->roles);
	lag_trace_close(ctx->trace);
	free(ctx);
}

const struct lag_trace *lag_context_trace(const struct lag_context *ctx)
{
	return ctx->trace;
}

const struct lag_model_opts *lag_context_opts(const struct lag_context *ctx)
{
	return &ctx->opts;
}

bool lag_context_has_step(const struct lag_context *ctx, int64_t number)
{
	return is_all(ctx->opts.steps) || lag_list_has(ctx->opts.steps, number);
}

bool lag_context_has_rank(const struct lag_context *ctx, int64_t rank)
{
	return is_all(ctx->opts.ranks) || lag_list_has(ctx->opts.ranks, rank);
}

bool lag_context_has_all_steps(const struct lag_context *ctx)
{
	return is_all(ctx->opts.steps);
}

const struct lag_roles *lag_context_roles(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_roles) {
		ctx->has_roles = !lag_failed(
			lag_roles_infer(ctx->trace, ctx->opts.layout, &ctx->roles, err));
	}
	return ctx->has_roles ? &ctx->roles : NULL;
}

const struct lag_steps *lag_context_steps(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_steps) {
		ctx->has_steps = !lag_failed(
			lag_steps_find(ctx->trace, ctx->opts.step_by, &ctx->steps, err));
	}
	return ctx->has_steps ? &ctx->steps : NULL;
}

const struct lag_waits *lag_context_waits(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_waits)
		ctx->has_waits = !lag_failed(lag_waits_compute(ctx->trace, &ctx->waits, err));
	return ctx->has_waits ? &ctx->waits : NULL;
}

const struct lag_pipeline *lag_context_pipeline(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_pipeline)
		ctx->has_pipeline = !lag_failed(lag_pipeline_find(ctx, &ctx->pipeline, err));
	return ctx->has_pipeline ? &ctx->pipeline : NULL;
}

const struct lag_ledger *lag_context_ledger(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_ledger)
		ctx->has_ledger = !lag_failed(lag_ledger_compute(ctx, &ctx->ledger, err));
	return ctx->has_ledger ? &ctx->ledger : NULL;
}

const struct lag_peers *lag_context_peers(struct lag_context *ctx, struct lag_err *err)
{
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	const struct lag_roles *roles = lag_context_roles(ctx, err);

	if (!ctx->has_peers && steps && roles) {
		ctx->has_peers =
			!lag_failed(lag_peers_find(ctx->trace, steps, roles, &ctx->peers, err));
	}
	return ctx->has_peers ? &ctx->peers : NULL;
}

const struct lag_replay *lag_context_replay(struct lag_context *ctx, struct lag_err *err)
{
	const struct lag_steps *steps = lag_context_steps(ctx, err);
	const struct lag_roles *roles = lag_context_roles(ctx, err);

	if (!ctx->replay && steps && roles &&
	    lag_failed(lag_replay_new(ctx->trace, steps, roles, &ctx->replay, err)))
		ctx->replay = NULL;
	return ctx->replay;
}

const struct lag_ready *lag_context_ready(struct lag_context *ctx, struct lag_err *err)
{
	const struct lag_replay *replay = lag_context_replay(ctx, err);

	if (!ctx->has_ready && replay) {
		ctx->has_ready =
			!lag_failed(lag_ready_compute(ctx->trace, replay, &ctx->ready, err));
	}
	return ctx->has_ready ? &ctx->ready : NULL;
}

const struct lag_stragglers *lag_context_stragglers(struct lag_context *ctx, struct lag_err *err)
{
	if (!ctx->has_stragglers)
		ctx->has_stragglers = !lag_failed(lag_stragglers_find(ctx, &ctx->stragglers, err));
	return ctx->has_stragglers ? &ctx->stragglers : NULL;
}
