/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the operations that operation tables of pipeline jobs hold, by the names they have there. */
#ifndef SCHEMA_RECORD_OPTYPE_H
#define SCHEMA_RECORD_OPTYPE_H

#include <stdbool.h>

/* Sends and receives, then collectives, stand together. */
enum lag_optype {
	LAG_OT_LOCAL, /* computes: optimizer, gc, ... */
	LAG_OT_FORWARD,
	LAG_OT_BACKWARD,
	LAG_OT_FORWARD_SEND,
	LAG_OT_FORWARD_RECV,
	LAG_OT_BACKWARD_SEND,
	LAG_OT_BACKWARD_RECV,
	LAG_OT_PARAMS,    /* all-gather among the workers of a stage */
	LAG_OT_GRADS,     /* reduce-scatter among them */
	LAG_OT_SEPARATE,  /* all-reduce among them, where GRADS runs beside compute */
	LAG_OT_EMBEDDING, /* all-reduce between first and last stage */
	LAG_OT_CLIP,      /* of all workers */
	LAG_OT_UNGROUPED, /* communication among workers that the table does not tell */
};

enum lag_optype lag_optype_of(const char *name);

static inline bool lag_optype_is_message(enum lag_optype type)
{
	return type >= LAG_OT_FORWARD_SEND && type <= LAG_OT_BACKWARD_RECV;
}

static inline bool lag_optype_sends(enum lag_optype type)
{
	return type == LAG_OT_FORWARD_SEND || type == LAG_OT_BACKWARD_SEND;
}

static inline bool lag_optype_is_comm(enum lag_optype type)
{
	return type >= LAG_OT_FORWARD_SEND;
}

/* The computation that a send or receive belongs to. */
static inline enum lag_optype lag_optype_compute(enum lag_optype message)
{
	return message <= LAG_OT_FORWARD_RECV ? LAG_OT_FORWARD : LAG_OT_BACKWARD;
}

#endif
