/* SPDX-License-Identifier: Apache-2.0 */
/* The words of Kineto's traces: members, categories and arguments, whose spelling changed over the years,
 * and what their values mean. */
#include <string.h>
#include <strings.h>

#include "merge/kineto_event.h"

static const struct lag_kineto_arg args[] = {
	{ "device", LAG_KA_INT, LAG_KI_DEVICE },
	{ "stream", LAG_KA_INT, LAG_KI_STREAM },
	{ "context", LAG_KA_INT, LAG_KI_CONTEXT },
	{ "correlation", LAG_KA_INT, LAG_KI_CORRELATION },
	{ "external id", LAG_KA_INT, LAG_KI_EXTERNAL },
	{ "bytes", LAG_KA_INT, LAG_KI_BYTES },
	{ "registers per thread", LAG_KA_INT, LAG_KI_REGISTERS },
	{ "shared memory", LAG_KA_INT, LAG_KI_SHARED },
	{ "graph id", LAG_KA_INT, LAG_KI_GRAPH },
	{ "graph node id", LAG_KA_INT, LAG_KI_GRAPH_NODE },
	{ "cbid", LAG_KA_INT, LAG_KI_CBID },
	{ "cid", LAG_KA_INT, LAG_KI_CBID },
	{ "todevice", LAG_KA_INT, LAG_KI_PEER_DEVICE },
	{ "wait_on_stream", LAG_KA_INT, LAG_KI_WAIT_STREAM },
	{ "wait_on_cuda_event_record_corr_id", LAG_KA_INT, LAG_KI_WAIT_CORRELATION },
	{ "wait_on_cuda_event_id", LAG_KA_INT, LAG_KI_WAIT_EVENT },
	{ "sync id", LAG_KA_INT, LAG_KI_SYNC_ID },
	{ "in msg nelems", LAG_KA_INT, LAG_KI_IN_ELEMENTS },
	{ "out msg nelems", LAG_KA_INT, LAG_KI_OUT_ELEMENTS },
	{ "group size", LAG_KA_INT, LAG_KI_GROUP_SIZE },
	{ "global rank start", LAG_KA_INT, LAG_KI_FIRST_RANK },
	{ "global rank stride", LAG_KA_INT, LAG_KI_RANK_STRIDE },
	{ "src rank", LAG_KA_INT, LAG_KI_SRC_RANK },
	{ "dst rank", LAG_KA_INT, LAG_KI_DST_RANK },
	{ "seq", LAG_KA_INT, LAG_KI_SEQ },
	{ "comms id", LAG_KA_U64, LAG_KI_COMMS_ID },
	{ "name", LAG_KA_TEXT, LAG_KT_META_NAME },
	{ "labels", LAG_KA_TEXT, LAG_KT_LABELS },
	{ "collective name", LAG_KA_TEXT, LAG_KT_COLLECTIVE },
	{ "dtype", LAG_KA_TEXT, LAG_KT_DTYPE },
	{ "process group name", LAG_KA_TEXT, LAG_KT_GROUP_NAME },
	{ "process group description", LAG_KA_TEXT, LAG_KT_GROUP_TEXT },
	{ "process group ranks", LAG_KA_TEXT, LAG_KT_GROUP_RANKS },
	{ "in split size", LAG_KA_TEXT, LAG_KT_IN_SPLIT },
	{ "cuda_sync_kind", LAG_KA_TEXT, LAG_KT_SYNC_KIND },
	{ "kind", LAG_KA_TEXT, LAG_KT_COPY_KIND },
	{ "input type", LAG_KA_TEXT, LAG_KT_INPUT_TYPE },
	{ "kernel", LAG_KA_TEXT, LAG_KT_KERNEL },
	{ "grid", LAG_KA_GRID, 0 },
	{ "block", LAG_KA_BLOCK, 0 },
	{ "input dims", LAG_KA_DIMS, LAG_KI_INPUT_ELEMENTS },
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

/* Eight bytes at p, of which n count, in lower case. */
static inline uint64_t lower8(const char *p, size_t n)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t x, low, is_upper;

	if (!n)
		return 0;
	memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (n < 8)
		x &= ((uint64_t)1 << 8 * n) - 1;
#else
	if (n < 8)
		x &= ~(((uint64_t)1 << 8 * (8 - n)) - 1);
#endif
	low = x & 0x7f * ones;
	is_upper = ((low + (0x80 - 'A') * ones) ^ (low + (0x7f - 'Z') * ones)) & ~x & 0x80 * ones;
	return x | is_upper >> 2;
}

