/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the Chrome exporter. The same code runs twice: once to plan (lanes needed, size
 * forecast), once to write; both times every event asks for its lane in the same order. */
#ifndef VIZ_EXPORT_CHROME_H
#define VIZ_EXPORT_CHROME_H

#include <string.h>

#include "schema/base/json_write.h"
#include "schema/base/map.h"
#include "viz/export/export.h"
#include "viz/model/interval.h"

/* In the order in which a rank's tracks are shown. */
enum lag_chrome_track_kind {
	LAG_CT_STEPS,
	LAG_CT_TIME,
	LAG_CT_WAITS,
	LAG_CT_STREAM,     /* key: lane index of the model */
	LAG_CT_GPU_RANGES, /* key: stream */
	LAG_CT_RANGES,     /* key: thread */
	LAG_CT_NCCL_CALLS,
	LAG_CT_API, /* key: thread */
	LAG_CT_SYNCS,
};

/* One shown track: a first lane and as many overflow lanes as its events overlap. */
struct lag_chrome_track {
	uint32_t r;
	enum lag_chrome_track_kind kind;
	int64_t key;
	bool nests;          /* events may lie inside each other; else each begins after the last */
	uint32_t n_lanes;    /* planned */
	uint32_t first_tid;  /* of the first lane; the others follow */
	struct lag_vec open; /* struct lag_vec of int64_t ends, by lane: the run's state */
};

/* What many events repeat, as they repeat it. */
enum lag_chrome_text_kind {
	LAG_CX_STRING, /* by string of the model: quoted */
	LAG_CX_LANE,   /* the rest: arguments, without a comma before the first */
	LAG_CX_CONFIG, /* by launch configuration */
	LAG_CX_COMM,   /* by communicator, of its kernels */
	LAG_CX_CALL,   /* by communicator, of its host calls */
	LAG_CX_LIMIT
};

struct lag_chrome_texts {
	struct lag_buf text;
	size_t n;

	struct lag_chrome_text {
		size_t at, n;
		bool made;
	} * of;
};

#define LAG_CHROME_BLOCK ((size_t)1 << 20) /* written at once */
#define LAG_CHROME_NEAR  16u               /* tracks found again without a look into the map */

struct lag_chrome {
	struct lag_context *ctx;
	const struct lag_trace *trace;
	const struct lag_roles *roles;
	const struct lag_steps *steps;
	const struct lag_waits *waits;
	const struct lag_ledger *ledger; /* NULL when not exported */
	const struct lag_export_opts *opts;
	struct lag_export_out *out;
	struct lag_buf buf, quoted; /* the block to be written next; a name that is used once */
	struct lag_json json;
	struct lag_vec tracks; /* struct lag_chrome_track */
	struct lag_map track_ids;
	uint32_t near_tracks[LAG_CHROME_NEAR]; /* index + 1 */
	struct lag_chrome_texts texts[LAG_CX_LIMIT];
	bool planning, all_steps;
	bool *exported;       /* by rank index */
	bool *chosen;         /* by step */
	int32_t *lane_comm;   /* by lane of the model: communicator of its first such kernel, -1 */
	uint32_t *launch_tid; /* by launch: where its kernel stands, 0 nowhere */
	uint32_t *api_tid;    /* the same for the host calls of the rank at hand */
	size_t api_near;      /* among them: where the last launch was found */
	struct lag_intervals windows; /* of the rank at hand: its chosen steps */
	uint64_t n_events, n_bytes;
	uint64_t next_flow;
	enum lag_status status; /* the first failure; later calls do nothing */
	struct lag_err *err;
};

static inline bool lag_chrome_wants(const struct lag_chrome *c, enum lag_export_kind kind)
{
	return (c->opts->kinds & (unsigned)kind) != 0;
}

static inline uint32_t lag_chrome_pid(uint32_t r)
{
	return r + 1; /* viewers take process 0 for the idle process */
}

/* chrome_track.c. The lane for [start, end) on a track, as thread id while writing; 0 while planning
 * and after a failure. */
uint32_t lag_chrome_place(struct lag_chrome *c, uint32_t r, enum lag_chrome_track_kind kind,
			  int64_t key, int64_t start_ns, int64_t end_ns);
/* Thread id of a track's first lane; 0 when it has none. */
uint32_t lag_chrome_find_tid(const struct lag_chrome *c, uint32_t r,
			     enum lag_chrome_track_kind kind, int64_t key);
/* After planning: sorts the tracks, numbers their lanes, and forgets the run's state. */
void lag_chrome_number_tracks(struct lag_chrome *c);
void lag_chrome_release_tracks(struct lag_chrome *c);
/* Names and order of processes and threads, as metadata events. */
void lag_chrome_write_names(struct lag_chrome *c);

/* export_chrome.c: what all sections use. Whether an event is wanted by the steps' windows on the rank at
 * hand. */
