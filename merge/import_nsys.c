/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems reports as `nsys export --type sqlite` writes them, 2022 to 2026: one file is one machine,
 * each process in it one part. Tables and columns are looked up; what is missing was not recorded. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/names.h"
#include "merge/nsys.h"
#include "merge/nsys_file.h"
#include "schema/base/fmt.h"

#define PROCS_MAX  4096
#define NAMES_MAX  ((size_t)1 << 26)
#define TICK_ROWS  512
#define TICK_BYTES 65536
#define NOTES_MAX  8192
#define TIME_LIMIT INT64_C(4200000000000000000)
#define NAME_CUT   LAG_RECORD_BYTES_MAX

void lag_nsys_note(struct lag_nsys *s, const char *fmt, ...)
{
	char line[LAG_ERR_TEXT_MAX];
	va_list ap;

	if (s->notes.n > NOTES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *p = line; *p; p++)
		*p = (unsigned char)*p < ' ' ? ' ' : *p;
	lag_buf_printf(&s->notes, "%s\n", line);
}

int64_t lag_nsys_time(const struct lag_nsys *s, int64_t t)
{
	if (t == LAG_NONE)
		return LAG_NONE;
	if (t > TIME_LIMIT)
		return INT64_MAX;
	return t < -TIME_LIMIT ? -INT64_MAX : s->base_ns + t;
}

enum lag_status lag_nsys_string(struct lag_nsys *s, const char *text, size_t n, int64_t *id,
				struct lag_err *err)
{
	uint32_t v =
		lag_strtab_add(&s->pool->strings, text ? text : "", n < NAME_CUT ? n : NAME_CUT);

	*id = v;
	if (v == LAG_STR_NONE)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	return LAG_OK;
}

/* Tells the caller about how far the import is, and lets it say that it wants to end. */
static enum lag_status tick(struct lag_nsys *s, struct lag_err *err)
{
	struct lag_input *in = s->in;
	uint64_t at;

	if (s->n_rows++ % TICK_ROWS || !in->watch)
		return LAG_OK;
	s->told += TICK_BYTES;
	/* One that was spooled has been read, and told, to its end. */
	at = s->told < in->n ? s->told : in->n;
	if (!in->watch(in, at > in->offset ? at : in->offset))
		return lag_err_set(err, LAG_ERR_LIMIT, "interrupted");
	return LAG_OK;
}

static void note_damage(struct lag_nsys *s, const char *table, uint64_t n)
{
	s->n_damaged++;
	lag_nsys_note(s, "table %s is damaged: %llu rows of it can be read", table,
		      (unsigned long long)n);
}

/* A table that is there and not read is another thing than one that was not recorded. Tables that are
 * read twice are told once. */
static void note_refused(struct lag_nsys *s, const char *table)
{
	const char *what = lag_foreign_refused(s->db, table);
	char line[160];

	if (!what)
		return;
	(void)snprintf(line, sizeof(line), "%s is no table but %s: not read", table, what);
	if (!strstr(lag_buf_text(&s->notes), line))
		lag_nsys_note(s, "%s", line);
}

enum lag_status lag_nsys_each(struct lag_nsys *s, const char *table, const char *const *columns,
			      size_t n_columns,
			      enum lag_status (*row)(struct lag_nsys *s, struct lag_foreign_rows *r,
						     struct lag_err *err),
			      struct lag_err *err)
{
	struct lag_foreign_rows *rows = NULL;
	enum lag_status st = lag_foreign_rows_open(s->db, table, columns, n_columns, &rows, err);
	uint64_t n = 0;

	if (st == LAG_END) {
		note_refused(s, table);
		return LAG_OK;
	}
	while (st == LAG_OK && (st = lag_foreign_rows_next(rows, err)) == LAG_OK) {
		n++;
		st = row(s, rows, err);
		if (st != LAG_OK)
			break;
		st = tick(s, err);
	}
	if (rows && lag_foreign_rows_damaged(rows))
		note_damage(s, table, n);
	lag_foreign_rows_close(rows);
	return st == LAG_END ? LAG_OK : st;
}

