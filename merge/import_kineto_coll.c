/* SPDX-License-Identifier: Apache-2.0 */
/* What a Kineto trace says about one collective: on the kernel itself, on the CPU event around its
 * launch call or with its external id (record_param_comms, or the "nccl:..." annotation), or only in the
 * kernel's name. */
#include <string.h>
#include <strings.h>

#include "merge/kineto_comm.h"

enum lag_status lag_kineto_keep_coll(struct lag_kineto *k, struct lag_vec *to, struct lag_err *err)
{
	static const struct {
		enum lag_kineto_slot from;
		size_t to;
	} texts[] = { { LAG_KT_COLLECTIVE, offsetof(struct lag_kineto_coll, name) },
		      { LAG_KT_DTYPE, offsetof(struct lag_kineto_coll, dtype) },
		      { LAG_KT_GROUP_NAME, offsetof(struct lag_kineto_coll, group) },
		      { LAG_KT_GROUP_TEXT, offsetof(struct lag_kineto_coll, description) },
		      { LAG_KT_GROUP_RANKS, offsetof(struct lag_kineto_coll, ranks) } };
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_kineto_coll *c = lag_vec_push(to);
	struct lag_span split = e->text[LAG_KT_IN_SPLIT];
	bool annotation = e->cat == LAG_KC_ANNOTATION;

	if (!c)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*c = (struct lag_kineto_coll){ .tid = e->tid,
				       .start_ns = e->ts_ns,
				       .end_ns = e->dur_ns > 0 ? e->ts_ns + e->dur_ns : e->ts_ns,
				       .external = e->i[LAG_KI_EXTERNAL],
				       .in = e->i[LAG_KI_IN_ELEMENTS],
				       .out = e->i[LAG_KI_OUT_ELEMENTS],
				       .size = e->i[LAG_KI_GROUP_SIZE],
				       .first_rank = e->i[LAG_KI_FIRST_RANK],
				       .rank_stride = e->i[LAG_KI_RANK_STRIDE],
				       .src = e->i[LAG_KI_SRC_RANK],
				       .dst = e->i[LAG_KI_DST_RANK],
				       .seq = e->i[LAG_KI_SEQ],
				       .comms_id = e->i[LAG_KI_COMMS_ID],
				       .split = split.n && !lag_span_is(split, LAG_SPAN("[]")) };
	if (annotation)
		c->in = e->i[LAG_KI_INPUT_ELEMENTS];
	c->has_group = e->text[LAG_KT_GROUP_NAME].n || e->text[LAG_KT_GROUP_RANKS].n;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		enum lag_kineto_slot from = texts[i].from;
		enum lag_status st;

		if (annotation && from == LAG_KT_COLLECTIVE) {
			from = LAG_KT_NAME;
		} else if (annotation && from == LAG_KT_DTYPE) {
			from = LAG_KT_INPUT_TYPE;
		}
		st = lag_kineto_string(k, e->text[from], (uint32_t *)((char *)c + texts[i].to),
				       err);
		if (lag_failed(st))
			return st;
	}
	return LAG_OK;
}

int64_t lag_kineto_datatype(const char *name)
{
	static const struct {
		const char *name;
		enum lag_datatype type;
	} types[] = { { "float", LAG_DT_FLOAT32 },
		      { "double", LAG_DT_FLOAT64 },
		      { "half", LAG_DT_FLOAT16 },
		      { "bfloat16", LAG_DT_BFLOAT16 },
		      { "int", LAG_DT_INT32 },
		      { "long", LAG_DT_INT64 },
		      { "long int", LAG_DT_INT64 },
		      { "char", LAG_DT_INT8 },
		      { "signed char", LAG_DT_INT8 },
		      { "byte", LAG_DT_UINT8 },
		      { "unsigned char", LAG_DT_UINT8 },
		      { "bool", LAG_DT_UINT8 },
		      { "float8_e4m3fn", LAG_DT_FLOAT8_E4M3 },
		      { "float8_e5m2", LAG_DT_FLOAT8_E5M2 } };

	if (strncmp(name, "c10::", 5) == 0)
		name += 5;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(types[i].name, name) == 0)
			return types[i].type;
	}
	return LAG_NONE;
}

int lag_kineto_by_thread(const void *a, const void *b)
{
	const struct lag_kineto_coll *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* The innermost CPU event of thread tid around at_ns of which the predicate holds. Events nest, and few
 * deep, so a short look back from the last that starts before at_ns is enough. */
static const struct lag_kineto_coll *
around(const struct lag_kineto_work *w, int64_t tid, int64_t at_ns,
       bool (*good)(const struct lag_kineto_work *w, const struct lag_kineto_coll *c))
{
	const struct lag_vec *v = &w->k->p->cpu_colls;
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_kineto_coll *c = &LAG_VEC_AT(v, struct lag_kineto_coll, mid);

		if (c->tid < tid || (c->tid == tid && c->start_ns <= at_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	for (size_t steps = 0; lo > 0 && steps < 64; steps++) {
		const struct lag_kineto_coll *c = &LAG_VEC_AT(v, struct lag_kineto_coll, --lo);

		if (c->tid != tid)
			break;
		if (c->end_ns >= at_ns && good(w, c))
			return c;
	}
	return NULL;
}

static bool names_group(const struct lag_kineto_work *w, const struct lag_kineto_coll *c)
{
	(void)w;
	return c->has_group;
}

static bool names_func(const struct lag_kineto_work *w, const struct lag_kineto_coll *c)
{
	const char *name = lag_kineto_text(w, c->name);

	return lag_func_parse(name, strlen(name)) != LAG_FUNC_UNKNOWN;
}

/* Name of the kernel, "" for copies. */
static const char *carrier_name(const struct lag_kineto_work *w, const struct lag_kineto_op *op)
{
	if (op->carrier.kind != LAG_REC_kernel)
		return "";
	return lag_kineto_text(
		w, (uint32_t)LAG_PART_GET(&w->k->p->part, kernel, op->carrier.index).name);
}

void lag_kineto_set_coll(struct lag_kineto_work *w, struct lag_kineto_op *op)
{
	const struct lag_kineto_coll *c = NULL, *named = NULL;
	const char *kernel = carrier_name(w, op);
	const char *name;
	uint64_t at;

	if (op->carrier.coll >= 0)
		c = &LAG_VEC_AT(&w->k->p->colls, struct lag_kineto_coll, (size_t)op->carrier.coll);
	if (op->tid && !c)
		c = around(w, op->tid, op->enter_ns, names_group);
	if (!c && op->carrier.external > 0 &&
	    lag_map_find(&w->by_external, (uint64_t)op->carrier.external, &at))
		c = &LAG_VEC_AT(&w->k->p->cpu_colls, struct lag_kineto_coll, at - 1);
	if (op->tid && !c)
		named = c = around(w, op->tid, op->enter_ns, names_func);
	op->coll = c ? *c
		     : (struct lag_kineto_coll){ .in = LAG_NONE,
						 .out = LAG_NONE,
						 .size = LAG_NONE,
						 .first_rank = LAG_NONE,
						 .rank_stride = LAG_NONE,
						 .src = LAG_NONE,
						 .dst = LAG_NONE,
						 .seq = LAG_NONE,
						 .comms_id = LAG_NONE };
	name = lag_kineto_text(w, op->coll.name);
	op->func = lag_func_parse(name, strlen(name));
	if (op->func == LAG_FUNC_UNKNOWN)
		op->func = lag_func_parse(kernel, strcspn(kernel, "("));
	op->from_name = !c || (named && !named->has_group);
}