bool lag_chrome_in_steps(const struct lag_chrome *c, int64_t start_ns, int64_t end_ns);
/* An end that is not known is the end of the trace. */
int64_t lag_chrome_end(const struct lag_chrome *c, int64_t start_ns, int64_t end_ns);

static inline bool lag_chrome_in_time(const struct lag_chrome *c, int64_t start_ns, int64_t end_ns)
{
	return start_ns < c->opts->until_ns &&
	       (end_ns > c->opts->from_ns || start_ns >= c->opts->from_ns);
}

/* chrome_event.c. */
void lag_chrome_fail(struct lag_chrome *c, enum lag_status status);
/* Hands on what is ready when it is at least n_bytes. */
void lag_chrome_flush(struct lag_chrome *c, size_t n_bytes);

/* Begins a complete event and leaves its args open; while planning it only counts `more` bytes and
 * returns false: then nothing else is to be written. */
bool lag_chrome_begin(struct lag_chrome *c, const char *cat, const char *name, uint32_t r,
		      uint32_t tid, int64_t start_ns, int64_t end_ns, size_t more);
/* The same with a string of the model as name. */
bool lag_chrome_begin_named(struct lag_chrome *c, const char *cat, uint32_t name, uint32_t r,
			    uint32_t tid, int64_t start_ns, int64_t end_ns, size_t more);
/* Keys are our own words, in which nothing is to be escaped. LAG_NONE is left out. */
void lag_chrome_put_int(struct lag_chrome *c, const char *key, size_t n_key, int64_t value);

static inline void lag_chrome_arg_int(struct lag_chrome *c, const char *key, int64_t value)
{
	if (value != LAG_NONE)
		lag_chrome_put_int(c, key, strlen(key), value);
}

void lag_chrome_arg_us(struct lag_chrome *c, const char *key, int64_t ns); /* not LAG_NONE */
void lag_chrome_arg_text(struct lag_chrome *c, const char *key, const char *text);
void lag_chrome_arg_string(struct lag_chrome *c, const char *key,
			   uint32_t string); /* of the model */
/* The arguments that belong to `i` of this kind. */
void lag_chrome_args_of(struct lag_chrome *c, enum lag_chrome_text_kind kind, size_t i);
void lag_chrome_end_event(struct lag_chrome *c);
/* A pair of flow events. */
void lag_chrome_flow(struct lag_chrome *c, const char *cat, uint32_t r_from, uint32_t tid_from,
		     int64_t from_ns, uint32_t r_to, uint32_t tid_to, int64_t to_ns);

/* chrome_text.c: makes the text of `i` of this kind; "" after a failure. */
const char *lag_chrome_make_text(struct lag_chrome *c, enum lag_chrome_text_kind kind, size_t i,
				 size_t *n);

/* The text of `i` of this kind, made when first asked for; good until the next of the kind is made. */
static inline const char *lag_chrome_text(struct lag_chrome *c, enum lag_chrome_text_kind kind,
					  size_t i, size_t *n)
{
	const struct lag_chrome_texts *texts = &c->texts[kind];

	if (i >= texts->n || !texts->of[i].made)
		return lag_chrome_make_text(c, kind, i, n);
	*n = texts->of[i].n;
	return texts->text.text + texts->of[i].at;
}
enum lag_status lag_chrome_init_texts(struct lag_chrome *c) LAG_MUST_USE;
void lag_chrome_release_texts(struct lag_chrome *c);

/* Writes [first, last), sorted by start, in order also among those that start together. */
struct lag_chrome_order {
	int64_t (*start)(const struct lag_chrome *c, size_t i);
	int64_t (*end)(const struct lag_chrome *c, size_t i);
	void (*write)(struct lag_chrome *c, size_t i);
	bool longest_first; /* else shortest first */
};

void lag_chrome_in_order(struct lag_chrome *c, const struct lag_chrome_order *order, size_t first,
			 size_t last);

/* Sections of one rank, then of all. */
void lag_chrome_host(struct lag_chrome *c, uint32_t r);    /* chrome_host.c */
void lag_chrome_gpu(struct lag_chrome *c, uint32_t r);     /* chrome_gpu.c */
void lag_chrome_time(struct lag_chrome *c, uint32_t r);    /* chrome_time.c */
void lag_chrome_flows_between_ranks(struct lag_chrome *c); /* chrome_flow.c */

/* chrome_gpu.c: is this GPU event exported? */
bool lag_chrome_has_gpu(const struct lag_chrome *c, size_t i);

/* chrome_nccl.c. The arguments of a communication kernel, with Kineto's names. */
void lag_chrome_nccl_args(struct lag_chrome *c, int32_t launch);
/* Those of them that its communicator tells, and those of a call on it. */
void lag_chrome_comm_args(struct lag_chrome *c, size_t comm);
void lag_chrome_call_args(struct lag_chrome *c, size_t comm);

/* chrome_gpu.c: what a stream and a launch configuration tell of a kernel. */
void lag_chrome_lane_args(struct lag_chrome *c, size_t lane);
void lag_chrome_config_args(struct lag_chrome *c, size_t config);

#endif
