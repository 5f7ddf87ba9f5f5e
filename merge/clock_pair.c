/* SPDX-License-Identifier: Apache-2.0 */
/* First the line that keeps the widest equal distance from both directions (causality's middle),
 * then a robust fit through the messages that, by that line, found their receiver waiting. */
#include "merge/clock_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge/clock_fit.h"
#include "schema/base/mem.h"

/* Wide: devices of one host that are a little apart must all count, else the lines of neighbouring
 * pairs do not add up. */
#define HUBER 2.5

enum {
	SEARCH_STEPS = 80,
	FIT_ROUNDS = 8,
	MIN_EACH_WAY = 3
};

/* Half the gap between the directions for a slope; the middle goes to *offset. */
static double margin(const struct lag_pair_point *pt, size_t n, double slope, double *offset)
{
	double low = -INFINITY;
	double high = INFINITY;
	for (size_t i = 0; i < n; i++) {
		double v = pt[i].value_ns - slope * pt[i].x;
		if (pt[i].reverse) {
			low = v > low ? v : low;
		} else {
			high = v < high ? v : high;
		}
	}
	*offset = (low + high) / 2;
	return (high - low) / 2;
}

/* The gap is concave in the slope. */
static void widest(const struct lag_pair_point *pt, size_t n, double limit, struct lag_pair_line *l)
{
	double a = -limit;
	double b = limit;
	double unused;
	for (int i = 0; i < SEARCH_STEPS; i++) {
		double p = a + (b - a) / 3;
		double q = b - (b - a) / 3;
		if (margin(pt, n, p, &unused) < margin(pt, n, q, &unused)) {
			a = p;
		} else {
			b = q;
		}
	}
	l->slope_ns = (a + b) / 2;
	l->transfer_ns = margin(pt, n, l->slope_ns, &l->offset_ns);
}

bool lag_pair_waited(const struct lag_pair_point *pt, const struct lag_pair_line *l)
{
	double theta = l->offset_ns + l->slope_ns * pt->x;
	return pt->reverse ? pt->lead_ns > theta : pt->lead_ns < theta;
}

double lag_pair_residual(const struct lag_pair_point *pt, const struct lag_pair_line *l)
{
	double theta = l->offset_ns + l->slope_ns * pt->x;
	return pt->value_ns - theta - (pt->reverse ? -l->transfer_ns : l->transfer_ns);
}

/* Solves the symmetric 3 x 3 system in place; false when it is singular. */
static bool solve3(double m[3][4])
{
	for (int c = 0; c < 3; c++) {
		int best = c;
		for (int r = c + 1; r < 3; r++)
			best = fabs(m[r][c]) > fabs(m[best][c]) ? r : best;
		if (!(fabs(m[best][c]) > 1e-12))
			return false;
		for (int k = 0; k < 4; k++) {
			double t = m[c][k];
			m[c][k] = m[best][k];
			m[best][k] = t;
		}
		for (int r = 0; r < 3; r++) {
			double f = r == c ? 0 : m[r][c] / m[c][c];
			for (int k = c; k < 4; k++)
				m[r][k] -= f * m[c][k];
		}
	}
	for (int c = 0; c < 3; c++)
		m[c][3] /= m[c][c];
	return true;
}

/* One weighted step of offset, slope and transfer. The weak ridge keeps the slope where all messages
 * lie at one moment. */
static bool refine(const struct lag_pair_point *pt, size_t n, double scale, struct lag_pair_line *l)
{
	double m[3][4] = { { 0 } };
	m[1][1] = 1e-6;
	for (size_t i = 0; i < n; i++) {
		double r = lag_pair_residual(&pt[i], l);
		double u = fabs(r) / scale;
		double w = u > HUBER ? HUBER / u : 1;
		const double row[3] = { 1, pt[i].x, pt[i].reverse ? -1 : 1 };
		for (int a = 0; a < 3; a++) {
			for (int b = 0; b < 3; b++)
				m[a][b] += w * row[a] * row[b];
			m[a][3] += w * row[a] * r;
		}
	}
	if (!solve3(m))
		return false;
	l->offset_ns += m[0][3];
	l->slope_ns += m[1][3];
	l->transfer_ns += m[2][3];
	return true;
}

static double spread(const struct lag_pair_point *pt, size_t n, const struct lag_pair_line *l,
		     double *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(lag_pair_residual(&pt[i], l));
	return 1.4826 * lag_fit_median(scratch, n);
}

/* Moves the points that found their receiver waiting into `kept`; counts each direction. */
static size_t keep_waited(const struct lag_pair_point *pt, size_t n, struct lag_pair_line *l,
			  struct lag_pair_point *kept)
{
	size_t n_kept = 0;
	l->n_forward = 0;
	l->n_reverse = 0;
	for (size_t i = 0; i < n; i++) {
		if (!lag_pair_waited(&pt[i], l))
			continue;
		kept[n_kept++] = pt[i];
		l->n_reverse += pt[i].reverse;
		l->n_forward += !pt[i].reverse;
	}
	return n_kept;
}

enum lag_status lag_pair_fit(const struct lag_pair_point *points, size_t n, double slope_limit_ns,
			     struct lag_pair_line *line, struct lag_err *err)
{
	memset(line, 0, sizeof(*line));
	size_t n_reverse = 0;
	for (size_t i = 0; i < n; i++)
		n_reverse += points[i].reverse;
	if (n_reverse < MIN_EACH_WAY || n - n_reverse < MIN_EACH_WAY)
		return LAG_OK;
	widest(points, n, slope_limit_ns, line);
	struct lag_pair_point *kept = lag_calloc(n, sizeof(*kept));
	double *scratch = lag_calloc(n, sizeof(*scratch));
	if (!kept || !scratch) {
		free(kept);
		free(scratch);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for %zu messages", n);
	}
	line->known = true;
	size_t n_kept = keep_waited(points, n, line, kept);
	/* Without waiting receivers in both directions only causality's middle is known. */
	line->spread_ns = fabs(line->transfer_ns);
	if (line->n_forward >= MIN_EACH_WAY && line->n_reverse >= MIN_EACH_WAY) {
		struct lag_pair_line start = *line;
		double scale = spread(kept, n_kept, line, scratch);
		for (int i = 0; i < FIT_ROUNDS; i++) {
			if (!refine(kept, n_kept, scale > 1 ? scale : 1, line)) {
				*line = start;
				break;
			}
			scale = spread(kept, n_kept, line, scratch);
		}
		line->spread_ns = scale;
	}
	free(kept);
	free(scratch);
	return LAG_OK;
}
