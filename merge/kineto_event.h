/* SPDX-License-Identifier: Apache-2.0 */
/* One event of a Kineto trace as it stands in the file, and the scanner that delivers one after the
 * other: plain ones at the speed of memory, all others by the tolerant JSON reader. Times are ns. */
#ifndef MERGE_KINETO_EVENT_H
#define MERGE_KINETO_EVENT_H

#include "schema/base/json_scan.h"
#include "schema/record/record.h"

enum lag_kineto_cat {
	LAG_KC_OTHER,
	LAG_KC_KERNEL,
	LAG_KC_MEMCPY,
	LAG_KC_MEMSET,
	LAG_KC_RUNTIME,
	LAG_KC_DRIVER,
	LAG_KC_CPU_OP,
	LAG_KC_PYTHON,
	LAG_KC_ANNOTATION,
	LAG_KC_GPU_ANNOTATION,
	LAG_KC_SYNC,
	LAG_KC_EVENT,
	LAG_KC_OVERHEAD,
	LAG_KC_TRACE,
	LAG_KC_LIMIT,
};

/* Integer arguments. */
enum lag_kineto_int {
	LAG_KI_DEVICE,
	LAG_KI_STREAM,
	LAG_KI_CONTEXT,
	LAG_KI_CORRELATION,
	LAG_KI_EXTERNAL,
	LAG_KI_BYTES,
	LAG_KI_REGISTERS,
	LAG_KI_SHARED,
	LAG_KI_GRAPH,
	LAG_KI_GRAPH_NODE,
	LAG_KI_CBID,
	LAG_KI_PEER_DEVICE,
	LAG_KI_WAIT_CORRELATION,
	LAG_KI_WAIT_STREAM,
	LAG_KI_WAIT_EVENT,
	LAG_KI_SYNC_ID, /* of laggard's exports */
	LAG_KI_IN_ELEMENTS,
	LAG_KI_OUT_ELEMENTS,
	LAG_KI_GROUP_SIZE,
	LAG_KI_FIRST_RANK,
	LAG_KI_RANK_STRIDE,
	LAG_KI_SRC_RANK,
	LAG_KI_DST_RANK,
	LAG_KI_SEQ,
	LAG_KI_COMMS_ID,       /* 64 bits, the pattern of an unsigned number */
	LAG_KI_INPUT_ELEMENTS, /* of the first tensor in "Input Dims" */
	LAG_KI_LIMIT,
};

enum lag_kineto_slot {
	LAG_KT_NAME, /* of the event */
	LAG_KT_META_NAME,
	LAG_KT_LABELS,
	LAG_KT_COLLECTIVE,
	LAG_KT_DTYPE,
	LAG_KT_GROUP_NAME,
	LAG_KT_GROUP_TEXT,
	LAG_KT_GROUP_RANKS,
	LAG_KT_IN_SPLIT,
	LAG_KT_SYNC_KIND,
	LAG_KT_COPY_KIND,
	LAG_KT_INPUT_TYPE,
	LAG_KT_KERNEL,  /* the whole name, in laggard's exports */
	LAG_KT_SCRATCH, /* never set: where what is read at once is decoded */
	LAG_KT_LIMIT,
};

struct lag_kineto_event {
	char phase;
	enum lag_kineto_cat cat;
	struct lag_span category; /* as written; borrowed until the next event */
	int64_t ts_ns, dur_ns;    /* LAG_NONE: absent or no number */
	int64_t pid, tid;         /* digits also where they come as "123" or "stream 7" */
	bool legacy_gpu;          /* pid "CUDA functions" of the old autograd profiler */
	bool has_args, has_text;  /* something of i, grid, block, or of text but the name, is set */
	int64_t i[LAG_KI_LIMIT];
	int64_t grid[3], block[3];
	struct lag_span text[LAG_KT_LIMIT]; /* borrowed until the next event */
};

/* Words of a closed set, looked up without regard to ASCII case. */
struct lag_kineto_word {
	uint64_t lo, hi; /* the first 16 bytes in lower case, zeros behind the end */
	const char *text;
	uint32_t n;
	int value;
};

#define LAG_KINETO_WORDS 256

struct lag_kineto_words {
	struct lag_kineto_word slots[LAG_KINETO_WORDS];
};

enum lag_kineto_arg_type {
	LAG_KA_INT,
	LAG_KA_U64,
	LAG_KA_TEXT,
	LAG_KA_GRID,
	LAG_KA_BLOCK,
	LAG_KA_DIMS
};

struct lag_kineto_arg {
	const char *key;
	enum lag_kineto_arg_type type;
	int slot;
};

enum lag_kineto_member {
	LAG_KM_OTHER,
	LAG_KM_PHASE,
	LAG_KM_CAT,
	LAG_KM_NAME,
	LAG_KM_PID,
	LAG_KM_TID,
	LAG_KM_TS,
	LAG_KM_DUR,
	LAG_KM_ARGS
};

