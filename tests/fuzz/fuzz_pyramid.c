/* SPDX-License-Identifier: Apache-2.0 */
/* A segment of the pyramid on any bytes: it is refused, or its buckets hold no more than they can, and are
 * the same when written again. The first byte is the level. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/record/pyramid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static size_t write_again(const struct lag_bucket *buckets, unsigned shift, uint8_t *to)
{
	static const struct lag_bucket empty;
	uint64_t n_empty = 0;
	uint8_t *p = to;

	for (int i = 0; i < LAG_PYRAMID_BUCKETS; i++) {
		if (memcmp(&buckets[i], &empty, sizeof(empty)) == 0) {
			n_empty++;
			continue;
		}
		if (n_empty)
			p = lag_bucket_skip(p, n_empty);
		n_empty = 0;
		p = lag_bucket_put(p, &buckets[i], shift);
	}
	return (size_t)(p - to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct lag_bucket buckets[LAG_PYRAMID_BUCKETS], again[LAG_PYRAMID_BUCKETS];
	static uint8_t bytes[2 * LAG_PYRAMID_BUCKETS * LAG_BUCKET_BYTES_MAX];
	unsigned shift = n ? data[0] % (LAG_PYRAMID_SHIFT_MAX + 2) : 0;

	if (!n || lag_failed(lag_segment_read(data + 1, n - 1, shift, buckets)))
		return 0;
	for (int i = 0; i < LAG_PYRAMID_BUCKETS; i++) {
		int64_t sum = 0;

		for (int c = 0; c < LAG_PYRAMID_CLASSES; c++) {
			require(buckets[i].ns[c] >= 0);
			sum += buckets[i].ns[c];
		}
		require(sum <= INT64_C(1) << shift);
	}
	n = write_again(buckets, shift, bytes);
	require(lag_segment_read(bytes, n, shift, again) == LAG_OK);
	require(memcmp(buckets, again, sizeof(buckets)) == 0);
	return 0;
}
