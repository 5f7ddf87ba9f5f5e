/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's profiler (Kineto) JSON: one file is one process, hence one part. The file is read once, in
 * any order of its members, in memory that does not grow with what is not kept. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto.h"

static bool looks_like_json(const uint8_t *head, size_t n)
{
	size_t i = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	char first;

	while (i < n && strchr(" \t\r\n", head[i]) && head[i])
		i++;
	if (i == n || (head[i] != '{' && head[i] != '['))
		return false;
	first = (char)head[i++];
	while (i < n && strchr(" \t\r\n", head[i]) && head[i])
		i++;
	if (i == n)
		return true;
	return first == '{' ? head[i] == '"' || head[i] == '}' : head[i] == '{' || head[i] == ']';
}

static enum lag_status read_events(struct lag_kineto *k, struct lag_err *err)
{
	enum lag_status st;

	k->saw_events = true;
	do {
		st = lag_kineto_next(&k->scan, err);
		if (st == LAG_OK) {
			st = lag_kineto_emit(k, err);
		} else if (st == LAG_WARN) {
			k->part.n_bad++; /* no event, or the one that the cut goes through */
		}
	} while (st == LAG_OK || st == LAG_WARN);
	/* The list's end is not the document's. */
	return st == LAG_END && k->scan.json.kind == LAG_JSON_ARRAY_END ? LAG_OK : st;
}

static enum lag_status read_document(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_json_reader *r = &k->scan.json;
	enum lag_status st = lag_json_next(r, err);

	if (st == LAG_OK && r->kind == LAG_JSON_ARRAY)
		return read_events(k, err);
	if (st != LAG_OK || r->kind != LAG_JSON_OBJECT)
		return st;
	while ((st = lag_json_next(r, err)) == LAG_OK && r->depth) {
		if (r->kind != LAG_JSON_KEY)
			continue;
		if (r->n == 11 && memcmp(r->text, "traceEvents", 11) == 0) {
			st = lag_json_next(r, err);
			if (st == LAG_OK && r->kind == LAG_JSON_ARRAY) {
				st = read_events(k, err);
			} else if (st == LAG_OK) {
				st = lag_json_skip(r, err);
			}
		} else {
			st = lag_kineto_read_head(k, r->text, r->n, err);
		}
		if (st != LAG_OK)
			return st;
	}
	return st;
}

/* Makes every time absolute. Done at the end since the base may follow the events. */
static void add_base(struct lag_kineto *k)
{
	int64_t base = k->base_ns;

	if (k->part.process.start_ns != LAG_NONE)
		k->part.process.start_ns += base;
	if (base)
		lag_part_shift(&k->part, base);
}

static void identify(struct lag_kineto *k, const char *path)
{
	static const char field[] = "distributedInfo", name[] = "file name";
	struct lag_rec_process *p = &k->part.process;
	const char *host = NULL;
	size_t n;
	uint32_t id;
	bool told = k->rank >= 0;

	if (!told)
		k->rank = lag_kineto_rank_of_path(path);
	if (k->rank != LAG_NONE) {
		p->rank = k->rank;
		id = lag_strtab_add(&k->pool->strings, told ? field : name,
				    told ? sizeof(field) - 1 : sizeof(name) - 1);
		p->rank_source = id == LAG_STR_NONE ? 0 : id;
	}
	if (k->world_size > 0)
		p->world_size = k->world_size;
	if (!k->host && (n = lag_kineto_host_of_path(path, &host))) {
		id = lag_strtab_add(&k->pool->strings, host, n);
		k->host = id == LAG_STR_NONE ? 0 : id;
	}
	p->host = k->host;
}

static enum lag_status add_devices(struct lag_kineto *k, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < k->devices.n && !lag_failed(st); i++) {
		const struct lag_kineto_device *d =
			&LAG_VEC_AT(&k->devices, struct lag_kineto_device, i);
		struct lag_record rec;

		if (!d->used)
			continue;
		lag_record_init(&rec, LAG_REC_device);
		rec.device.device = d->id;
		rec.device.name = d->name;
		rec.device.cc_major = d->cc_major;
		rec.device.cc_minor = d->cc_minor;
		rec.device.sm_count = d->sm_count;
		rec.device.memory_bytes = d->memory_bytes;
		st = lag_part_add(&k->part, &rec, err);
	}
	return st;
}

