/* SPDX-License-Identifier: Apache-2.0 */
/* One event object of a Kineto trace: its members may come in any order, arguments have changed their
 * spelling over the years, numbers may be strings and strings numbers. */
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"

enum arg_type {
	ARG_INT,
	ARG_U64,
	ARG_TEXT,
	ARG_GRID,
	ARG_BLOCK,
	ARG_DIMS
};

static const struct arg {
	const char *key; /* compared without regard to case */
	enum arg_type type;
	int slot;
} args[] = {
	{ "device", ARG_INT, LAG_KI_DEVICE },
	{ "stream", ARG_INT, LAG_KI_STREAM },
	{ "context", ARG_INT, LAG_KI_CONTEXT },
	{ "correlation", ARG_INT, LAG_KI_CORRELATION },
	{ "external id", ARG_INT, LAG_KI_EXTERNAL },
	{ "bytes", ARG_INT, LAG_KI_BYTES },
	{ "registers per thread", ARG_INT, LAG_KI_REGISTERS },
	{ "shared memory", ARG_INT, LAG_KI_SHARED },
	{ "graph id", ARG_INT, LAG_KI_GRAPH },
	{ "graph node id", ARG_INT, LAG_KI_GRAPH_NODE },
	{ "cbid", ARG_INT, LAG_KI_CBID },
	{ "cid", ARG_INT, LAG_KI_CBID },
	{ "todevice", ARG_INT, LAG_KI_PEER_DEVICE },
	{ "wait_on_stream", ARG_INT, LAG_KI_WAIT_STREAM },
	{ "wait_on_cuda_event_record_corr_id", ARG_INT, LAG_KI_WAIT_CORRELATION },
	{ "wait_on_cuda_event_id", ARG_INT, LAG_KI_WAIT_EVENT },
	{ "in msg nelems", ARG_INT, LAG_KI_IN_ELEMENTS },
	{ "out msg nelems", ARG_INT, LAG_KI_OUT_ELEMENTS },
	{ "group size", ARG_INT, LAG_KI_GROUP_SIZE },
	{ "global rank start", ARG_INT, LAG_KI_FIRST_RANK },
	{ "global rank stride", ARG_INT, LAG_KI_RANK_STRIDE },
	{ "src rank", ARG_INT, LAG_KI_SRC_RANK },
	{ "dst rank", ARG_INT, LAG_KI_DST_RANK },
	{ "seq", ARG_INT, LAG_KI_SEQ },
	{ "comms id", ARG_U64, LAG_KI_COMMS_ID },
	{ "name", ARG_TEXT, LAG_KT_META_NAME },
	{ "labels", ARG_TEXT, LAG_KT_LABELS },
	{ "collective name", ARG_TEXT, LAG_KT_COLLECTIVE },
	{ "dtype", ARG_TEXT, LAG_KT_DTYPE },
	{ "process group name", ARG_TEXT, LAG_KT_GROUP_NAME },
	{ "process group description", ARG_TEXT, LAG_KT_GROUP_TEXT },
	{ "process group ranks", ARG_TEXT, LAG_KT_GROUP_RANKS },
	{ "in split size", ARG_TEXT, LAG_KT_IN_SPLIT },
	{ "cuda_sync_kind", ARG_TEXT, LAG_KT_SYNC_KIND },
	{ "kind", ARG_TEXT, LAG_KT_COPY_KIND },
	{ "input type", ARG_TEXT, LAG_KT_INPUT_TYPE },
	{ "grid", ARG_GRID, 0 },
	{ "block", ARG_BLOCK, 0 },
	{ "input dims", ARG_DIMS, LAG_KI_INPUT_ELEMENTS },
};

static const struct {
	const char *name; /* without regard to case: 2021's were capitalised */
	enum lag_kineto_cat cat;
} cats[] = {
	{ "kernel", LAG_KC_KERNEL },
	{ "gpu_memcpy", LAG_KC_MEMCPY },
	{ "memcpy", LAG_KC_MEMCPY },
	{ "gpu_memset", LAG_KC_MEMSET },
	{ "memset", LAG_KC_MEMSET },
	{ "cuda_runtime", LAG_KC_RUNTIME },
	{ "runtime", LAG_KC_RUNTIME },
	{ "hip_runtime", LAG_KC_RUNTIME },
	{ "cuda_driver", LAG_KC_DRIVER },
	{ "driver", LAG_KC_DRIVER },
	{ "cpu_op", LAG_KC_CPU_OP },
	{ "operator", LAG_KC_CPU_OP },
	{ "python_function", LAG_KC_PYTHON },
	{ "user_annotation", LAG_KC_ANNOTATION },
	{ "gpu_user_annotation", LAG_KC_GPU_ANNOTATION },
	{ "cuda_sync", LAG_KC_SYNC },
	{ "cuda_event", LAG_KC_EVENT },
	{ "overhead", LAG_KC_OVERHEAD },
	{ "trace", LAG_KC_TRACE },
};

