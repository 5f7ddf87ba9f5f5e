/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a Kineto file: one, but for traces of a whole job that laggard exported. */
#include <stdlib.h>
#include <string.h>

#include "merge/kineto.h"
#include "schema/base/fmt.h"

#define PROCS_MAX 65536

enum lag_status lag_kineto_add_proc(struct lag_kineto *k, const char *path, struct lag_err *err)
{
	struct lag_kineto_proc *p;

	k->procs.max = PROCS_MAX;
	p = lag_vec_push(&k->procs);
	if (!p) {
		k->p = k->procs.items;
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more processes");
	}
	*p = (struct lag_kineto_proc){
		.colls = LAG_VEC_INIT(struct lag_kineto_coll),
		.cpu_colls = LAG_VEC_INIT(struct lag_kineto_coll),
		.carriers = LAG_VEC_INIT(struct lag_kineto_carrier),
		.recordings = LAG_VEC_INIT(struct lag_kineto_recording),
		.open = LAG_VEC_INIT(struct lag_kineto_open),
		.devices = LAG_VEC_INIT(int64_t),
		.pid = LAG_NONE,
		.rank = LAG_NONE,
	};
	p->devices.max = 65536;
	k->p = p;
	if (lag_failed(lag_part_init(&p->part, k->pool, path, "kineto")))
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	return LAG_OK;
}

bool lag_kineto_set_proc(struct lag_kineto *k)
{
	int64_t pid = k->scan.event.pid;
	uint64_t at = 0;

	if (!k->exported || k->p->pid == pid)
		return true;
	if (!lag_map_find(&k->proc_of, (uint64_t)pid, &at))
		return false;
	k->p = &LAG_VEC_AT(&k->procs, struct lag_kineto_proc, at);
	return true;
}

void lag_kineto_use_device(struct lag_kineto *k, int64_t device)
{
	int64_t *slot;

	k->p->n_gpu++;
	for (size_t i = 0; i < k->p->devices.n; i++) {
		if (LAG_VEC_AT(&k->p->devices, int64_t, i) == device)
			return;
	}
	slot = lag_vec_push(&k->p->devices);
	if (slot)
		*slot = device;
}

/* Makes every time absolute. Done at the end since the base may follow the events. */
static void add_base(struct lag_kineto *k)
{
	int64_t base = k->base_ns;

	if (k->p->part.process.start_ns != LAG_NONE)
		k->p->part.process.start_ns += base;
	if (base)
		lag_part_shift(&k->p->part, base);
}

static void identify(struct lag_kineto *k, const char *path)
{
	static const struct lag_span sources[] = { LAG_SPAN_INIT("file name"),
						   LAG_SPAN_INIT("distributedInfo"),
						   LAG_SPAN_INIT("laggard's export") };
	struct lag_rec_process *p = &k->p->part.process;
	const char *host = NULL;
	size_t n;
	uint32_t id;
	bool told = k->p->rank >= 0;

	if (!told && !k->exported)
		k->p->rank = lag_kineto_rank_of_path(path);
	if (k->p->rank != LAG_NONE) {
		p->rank = k->p->rank;
		id = lag_strtab_add(&k->pool->strings, sources[k->exported ? 2 : told].text,
				    sources[k->exported ? 2 : told].n);
		p->rank_source = id == LAG_STR_NONE ? 0 : id;
	}
	if (k->world_size > 0)
		p->world_size = k->world_size;
	/* Whoever takes the part tells it; no communicator is to be of that size meanwhile. */
	if (!lag_part_may_be_of(p->rank, k->world_size))
		k->world_size = LAG_NONE;
	if (!k->p->host && (n = lag_kineto_host_of_path(path, &host))) {
		id = lag_strtab_add(&k->pool->strings, host, n);
		k->p->host = id == LAG_STR_NONE ? 0 : id;
	}
	p->host = k->p->host;
}

static enum lag_status add_devices(struct lag_kineto *k, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < k->p->devices.n && !lag_failed(st); i++) {
		int64_t id = LAG_VEC_AT(&k->p->devices, int64_t, i);
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_device);
		rec.device.device = id;
		for (size_t j = 0; j < k->devices.n; j++) {
			const struct lag_kineto_device *d =
				&LAG_VEC_AT(&k->devices, struct lag_kineto_device, j);

			if (d->id != id)
				continue;
			rec.device.name = d->name;
			rec.device.cc_major = d->cc_major;
			rec.device.cc_minor = d->cc_minor;
			rec.device.sm_count = d->sm_count;
			rec.device.memory_bytes = d->memory_bytes;
		}
		st = lag_part_add(&k->p->part, &rec, err);
	}
	return st;
}

