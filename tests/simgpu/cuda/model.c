/* SPDX-License-Identifier: Apache-2.0 */
/* How long device work takes: the asked duration times the GPU's own speed, the slow-rank factor,
 * seeded noise, and the slow-down while communication holds part of the SMs. */
#include "tests/simgpu/cuda/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	uint64_t rank;
	double speed;              /* factor on every kernel: this GPU, and the slow-rank fault */
	double sigma;              /* per-kernel noise */
	double contention;         /* factor while communication overlaps */
	double h2d, d2h, d2d, p2p; /* bytes per ns */
	int64_t latency_ns, gap_ns, copy_ns;
	double jitter_ns;
	int64_t slow_from_ns, slow_to_ns;
	double slow;
} model;

/* SIMGPU_SLOW: RANK:FACTOR[@FROM_S-TO_S] in a comma list; the window counts from the epoch. */
static void slow_load(void)
{
	const char *p = sim_env_text("SIMGPU_SLOW");

	model.slow = 1.0;
	model.slow_from_ns = INT64_MIN;
	model.slow_to_ns = SIM_NEVER;
	for (; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		int rank;
		double factor, from = 0.0, to = 0.0;
		int n = sscanf(p, "%d:%lf@%lf-%lf", &rank, &factor, &from, &to);
		if (n < 2 || rank != sim_env_rank()) {
			continue;
		}
		model.slow = factor;
		if (n == 4) {
			int64_t zero = sim_clock_map()->mono0_ns;
			model.slow_from_ns = zero + llround(from * 1e9);
			model.slow_to_ns = zero + llround(to * 1e9);
		}
	}
}

void sim_model_load(void)
{
	model.rank = (uint64_t)sim_env_rank();
	double gpu_sigma = sim_env_double("SIMGPU_GPU_SIGMA", 0.015);

	model.speed =
		1.0 + gpu_sigma * sim_rand_normal(SIM_RAND_GPU_SPEED, (uint64_t)sim_env_rank());
	model.sigma = sim_env_double("SIMGPU_KERNEL_SIGMA", 0.03);
	model.contention = sim_env_double("SIMGPU_CONTENTION", 1.0);
	model.latency_ns = llround(1e3 * sim_env_double("SIMGPU_LAUNCH_US", 4.0));
	model.jitter_ns = 1e3 * sim_env_double("SIMGPU_LAUNCH_JITTER_US", 0.5);
	model.gap_ns = sim_env_i64("SIMGPU_KERNEL_GAP_NS", 800);
	model.copy_ns = llround(1e3 * sim_env_double("SIMGPU_COPY_LATENCY_US", 2.0));
	model.h2d = model.d2h = sim_env_double("SIMGPU_PCIE_GBPS", 25.0);
	model.d2d = sim_env_double("SIMGPU_HBM_GBPS", 1200.0);
	model.p2p = sim_env_double("SIMGPU_NVLINK_GBPS", 200.0);
	slow_load();
}

/* Random numbers differ between ranks and between launches. */
static uint64_t noise_key(const struct sim_op *op)
{
	return model.rank << 40 ^ op->nth;
}

int64_t sim_model_latency(const struct sim_op *op)
{
	if (op->kind > SIM_OP_COMM) {
		return 0;
	}
	double u = sim_rand_uniform(SIM_RAND_LAUNCH, noise_key(op));
	return model.latency_ns + (int64_t)(-model.jitter_ns * log(1.0 - u));
}

int64_t sim_model_gap(void)
{
	return model.gap_ns;
}

static double kernel_factor(const struct sim_op *op)
{
	double f =
		model.speed * (1.0 + model.sigma * sim_rand_normal(SIM_RAND_KERNEL, noise_key(op)));

	if (op->start_ns >= model.slow_from_ns && op->start_ns < model.slow_to_ns) {
		f *= model.slow;
	}
	return f > 0.0 ? f : 0.0;
}

/* The communication intervals of a device that can still touch [from, ...): next change of "is one
 * active" after t, and whether one is active at t. An open interval lasts until `now` at least. */
static bool comm_active(int device, int64_t t, int64_t *change_ns)
{
	unsigned n = sim_eng.n_comms < SIM_COMM_INTERVALS ? sim_eng.n_comms : SIM_COMM_INTERVALS;
	bool active = false;

	*change_ns = SIM_NEVER;
	for (unsigned i = 0; i < n; i++) {
		const struct sim_interval *c = &sim_eng.comms[i];
		if (c->device != device || c->end_ns <= t) {
			continue;
		}
		if (c->start_ns <= t) {
			active = true;
			*change_ns = c->end_ns < *change_ns ? c->end_ns : *change_ns;
		} else if (c->start_ns < *change_ns) {
			*change_ns = c->start_ns;
		}
	}
	return active;
}

bool sim_model_kernel(const struct sim_op *op, int64_t now, int64_t *end_ns, int64_t *again_ns)
{
	double work = (double)op->dur_ns * kernel_factor(op);
	int64_t t = op->start_ns;

	if (op->dur_ns == SIM_NEVER) {
		*end_ns = SIM_NEVER;
		return true;
	}
	if (model.contention <= 1.0) {
		*end_ns = t + llround(work);
		return true;
	}
	/* Communication that is not enqueued yet may still slow this kernel: know its end only
	 * when the wall clock has reached it. */
	for (;;) {
		int64_t change;
		double rate = comm_active(op->stream->device, t, &change) ? model.contention : 1.0;
		int64_t end = t + llround(work * rate);
		if (change == SIM_NEVER || end <= change) {
			*end_ns = end;
			*again_ns = end;
			return end <= now;
		}
		work -= (double)(change - t) / rate;
		t = change;
	}
}

int64_t sim_model_copy(const struct sim_op *op)
{
	double gbps = op->src_device < 0 ? model.h2d : op->dst_device < 0 ? model.d2h : model.d2d;

	if (op->kind == SIM_OP_MEMSET) {
		gbps = model.d2d;
	} else if (op->src_device >= 0 && op->dst_device >= 0 && op->src_device != op->dst_device) {
		gbps = model.p2p;
	}
	double f = 1.0 + model.sigma * sim_rand_normal(SIM_RAND_COPY, noise_key(op));
	return model.copy_ns + llround((double)op->bytes / gbps * f);
}