/* ---- processes ---- */

static enum lag_status see_thread(struct lag_nsys *s, struct lag_foreign_rows *r,
				  struct lag_err *err)
{
	int64_t global = lag_foreign_int(r, 0);

	(void)err;
	if (global == LAG_NONE)
		return LAG_OK;
	if (s->has_default && s->default_key != LAG_NSYS_KEY(global)) {
		s->default_key = 0;
		return LAG_END;
	}
	s->has_default = true;
	s->default_key = LAG_NSYS_KEY(global);
	return LAG_OK;
}

/* Whose an event is that does not say so: the one process's that made CUDA calls. */
static enum lag_status find_default(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const columns[] = { "globalTid" };
	enum lag_status st =
		LAG_NSYS_EACH(s, "CUPTI_ACTIVITY_KIND_RUNTIME", columns, see_thread, err);

	s->has_default = true;
	return st;
}

enum lag_status lag_nsys_proc(struct lag_nsys *s, int64_t global, struct lag_nsys_proc **out,
			      struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	struct lag_nsys_proc *p;
	uint64_t key, at;

	key = global == LAG_NONE ? 0 : LAG_NSYS_KEY(global);
	if (!key && !s->has_default)
		st = find_default(s, err);
	if (lag_failed(st))
		return st;
	key = key ? key : s->default_key;
	if (lag_map_find(&s->proc_of, key, &at)) {
		*out = &LAG_VEC_AT(&s->procs, struct lag_nsys_proc, at);
		return LAG_OK;
	}
	if (s->procs.n == PROCS_MAX)
		return lag_err_set(err, LAG_ERR_LIMIT, "more than %d processes", PROCS_MAX);
	*out = p = lag_vec_push(&s->procs);
	if (!p || lag_failed(lag_map_set(&s->proc_of, key, s->procs.n - 1)) ||
	    lag_failed(lag_part_init(&p->part, s->pool, s->in->path, "nsys")))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another process");
	p->key = key;
	p->devices = (struct lag_vec)LAG_VEC_INIT(int64_t);
	p->carriers = (struct lag_vec)LAG_VEC_INIT(struct lag_nsys_carrier);
	p->calls = (struct lag_vec)LAG_VEC_INIT(struct lag_nsys_call);
	p->pending = (struct lag_vec)LAG_VEC_INIT(struct lag_rec_sync);
	p->launches = (struct lag_vec)LAG_VEC_INIT(struct lag_nsys_launch);
	return LAG_OK;
}

/* ---- names ---- */

/* Runtime calls carry the version of CUDA they came with, "cudaMalloc_v3020"; other sources leave it
 * out. The driver's "_v2" is part of a name. */
static size_t without_version(const char *text, size_t n)
{
	size_t at = n;

	if (n < 10 || memcmp(text, "cuda", 4) != 0)
		return n;
	while (at && text[at - 1] >= '0' && text[at - 1] <= '9')
		at--;
	return n - at >= 4 && at > 2 && memcmp(text + at - 2, "_v", 2) == 0 ? at - 2 : n;
}

static enum lag_status add_name(struct lag_nsys *s, int64_t id, const char *text, size_t n,
				struct lag_err *err)
{
	struct lag_nsys_name *name = lag_vec_push(&s->names);
	int64_t pool = 0;
	enum lag_status st;

