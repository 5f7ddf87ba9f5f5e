/* SPDX-License-Identifier: Apache-2.0 */
/* GPU events: kernels, copies, sets, with the arguments that Kineto gives them, and the flows from the
 * host calls that launched them. */
#include <string.h>

#include "viz/export/chrome.h"

bool lag_chrome_has_gpu(const struct lag_chrome *c, size_t i)
{
	const struct lag_gpu_event *e = &c->trace->gpu[i];
	enum lag_export_kind kind = e->kind != LAG_GPU_KERNEL    ? LAG_EXPORT_COPIES
				    : e->class == LAG_CLASS_COMM ? LAG_EXPORT_NCCL
								 : LAG_EXPORT_KERNELS;
	int32_t step;

	if (!lag_chrome_wants(c, kind) || !c->exported[e->r] ||
	    !lag_chrome_in_time(c, e->start_ns, lag_chrome_end(c, e->start_ns, e->end_ns)))
		return false;
	if (lag_context_has_all_steps(c->ctx))
		return true;
	step = c->steps->of_gpu[i];
	return step >= 0 && lag_context_has_step(c->ctx, c->steps->steps[step].number);
}

static void arg_triple(struct lag_chrome *c, const char *key, int64_t x, int64_t y, int64_t z)
{
	lag_json_key(&c->json, key);
	lag_json_begin(&c->json, '[');
	lag_json_int(&c->json, x);
	lag_json_int(&c->json, y);
	lag_json_int(&c->json, z);
	lag_json_end(&c->json, ']');
}

static void kernel_args(struct lag_chrome *c, const struct lag_gpu_event *e)
{
	const struct lag_rec_launch_config *cfg;
	const char *full = lag_trace_text(c->trace, e->full);

	if (e->config >= 0 && (size_t)e->config < c->trace->n_configs) {
		cfg = &c->trace->configs[e->config];
		if (cfg->registers != LAG_NONE)
			lag_chrome_arg_int(c, "registers per thread", cfg->registers);
		if (cfg->dynamic_smem_bytes != LAG_NONE) {
			lag_chrome_arg_int(c, "shared memory",
					   cfg->dynamic_smem_bytes +
						   (cfg->static_smem_bytes == LAG_NONE
							    ? 0
							    : cfg->static_smem_bytes));
		}
		if (cfg->grid_x != LAG_NONE)
			arg_triple(c, "grid", cfg->grid_x, cfg->grid_y, cfg->grid_z);
		if (cfg->block_x != LAG_NONE)
			arg_triple(c, "block", cfg->block_x, cfg->block_y, cfg->block_z);
	}
	if (e->full != e->name && full[0])
		lag_chrome_arg_text(c, "kernel", full);
	if (e->launch >= 0)
		lag_chrome_nccl_args(c, e->launch);
}

static void copy_args(struct lag_chrome *c, const struct lag_gpu_event *e)
{
	int64_t ns = e->end_ns == LAG_NONE ? 0 : e->end_ns - e->start_ns;

	if (e->bytes == LAG_NONE)
		return;
	lag_chrome_arg_int(c, "bytes", e->bytes);
	/* Bytes per ns are GB/s. A copy too short to be timed has no bandwidth. */
	if (ns > 0) {
		lag_json_key(&c->json, "memory bandwidth (GB/s)");
		lag_json_real(&c->json, (double)e->bytes / (double)ns);
	}
}

/* The lane on which the call that launched e is drawn; 0 when it is not. */
static uint32_t launch_lane(const struct lag_chrome *c, const struct lag_gpu_event *e)
{
	const struct lag_rank *rank = &c->trace->ranks[e->r];
	size_t lo = rank->api_begin, hi = rank->api_end;

	if (!c->api_tid || e->launch_start_ns == LAG_NONE)
		return 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->trace->api[mid].start_ns < e->launch_start_ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (; lo < rank->api_end && c->trace->api[lo].start_ns == e->launch_start_ns; lo++) {
		if (c->trace->api[lo].tid == e->launch_tid)
			return c->api_tid[lo - rank->api_begin];
	}
	return 0;
}

static void write_gpu(struct lag_chrome *c, size_t i)
{
	static const char *const cats[] = { [LAG_GPU_KERNEL] = "kernel",
					    [LAG_GPU_COPY] = "gpu_memcpy",
					    [LAG_GPU_SET] = "gpu_memset" };
	const struct lag_gpu_event *e = &c->trace->gpu[i];
	const struct lag_lane *lane = &c->trace->lanes[e->lane];
	int64_t end = lag_chrome_end(c, e->start_ns, e->end_ns);
	uint32_t tid = lag_chrome_place(c, e->r, LAG_CT_STREAM, e->lane, e->start_ns, end);
	uint32_t from = lag_chrome_wants(c, LAG_EXPORT_FLOWS) ? launch_lane(c, e) : 0;
	size_t more = 130 + strlen(lag_trace_text(c->trace, e->full)) +
		      (e->launch >= 0 ? 350u : 0) + (e->kind == LAG_GPU_KERNEL ? 80u : 30u);

	if (e->launch >= 0) {
		c->launch_tid[e->launch] = tid;
		if (c->lane_comm[e->lane] < 0)
			c->lane_comm[e->lane] = (int32_t)c->trace->launches[e->launch].comm;
	}
	if (lag_chrome_begin(c, cats[e->kind <= LAG_GPU_SET ? e->kind : 0],
			     lag_trace_text(c->trace, e->name), e->r, tid, e->start_ns, end,
			     more)) {
		lag_chrome_arg_int(c, "device", lane->device);
		lag_chrome_arg_int(c, "context", lane->context);
		lag_chrome_arg_int(c, "stream", lane->stream);
		lag_chrome_arg_int(c, "correlation", e->correlation);
		if (e->end_ns == LAG_NONE)
			lag_chrome_arg_text(c, "state", "still running when recording ended");
		if (e->kind == LAG_GPU_KERNEL) {
			kernel_args(c, e);
		} else {
			copy_args(c, e);
		}
		lag_chrome_end_event(c);
	}
	if (e->launch_start_ns != LAG_NONE && e->launch_start_ns <= e->start_ns &&
	    (c->planning ? c->api_tid != NULL : from != 0))
		lag_chrome_flow(c, "ac2g", e->r, from, e->launch_start_ns, e->r, tid, e->start_ns);
}

static int64_t gpu_start(const struct lag_chrome *c, size_t i)
{
	return c->trace->gpu[i].start_ns;
}

static int64_t gpu_end(const struct lag_chrome *c, size_t i)
{
	return lag_chrome_end(c, c->trace->gpu[i].start_ns, c->trace->gpu[i].end_ns);
}

static void write_if_wanted(struct lag_chrome *c, size_t i)
{
	if (lag_chrome_has_gpu(c, i))
		write_gpu(c, i);
}

void lag_chrome_gpu(struct lag_chrome *c, uint32_t r)
{
	/* Of events that start together the shortest goes first: one of no length ends before the
	 * next begins. */
	static const struct lag_chrome_order order = { gpu_start, gpu_end, write_if_wanted, false };
	const struct lag_rank *rank = &c->trace->ranks[r];

	lag_chrome_in_order(c, &order, rank->gpu_begin, rank->gpu_end);
}
