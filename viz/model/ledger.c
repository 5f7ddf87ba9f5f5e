/* SPDX-License-Identifier: Apache-2.0 */
/* Paints each rank's time with the classes in order of precedence, splits what is left between host
 * and idle, and adds it up by step. Slices are gapless, so that a step adds up by construction. */
#include "viz/model/ledger.h"

#include <stdlib.h>

#include "viz/model/ledger_internal.h"
#include "viz/model/opmodel.h"

const char *lag_time_class_name(enum lag_time_class class)
{
	static const char *const names[LAG_TIME_LIMIT] = {
		[LAG_TIME_COMPUTE] = "compute",
		[LAG_TIME_COPY] = "copy",
		[LAG_TIME_BUBBLE] = "bubble",
		[LAG_TIME_EXPOSED_TRANSFER] = "exposed_transfer",
		[LAG_TIME_EXPOSED_WAIT] = "exposed_wait",
		[LAG_TIME_HOST] = "host_bound",
		[LAG_TIME_IDLE] = "idle",
	};

	return class < LAG_TIME_LIMIT ? names[class] : "";
}

const char *lag_time_class_title(enum lag_time_class class)
{
	static const char *const titles[LAG_TIME_LIMIT] = {
		[LAG_TIME_COMPUTE] = "compute",
		[LAG_TIME_COPY] = "copies",
		[LAG_TIME_BUBBLE] = "pipeline bubble",
		[LAG_TIME_EXPOSED_TRANSFER] = "exposed transfer",
		[LAG_TIME_EXPOSED_WAIT] = "exposed waiting",
		[LAG_TIME_HOST] = "host-bound",
		[LAG_TIME_IDLE] = "other idle",
	};

	return class < LAG_TIME_LIMIT ? titles[class] : "";
}

bool lag_ledger_tells(const struct lag_trace *trace, size_t r, enum lag_time_class class)
{
	const struct lag_rank *rank = &trace->ranks[r];

	if (class == LAG_TIME_COPY)
		return !lag_opmodel_applies(trace);
	if (class != LAG_TIME_HOST)
		return true;
	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		if (trace->gpu[i].launch_start_ns != LAG_NONE)
			return true;
	}
	return false;
}

/* Appends a slice, or lengthens the last one where nothing changes. */
static enum lag_status emit(struct lag_vec *slices, size_t first, int64_t start_ns, int64_t end_ns,
			    enum lag_time_class class, int32_t launch)
{
	struct lag_time_slice *slice;

	if (end_ns <= start_ns)
		return LAG_OK;
	if (slices->n > first) {
		slice = &LAG_VEC_AT(slices, struct lag_time_slice, slices->n - 1);
		if (slice->class == (uint8_t) class && slice->launch == launch) {
			slice->end_ns = end_ns;
			return LAG_OK;
		}
	}
	slice = lag_vec_push(slices);
	if (!slice)
		return LAG_ERR_SYSTEM;
	*slice = (struct lag_time_slice){ start_ns, end_ns, (uint8_t) class, launch };
	return LAG_OK;
}

/* The class at `at` (LAG_TIME_IDLE: none of the painted ones), its launch, and until when that holds. */
static enum lag_time_class class_at(const struct lag_ledger_layers *layers, size_t *cursor,
				    int64_t at, int64_t *until, int32_t *launch)
{
	*until = layers->to_ns;
	*launch = -1;
	for (int c = 0; c < LAG_TIME_HOST; c++) {
		const struct lag_vec *vec = &layers->of[c];
		const struct lag_ledger_span *span;

		while (cursor[c] < vec->n &&
		       LAG_VEC_AT(vec, struct lag_ledger_span, cursor[c]).end_ns <= at)
			cursor[c]++;
		if (cursor[c] == vec->n)
			continue;
		span = &LAG_VEC_AT(vec, struct lag_ledger_span, cursor[c]);
		if (span->start_ns <= at) {
			if (span->end_ns < *until)
				*until = span->end_ns;
			*launch = span->launch;
			return (enum lag_time_class)c;
		}
		if (span->start_ns < *until)
			*until = span->start_ns;
	}
	return LAG_TIME_IDLE;
}