	if (!name || lag_failed(lag_map_set(&s->name_of, (uint64_t)id, s->names.n - 1)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more names");
	st = lag_nsys_string(s, text, without_version(text ? text : "", n), &pool, err);
	name->id = (uint32_t)pool;
	return st;
}

static enum lag_status take_string(struct lag_nsys *s, struct lag_foreign_rows *r,
				   struct lag_err *err)
{
	size_t n;
	const char *text = lag_foreign_text(r, 1, &n);
	int64_t id = lag_foreign_int(r, 0);

	return id == LAG_NONE || !text ? LAG_OK : add_name(s, id, text, n, err);
}

/* Millions of strings may be there and few be used: those are looked up when they are needed. */
static enum lag_status open_strings(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const columns[] = { "id", "value" };
	enum lag_status st = lag_foreign_rows_open(s->db, "StringIds", columns, 2, &s->rows, err);

	if (st == LAG_END) {
		note_refused(s, "StringIds");
		lag_nsys_note(s, "no table of strings: kernels and calls have no names");
		return LAG_OK;
	}
	if (st != LAG_OK || lag_foreign_rows_keyed(s->rows, 0))
		return st;
	lag_foreign_rows_close(s->rows);
	s->rows = NULL;
	return LAG_NSYS_EACH(s, "StringIds", columns, take_string, err);
}

enum lag_status lag_nsys_name(struct lag_nsys *s, int64_t id, size_t *index, struct lag_err *err)
{
	const char *text;
	uint64_t at = 0;
	enum lag_status st;
	size_t n = 0;

	*index = 0;
	if (id == LAG_NONE)
		return LAG_OK;
	if (lag_map_find(&s->name_of, (uint64_t)id, &at)) {
		*index = at;
		return LAG_OK;
	}
	if (!s->rows) {
		s->n_nameless++;
		st = add_name(s, id, NULL, 0, err);
		*index = s->names.n - 1;
		return st;
	}
	st = lag_foreign_rows_find(s->rows, id, err);
	if (lag_failed(st))
		return st;
	text = st == LAG_OK ? lag_foreign_text(s->rows, 1, &n) : NULL;
	s->n_nameless += !text;
	st = add_name(s, id, text, n, err);
	*index = s->names.n - 1;
	return st;
}

/* ---- the import ---- */

static enum lag_status read_all(struct lag_nsys *s, struct lag_err *err)
{
	static enum lag_status (*const stages[])(struct lag_nsys *, struct lag_err *) = {
		open_strings,         lag_nsys_read_info,    lag_nsys_read_gpu,
		lag_nsys_read_host,   lag_nsys_read_layouts, lag_nsys_read_nvtx,
		lag_nsys_read_losses, lag_nsys_read_devices
	};
	enum lag_status st = LAG_OK;

	s->names.max = NAMES_MAX;
	/* Index 0 is the name of what has none. */
	if (!lag_vec_push(&s->names))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && !lag_failed(st); i++)
		st = stages[i](s, err);
	for (size_t i = 0; i < s->procs.n && !lag_failed(st); i++)
		st = lag_nsys_add_ops(s, &LAG_VEC_AT(&s->procs, struct lag_nsys_proc, i), err);
	return st;
}

/* The order in which ranks are given to processes that do not tell theirs: as in the communicator that all
 * of them are in, else by GPU. */
static int by_rank(const void *left, const void *right)
{
	const struct lag_nsys_proc *a = left, *b = right;

	if (!a->n_gpu != !b->n_gpu)
		return a->n_gpu ? -1 : 1;
	if (a->world_rank != b->world_rank)
		return a->world_rank < b->world_rank ? -1 : 1;
	if (a->gpu != b->gpu)
		return a->gpu < b->gpu ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

/* Sorts them so; the number of those with GPU work. */
static size_t sort_processes(struct lag_nsys *s)
{
	struct lag_nsys_proc *procs = s->procs.items, *first = NULL;
	size_t n_gpu = 0;
	bool joined = true;

	for (size_t i = 0; i < s->procs.n; i++) {
		if (!procs[i].n_gpu)
			continue;
		first = first ? first : &procs[i];
		joined = joined && procs[i].world_ranks && procs[i].world_comm == first->world_comm;
		n_gpu++;
	}
	for (size_t i = 0; i < s->procs.n && !joined; i++)
		procs[i].world_rank = 0;
	qsort(procs, s->procs.n, sizeof(*procs), by_rank);
	return n_gpu;
}

static void add_notes(struct lag_nsys *s, struct lag_part *part)
{
	char *at, *end;

	if (s->rows && lag_foreign_rows_damaged(s->rows))
		note_damage(s, "StringIds", s->names.n);
	at = s->notes.text;
	for (; at && *at; at = end + 1) {
		end = strchr(at, '\n');
		*end = '\0';
		lag_part_note(part, "%s", at);
	}
	if (s->n_bad) {
		lag_part_note(part, "%llu %s without a usable time left out",
			      (unsigned long long)s->n_bad,
			      LAG_PLURAL(s->n_bad, "event", "events"));
	}
	if (s->n_nameless) {
		lag_part_note(part, "%llu %s not in the file's table of strings",
			      (unsigned long long)s->n_nameless,
			      LAG_PLURAL(s->n_nameless, "name is", "names are"));
	}
	if (s->n_operators) {
		lag_part_note(
			part, "%llu %s left out (--cpu-ops keeps them)",
			(unsigned long long)s->n_operators,
			LAG_PLURAL(s->n_operators, "framework operator", "framework operators"));
	}
	if (s->n_os_calls) {
		lag_part_note(part, "%llu %s of the operating system's libraries left out",
			      (unsigned long long)s->n_os_calls,
			      LAG_PLURAL(s->n_os_calls, "call", "calls"));
	}
	part->n_bad += s->n_bad + s->n_damaged;
}

/* Who it is, as far as the file tells. Its environment is the one nsys was started in: every process's
 * only where there is one. */
static enum lag_status identify(struct lag_nsys *s, struct lag_nsys_proc *p, size_t n_gpu_procs,
				struct lag_err *err)
{
	struct lag_rec_process *id = &p->part.process;
	uint64_t name = 0;

	id->pid = p->key ? LAG_NSYS_PID(p->key) : LAG_NONE;
	id->host = s->host;
	id->start_ns = s->base_ns;
	id->argv = s->argv;
	if (lag_map_find(&s->process_names, p->key, &name))
		id->argv = (int64_t)name;
	if (n_gpu_procs == 1 && p->n_gpu && s->rank != LAG_NONE) {
		id->rank = s->rank;
		id->rank_source = s->rank_source;
		id->world_size = s->world_size;
	}
	if (s->procs.n > 1) {
		char *path = p->part.path;
		size_t n = strlen(path) + 32;

		p->part.path = lag_calloc(1, n);
		if (!p->part.path) {
			p->part.path = path;
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
		}
		if (p->key) {
			(void)snprintf(p->part.path, n, "%s: process %lld", path,
				       (long long)id->pid);
		} else {
			(void)snprintf(p->part.path, n, "%s: unknown process", path);
		}
		free(path);
	}
	return LAG_OK;
}

static enum lag_status deliver(struct lag_nsys *s, struct lag_part_sink *sink, struct lag_err *err)
{
	struct lag_nsys_proc *procs = s->procs.items;
	size_t n_gpu_procs = 0;
	enum lag_status st = LAG_OK;

	if (!s->procs.n) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "an Nsight Systems export without any CUDA or NVTX event");
	}
	n_gpu_procs = sort_processes(s);
	if (n_gpu_procs > 1 && s->rank != LAG_NONE) {
		lag_nsys_note(s,
			      "%zu %s with GPU work: %s of the captured environment is not "
			      "theirs; ranks are assumed in the order of NCCL's ranks or GPUs",
			      n_gpu_procs, LAG_PLURAL(n_gpu_procs, "process", "processes"),
			      lag_strtab_get(&s->pool->strings, s->rank_source));
	}
	add_notes(s, &procs[0].part);
	for (size_t i = 0; i < s->procs.n && !lag_failed(st); i++) {
		if (procs[i].n_graphs) {
			lag_part_note(
				&procs[i].part,
				"%llu CUDA graphs recorded as a whole: the kernels inside are "
				"not recorded (nsys profile --cuda-graph-trace=node does)",
				(unsigned long long)procs[i].n_graphs);
		}
		st = identify(s, &procs[i], n_gpu_procs, err);
		if (!lag_failed(st)) {
			st = sink->take(sink, &procs[i].part, err);
			procs[i].part = (struct lag_part){ 0 };
		}
	}
	return st;
}

