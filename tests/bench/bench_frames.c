/* SPDX-License-Identifier: Apache-2.0 */
/* bench_frames TRACE: what a screen of up to 60 lanes and 200 columns costs to get from the level of detail, at
 * several zooms; the median and the worst of many windows, against the 5 ms that leave room for the rest of a
 * frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "viz/model/pyramid.h"

#define WIDTH     200
#define LANES_MAX 60
#define WINDOWS   61

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool frame(struct lag_pyramid *pyramid, int64_t t0, int64_t span)
{
	static struct lag_bucket out[WIDTH];
	const struct lag_pyramid_lane *lanes;
	int64_t edges[WIDTH + 1];
	struct lag_err err = { 0 };
	size_t n;

	lanes = lag_pyramid_lanes(pyramid, &n);
	for (int x = 0; x <= WIDTH; x++)
		edges[x] = t0 + (int64_t)((double)span * x / WIDTH);
	for (size_t i = 0; i < n && i < LANES_MAX; i++) {
		memset(out, 0, sizeof(out));
		if (lag_pyramid_columns(pyramid, &lanes[i], edges, WIDTH, out, &err) != LAG_OK) {
			(void)fprintf(stderr, "%s\n", err.text);
			return false;
		}
	}
	return true;
}

/* Windows of one length, spread over the trace. */
static bool zoom(struct lag_pyramid *pyramid, int64_t first, int64_t length, int64_t span)
{
	double ms[WINDOWS];

	for (int i = 0; i < WINDOWS; i++) {
		int64_t t0 = first + (int64_t)((double)(length - span) * i / (WINDOWS - 1));

		/* Once to have its pages, once to be timed. */
		if (!frame(pyramid, t0, span))
			return false;
		ms[i] = now_ms();
		if (!frame(pyramid, t0 + span / WIDTH, span))
			return false;
		ms[i] = now_ms() - ms[i];
	}
	qsort(ms, WINDOWS, sizeof(ms[0]), by_value);
	(void)printf(
		"frame data, %.3g s in %d columns\t%g\t%g\tms\t0\tthe 5 ms it may take; worst of "
		"%d %.3g ms\n",
		(double)span / 1e9, WIDTH, ms[WINDOWS / 2], 5.0, WINDOWS, ms[WINDOWS - 1]);
	return true;
}

int main(int argc, char **argv)
{
	struct lag_pyramid *pyramid = NULL;
	const struct lag_pyramid_lane *lanes;
	struct lag_db *db = NULL;
	struct lag_err err = { 0 };
	int64_t length;
	bool ok;
	size_t n;

	if (argc != 2 || lag_db_open(argv[1], &db, &err) != LAG_OK ||
	    lag_pyramid_open(db, &pyramid, &err) != LAG_OK) {
		(void)fprintf(stderr, "usage: bench_frames TRACE (%s)\n", err.text);
		return 2;
	}
	lanes = lag_pyramid_lanes(pyramid, &n);
	length = lanes[0].last_ns - lanes[0].first_ns;
	ok = length > 0;
	for (int64_t span = length; ok && span > 1000; span /= 16)
		ok = zoom(pyramid, lanes[0].first_ns, length, span);
	lag_pyramid_close(pyramid);
	lag_db_close(db);
	return ok ? 0 : 1;
}