/* What was repaired belongs to the file: the first process tells it. */
static void add_repairs(struct lag_kineto *k)
{
	const struct lag_json_reader *r = &k->scan.json;

	for (unsigned i = 0; i < LAG_JSON_REPAIR_LIMIT; i++) {
		if (i == LAG_JSON_CUT && r->repairs[i]) {
			lag_part_note(&k->p->part, "cut off at byte %llu",
				      (unsigned long long)r->first_at[i]);
		} else if (r->repairs[i]) {
			lag_part_note(&k->p->part,
				      "invalid JSON repaired: %s, %llu %s, first at byte %llu",
				      lag_json_repair_name((enum lag_json_repair)i),
				      (unsigned long long)r->repairs[i],
				      LAG_PLURAL(r->repairs[i], "time", "times"),
				      (unsigned long long)r->first_at[i]);
		}
	}
}

/* Another document, or what a writer that broke off left: the first process tells it. */
static void add_behind(struct lag_kineto *k)
{
	if (!k->n_behind)
		return;
	lag_part_note(&k->p->part,
		      "%llu %s after the document's end %s not read, from byte %llu on",
		      (unsigned long long)k->n_behind, LAG_PLURAL(k->n_behind, "byte", "bytes"),
		      LAG_PLURAL(k->n_behind, "is", "are"), (unsigned long long)k->behind_at);
	k->p->part.n_bad++;
}

static void add_notes(struct lag_kineto *k)
{
	if (k->p == k->procs.items)
		add_repairs(k);
	if (k->p->part.n_bad) {
		lag_part_note(&k->p->part,
			      "%llu %s without a usable time or cut off left out, the first "
			      "before byte %llu",
			      (unsigned long long)k->p->part.n_bad,
			      LAG_PLURAL(k->p->part.n_bad, "event", "events"),
			      (unsigned long long)(k->p->first_bad_at ? k->p->first_bad_at
								      : k->scan.json.at));
	}
	/* Whose they are nobody knows: the file's, and so the first process's to tell. */
	if (k->p == k->procs.items && k->n_strange) {
		lag_part_note(&k->p->part,
			      "%llu %s of processes that the file does not list left out",
			      (unsigned long long)k->n_strange,
			      LAG_PLURAL(k->n_strange, "event", "events"));
		k->p->part.n_bad += k->n_strange;
	}
	if (k->p == k->procs.items && k->n_odd) {
		lag_part_note(&k->p->part,
			      "%llu %s where a whole number belongs left out, the first at byte "
			      "%llu: %s",
			      (unsigned long long)k->n_odd, LAG_PLURAL(k->n_odd, "value", "values"),
			      (unsigned long long)k->odd_at, k->first_odd);
	}
	if (k->p == k->procs.items)
		add_behind(k);
	if (!k->p->n_gpu)
		lag_part_note(&k->p->part, "no GPU events in this trace");
	if (k->p->part.process.rank == LAG_NONE)
		lag_part_note(&k->p->part, "neither the trace nor its file name tells the rank");
}

enum lag_status lag_kineto_finish_proc(struct lag_kineto *k, const char *path, struct lag_err *err)
{
	enum lag_status st;

	identify(k, path);
	st = lag_kineto_add_open(k, err);
	if (!lag_failed(st))
		st = add_devices(k, err);
	if (!lag_failed(st))
		st = lag_kineto_add_ops(k, err);
	if (!lag_failed(st))
		st = lag_kineto_add_recordings(k, err);
	if (lag_failed(st))
		return st;
	add_base(k);
	add_notes(k);
	return k->scan.json.n_repairs || k->p->part.n_bad ? LAG_WARN : LAG_OK;
}

void lag_kineto_release_procs(struct lag_kineto *k)
{
	for (size_t i = 0; i < k->procs.n; i++) {
		struct lag_kineto_proc *p = &LAG_VEC_AT(&k->procs, struct lag_kineto_proc, i);

		lag_vec_release(&p->colls);
		lag_vec_release(&p->cpu_colls);
		lag_vec_release(&p->carriers);
		lag_vec_release(&p->recordings);
		lag_vec_release(&p->open);
		lag_vec_release(&p->devices);
		lag_part_release(&p->part);
	}
	lag_vec_release(&k->procs);
	lag_map_release(&k->proc_of);
}
