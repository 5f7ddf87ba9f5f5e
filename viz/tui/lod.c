/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix sums over slices of time: a column costs two binary searches and at most 128 slices. */
#include "viz/tui/lod.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define BLOCK 64

enum lag_status lag_lod_init(struct lag_lod *lod, const struct lag_time_slice *slices, size_t n,
			     struct lag_err *err)
{
	int64_t sum[LAG_TIME_LIMIT] = { 0 };

	*lod = (struct lag_lod){ .slices = slices, .n = n };
	lod->sums = lag_calloc((n / BLOCK + 1) * LAG_TIME_LIMIT, sizeof(*lod->sums));
	if (!lod->sums)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for a level of detail");
	for (size_t i = 0; i < n; i++) {
		if (i % BLOCK == 0)
			memcpy(&lod->sums[i / BLOCK * LAG_TIME_LIMIT], sum, sizeof(sum));
		sum[slices[i].class] += slices[i].end_ns - slices[i].start_ns;
	}
	if (n % BLOCK == 0)
		memcpy(&lod->sums[n / BLOCK * LAG_TIME_LIMIT], sum, sizeof(sum));
	return LAG_OK;
}

void lag_lod_release(struct lag_lod *lod)
{
	free(lod->sums);
	*lod = (struct lag_lod){ 0 };
}

size_t lag_lod_find(const struct lag_lod *lod, int64_t t)
{
	size_t low = 0, high = lod->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lod->slices[mid].end_ns <= t) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return low;
}

/* ns by class before t. */
static void sum_before(const struct lag_lod *lod, int64_t t, int64_t sum[LAG_TIME_LIMIT])
{
	size_t at = lag_lod_find(lod, t);

	memcpy(sum, &lod->sums[at / BLOCK * LAG_TIME_LIMIT], LAG_TIME_LIMIT * sizeof(*sum));
	for (size_t i = at / BLOCK * BLOCK; i < at; i++)
		sum[lod->slices[i].class] += lod->slices[i].end_ns - lod->slices[i].start_ns;
	if (at < lod->n && lod->slices[at].start_ns < t)
		sum[lod->slices[at].class] += t - lod->slices[at].start_ns;
}

void lag_lod_between(const struct lag_lod *lod, int64_t t0, int64_t t1, int64_t ns[LAG_TIME_LIMIT])
{
	int64_t before[LAG_TIME_LIMIT];

	sum_before(lod, t0, before);
	sum_before(lod, t1, ns);
	for (int c = 0; c < LAG_TIME_LIMIT; c++)
		ns[c] -= before[c];
}

void lag_lod_columns(const struct lag_lod *lod, const struct lag_axis *axis, int width,
		     int64_t *out)
{
	int64_t left[LAG_TIME_LIMIT], right[LAG_TIME_LIMIT];

	if (!lod->n)
		return;
	sum_before(lod, axis->t0, left);
	for (int x = 0; x < width; x++) {
		sum_before(lod, lag_axis_time(axis, width, x + 1), right);
		for (int c = 0; c < LAG_TIME_LIMIT; c++)
			out[x * LAG_TIME_LIMIT + c] += right[c] - left[c];
		memcpy(left, right, sizeof(left));
	}
}