/* Where in an event a key stands. */
enum lag_kineto_place {
	LAG_KP_EVENT,
	LAG_KP_ARGS,
	LAG_KP_IDLE_ARGS, /* none of which is of use */
	LAG_KP_LIMIT,
};

/* What a key says that is to be done next. */
enum lag_kineto_step {
	LAG_KS_GIVE_UP, /* not plain */
	LAG_KS_SKIP,
	LAG_KS_PHASE,
	LAG_KS_CAT,
	LAG_KS_NAME,
	LAG_KS_PID,
	LAG_KS_TID,
	LAG_KS_TS,
	LAG_KS_DUR,
	LAG_KS_ENTER_ARGS,
	LAG_KS_INT_ARG,
	LAG_KS_OTHER_ARG,
	LAG_KS_LEAVE_ARGS,
	LAG_KS_FINISH,
};

/* What stands between two values: the end of an object, or what leads to the next value, from the
 * comma (or the object's brace) over the key to behind the colon. Traces have few of them, each mostly
 * followed by the same next one, so that a key costs one comparison. */
struct lag_kineto_key {
	char text[64];
	char beyond[32];                  /* 0xff for each of text's first 32 bytes from n on, */
	uint32_t beyond_high;             /* and a set bit for each of its others */
	int32_t slot;                     /* arg's */
	const struct lag_kineto_arg *arg; /* its meaning among arguments, NULL: none, */
	size_t n;
	uint8_t member;             /* and in an event: enum lag_kineto_member */
	uint8_t step[LAG_KP_LIMIT]; /* enum lag_kineto_step */
};

#define LAG_KINETO_KEYS 256

struct lag_kineto_keys {
	struct lag_kineto_key keys[LAG_KINETO_KEYS];
	unsigned n;
	/* Which two keys followed before, by phase, category and key. */
	uint8_t next[4 * LAG_KC_LIMIT][LAG_KINETO_KEYS][2];
	uint8_t by_hash[2 * LAG_KINETO_KEYS];
};

/* A category as it was written before, with its closing quote. */
struct lag_kineto_seen_cat {
	char text[32];
	size_t n;        /* 0: none; else below 32 */
	uint32_t beyond; /* a set bit for each byte of text from n on */
	enum lag_kineto_cat cat;
};

/* A list or object that was stepped over. */
struct lag_kineto_seen_value {
	char text[120];
	size_t n; /* 0: none */
};

struct lag_kineto_scan {
	struct lag_json_reader json;
	struct lag_kineto_event event;
	bool all_args;               /* also those that no record is made from */
	bool careful;                /* for tests: never the fast way */
	uint64_t n_plain, n_careful; /* events by the way they were read */
	struct lag_kineto_words cats, args;
	struct lag_kineto_keys keys;
	struct lag_kineto_seen_cat seen_cats[64];
	struct lag_kineto_seen_value seen_values[256];
	struct lag_buf kept[LAG_KT_LIMIT]; /* decoded texts */
};

/* Prepares s, but not s->json, which the caller opens and releases. */
void lag_kineto_scan_init(struct lag_kineto_scan *s);
void lag_kineto_scan_release(struct lag_kineto_scan *s);

/* Inside the array of events: the next one, into s->event. LAG_WARN: an element that is no event, or
 * one that the input's end cuts. LAG_END: the array or the input has ended. */
enum lag_status lag_kineto_next(struct lag_kineto_scan *s, struct lag_err *err) LAG_MUST_USE;

/* ---- between the scanner's files ---- */

/* import_kineto_scan.c: the plain object at p, NULL where it is not plain. */
const char *lag_kineto_scan_event(struct lag_kineto_scan *s, const char *p, const char *limit);

/* import_kineto_keys.c: the place in the table of the key at p, which is not the expected one; *next will
 * expect it. first: p is at an object's beginning. 0: not plain. */
unsigned lag_kineto_learn(struct lag_kineto_scan *s, const char *p, const char *limit, bool first,
			  uint8_t next[2]);

/* import_kineto_event.c: the object whose beginning json has just delivered, in any state. */
enum lag_status lag_kineto_read_event(struct lag_kineto_scan *s, struct lag_err *err) LAG_MUST_USE;

/* import_kineto_words.c */
void lag_kineto_init_words(struct lag_kineto_scan *s);
enum lag_kineto_member lag_kineto_member(const char *text, size_t n);
/* 16 bytes must be readable at text. NULL: not one that laggard knows. */
const struct lag_kineto_arg *lag_kineto_arg(const struct lag_kineto_scan *s, const char *text,
					    size_t n);
/* What a member's or argument's value means, when it is text or a number. */
void lag_kineto_set_member(struct lag_kineto_scan *s, enum lag_kineto_member member,
			   struct lag_span value);
void lag_kineto_set_arg(struct lag_kineto_event *e, const struct lag_kineto_arg *arg,
			struct lag_span value);
void lag_kineto_event_reset(struct lag_kineto_scan *s);
/* Whether any argument of this event is of use; true while that is not known. */
bool lag_kineto_wants_args(const struct lag_kineto_scan *s);

#endif