static enum lag_kineto_cat find_cat(const char *text, size_t n)
{
	for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++) {
		if (strncasecmp(cats[i].name, text, n) == 0 && cats[i].name[n] == '\0')
			return cats[i].cat;
	}
	return LAG_KC_OTHER;
}

static const struct arg *find_arg(const char *text, size_t n)
{
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		/* The first letter settles most. */
		if ((args[i].key[0] ^ text[0]) & ~0x20)
			continue;
		if (strncasecmp(args[i].key, text, n) == 0 && args[i].key[n] == '\0')
			return &args[i];
	}
	return NULL;
}

static void set_text(struct lag_buf *buf, const char *text, size_t n)
{
	lag_buf_clear(buf);
	lag_buf_add(buf, text, n);
}

static void reset(struct lag_kineto_event *e)
{
	e->phase = 0;
	e->cat = LAG_KC_OTHER;
	e->ts_ns = e->dur_ns = e->pid = e->tid = LAG_NONE;
	e->legacy_gpu = false;
	for (size_t i = 0; i < LAG_KI_LIMIT; i++)
		e->i[i] = LAG_NONE;
	for (size_t i = 0; i < 3; i++)
		e->grid[i] = e->block[i] = LAG_NONE;
	for (size_t i = 0; i < LAG_KT_LIMIT; i++) {
		if (e->text[i].n)
			lag_buf_clear(&e->text[i]);
	}
}

void lag_kineto_event_release(struct lag_kineto_event *event)
{
	for (size_t i = 0; i < LAG_KT_LIMIT; i++)
		lag_buf_release(&event->text[i]);
}

/* An id that is a number, "123" or "stream 7"; LAG_NONE when it is only text. */
static int64_t id_of(const char *text, size_t n)
{
	int64_t v = LAG_NONE;

	if (n > 7 && strncmp(text, "stream ", 7) == 0) {
		text += 7;
		n -= 7;
		while (n && text[n - 1] == ' ')
			n--;
	}
	(void)lag_json_to_fixed(text, n, 0, &v);
	return v;
}

/* Takes ids beyond int64 by their bits. */
static int64_t u64_of(const char *text, size_t n)
{
	uint64_t v = 0;

	if (!n || n > 20)
		return LAG_NONE;
	for (size_t i = 0; i < n; i++) {
		unsigned d = (unsigned)(text[i] - '0');

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return LAG_NONE;
		v = v * 10 + d;
	}
	return (int64_t)v;
}

static enum lag_status read_triple(struct lag_kineto *k, int64_t out[3], struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	unsigned depth = r->depth;
	enum lag_status st;
	size_t n = 0;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (n < 3 && r->kind == LAG_JSON_NUMBER &&
		    lag_json_to_fixed(r->text, r->n, 0, &out[n]))
			n++;
	}
	return st;
}

/* "Input Dims": the number of elements of the first tensor that has any dimensions; tensor lists are
 * nested one level deeper. */
static enum lag_status read_dims(struct lag_kineto *k, int64_t *elements, struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	unsigned depth = r->depth;
	int64_t product = 1, v;
	bool any = false, done = false, bad = false;
	enum lag_status st;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (r->kind == LAG_JSON_ARRAY_END)
			done |= any;
		if (done || r->kind != LAG_JSON_NUMBER)
			continue;
		bad |= !lag_json_to_fixed(r->text, r->n, 0, &v) || v < 0 ||
		       __builtin_mul_overflow(product, v, &product);
		any = true;
	}
	if (any && !bad)
		*elements = product;
	return st;
}

/* The first string in a list, or a list of numbers as text: "[0, 1]". */
static enum lag_status read_list(struct lag_kineto *k, struct lag_buf *out, struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	unsigned depth = r->depth;
	bool text = false;
	enum lag_status st;

	lag_buf_clear(out);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (r->kind == LAG_JSON_STRING && r->n && !out->n) {
			lag_buf_add(out, r->text, r->n);
			text = true;
		} else if (r->kind == LAG_JSON_NUMBER && !text) {
			lag_buf_puts(out, out->n ? ", " : "[");
			lag_buf_add(out, r->text, r->n);
		}
	}
	if (out->n && !text)
		lag_buf_putc(out, ']');
	return st;
}

