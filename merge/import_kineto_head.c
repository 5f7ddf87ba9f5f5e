/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around traceEvents: the time base, who the rank is, its process groups and devices.
 * Unknown scalars are kept as facts about the process. */
#include <stdio.h>
#include <string.h>

#include "merge/kineto.h"

#define META_MAX 64

static struct lag_span text_of(const struct lag_json_reader *r)
{
	return (struct lag_span){ r->text, r->n };
}

/* Rounding would make a rank of 2.7 somebody else's. What is too large for nine places more is no rank. */
static bool to_whole(struct lag_span text, int64_t *out)
{
	int64_t fine;

	if (lag_json_to_fixed(text.text, text.n, 9, &fine) && fine % 1000000000 != 0)
		return false;
	return lag_json_to_fixed(text.text, text.n, 0, out);
}

static void know_odd(struct lag_kineto *k, struct lag_span text)
{
	if (k->n_odd++)
		return;
	k->odd_at = k->scan.json.at;
	(void)snprintf(k->first_odd, sizeof(k->first_odd), "%.*s", (int)text.n, text.text);
}

/* One that is no whole number leaves *out as it is, and is counted. */
static enum lag_status read_int(struct lag_kineto *k, int64_t *out, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);

	if (st != LAG_OK)
		return st;
	if (r->kind == LAG_JSON_NUMBER || r->kind == LAG_JSON_STRING) {
		if (!to_whole(text_of(r), out))
			know_odd(k, text_of(r));
	} else if (r->kind != LAG_JSON_NULL) {
		know_odd(k, LAG_SPAN("no number"));
	}
	return lag_json_skip(r, err);
}

static enum lag_status read_string(struct lag_kineto *k, uint32_t *id, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);

	if (st != LAG_OK)
		return st;
	if (r->kind == LAG_JSON_NUMBER || r->kind == LAG_JSON_STRING)
		return lag_kineto_string(k, text_of(r), id, err);
	return lag_json_skip(r, err);
}

/* A list of ranks, as a list or as text, to the text that events carry: "[0, 1]". */
static enum lag_status read_ranks(struct lag_kineto *k, uint32_t *id, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	struct lag_buf text = { 0 };
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;

	if (st == LAG_OK && r->kind == LAG_JSON_STRING)
		return lag_kineto_string(k, text_of(r), id, err);
	if (st != LAG_OK || r->kind != LAG_JSON_ARRAY)
		return st == LAG_OK ? lag_json_skip(r, err) : st;
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (r->kind != LAG_JSON_NUMBER && r->kind != LAG_JSON_STRING)
			continue;
		lag_buf_puts(&text, text.n ? ", " : "[");
		lag_buf_add(&text, r->text, r->n);
	}
	lag_buf_puts(&text, text.n ? "]" : "[]");
	if (st == LAG_OK && text.failed)
		st = lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	if (st == LAG_OK)
		st = lag_kineto_string(k, (struct lag_span){ text.text, text.n }, id, err);
	lag_buf_release(&text);
	return st;
}

static bool key_is(const struct lag_json_reader *r, const char *name)
{
	return r->kind == LAG_JSON_KEY && r->n == strlen(name) && memcmp(r->text, name, r->n) == 0;
}

static enum lag_status read_group(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	struct lag_kineto_group group = { .size = LAG_NONE };
	struct lag_kineto_group *slot;
	unsigned depth = r->depth;
	enum lag_status st;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (key_is(r, "pg_name")) {
			st = read_string(k, &group.name, err);
		} else if (key_is(r, "pg_desc")) {
			st = read_string(k, &group.description, err);
		} else if (key_is(r, "pg_size")) {
			st = read_int(k, &group.size, err);
		} else if (key_is(r, "ranks")) {
			st = read_ranks(k, &group.ranks, err);
		} else {
			st = lag_json_skip(r, err);
		}
		if (st != LAG_OK)
			return st;
	}
	if (st != LAG_OK)
		return st;
	slot = lag_vec_push(&k->groups);
	if (!slot)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more process groups");
	*slot = group;
	return LAG_OK;
}

static enum lag_status add_meta(struct lag_kineto *k, struct lag_span key, struct lag_span value,
				struct lag_err *err)
{
	static const struct lag_span names[][2] = {
		{ LAG_SPAN_INIT("cuda_driver_version"), LAG_SPAN_INIT("driver") },
		{ LAG_SPAN_INIT("cuda_runtime_version"), LAG_SPAN_INIT("cuda") },
		{ LAG_SPAN_INIT("cupti_version"), LAG_SPAN_INIT("cupti") },
		{ LAG_SPAN_INIT("nccl_version"), LAG_SPAN_INIT("nccl") },
	};
	struct lag_record rec;
	uint32_t id = 0;
	enum lag_status st;

	if (k->p->part.records[LAG_REC_meta].n >= META_MAX)
		return LAG_OK;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (lag_span_is(key, names[i][0])) {
			key = names[i][1];
			break;
		}
	}
	lag_record_init(&rec, LAG_REC_meta);
	st = lag_kineto_string(k, key, &id, err);
	rec.meta.key = id;
	if (!lag_failed(st))
		st = lag_kineto_string(k, value, &id, err);
	rec.meta.value = id;
	return lag_failed(st) ? st : lag_part_add(&k->p->part, &rec, err);
}