static void release(struct lag_nsys *s)
{
	for (size_t i = 0; i < s->procs.n; i++) {
		struct lag_nsys_proc *p = &LAG_VEC_AT(&s->procs, struct lag_nsys_proc, i);

		lag_part_release(&p->part);
		lag_vec_release(&p->devices);
		lag_vec_release(&p->carriers);
		lag_vec_release(&p->calls);
		lag_vec_release(&p->pending);
		lag_vec_release(&p->launches);
		lag_map_release(&p->wanted);
	}
	lag_vec_release(&s->procs);
	lag_map_release(&s->proc_of);
	lag_vec_release(&s->names);
	lag_map_release(&s->name_of);
	lag_foreign_rows_close(s->rows);
	lag_map_release(&s->domains);
	lag_map_release(&s->categories);
	lag_vec_release(&s->fields);
	lag_map_release(&s->nccl_domains);
	lag_map_release(&s->process_names);
	lag_vec_release(&s->gpus);
	lag_vec_release(&s->cuda);
	lag_buf_release(&s->meta);
	lag_buf_release(&s->notes);
	lag_buf_release(&s->scratch);
	lag_foreign_close(s->db);
}

static enum lag_status import_database(struct lag_nsys *s, struct lag_nsys_file *file,
				       struct lag_part_sink *sink, struct lag_err *err)
{
	static const char *const tables[] = { "CUPTI_ACTIVITY_KIND_KERNEL",
					      "CUPTI_ACTIVITY_KIND_MEMCPY",
					      "CUPTI_ACTIVITY_KIND_RUNTIME",
					      "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
					      "NVTX_EVENTS",
					      "META_DATA_EXPORT",
					      "TARGET_INFO_SESSION_START_TIME" };
	enum lag_status st = lag_foreign_open(file->path, &s->db, err);
	bool damaged = st == LAG_WARN, known = false;

