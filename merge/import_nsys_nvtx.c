/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations of an Nsight Systems report: ranges and marks, with the names of their domains and
 * categories, which are read before. NCCL's own also describe its calls. */
#include <string.h>

#include "merge/nsys.h"

enum nvtx_type {
	NVTX_CATEGORY = 33,
	NVTX_MARK = 34,
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
	NVTX_DOMAIN = 75,
};

enum nvtx_column {
	N_START,
	N_END,
	N_TYPE,
	N_RANGE_ID,
	N_CATEGORY,
	N_COLOR,
	N_TEXT,
	N_TID,
	N_TEXT_ID,
	N_DOMAIN,
	N_PAYLOAD, /* the first of those that are integers */
	N_PAYLOAD_LAST = N_PAYLOAD + 3,
	N_JSON,
	N_JSON_ID,
	N_BINARY,
};

static const char *const columns[] = { "start",       "end",        "eventType",   "rangeId",
				       "category",    "color",      "text",        "globalTid",
				       "textId",      "domainId",   "uint64Value", "int64Value",
				       "uint32Value", "int32Value", "jsonText",    "jsonTextId",
				       "binaryData" };

static uint64_t domain_key(const struct lag_foreign_rows *r)
{
	return lag_hash_pair(LAG_NSYS_KEY(lag_or(lag_foreign_int(r, N_TID), 0)),
			     (uint64_t)lag_or(lag_foreign_int(r, N_DOMAIN), 0));
}

static uint64_t category_key(const struct lag_foreign_rows *r)
{
	return lag_hash_pair(domain_key(r), (uint64_t)lag_foreign_int(r, N_CATEGORY));
}

/* The row's text: its own, else the registered one. Borrowed until the next row or name. */
static enum lag_status text_of(struct lag_nsys *s, const struct lag_foreign_rows *r,
			       const char **text, size_t *n, struct lag_err *err)
{
	enum lag_status st;
	size_t name;

	*text = lag_foreign_text(r, N_TEXT, n);
	if (*text && *n)
		return LAG_OK;
	st = lag_nsys_name(s, lag_foreign_int(r, N_TEXT_ID), &name, err);
	*text = lag_strtab_get(&s->pool->strings, lag_nsys_name_at(s, name)->id);
	*n = strlen(*text);
	return st;
}

static enum lag_status take_definition(struct lag_nsys *s, struct lag_foreign_rows *r,
				       struct lag_err *err)
{
	int64_t type = lag_foreign_int(r, N_TYPE), id = 0;
	enum lag_status st;
	const char *text;
	size_t n;

	if (type != NVTX_DOMAIN && type != NVTX_CATEGORY)
		return LAG_OK;
	st = text_of(s, r, &text, &n, err);
	if (!lag_failed(st))
		st = lag_nsys_string(s, text, n, &id, err);
	if (lag_failed(st))
		return st;
	if (type == NVTX_DOMAIN && strcmp(text, "NCCL") == 0)
		st = lag_map_set(&s->nccl_domains, domain_key(r), 1);
	if (!lag_failed(st) && type == NVTX_DOMAIN) {
		st = lag_map_set(&s->domains, domain_key(r), (uint64_t)id);
	} else if (!lag_failed(st)) {
		st = lag_map_set(&s->categories, category_key(r), (uint64_t)id);
	}
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more domains") : LAG_OK;
}

/* PyTorch's emit_nvtx() writes "aten::add, op_id = 17" or "..., seq = 17, ..." around every operator: the
 * length of its name, 0 when it is none. */
static size_t operator_name(const char *text, size_t n)
{
	static const char *const marks[] = { ", op_id = ", ", seq = " };

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *at = memmem(text, n, marks[i], strlen(marks[i]));

		if (at)
			return (size_t)(at - text);
	}
	return 0;
}

/* What NCCL says of the call besides its name. */
static const char *payload_of(struct lag_nsys *s, const struct lag_foreign_rows *r, size_t *n,
			      struct lag_err *err, enum lag_status *st)
{
	const char *bytes = lag_foreign_text(r, N_BINARY, n);
	size_t name = 0;

	*st = LAG_OK;
	if (bytes && *n)
		return bytes;
	bytes = lag_foreign_text(r, N_JSON, n);
	if (bytes && *n)
		return bytes;
	*st = lag_nsys_name(s, lag_foreign_int(r, N_JSON_ID), &name, err);
	bytes = lag_strtab_get(&s->pool->strings, lag_nsys_name_at(s, name)->id);
	*n = strlen(bytes);
	return bytes;
}