static enum lag_status paint(const struct lag_trace *trace, size_t r,
			     const struct lag_ledger_layers *layers, const struct lag_vec *returns,
			     struct lag_vec *slices)
{
	size_t cursor[LAG_TIME_HOST] = { 0 }, first = slices->n, next = trace->ranks[r].gpu_begin;
	int64_t at = layers->from_ns, until;
	enum lag_status status = LAG_OK;

	if (layers->from_ns == LAG_NONE)
		return LAG_OK;
	for (; at < layers->to_ns && !lag_failed(status); at = until) {
		int32_t launch;
		enum lag_time_class class = class_at(layers, cursor, at, &until, &launch);
		int64_t host;

		if (class != LAG_TIME_IDLE) {
			status = emit(slices, first, at, until, class, launch);
			continue;
		}
		host = lag_ledger_host_part(trace, r, returns, &next, at, until);
		status = emit(slices, first, at, host, LAG_TIME_IDLE, -1);
		if (!lag_failed(status))
			status = emit(slices, first, host, until, LAG_TIME_HOST, -1);
	}
	return status;
}

size_t lag_ledger_find(const struct lag_ledger *ledger, size_t r, int64_t ns)
{
	size_t lo = ledger->first[r], hi = ledger->first[r + 1];

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ledger->slices[mid].end_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static void add_up(const struct lag_steps *steps, struct lag_ledger *out, size_t r)
{
	for (size_t s = 0; s < steps->n_steps; s++) {
		const struct lag_step_span *span = lag_steps_span(steps, s, r);
		int64_t *sum = &out->by_step[(s * out->n_ranks + r) * LAG_TIME_LIMIT];

		if (span->start_ns == LAG_NONE)
			continue;
		for (size_t i = lag_ledger_find(out, r, span->start_ns);
		     i < out->first[r + 1] && out->slices[i].start_ns < span->end_ns; i++) {
			sum[out->slices[i].class] +=
				lag_time_slice_in(&out->slices[i], span->start_ns, span->end_ns);
		}
	}
}

static enum lag_status paint_rank(const struct lag_ledger_inputs *in, size_t r,
				  struct lag_vec *slices)
{
	struct lag_ledger_layers layers;
	struct lag_vec returns = LAG_VEC_INIT(struct lag_ledger_return);
	enum lag_status status = lag_ledger_layers_make(in, r, &layers);

	if (!lag_failed(status))
		status = lag_ledger_returns(in->trace, r, &returns);
	if (!lag_failed(status))
		status = paint(in->trace, r, &layers, &returns, slices);
	lag_vec_release(&returns);
	lag_ledger_layers_release(&layers);
	return status;
}

enum lag_status lag_ledger_compute(struct lag_context *ctx, struct lag_ledger *out,
				   struct lag_err *err)
{
	struct lag_ledger_inputs in = { .trace = lag_context_trace(ctx) };
	struct lag_vec slices = LAG_VEC_INIT(struct lag_time_slice);
	enum lag_status status = LAG_OK;

	*out = (struct lag_ledger){ 0 };
	in.roles = lag_context_roles(ctx, err);
	in.steps = in.roles ? lag_context_steps(ctx, err) : NULL;
	in.waits = in.steps ? lag_context_waits(ctx, err) : NULL;
	in.pipeline = in.waits ? lag_context_pipeline(ctx, err) : NULL;
	if (!in.pipeline)
		return err ? err->status : LAG_ERR_SYSTEM;
	out->n_ranks = in.trace->n_ranks;
	out->n_steps = in.steps->n_steps;
	out->first = lag_calloc(out->n_ranks + 1, sizeof(*out->first));
	out->by_step =
		lag_calloc(out->n_steps * out->n_ranks * LAG_TIME_LIMIT, sizeof(*out->by_step));
	if (!out->first || !out->by_step)
		status = LAG_ERR_SYSTEM;
	for (size_t r = 0; r < out->n_ranks && !lag_failed(status); r++) {
		status = paint_rank(&in, r, &slices);
		out->first[r + 1] = slices.n;
	}
	out->slices = slices.items;
	if (lag_failed(status)) {
		lag_ledger_release(out);
		return lag_err_set(err, status, "no memory for the ledger");
	}
	for (size_t r = 0; r < out->n_ranks; r++)
		add_up(in.steps, out, r);
	return LAG_OK;
}

void lag_ledger_release(struct lag_ledger *ledger)
{
	free(ledger->slices);
	free(ledger->first);
	free(ledger->by_step);
	*ledger = (struct lag_ledger){ 0 };
}
