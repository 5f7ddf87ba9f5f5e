/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's Flight Recorder dumps, pickled or as JSON: what one process had enqueued, started and finished
 * when its dump was written. One dump is one part; it has operations and no GPU events. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "merge/flight.h"
#include "merge/kineto.h"
#include "merge/source.h"
#include "schema/base/fmt.h"
#include "schema/base/parse.h"
#include "schema/base/pickle.h"

#define DUMP_MAX   ((size_t)512 << 20) /* bytes of a file */
#define DATA_MAX   ((size_t)2 << 30)   /* bytes of what it holds */
#define BUDGET_MAX (UINT64_C(1) << 28)

static bool holds(const uint8_t *head, size_t n, const char *word)
{
	return memmem(head, n, word, strlen(word)) != NULL;
}

/* Keys of a dump's top level, and of its entries. */
static bool names_dump(const uint8_t *head, size_t n)
{
	static const char *const words[] = { "pg_config", "pg_status", "nccl_comm_state",
					     "collective_seq_id", "profiling_name" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (holds(head, n, words[i]))
			return true;
	}
	return false;
}

static bool is_json(const uint8_t *head, size_t n)
{
	size_t i = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	while (i < n && isspace(head[i]))
		i++;
	return i < n && head[i] == '{';
}

static bool looks_like_dump(const uint8_t *head, size_t n)
{
	/* Any pickle with its protocol written: nothing else here reads those. */
	if (n >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		return true;
	if (n >= 2 && ((head[0] == '(' && head[1] == 'd') || (head[0] == '}' && head[1] != '"')))
		return names_dump(head, n);
	if (!is_json(head, n) || holds(head, n, "\"traceEvents\""))
		return false;
	return holds(head, n, "\"pg_status\"") || holds(head, n, "\"nccl_comm_state\"") ||
	       (holds(head, n, "\"entries\"") && names_dump(head, n));
}

bool lag_flight_spend(struct lag_flight *f, uint64_t n)
{
	if (f->budget < n)
		return false;
	f->budget -= n;
	return true;
}

enum lag_status lag_flight_string(struct lag_flight *f, const char *text, size_t n, uint32_t *id,
				  struct lag_err *err)
{
	*id = lag_strtab_add(&f->pool->strings, text, n);
	if (*id == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	return LAG_OK;
}

/* A fact about the process from the dump's top level. */
static enum lag_status add_meta(struct lag_flight *f, const char *key, const char *from,
				struct lag_err *err)
{
	const char *value = lag_datum_text(lag_datum_get(f->root, from));
	struct lag_record rec;
	uint32_t k = 0, v = 0;
	enum lag_status st = LAG_OK;

	if (!value[0])
		return LAG_OK;
	st = lag_flight_string(f, key, strlen(key), &k, err);
	if (!lag_failed(st))
		st = lag_flight_string(f, value, strlen(value), &v, err);
	lag_record_init(&rec, LAG_REC_meta);
	rec.meta.key = k;
	rec.meta.value = v;
	return lag_failed(st) ? st : lag_part_add(&f->part, &rec, err);
}

/* The number a file's name ends in: "_dump_3", "nccl_trace_rank_3". */
static int64_t rank_of_path(const char *path)
{
	size_t n = strlen(path), digits = 0;
	int64_t rank = lag_kineto_rank_of_path(path);

	while (digits < n && isdigit((unsigned char)path[n - digits - 1]))
		digits++;
	if (rank == LAG_NONE && digits && digits < 8 && n > digits && path[n - digits - 1] == '_' &&
	    !lag_parse_i64(path + n - digits, &rank))
		rank = LAG_NONE;
	return rank;
}

static enum lag_status identify(struct lag_flight *f, struct lag_err *err)
{
	struct lag_rec_process *p = &f->part.process;
	int64_t by_name = rank_of_path(f->part.path);
	const char *source = "pg_config and entries";
	uint32_t id = 0;
	enum lag_status st;

	f->rank = lag_flight_own_rank(f);
	if (f->rank != LAG_NONE && by_name != LAG_NONE && by_name != f->rank) {
		lag_part_note(&f->part,
			      "the file's name says rank %lld, its process groups say %lld, which "
			      "counts",
			      (long long)by_name, (long long)f->rank);
	}
	if (f->rank == LAG_NONE) {
		f->rank = by_name;
		source = "file name";
	}
	if (f->rank == LAG_NONE) {
		lag_part_note(&f->part, "neither the dump nor its file name tells the rank");
		return LAG_OK;
	}
	p->rank = f->rank;
	st = lag_flight_string(f, source, strlen(source), &id, err);
	p->rank_source = id;
	return st;
}

/* After the entries: they may be of groups that pg_config lacks. */
static void size_world(struct lag_flight *f)
{
	struct lag_rec_process *p = &f->part.process;

	/* The group of all ranks need not be among them. */
	f->part.world_is_least = true;
	for (size_t i = 0; i < f->groups.n; i++) {
		const struct lag_vec *members = &LAG_FLIGHT_GROUP(f, i)->members;

		/* It may be the largest: the others do not tell the job's size. */
		if (!members->n) {
			p->world_size = LAG_NONE;
			break;
		}
		for (size_t m = 0; m < members->n; m++) {
			int64_t rank = LAG_VEC_AT(members, int64_t, m);

			if (rank + 1 > p->world_size) /* LAG_NONE is below every number */
				p->world_size = rank + 1;
		}
	}
}

static void add_notes(struct lag_flight *f)
{
	const char *version = lag_datum_text(lag_datum_get(f->root, "version"));

	if (strncmp(version, "2.", 2) != 0) {
		lag_part_note(&f->part, "a dump of version '%.20s': read as if it were 2.x",
			      version);
	}
	if (f->part.n_bad) {
		lag_part_note(&f->part, "%llu %s without a time or a group left out",
			      (unsigned long long)f->part.n_bad,
			      LAG_PLURAL(f->part.n_bad, "entry", "entries"));
	}
	if (f->n_bad_groups) {
		lag_part_note(
			&f->part,
			"%llu %s what cannot be ranks: their members are "
			"not known",
			(unsigned long long)f->n_bad_groups,
			LAG_PLURAL(f->n_bad_groups, "process group lists", "process groups list"));
		f->part.n_bad += f->n_bad_groups;
	}
	lag_part_note(&f->part, "%llu %s, %llu of them unfinished when it was dumped%s",
		      (unsigned long long)f->n_entries,
		      LAG_PLURAL(f->n_entries, "operation", "operations"),
		      (unsigned long long)f->n_unfinished,
		      f->n_entries ? "" : ": whatever this process did last is not on record");
}

static enum lag_status read_dump(struct lag_flight *f, struct lag_err *err)
{
	const struct lag_datum *entries = lag_datum_get(f->root, "entries");
	const struct lag_datum *version = lag_datum_get(f->root, "nccl_version");
	enum lag_status st;

	if (!lag_datum_get(f->root, "pg_config") && !lag_datum_get(f->root, "pg_status") &&
	    !(entries && lag_datum_get(f->root, "version"))) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "plain data, but no Flight Recorder dump: it has neither "
				   "process groups nor entries");
	}
	st = lag_flight_read_groups(f, err);
	if (!lag_failed(st))
		st = identify(f, err);
	if (!lag_failed(st))
		st = lag_flight_emit_ops(f, err);
	if (!lag_failed(st)) {
		size_world(f);
		st = lag_flight_emit_groups(f, err);
	}
	if (!lag_failed(st))
		st = add_meta(f, "flight_recorder", "version", err);
	if (!lag_failed(st))
		st = add_meta(f, "nccl", version ? "nccl_version" : "comm_lib_version", err);
	if (!lag_failed(st))
		add_notes(f);
	return st;
}