static enum lag_status read_arg(struct lag_kineto *k, const struct arg *arg, struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	struct lag_kineto_event *e = &k->event;
	enum lag_status st = lag_json_next(r, err);
	bool list = r->kind == LAG_JSON_ARRAY;

	if (st != LAG_OK)
		return st;
	if (list && arg->type == ARG_GRID)
		return read_triple(k, e->grid, err);
	if (list && arg->type == ARG_BLOCK)
		return read_triple(k, e->block, err);
	if (list && arg->type == ARG_DIMS)
		return read_dims(k, &e->i[arg->slot], err);
	if (list && arg->type == ARG_TEXT)
		return read_list(k, &e->text[arg->slot], err);
	if (r->kind != LAG_JSON_NUMBER && r->kind != LAG_JSON_STRING)
		return lag_json_skip(r, err);
	if (arg->type == ARG_TEXT) {
		set_text(&e->text[arg->slot], r->text, r->n);
	} else if (arg->type == ARG_U64) {
		e->i[arg->slot] = u64_of(r->text, r->n);
	} else if (arg->type == ARG_INT) {
		(void)lag_json_to_fixed(r->text, r->n, 0, &e->i[arg->slot]);
	}
	return LAG_OK;
}

/* Whether any argument of this event is of use; true while that is not known. */
static bool wants_args(const struct lag_kineto_event *e)
{
	if (e->phase == 's' || e->phase == 'f' || e->phase == 't' || e->phase == 'i')
		return false;
	if (e->cat == LAG_KC_PYTHON)
		return false;
	if (e->cat == LAG_KC_CPU_OP && e->text[LAG_KT_NAME].n)
		return strcmp(e->text[LAG_KT_NAME].text, "record_param_comms") == 0;
	return true;
}

static enum lag_status read_args(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;

	if (st != LAG_OK)
		return st;
	if (r->kind != LAG_JSON_OBJECT || !wants_args(&k->event))
		return lag_json_skip(r, err);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		const struct arg *arg;

		if (r->kind != LAG_JSON_KEY)
			continue;
		arg = r->n ? find_arg(r->text, r->n) : NULL;
		st = arg ? read_arg(k, arg, err) : lag_json_skip(r, err);
		if (st != LAG_OK)
			return st;
	}
	return st;
}

enum member {
	MEMBER_OTHER,
	MEMBER_PHASE,
	MEMBER_CAT,
	MEMBER_NAME,
	MEMBER_PID,
	MEMBER_TID,
	MEMBER_TS,
	MEMBER_DUR,
	MEMBER_ARGS
};

static enum member find_member(const char *text, size_t n)
{
	static const char *const names[] = { "",    "ph", "cat", "name", "pid",
					     "tid", "ts", "dur", "args" };

	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(names[i], text, n) == 0 && names[i][n] == '\0' && n)
			return (enum member)i;
	}
	return MEMBER_OTHER;
}

static void set_member(struct lag_kineto_event *e, enum member member,
		       const struct lag_json_reader *r)
{
	static const char legacy[] = "CUDA functions";

	switch (member) {
	case MEMBER_PHASE:
		e->phase = r->n == 1 ? r->text[0] : '?';
		break;
	case MEMBER_CAT:
		e->cat = find_cat(r->text, r->n);
		break;
	case MEMBER_NAME:
		set_text(&e->text[LAG_KT_NAME], r->text, r->n);
		break;
	case MEMBER_PID:
		e->pid = id_of(r->text, r->n);
		e->legacy_gpu = r->n == sizeof(legacy) - 1 && memcmp(r->text, legacy, r->n) == 0;
		break;
	case MEMBER_TID:
		e->tid = id_of(r->text, r->n);
		break;
	case MEMBER_TS:
		(void)lag_json_to_fixed(r->text, r->n, 3, &e->ts_ns);
		break;
	case MEMBER_DUR:
		(void)lag_json_to_fixed(r->text, r->n, 3, &e->dur_ns);
		break;
	case MEMBER_ARGS:
	case MEMBER_OTHER:
		break;
	}
}

enum lag_status lag_kineto_read_event(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->json;
	unsigned depth = r->depth;
	enum lag_status st;

	reset(&k->event);
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		enum member member;

		if (r->kind != LAG_JSON_KEY)
			continue;
		member = find_member(r->text, r->n);
		if (member == MEMBER_ARGS) {
			st = read_args(k, err);
		} else if (member == MEMBER_OTHER) {
			st = lag_json_skip(r, err);
		} else {
			st = lag_json_next(r, err);
			if (st == LAG_OK &&
			    (r->kind == LAG_JSON_STRING || r->kind == LAG_JSON_NUMBER)) {
				set_member(&k->event, member, r);
			} else if (st == LAG_OK) {
				st = lag_json_skip(r, err);
			}
		}
		if (st != LAG_OK)
			return st;
	}
	return st;
}