static inline size_t slot_of(uint64_t lo, uint64_t hi, size_t n)
{
	uint64_t h = (lo ^ (hi << 7 | hi >> 57) ^ n) * 0x9e3779b97f4a7c15u;

	return (size_t)(h >> 56);
}

_Static_assert(LAG_KINETO_WORDS == 256, "slot_of gives eight bits");

/* 16 bytes must be readable at text. */
static inline const struct lag_kineto_word *find_word(const struct lag_kineto_words *words,
						      const char *text, size_t n)
{
	uint64_t lo = lower8(text, n), hi = n > 8 ? lower8(text + 8, n - 8) : 0;
	size_t i = slot_of(lo, hi, n);

	for (;; i = (i + 1) % LAG_KINETO_WORDS) {
		const struct lag_kineto_word *w = &words->slots[i];

		if (!w->text)
			return NULL;
		if (w->lo == lo && w->hi == hi && w->n == n &&
		    (n <= 16 || strncasecmp(w->text + 16, text + 16, n - 16) == 0))
			return w;
	}
}

static void add_word(struct lag_kineto_words *words, const char *text, int value)
{
	char padded[64] = { 0 };
	size_t n = strlen(text), i;
	struct lag_kineto_word w = { .text = text, .n = (uint32_t)n, .value = value };

	memcpy(padded, text, n + 1);
	w.lo = lower8(padded, n);
	w.hi = n > 8 ? lower8(padded + 8, n - 8) : 0;
	for (i = slot_of(w.lo, w.hi, n); words->slots[i].text;)
		i = (i + 1) % LAG_KINETO_WORDS;
	words->slots[i] = w;
}

void lag_kineto_init_words(struct lag_kineto_scan *s)
{
	/* What no valid text is: keys not learnt yet. */
	for (size_t i = 0; i < LAG_KINETO_KEYS; i++)
		memset(s->keys.keys[i].text, 0xff, sizeof(s->keys.keys[i].text));
	s->event.has_args = s->event.has_text = true;
	lag_kineto_event_reset(s);
	for (size_t i = 0; i < sizeof(cats) / sizeof(cats[0]); i++)
		add_word(&s->cats, cats[i].name, (int)cats[i].cat);
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		add_word(&s->args, args[i].key, (int)i);
}

const struct lag_kineto_arg *lag_kineto_arg(const struct lag_kineto_scan *s, const char *text,
					    size_t n)
{
	const struct lag_kineto_word *w = find_word(&s->args, text, n);

	return w ? &args[w->value] : NULL;
}

static enum lag_kineto_cat find_cat(const struct lag_kineto_scan *s, struct lag_span text)
{
	const struct lag_kineto_word *w;
	char padded[32] = { 0 };

	if (text.n >= sizeof(padded))
		return LAG_KC_OTHER;
	memcpy(padded, text.text, text.n);
	w = find_word(&s->cats, padded, text.n);
	return w ? (enum lag_kineto_cat)w->value : LAG_KC_OTHER;
}

static inline bool is(const char *text, const char *word, size_t n)
{
	return memcmp(text, word, n) == 0;
}

enum lag_kineto_member lag_kineto_member(const char *text, size_t n)
{
	switch (n) {
	case 2:
		return is(text, "ph", 2)   ? LAG_KM_PHASE
		       : is(text, "ts", 2) ? LAG_KM_TS
					   : LAG_KM_OTHER;
	case 3:
		return is(text, "cat", 3)   ? LAG_KM_CAT
		       : is(text, "pid", 3) ? LAG_KM_PID
		       : is(text, "tid", 3) ? LAG_KM_TID
		       : is(text, "dur", 3) ? LAG_KM_DUR
					    : LAG_KM_OTHER;
	case 4:
		return is(text, "name", 4)   ? LAG_KM_NAME
		       : is(text, "args", 4) ? LAG_KM_ARGS
					     : LAG_KM_OTHER;
	default:
		return LAG_KM_OTHER;
	}
}