static enum lag_status note_rest(struct lag_flight *f, struct lag_json_reader *json,
				 struct lag_err *err)
{
	uint64_t n, at;
	enum lag_status st = lag_json_rest(json, &n, &at, err);

	if (n) {
		lag_part_note(&f->part,
			      "%llu %s after the document's end %s not read, from byte %llu on",
			      (unsigned long long)n, LAG_PLURAL(n, "byte", "bytes"),
			      LAG_PLURAL(n, "is", "are"), (unsigned long long)at);
		f->part.n_bad++;
	}
	return st;
}

static enum lag_status parse(struct lag_flight *f, const uint8_t *bytes, size_t n,
			     struct lag_arena *arena, struct lag_err *err)
{
	struct lag_datum *root = NULL;
	struct lag_json_reader json;
	enum lag_status st;
	size_t used = 0;

	if (!is_json(bytes, n)) {
		st = lag_pickle_read(bytes, n, arena, &root, &used, err);
		if (!lag_failed(st) && used < n) {
			lag_part_note(&f->part, "%zu bytes after the pickle's end", n - used);
			f->part.n_bad++;
		}
		f->root = root;
		return st;
	}
	lag_json_init_bytes(&json, bytes, n, true);
	st = lag_datum_read_json(&json, arena, &root, err);
	if (st == LAG_END)
		st = lag_err_set(err, LAG_ERR_INPUT, "no data in this file");
	if (!lag_failed(st) && json.n_repairs) {
		lag_part_note(&f->part, "invalid JSON: %llu %s repaired or left out",
			      (unsigned long long)json.n_repairs,
			      LAG_PLURAL(json.n_repairs, "place", "places"));
		f->part.n_bad += json.n_repairs;
	}
	if (!lag_failed(st))
		st = note_rest(f, &json, err);
	f->root = root;
	lag_json_release(&json);
	return st;
}

