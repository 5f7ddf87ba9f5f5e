/* SPDX-License-Identifier: Apache-2.0 */
/* The level-of-detail pyramid's cells: for each lane of GPU work, how much of every bucket of time was
 * covered by each class, at several widths of bucket. A bucket of level `shift` with index i is the time
 * [i << shift, (i + 1) << shift); a segment is LAG_PYRAMID_BUCKETS of them, aligned, in one blob.
 *
 * A blob, bucket after bucket: a head byte of four 2-bit fields, lowest first: compute, copy,
 * communication (0 none, 1 the whole bucket, 2 a varint of ns follows) and the number of events that
 * start in it (0, 1, 2, or 3: a varint of the number minus 3 follows). A head of 0 is followed by a varint
 * n: n + 1 empty buckets. What the blob does not reach is empty. */
#ifndef SCHEMA_RECORD_PYRAMID_H
#define SCHEMA_RECORD_PYRAMID_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define LAG_PYRAMID_BUCKET_BITS 8
#define LAG_PYRAMID_BUCKETS     (1 << LAG_PYRAMID_BUCKET_BITS)
/* The levels of a lane are this many bits of width apart: four buckets make one of the next. */
#define LAG_PYRAMID_STEP      2
#define LAG_PYRAMID_SHIFT_MIN 9
#define LAG_PYRAMID_SHIFT_MAX 53
/* A lane has at most so many buckets at its coarsest level. */
#define LAG_PYRAMID_TOP_MAX 1024

/* Where several run at once, the first counts: time that computes is not idle, whatever else goes on. */
enum lag_pyramid_class {
	LAG_PYRAMID_COMPUTE = 0,
	LAG_PYRAMID_COPY,
	LAG_PYRAMID_COMM,
	LAG_PYRAMID_CLASSES
};

struct lag_bucket {
	int64_t ns
		[LAG_PYRAMID_CLASSES]; /* covered, none counted twice: at most the bucket's width */
	uint64_t n_events;             /* that start in it */
};

#define LAG_BUCKET_BYTES_MAX (1 + 10 * (LAG_PYRAMID_CLASSES + 1))

/* Writes a bucket that is not empty, or n > 0 empty ones, at p; returns what follows. */
uint8_t *lag_bucket_put(uint8_t *p, const struct lag_bucket *bucket, unsigned shift);
uint8_t *lag_bucket_skip(uint8_t *p, uint64_t n);

/* Fills all buckets of a segment. LAG_ERR_INPUT: it says more than a bucket can hold, or does not end. */
enum lag_status lag_segment_read(const uint8_t *blob, size_t n, unsigned shift,
				 struct lag_bucket buckets[LAG_PYRAMID_BUCKETS]) LAG_MUST_USE;

#endif