static bool is_nccl(const struct lag_nsys *s, const struct lag_foreign_rows *r)
{
	uint64_t one;

	return lag_map_find(&s->nccl_domains, domain_key(r), &one) ||
	       lag_map_find(&s->nccl_domains, (uint64_t)lag_foreign_int(r, N_DOMAIN), &one);
}

static enum lag_status keep_call(struct lag_nsys *s, struct lag_nsys_proc *p,
				 const struct lag_foreign_rows *r,
				 const struct lag_rec_range *range, struct lag_err *err)
{
	struct lag_nsys_call call = { .tid = range->tid,
				      .start_ns = range->start_ns,
				      .end_ns = range->end_ns };
	enum lag_status st;
	size_t n = 0;
	const char *payload = payload_of(s, r, &n, err, &st);

	if (lag_failed(st))
		return st;
	return lag_nsys_keep_call(s, p, call,
				  lag_strtab_get(&s->pool->strings, (uint32_t)range->name), payload,
				  n, err);
}

static enum lag_status name_range(struct lag_nsys *s, const struct lag_foreign_rows *r,
				  struct lag_rec_range *range, bool *skip, struct lag_err *err)
{
	uint64_t id = 0;
	enum lag_status st;
	const char *text;
	size_t n, op;

	if (lag_map_find(&s->domains, domain_key(r), &id))
		range->domain = (int64_t)id;
	if (lag_map_find(&s->categories, category_key(r), &id))
		range->category = (int64_t)id;
	st = text_of(s, r, &text, &n, err);
	if (lag_failed(st))
		return st;
	op = range->domain ? 0 : operator_name(text, n);
	if (op) {
		s->n_operators += !s->opts->cpu_ops;
		*skip = !s->opts->cpu_ops;
		range->kind = LAG_RANGE_CPU_OP;
		n = op;
	}
	return *skip ? LAG_OK : lag_nsys_string(s, text, n, &range->name, err);
}

static void fill_range(const struct lag_nsys *s, const struct lag_foreign_rows *r,
		       struct lag_rec_range *range, enum lag_range_kind kind)
{
	int64_t color = lag_foreign_int(r, N_COLOR), global = lag_foreign_int(r, N_TID);

	range->start_ns = lag_nsys_time(s, lag_foreign_int(r, N_START));
	range->end_ns = kind == LAG_RANGE_MARK ? range->start_ns
					       : lag_nsys_time(s, lag_foreign_int(r, N_END));
	range->tid = global == LAG_NONE ? 0 : LAG_NSYS_TID(global);
	range->kind = kind;
	range->id = kind == LAG_RANGE_START ? lag_foreign_int(r, N_RANGE_ID) : LAG_NONE;
	range->color = color > 0 ? color : LAG_NONE;
	for (size_t i = N_PAYLOAD; i <= N_PAYLOAD_LAST && range->payload == LAG_NONE; i++)
		range->payload = lag_foreign_int(r, i);
}

static enum lag_status take_range(struct lag_nsys *s, struct lag_foreign_rows *r,
				  struct lag_err *err)
{
	int64_t type = lag_foreign_int(r, N_TYPE);
	struct lag_nsys_proc *p;
	struct lag_record rec;
	enum lag_status st;
	bool skip = false;

	if (type != NVTX_MARK && type != NVTX_PUSH_POP && type != NVTX_START_END)
		return LAG_OK;
	if (lag_foreign_int(r, N_START) == LAG_NONE) {
		s->n_bad++;
		return LAG_OK;
	}
	lag_record_init(&rec, LAG_REC_range);
	fill_range(s, r, &rec.range,
		   type == NVTX_MARK       ? LAG_RANGE_MARK
		   : type == NVTX_PUSH_POP ? LAG_RANGE_PUSH
					   : LAG_RANGE_START);
	st = name_range(s, r, &rec.range, &skip, err);
	if (lag_failed(st) || skip)
		return st;
	st = lag_nsys_proc(s, lag_foreign_int(r, N_TID), &p, err);
	if (lag_failed(st))
		return st;
	st = lag_part_add(&p->part, &rec, err);
	return lag_failed(st) || type != NVTX_PUSH_POP || !is_nccl(s, r)
		       ? st
		       : keep_call(s, p, r, &rec.range, err);
}

enum lag_status lag_nsys_read_nvtx(struct lag_nsys *s, struct lag_err *err)
{
	enum lag_status st = LAG_NSYS_EACH(s, "NVTX_EVENTS", columns, take_definition, err);

	return lag_failed(st) ? st : LAG_NSYS_EACH(s, "NVTX_EVENTS", columns, take_range, err);
}