static void add_notes(struct lag_kineto *k)
{
	const struct lag_json_reader *r = &k->scan.json;

	for (unsigned i = 0; i < LAG_JSON_REPAIR_LIMIT; i++) {
		if (i == LAG_JSON_CUT && r->repairs[i]) {
			lag_part_note(&k->part, "cut off at byte %llu",
				      (unsigned long long)r->first_at[i]);
		} else if (r->repairs[i]) {
			lag_part_note(&k->part,
				      "invalid JSON repaired: %s, %llu times, first at byte %llu",
				      lag_json_repair_name((enum lag_json_repair)i),
				      (unsigned long long)r->repairs[i],
				      (unsigned long long)r->first_at[i]);
		}
	}
	if (k->part.n_bad) {
		lag_part_note(&k->part,
			      "%llu events without a usable time or cut off left out, the first "
			      "before byte %llu",
			      (unsigned long long)k->part.n_bad,
			      (unsigned long long)(k->first_bad_at ? k->first_bad_at : r->at));
	}
	if (!k->n_gpu)
		lag_part_note(&k->part, "no GPU events in this trace");
	if (k->part.process.rank == LAG_NONE)
		lag_part_note(&k->part, "neither the trace nor its file name tells the rank");
}

static enum lag_status finish(struct lag_kineto *k, const char *path, struct lag_err *err)
{
	enum lag_status st;

	if (!k->saw_events && !k->saw_header) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "JSON, but not a profiler trace: it has no traceEvents");
	}
	if (k->base_ns < 0 || k->base_ns > INT64_MAX / 2)
		return lag_err_set(err, LAG_ERR_INPUT, "baseTimeNanoseconds is out of range");
	identify(k, path);
	st = add_devices(k, err);
	if (!lag_failed(st))
		st = lag_kineto_add_ops(k, err);
	if (!lag_failed(st))
		st = lag_kineto_add_recordings(k, err);
	if (lag_failed(st))
		return st;
	add_base(k);
	add_notes(k);
	return k->scan.json.n_repairs || k->part.n_bad ? LAG_WARN : LAG_OK;
}

static long fill_from_input(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct lag_input *in = state;

	return in->read(in, buf, room, err);
}

static void release(struct lag_kineto *k)
{
	lag_json_release(&k->scan.json);
	lag_kineto_scan_release(&k->scan);
	lag_vec_release(&k->colls);
	lag_vec_release(&k->cpu_colls);
	lag_vec_release(&k->carriers);
	lag_vec_release(&k->groups);
	lag_vec_release(&k->devices);
	lag_vec_release(&k->recordings);
	lag_part_release(&k->part);
}

static enum lag_status import_kineto(struct lag_input *in, struct lag_pool *pool,
				     const struct lag_import_opts *opts, struct lag_part_sink *sink,
				     struct lag_err *err)
{
	struct lag_kineto *k = lag_calloc(1, sizeof(*k));
	enum lag_status st, taken;

	if (!k)
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", in->path);
	k->pool = pool;
	k->opts = opts;
	k->rank = k->world_size = LAG_NONE;
	k->colls = k->cpu_colls = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_coll);
	k->carriers = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_carrier);
	k->groups = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_group);
	k->devices = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_device);
	k->recordings = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_recording);
	lag_kineto_scan_init(&k->scan);
	st = lag_part_init(&k->part, pool, in->path, "kineto");
	k->groups.max = k->devices.max = 65536;
	if (!lag_failed(st))
		st = lag_json_init_fill(&k->scan.json, fill_from_input, in, true);
	if (lag_failed(st)) {
		(void)lag_err_set(err, st, "out of memory");
	} else {
		st = read_document(k, err);
	}
	if (!lag_failed(st))
		st = finish(k, in->path, err);
	if (lag_failed(st)) {
		(void)lag_err_wrap(err, "%s", in->path);
	} else {
		taken = sink->take(sink, &k->part, err);
		k->part = (struct lag_part){ 0 };
		st = lag_failed(taken) ? taken : st;
	}
	release(k);
	free(k);
	return st;
}

const struct lag_importer lag_importer_kineto = {
	.name = "kineto",
	.probe = looks_like_json,
	.import = import_kineto,
};
