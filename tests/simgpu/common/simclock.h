/* SPDX-License-Identifier: Apache-2.0 */
/* True time and the clocks that simulated hosts and devices show. True time is the machine's own
 * CLOCK_MONOTONIC, read past any interposed clock_gettime, so that it is one clock for all ranks. */
#ifndef SIM_COMMON_CLOCK_H
#define SIM_COMMON_CLOCK_H

#include <stdint.h>

#define SIM_NEVER     INT64_MAX
#define SIM_NS_PER_MS 1000000LL
#define SIM_NS_PER_S  1000000000LL

/* What the clocks of one simulated host show at true time T:
 * real(T) = real0 + real_offset + (T - mono0) * (1 + drift), mono(T) likewise from mono0. */
struct sim_clock_map {
	int64_t mono0_ns;
	int64_t real0_ns;
	int64_t real_offset_ns;
	int64_t mono_offset_ns;
	double drift_ppm;
	int host; /* index of the simulated host */
};

/* True time now. */
int64_t sim_true_ns(void);

/* Sleep until true time t, with a spin of some microseconds at the end. */
void sim_sleep_until(int64_t t_ns);

/* The map of this process's host, computed once from the environment. */
const struct sim_clock_map *sim_clock_map(void);

/* Sets SIMGPU_EPOCH to now where it is missing; all ranks of a run must share one epoch. */
void sim_clock_epoch_ensure(void);

int64_t sim_clock_real(const struct sim_clock_map *m, int64_t t_ns);
int64_t sim_clock_mono(const struct sim_clock_map *m, int64_t t_ns);
/* Inverses: the true time at which the host's clock shows v. */
int64_t sim_clock_true_of_real(const struct sim_clock_map *m, int64_t v_ns);
int64_t sim_clock_true_of_mono(const struct sim_clock_map *m, int64_t v_ns);

/* Error of this rank's device clock against its host's clock, at true time t; it steps once. */
int64_t sim_clock_device_error(int64_t t_ns);

/* The two levels of that error and the true time of the step (SIM_NEVER: none). */
void sim_clock_device_steps(int64_t *before_ns, int64_t *after_ns, int64_t *at_ns);

#endif