/* A list of objects, each read by `each`. */
static enum lag_status read_list(struct lag_kineto *k,
				 enum lag_status (*each)(struct lag_kineto *k, struct lag_err *err),
				 struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;

	if (st != LAG_OK || r->kind != LAG_JSON_ARRAY)
		return st == LAG_OK ? lag_json_skip(r, err) : st;
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		st = r->kind == LAG_JSON_OBJECT ? each(k, err) : lag_json_skip(r, err);
		if (st != LAG_OK)
			return st;
	}
	return st;
}

static enum lag_status read_distributed(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;
	int64_t ignored;

	if (st != LAG_OK || r->kind != LAG_JSON_OBJECT)
		return st == LAG_OK ? lag_json_skip(r, err) : st;
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (key_is(r, "rank")) {
			st = read_int(k, k->exported ? &ignored : &k->p->rank, err);
		} else if (key_is(r, "world_size")) {
			st = read_int(k, &k->world_size, err);
		} else if (key_is(r, "pg_config")) {
			st = read_list(k, read_group, err);
		} else if (key_is(r, "nccl_version")) {
			st = lag_json_next(r, err);
			if (st == LAG_OK && r->kind == LAG_JSON_STRING) {
				st = add_meta(k, LAG_SPAN("nccl_version"), text_of(r), err);
			} else if (st == LAG_OK) {
				st = lag_json_skip(r, err);
			}
		} else {
			st = lag_json_skip(r, err);
		}
		if (st != LAG_OK)
			return st;
	}
	return st;
}

/* A rank of an exported trace: its process in the file, its number, its host. */
static enum lag_status read_process(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	int64_t pid = LAG_NONE, rank = LAG_NONE;
	unsigned depth = r->depth;
	enum lag_status st;
	uint32_t host = 0;
	uint64_t seen;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (key_is(r, "pid")) {
			st = read_int(k, &pid, err);
		} else if (key_is(r, "job rank")) {
			st = read_int(k, &rank, err);
		} else if (key_is(r, "host")) {
			st = read_string(k, &host, err);
		} else {
			st = lag_json_skip(r, err);
		}
		if (st != LAG_OK)
			return st;
	}
	if (st != LAG_OK || pid == LAG_NONE || lag_map_find(&k->proc_of, (uint64_t)pid, &seen))
		return st;
	if (k->exported)
		st = lag_kineto_add_proc(k, k->p->part.path, err);
	if (lag_failed(st))
		return st;
	k->exported = true;
	k->p->pid = pid;
	k->p->rank = rank;
	k->p->host = host;
	st = lag_map_set(&k->proc_of, (uint64_t)pid, k->procs.n - 1);
	return lag_failed(st) ? lag_err_set(err, st, "no memory for more processes") : st;
}

static enum lag_status read_laggard(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);
	unsigned depth = r->depth;

	if (st != LAG_OK || r->kind != LAG_JSON_OBJECT)
		return st == LAG_OK ? lag_json_skip(r, err) : st;
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (key_is(r, "processes") && !k->saw_events) {
			st = read_list(k, read_process, err);
		} else {
			st = lag_json_skip(r, err);
		}
		if (st != LAG_OK)
			return st;
	}
	return st;
}

static enum lag_status read_device(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	struct lag_kineto_device d = { LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, 0 };
	struct lag_kineto_device *slot;
	unsigned depth = r->depth;
	enum lag_status st;

	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth >= depth) {
		if (key_is(r, "id")) {
			st = read_int(k, &d.id, err);
		} else if (key_is(r, "name")) {
			st = read_string(k, &d.name, err);
		} else if (key_is(r, "computeMajor") || key_is(r, "major")) {
			st = read_int(k, &d.cc_major, err);
		} else if (key_is(r, "computeMinor") || key_is(r, "minor")) {
			st = read_int(k, &d.cc_minor, err);
		} else if (key_is(r, "numSms")) {
			st = read_int(k, &d.sm_count, err);
		} else if (key_is(r, "totalGlobalMem")) {
			st = read_int(k, &d.memory_bytes, err);
		} else {
			st = lag_json_skip(r, err);
		}
		if (st != LAG_OK)
			return st;
	}
	if (st != LAG_OK || d.id == LAG_NONE)
		return st;
	slot = lag_vec_push(&k->devices);
	if (slot)
		*slot = d;
	return LAG_OK;
}

static enum lag_status read_other(struct lag_kineto *k, const char *key, size_t n,
				  struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);

	if (st != LAG_OK)
		return st;
	if ((r->kind != LAG_JSON_STRING && r->kind != LAG_JSON_NUMBER) || r->n > 1000)
		return lag_json_skip(r, err);
	return add_meta(k, (struct lag_span){ key, n }, text_of(r), err);
}

enum lag_status lag_kineto_read_head(struct lag_kineto *k, const char *key, size_t n,
				     struct lag_err *err)
{
	static const char *const header[] = { "schemaVersion",       "deviceProperties",
					      "computeProperties",   "distributedInfo",
					      "baseTimeNanoseconds", "traceName",
					      "displayTimeUnit" };
	uint32_t ignored;
	char name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1),
		       key);
	for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
		k->saw_header |= strcmp(name, header[i]) == 0;
	if (strcmp(name, "baseTimeNanoseconds") == 0)
		return read_int(k, &k->base_ns, err);
	if (strcmp(name, "distributedInfo") == 0)
		return read_distributed(k, err);
	if (strcmp(name, "deviceProperties") == 0 || strcmp(name, "computeProperties") == 0)
		return read_list(k, read_device, err);
	if (strcmp(name, "laggard") == 0)
		return read_laggard(k, err);
	if (strcmp(name, "host_name") == 0)
		return read_string(k, k->exported ? &ignored : &k->p->host, err);
	return read_other(k, name, strlen(name), err);
}
