/* SPDX-License-Identifier: Apache-2.0 */
/* The sends and receives of one pipeline group in one step: which block each serves, what it waits for,
 * and how long it takes once both sides have begun. */
#ifndef VIZ_ANALYSIS_BUBBLE_MESSAGES_H
#define VIZ_ANALYSIS_BUBBLE_MESSAGES_H

#include "viz/model/context.h"

/* A kernel that sends, receives, or does both (a group). Operations are by position in the list. */
struct lag_message_op {
	int64_t duration_ns;      /* from the latest arrival of the partners that it waits for */
	int64_t begin_ns, end_ns; /* scratch of the replay; LAG_NONE: not yet */
	int32_t launch;
	int32_t stage;
	int32_t sends,
		receives;  /* block whose result it sends; block that needs what it receives; -1 */
	int32_t to, from;  /* partners of the two; -1 unknown */
	int32_t before[2]; /* what runs before it: in its stream, in its communicator; -1 */
	int32_t after;     /* block that it followed though it does not send its result; -1 */
	bool eager;        /* its send went out on credits: it does not wait for its receiver */
};

/* What all steps share: the pipeline's launches in order, and the communicators that keep order. */
struct lag_messages;

enum lag_status lag_messages_new(struct lag_context *ctx, struct lag_messages **out,
				 struct lag_err *err) LAG_MUST_USE;
void lag_messages_free(struct lag_messages *messages);

/* Stages of a group with their blocks in a step: blocks[from[s] .. to[s]). */
struct lag_message_blocks {
	const struct lag_pipe_group *group;
	const size_t *from, *to;
	/* Block that needs the result of block i of stage s; its stage in *stage; -1 none. */
	int32_t (*consumer)(void *arg, int32_t s, size_t i, int32_t *stage);
	void *arg;
};

/* Appends the operations of a group in a step to out (struct lag_message_op, emptied first). Messages
 * that cannot be assigned to blocks are left out. */
enum lag_status lag_messages_find(const struct lag_messages *messages, int32_t step,
				  const struct lag_message_blocks *blocks,
				  struct lag_vec *out) LAG_MUST_USE;

#endif
