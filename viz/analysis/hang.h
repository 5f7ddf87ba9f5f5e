/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds up a job that stands: per communicator the first operation that not all members have finished
 * and how far each has come, then the walk from rank to rank, each waiting for the next, to where it ends. */
#ifndef VIZ_ANALYSIS_HANG_H
#define VIZ_ANALYSIS_HANG_H

#include "viz/model/seen.h"

enum lag_hang_state {
	LAG_HANG_NO_RECORD, /* of this member in this communicator, or its recording ends before */
	LAG_HANG_NEVER,     /* never called it */
	LAG_HANG_ENQUEUED,  /* called; not started, or starts are not recorded */
	LAG_HANG_STARTED,
	LAG_HANG_FINISHED,
	LAG_HANG_STATES
};

/* Where one member stands in one communicator, by its numbers; -1 none. */
struct lag_hang_place {
	int32_t r; /* rank index, -1 not of this job */
	bool on_record;
	int64_t entered, started, finished;
	int64_t pending; /* lowest number called and not finished, -1 none */
};

/* What a rank's oldest unfinished operation is. */
struct lag_hang_head {
	int64_t at_ns, seq; /* seq -1: a message */
	uint32_t comm;
	int32_t peer;   /* rank index of a message's other side, -1 */
	uint32_t sizes; /* text in seen.sizes */
	uint8_t func;
	bool any, started;
};

/* A communicator with an unfinished collective. */
struct lag_hang_comm {
	uint32_t comm;
	int64_t seq, since_ns; /* the lowest unfinished; when it was first called, LAG_NONE */
	uint32_t n[LAG_HANG_STATES];
	uint32_t sizes;
	uint8_t func;
	bool starts_known; /* of every member that has not finished */
};

/* How a walk ends, the most telling first. */
enum lag_hang_end {
	LAG_HANG_SILENT,      /* never called what others wait in, and has nothing under way */
	LAG_HANG_LOCAL,       /* has not finished what peers have finished */
	LAG_HANG_BLOCKED,     /* its GPU runs something else */
	LAG_HANG_TOGETHER,    /* every member is in it and has started: communication */
	LAG_HANG_UNKNOWN,     /* every member is in it, starts are not on record */
	LAG_HANG_DEADLOCK,    /* ranks that wait for each other in different operations */
	LAG_HANG_NOT_RECORDED /* others wait for a rank that nothing is known of */
};

struct lag_hang_suspect {
	enum lag_hang_end end;
	int32_t r; /* rank index, -1 several */
	uint32_t comm;
	int64_t seq; /* -1 a message */
	uint8_t func;
	uint32_t sizes;
	uint32_t n_waiting; /* ranks whose walk ends here, without itself */
};

struct lag_hang {
	const struct lag_trace *trace;
	struct lag_seen seen;
	struct lag_hang_place *places; /* as trace->members */
	size_t n_places;
	struct lag_map place_of;     /* communicator and rank -> place */
	struct lag_hang_head *heads; /* by rank */
	bool *seen_rank;             /* known from what its host had seen */
	bool *tells_starts;          /* by rank */
	bool *has_messages;          /* by communicator, in what hosts had seen */
	uint32_t *standing;          /* by communicator, while they are looked for: 1 + its place */
	struct lag_vec comms;        /* struct lag_hang_comm, oldest first */
	struct lag_vec suspects;     /* struct lag_hang_suspect, most telling first */
	size_t n_calls;              /* on record */
	uint32_t n_standing;         /* ranks with something unfinished */
	const char **running;        /* by rank: what lag_hang_running says */
	int32_t *deadlocked;         /* rank indices */
	size_t n_deadlocked;
};

enum lag_status lag_hang_find(const struct lag_trace *trace, struct lag_hang *hang,
			      struct lag_err *err) LAG_MUST_USE;
void lag_hang_release(struct lag_hang *hang);

/* Where a rank stands in a communicator; NULL when it is no member. */
const struct lag_hang_place *lag_hang_place_of(const struct lag_hang *hang, uint32_t comm,
					       uint32_t r);

/* State of member `place` in the communicator's operation seq. */
enum lag_hang_state lag_hang_state_of(const struct lag_hang *hang,
				      const struct lag_hang_place *place, int64_t seq);

/* Whether all members have started when one has finished. */
bool lag_hang_joins_all(uint8_t func);

/* Name of what a rank's GPU was still running that is no communication; NULL none. */
const char *lag_hang_running(const struct lag_hang *hang, uint32_t r);

/* hang_walk.c: heads' waiting to suspects. */
enum lag_status lag_hang_walk(struct lag_hang *hang) LAG_MUST_USE;

#endif
