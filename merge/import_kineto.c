/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's profiler (Kineto) JSON: one file is one process, hence one part. The file is read once, in
 * any order of its members, in memory that does not grow with what is not kept. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto.h"
#include "merge/source.h"

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
			k->p->part.n_bad++; /* no event, or the one that the cut goes through */
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

static enum lag_status finish(struct lag_kineto *k, const char *path, struct lag_part_sink *sink,
			      struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	if (!k->saw_events && !k->saw_header) {
		return lag_err_set(err, LAG_ERR_INPUT, "no profiler trace: it has no traceEvents");
	}
	if (k->base_ns < 0 || k->base_ns > INT64_MAX / 2)
		return lag_err_set(err, LAG_ERR_INPUT, "baseTimeNanoseconds is out of range");
	for (size_t i = 0; i < k->procs.n && !lag_failed(st); i++) {
		enum lag_status taken;

		k->p = &LAG_VEC_AT(&k->procs, struct lag_kineto_proc, i);
		taken = lag_kineto_finish_proc(k, path, err);
		if (taken == LAG_WARN)
			st = taken;
		if (!lag_failed(taken)) {
			taken = sink->take(sink, &k->p->part, err);
			k->p->part = (struct lag_part){ 0 };
		}
		if (lag_failed(taken))
			st = taken;
	}
	return st;
}

static enum lag_status import_kineto(struct lag_input *in, struct lag_pool *pool,
				     const struct lag_import_opts *opts, struct lag_part_sink *sink,
				     struct lag_err *err)
{
	struct lag_kineto *k = lag_calloc(1, sizeof(*k));
	enum lag_status st;

	if (!k)
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", in->path);
	k->pool = pool;
	k->opts = opts;
	k->world_size = LAG_NONE;
	k->procs = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_proc);
	k->groups = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_group);
	k->devices = (struct lag_vec)LAG_VEC_INIT(struct lag_kineto_device);
	k->groups.max = k->devices.max = 65536;
	lag_kineto_scan_init(&k->scan);
	st = lag_kineto_add_proc(k, in->path, err);
	if (!lag_failed(st)) {
		st = lag_json_init_fill(&k->scan.json, lag_input_fill, in, true);
		if (lag_failed(st))
			(void)lag_err_set(err, st, "out of memory");
	}
	if (!lag_failed(st))
		st = read_document(k, err);
	if (!lag_failed(st))
		st = lag_json_rest(&k->scan.json, &k->n_behind, &k->behind_at, err);
	if (!lag_failed(st))
		st = finish(k, in->path, sink, err);
	if (lag_failed(st))
		(void)lag_err_wrap(err, "%s", in->path);
	lag_json_release(&k->scan.json);
	lag_kineto_scan_release(&k->scan);
	lag_vec_release(&k->groups);
	lag_vec_release(&k->devices);
	lag_kineto_release_procs(k);
	free(k);
	return st;
}

const struct lag_importer lag_importer_kineto = {
	.name = "kineto",
	.clock = "the host's wall clock as the profiler converted it",
	.probe = looks_like_json,
	.import = import_kineto,
};
