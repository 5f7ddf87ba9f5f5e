/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets to bytes and back. Reading trusts nothing: a blob comes from a file that anybody may have made. */
#include "schema/record/pyramid.h"

#include <string.h>

#include "schema/base/varint.h"

#define EVENTS_MAX ((uint64_t)1 << 48) /* sums of them stay far from the end of 64 bits */

enum share {
	SHARE_NONE = 0,
	SHARE_ALL,
	SHARE_TOLD
};

uint8_t *lag_bucket_put(uint8_t *p, const struct lag_bucket *bucket, unsigned shift)
{
	int64_t whole = INT64_C(1) << shift;
	uint8_t *head = p++;

	*head = (uint8_t)((bucket->n_events < 3 ? bucket->n_events : 3) << 2 * LAG_PYRAMID_CLASSES);
	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++) {
		if (!bucket->ns[c])
			continue;
		if (bucket->ns[c] == whole) {
			*head |= (uint8_t)(SHARE_ALL << 2 * c);
			continue;
		}
		*head |= (uint8_t)(SHARE_TOLD << 2 * c);
		p = lag_varint_put(p, (uint64_t)bucket->ns[c]);
	}
	return bucket->n_events < 3 ? p : lag_varint_put(p, bucket->n_events - 3);
}

uint8_t *lag_bucket_skip(uint8_t *p, uint64_t n)
{
	*p++ = 0;
	return lag_varint_put(p, n - 1);
}

static const uint8_t *read_bucket(const uint8_t *p, const uint8_t *end, unsigned head,
				  int64_t whole, struct lag_bucket *out)
{
	int64_t sum = 0;
	uint64_t value;

	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++) {
		unsigned share = head >> 2 * c & 3;

		if (share == SHARE_NONE)
			continue;
		value = (uint64_t)whole;
		if (share == SHARE_TOLD && !(p = lag_varint_get(p, end, &value)))
			return NULL;
		if (share > SHARE_TOLD || value > (uint64_t)(whole - sum))
			return NULL;
		out->ns[c] = (int64_t)value;
		sum += out->ns[c];
	}
	out->n_events = head >> 2 * LAG_PYRAMID_CLASSES;
	if (out->n_events < 3)
		return p;
	p = lag_varint_get(p, end, &value);
	if (!p || value > EVENTS_MAX)
		return NULL;
	out->n_events += value;
	return p;
}

enum lag_status lag_segment_read(const uint8_t *blob, size_t n, unsigned shift,
				 struct lag_bucket buckets[LAG_PYRAMID_BUCKETS])
{
	const uint8_t *p = blob, *end = blob + n;
	uint64_t at = 0, skip;

	memset(buckets, 0, LAG_PYRAMID_BUCKETS * sizeof(*buckets));
	if (shift > LAG_PYRAMID_SHIFT_MAX)
		return LAG_ERR_INPUT;
	while (p < end) {
		unsigned head = *p++;

		if (head) {
			if (at >= LAG_PYRAMID_BUCKETS)
				return LAG_ERR_INPUT;
			p = read_bucket(p, end, head, INT64_C(1) << shift, &buckets[at++]);
		} else {
			p = lag_varint_get(p, end, &skip);
			if (p && skip >= LAG_PYRAMID_BUCKETS - at)
				return LAG_ERR_INPUT;
			at += p ? skip + 1 : 0;
		}
		if (!p)
			return LAG_ERR_INPUT;
	}
	return LAG_OK;
}