void lag_kineto_event_reset(struct lag_kineto_scan *s)
{
	struct lag_kineto_event *e = &s->event;

	e->phase = 0;
	e->cat = LAG_KC_OTHER;
	e->category = LAG_SPAN("");
	e->ts_ns = e->dur_ns = e->pid = e->tid = LAG_NONE;
	e->legacy_gpu = false;
	e->text[LAG_KT_NAME] = LAG_SPAN("");
	if (e->has_args) {
		for (size_t i = 0; i < LAG_KI_LIMIT; i++)
			e->i[i] = LAG_NONE;
		for (size_t i = 0; i < 3; i++)
			e->grid[i] = e->block[i] = LAG_NONE;
	}
	for (size_t i = LAG_KT_NAME + 1; e->has_text && i < LAG_KT_LIMIT; i++)
		e->text[i] = LAG_SPAN("");
	e->has_args = e->has_text = false;
}

/* An id that is a number, "123" or "stream 7"; LAG_NONE when it is only text. */
static int64_t id_of(struct lag_span s)
{
	int64_t v = LAG_NONE;

	if (s.n > 7 && lag_span_begins(s, LAG_SPAN("stream "))) {
		s.text += 7;
		s.n -= 7;
		while (s.n && s.text[s.n - 1] == ' ')
			s.n--;
	}
	(void)lag_json_to_fixed(s.text, s.n, 0, &v);
	return v;
}

/* Takes ids beyond int64 by their bits. */
static int64_t u64_of(struct lag_span s)
{
	uint64_t v = 0;

	if (!s.n || s.n > 20)
		return LAG_NONE;
	for (size_t i = 0; i < s.n; i++) {
		unsigned d = (unsigned)(s.text[i] - '0');

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return LAG_NONE;
		v = v * 10 + d;
	}
	return (int64_t)v;
}

void lag_kineto_set_member(struct lag_kineto_scan *s, enum lag_kineto_member member,
			   struct lag_span value)
{
	struct lag_kineto_event *e = &s->event;

	switch (member) {
	case LAG_KM_PHASE:
		e->phase = '?';
		if (value.n == 1)
			e->phase = value.text[0];
		break;
	case LAG_KM_CAT:
		e->cat = find_cat(s, value);
		e->category = value;
		break;
	case LAG_KM_NAME:
		e->text[LAG_KT_NAME] = value;
		break;
	case LAG_KM_PID:
		e->pid = id_of(value);
		e->legacy_gpu = lag_span_is(value, LAG_SPAN("CUDA functions"));
		break;
	case LAG_KM_TID:
		e->tid = id_of(value);
		break;
	case LAG_KM_TS:
		(void)lag_json_to_fixed(value.text, value.n, 3, &e->ts_ns);
		break;
	case LAG_KM_DUR:
		(void)lag_json_to_fixed(value.text, value.n, 3, &e->dur_ns);
		break;
	case LAG_KM_ARGS:
	case LAG_KM_OTHER:
		break;
	}
}

void lag_kineto_set_arg(struct lag_kineto_event *e, const struct lag_kineto_arg *arg,
			struct lag_span value)
{
	e->has_args = true;
	if (arg->type == LAG_KA_TEXT) {
		e->has_text = true;
		e->text[arg->slot] = value;
	} else if (arg->type == LAG_KA_U64) {
		e->i[arg->slot] = u64_of(value);
	} else if (arg->type == LAG_KA_INT) {
		(void)lag_json_to_fixed(value.text, value.n, 0, &e->i[arg->slot]);
	}
}

bool lag_kineto_wants_args(const struct lag_kineto_scan *s)
{
	const struct lag_kineto_event *e = &s->event;

	if (s->all_args)
		return true;
	if (e->phase == 's' || e->phase == 'f' || e->phase == 't' || e->phase == 'i')
		return false;
	if (e->cat == LAG_KC_PYTHON)
		return false;
	if (e->cat == LAG_KC_CPU_OP && e->text[LAG_KT_NAME].n)
		return lag_span_is(e->text[LAG_KT_NAME], LAG_SPAN("record_param_comms"));
	return true;
}