static void release(struct lag_flight *f)
{
	for (size_t i = 0; i < f->groups.n; i++)
		lag_vec_release(&LAG_FLIGHT_GROUP(f, i)->members);
	lag_vec_release(&f->groups);
	lag_map_release(&f->of_name);
	lag_map_release(&f->of_pg_id);
	lag_map_release(&f->numbered);
	lag_map_release(&f->messages);
	lag_map_release(&f->threads);
	lag_part_release(&f->part);
}

static enum lag_status import_flight(struct lag_input *in, struct lag_pool *pool,
				     const struct lag_import_opts *opts, struct lag_part_sink *sink,
				     struct lag_err *err)
{
	struct lag_flight f = { .pool = pool,
				.groups = LAG_VEC_INIT(struct lag_flight_group),
				.rank = LAG_NONE,
				.budget = BUDGET_MAX };
	struct lag_arena arena = { .max = DATA_MAX };
	const uint8_t *bytes;
	uint8_t *owned = NULL;
	enum lag_status st, taken;
	size_t n;

	(void)opts;
	f.groups.max = 1u << 20;
	st = lag_part_init(&f.part, pool, in->path, "flight");
	if (lag_failed(st)) {
		(void)lag_err_set(err, st, "out of memory");
	} else {
		st = lag_input_slurp(in, DUMP_MAX, &bytes, &n, &owned, err);
	}
	if (!lag_failed(st))
		st = parse(&f, bytes, n, &arena, err);
	if (!lag_failed(st))
		st = read_dump(&f, err);
	if (lag_failed(st)) {
		(void)lag_err_wrap(err, "%s", in->path);
	} else {
		st = f.part.n_bad ? LAG_WARN : LAG_OK;
		taken = sink->take(sink, &f.part, err);
		f.part = (struct lag_part){ 0 };
		st = lag_failed(taken) ? taken : st;
	}
	release(&f);
	lag_arena_release(&arena);
	free(owned);
	return st;
}

const struct lag_importer lag_importer_flight = {
	.name = "flight",
	.clock = "the host's wall clock; when things happened on the GPU is not in it",
	.probe = looks_like_dump,
	.import = import_flight,
};
