/* SPDX-License-Identifier: Apache-2.0 */
/* Clock quadruples and jumps of the wall clock. Called by the writer thread only. */
#include "tracer/clock.h"

#include <sys/timex.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define N_BRACKETS 5
/* Slewing moves the clock by at most 500 ppm; what is beyond, and beyond scheduling noise, jumped. */
#define SLEW_PPM    500
#define STEP_MIN_NS 2000000

static int64_t counter(void)
{
#if defined(__x86_64__)
	return (int64_t)(__rdtsc() & INT64_MAX);
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return (int64_t)(ticks & INT64_MAX);
#else
	return LAG_NONE;
#endif
}

void lag_clock_read(struct lag_rec_clock *out, bool (*cupti)(int64_t *ns))
{
	int64_t best = INT64_MAX;

	*out = (struct lag_rec_clock){ .realtime_ns = lag_clock_now(),
				       .monotonic_ns = lag_clock_get(CLOCK_MONOTONIC),
				       .tsc = counter(),
				       .cupti_ns = LAG_NONE,
				       .device = LAG_NONE };
	for (int i = 0; i < N_BRACKETS; i++) {
		int64_t before = lag_clock_now(), after, device = LAG_NONE, mono, tsc;

		if (cupti && !cupti(&device))
			device = LAG_NONE;
		mono = lag_clock_get(CLOCK_MONOTONIC);
		tsc = counter();
		after = lag_clock_now();
		if (after < before || after - before >= best)
			continue;
		best = after - before;
		out->realtime_ns = before + best / 2;
		out->monotonic_ns = mono;
		out->tsc = tsc;
		out->cupti_ns = device;
		out->bracket_ns = best;
	}
}

int64_t lag_clock_step(const struct lag_rec_clock *reading)
{
	static int64_t last_real, last_mono;
	int64_t passed = reading->monotonic_ns - last_mono;
	int64_t step = reading->realtime_ns - last_real - passed;
	int64_t limit = STEP_MIN_NS + reading->bracket_ns + passed / (1000000 / SLEW_PPM);
	bool first = last_real == 0;

	last_real = reading->realtime_ns;
	last_mono = reading->monotonic_ns;
	return first || (step < limit && step > -limit) ? 0 : step;
}

void lag_clock_state(struct lag_rec_clock_state *out)
{
	struct timex t = { .modes = 0 };
	int state = adjtimex(&t);

	out->at_ns = lag_clock_now();
	out->source = LAG_CLOCK_NONE;
	if (state < 0)
		return;
	out->source = LAG_CLOCK_ADJTIMEX;
	out->synchronised = state != TIME_ERROR && !(t.status & STA_UNSYNC);
	out->est_error_ns = t.esterror >= 0 ? (int64_t)t.esterror * 1000 : LAG_NONE;
	out->max_error_ns = t.maxerror >= 0 ? (int64_t)t.maxerror * 1000 : LAG_NONE;
	out->offset_ns = (int64_t)t.offset * (t.status & STA_NANO ? 1 : 1000);
	out->frequency_ppb = (int64_t)t.freq * 1000 / 65536;
	out->tai_s = t.tai;
}