	/* Open is enough; a temporary file is then gone whatever happens. */
	lag_nsys_file_close(file);
	if (lag_failed(st))
		return st;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		known = known || lag_foreign_has(s->db, tables[i]);
	if (!known) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "a SQLite database, but not an export of Nsight Systems");
	}
	if (damaged) {
		s->n_damaged++;
		lag_nsys_note(s, "the database is cut off or damaged: what can be read is used");
	}
	st = read_all(s, err);
	if (!lag_failed(st))
		st = deliver(s, sink, err);
	if (lag_failed(st))
		return st;
	return s->n_damaged || s->n_bad ? LAG_WARN : LAG_OK;
}

static enum lag_status import_nsys(struct lag_input *in, struct lag_pool *pool,
				   const struct lag_import_opts *opts, struct lag_part_sink *sink,
				   struct lag_err *err)
{
	struct lag_nsys s = { .in = in,
			      .pool = pool,
			      .opts = opts,
			      .procs = LAG_VEC_INIT(struct lag_nsys_proc),
			      .names = LAG_VEC_INIT(struct lag_nsys_name),
			      .fields = LAG_VEC_INIT(struct lag_nsys_field),
			      .gpus = LAG_VEC_INIT(struct lag_nsys_gpu),
			      .cuda = LAG_VEC_INIT(struct lag_nsys_cuda),
			      .rank = LAG_NONE,
			      .world_size = LAG_NONE };
	struct lag_nsys_file file;
	enum lag_status st = lag_nsys_file_open(&file, in, err);

	s.gpus.max = 4096;
	s.cuda.max = 65536;
	s.fields.max = 1024;
	if (st == LAG_OK)
		st = import_database(&s, &file, sink, err);
	release(&s);
	lag_nsys_file_close(&file);
	return lag_failed(st) ? lag_err_wrap(err, "%s", in->path) : st;
}

const struct lag_importer lag_importer_nsys = {
	.name = "nsys",
	.clock = "time since the session's start, put on the wall clock by that start",
	.probe = lag_nsys_file_probe,
	.import = import_nsys,
};
