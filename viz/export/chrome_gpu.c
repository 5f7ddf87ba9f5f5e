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
	if (c->all_steps)
		return true;
	step = c->steps->of_gpu[i];
	return step >= 0 && c->chosen[step];
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

void lag_chrome_lane_args(struct lag_chrome *c, size_t lane)
{
	const struct lag_lane *l = &c->trace->lanes[lane];

	lag_chrome_arg_int(c, "device", l->device);
	lag_chrome_arg_int(c, "context", l->context);
	lag_chrome_arg_int(c, "stream", l->stream);
}

void lag_chrome_config_args(struct lag_chrome *c, size_t config)
{
	const struct lag_rec_launch_config *cfg = &c->trace->configs[config];

	if (cfg->registers != LAG_NONE)
		lag_chrome_arg_int(c, "registers per thread", cfg->registers);
	if (cfg->dynamic_smem_bytes != LAG_NONE) {
		lag_chrome_arg_int(c, "shared memory",
				   cfg->dynamic_smem_bytes + (cfg->static_smem_bytes == LAG_NONE
								      ? 0
								      : cfg->static_smem_bytes));
	}
	if (cfg->grid_x != LAG_NONE)
		arg_triple(c, "grid", cfg->grid_x, cfg->grid_y, cfg->grid_z);
	if (cfg->block_x != LAG_NONE)
		arg_triple(c, "block", cfg->block_x, cfg->block_y, cfg->block_z);
}

static void kernel_args(struct lag_chrome *c, const struct lag_gpu_event *e)
{
	if (e->config >= 0)
		lag_chrome_args_of(c, LAG_CX_CONFIG, (size_t)e->config);
	if (e->full != e->name && lag_trace_text(c->trace, e->full)[0])
		lag_chrome_arg_string(c, "kernel", e->full);
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

/* The first call of [lo, hi) that starts at or after start_ns, looked for from `near` outwards: from one
 * kernel to the next of all streams it is not far. */
static size_t find_call(const struct lag_api *api, size_t lo, size_t hi, size_t near,
			int64_t start_ns)
{
	size_t step = 4;

	if (api[near].start_ns < start_ns) {
		for (lo = near + 1; step < hi - lo && api[lo + step].start_ns < start_ns; step *= 2)
			lo += step + 1;
		hi = step < hi - lo ? lo + step : hi;
	} else {
		for (hi = near; step < hi - lo && api[hi - step].start_ns >= start_ns; step *= 2)
			hi -= step;
		lo = step < hi - lo ? hi - step + 1 : lo;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (api[mid].start_ns < start_ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

/* The lane on which the call that launched e is drawn; 0 when it is not. */
static uint32_t launch_lane(struct lag_chrome *c, const struct lag_gpu_event *e)
{
	const struct lag_rank *rank = &c->trace->ranks[e->r];
	const struct lag_api *api = c->trace->api;
	size_t i;

	if (!c->api_tid || e->launch_start_ns == LAG_NONE || rank->api_begin == rank->api_end)
		return 0;
	i = find_call(api, rank->api_begin, rank->api_end, rank->api_begin + c->api_near,
		      e->launch_start_ns);
	if (i < rank->api_end)
		c->api_near = i - rank->api_begin;
	for (; i < rank->api_end && api[i].start_ns == e->launch_start_ns; i++) {
		if (api[i].tid == e->launch_tid)
			return c->api_tid[i - rank->api_begin];
	}
	return 0;
}

/* Bytes of the arguments, about. */
static size_t forecast_args(struct lag_chrome *c, const struct lag_gpu_event *e)
{
	size_t n = 0;

	if (e->full != e->name)
		(void)lag_chrome_text(c, LAG_CX_STRING, e->full, &n);
	return 100 + n + (e->launch >= 0 ? 350u : 0) + (e->kind == LAG_GPU_KERNEL ? 90u : 30u);
}

static void write_gpu(struct lag_chrome *c, size_t i)
{
	static const char *const cats[] = { [LAG_GPU_KERNEL] = "kernel",
					    [LAG_GPU_COPY] = "gpu_memcpy",
					    [LAG_GPU_SET] = "gpu_memset" };
	const struct lag_gpu_event *e = &c->trace->gpu[i];
	int64_t end = lag_chrome_end(c, e->start_ns, e->end_ns);
	uint32_t tid = lag_chrome_place(c, e->r, LAG_CT_STREAM, e->lane, e->start_ns, end);
	bool flows = lag_chrome_wants(c, LAG_EXPORT_FLOWS);
	uint32_t from = flows && !c->planning ? launch_lane(c, e) : 0;

	if (e->launch >= 0) {
		c->launch_tid[e->launch] = tid;
		if (c->lane_comm[e->lane] < 0)
			c->lane_comm[e->lane] = (int32_t)c->trace->launches[e->launch].comm;
	}
	if (lag_chrome_begin_named(c, cats[e->kind <= LAG_GPU_SET ? e->kind : 0], e->name, e->r,
				   tid, e->start_ns, end, c->planning ? forecast_args(c, e) : 0)) {
		lag_chrome_args_of(c, LAG_CX_LANE, e->lane);
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
