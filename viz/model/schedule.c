/* SPDX-License-Identifier: Apache-2.0 */
/* Every schedule is: some forwards (warm-up), then one forward and one backward in turn, then the
 * remaining backwards. They differ in the length of the warm-up and in which block is the k-th. */
#include "viz/model/schedule.h"

const char *lag_schedule_name(enum lag_schedule schedule)
{
	static const char *const names[] = { "unknown", "GPipe", "1F1B", "interleaved 1F1B" };

	return names[schedule <= LAG_SCHEDULE_INTERLEAVED ? schedule : LAG_SCHEDULE_UNKNOWN];
}

size_t lag_schedule_length(const struct lag_schedule_shape *shape)
{
	return 2 * (size_t)shape->n_chunks * (size_t)shape->n_microbatches;
}

static int32_t warm_up(const struct lag_schedule_shape *shape, int32_t stage)
{
	int32_t total = shape->n_chunks * shape->n_microbatches;
	int32_t behind = shape->n_stages - stage - 1;
	int32_t n = total;

	if (shape->schedule == LAG_SCHEDULE_1F1B) {
		n = behind;
	} else if (shape->schedule == LAG_SCHEDULE_INTERLEAVED) {
		n = 2 * behind + (shape->n_chunks - 1) * shape->n_stages;
	}
	return n < total ? n : total;
}

/* The k-th forward (or backward) of any stage: groups of `stages` microbatches pass chunk after chunk. */
static struct lag_slot kth(const struct lag_schedule_shape *shape, int32_t k,
			   enum lag_block_kind kind)
{
	int32_t p = shape->n_stages, v = shape->n_chunks;
	struct lag_slot slot = { (uint8_t)kind, k, 0 };

	if (v > 1) {
		slot.chunk = k % (p * v) / p;
		slot.microbatch = k / (p * v) * p + k % p;
		if (kind == LAG_BLOCK_BACKWARD)
			slot.chunk = v - 1 - slot.chunk;
	}
	return slot;
}

bool lag_schedule_order(const struct lag_schedule_shape *shape, int32_t stage, struct lag_slot *out)
{
	int32_t total = shape->n_chunks * shape->n_microbatches;
	int32_t n_warm = warm_up(shape, stage);
	int32_t f = 0, b = 0;
	size_t at = 0;

	if (shape->schedule == LAG_SCHEDULE_UNKNOWN || total <= 0)
		return false;
	if (shape->n_chunks > 1 && (shape->schedule != LAG_SCHEDULE_INTERLEAVED ||
				    shape->n_microbatches % shape->n_stages))
		return false;
	while (f < n_warm)
		out[at++] = kth(shape, f++, LAG_BLOCK_FORWARD);
	while (f < total) {
		out[at++] = kth(shape, f++, LAG_BLOCK_FORWARD);
		out[at++] = kth(shape, b++, LAG_BLOCK_BACKWARD);
	}
	while (b < total)
		out[at++] = kth(shape, b++, LAG_BLOCK_BACKWARD);
	return true;
}
