/* SPDX-License-Identifier: Apache-2.0 */
/* One line on stderr, redrawn a few times a second. */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS INT64_C(200000000)

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void lag_progress_begin(struct lag_progress *p, const char *cmd, bool quiet)
{
	*p = (struct lag_progress){ .cmd = cmd, .show = !quiet && isatty(STDERR_FILENO) };
}

static void draw(struct lag_progress *p, uint64_t done, uint64_t total, int64_t now)
{
	double share = total ? (double)done / (double)total : 0;
	double spent = (double)(now - p->phase_start_ns) / 1e9;

	(void)fprintf(stderr, "\r\033[Klaggard %s: %s", p->cmd, p->phase);
	if (total)
		(void)fprintf(stderr, " %3.0f %%", 100 * share);
	if (share > 0.02 && spent > 1)
		(void)fprintf(stderr, ", %.0f s left", spent / share - spent);
	(void)fflush(stderr);
	p->drawn = true;
}

void lag_progress_step(struct lag_progress *p, const char *phase, uint64_t done, uint64_t total)
{
	int64_t now = now_ns();

	if (phase != p->phase) {
		p->phase = phase;
		p->phase_start_ns = now;
	}
	if (p->show && now - p->drawn_ns > REDRAW_NS) {
		draw(p, done, total, now);
		p->drawn_ns = now;
	}
}

void lag_progress_clear(struct lag_progress *p)
{
	if (p->drawn)
		(void)fputs("\r\033[K", stderr);
	p->drawn = false;
}
