/* SPDX-License-Identifier: Apache-2.0 */
/* Reads every file the user named into parts, several files at a time. What is wrong with one file is a
 * row and a finding; only the machine's refusals (memory) end the merge. Each file has a string table of
 * its own, so that nothing is shared while reading; the tables become one afterwards, in the files'
 * order. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/source.h"
#include "merge/state.h"

#define NOTES_MAX 1000 /* of one source */

/* What one file gives; by one thread. */
struct intake {
	struct lag_part_sink sink;
	struct lag_source_visitor visitor;
	struct lag_merge *m;
	const struct lag_run_file *file;
	struct lag_pool pool;
	struct lag_vec sources; /* struct lag_source_row */
	struct lag_vec
		procs; /* struct lag_proc, whose sources are counted from this file's first */
	struct lag_vec findings; /* struct lag_finding_row */
	struct lag_input *inner; /* of the input being read */
	uint64_t told;           /* bytes of the file that progress has counted */
	uint32_t source;         /* row of the input being read */
};

static void find(struct intake *in, int severity, const char *kind, uint64_t count, const char *fmt,
		 ...) __attribute__((format(printf, 5, 6)));

static void find(struct intake *in, int severity, const char *kind, uint64_t count, const char *fmt,
		 ...)
{
	va_list ap;

	va_start(ap, fmt);
	lag_findings_add(&in->findings, severity, kind, LAG_ABOUT(LAG_NONE, LAG_NONE, count), fmt,
			 ap);
	va_end(ap);
}

static struct lag_source_row *add_source(struct intake *in, const char *path)
{
	struct lag_source_row *row = lag_vec_push(&in->sources);

	if (!row)
		return NULL;
	row->format = "unknown";
	row->notes = (struct lag_vec){ .item_size = LAG_ERR_TEXT_MAX, .max = NOTES_MAX };
	row->path = strdup(path);
	if (row->path)
		return row;
	in->sources.n--;
	return NULL;
}

static void set_note(struct lag_source_row *row, const char *note)
{
	/* The path stands in a column of its own. */
	size_t n = strlen(row->path);

	if (strncmp(note, row->path, n) == 0 && strncmp(note + n, ": ", 2) == 0)
		note += n + 2;
	(void)strncpy(row->note, note, sizeof(row->note) - 1);
}

static void refuse(struct intake *in, struct lag_source_row *row, enum lag_source_state state,
		   const char *why)
{
	bool whole_run = in->file->named || strstr(row->path, ".lag");

	row->state = state;
	set_note(row, why);
	find(in, whole_run ? 1 : 0, state == LAG_SOURCE_EMPTY ? "empty" : "refused", 1, "%s: %s",
	     row->path, row->note);
}

/* `of` is the source, or the one process of several in it that the note is about. */
static void note_source(struct intake *in, struct lag_source_row *row, const char *of,
			const char *note)
{
	char *slot = lag_vec_push(&row->notes);

	if (slot)
		(void)snprintf(slot, LAG_ERR_TEXT_MAX, "%s", note);
	if (!row->note[0])
		set_note(row, note);
	find(in, 0, "source", 1, "%s: %s", of, note);
}

/* What is no number of ranks must neither tell runs apart nor be believed later. */
static void check_world(struct intake *in, struct lag_part *part)
{
	struct lag_rec_process *p = &part->process;

	if (lag_part_may_be_of(p->rank, p->world_size))
		return;
	if (p->world_size > LAG_RANKS_MAX) {
		find(in, 1, "rank", 1, "%s: a job of %" PRId64 " ranks cannot be: not believed",
		     part->path, p->world_size);
	} else {
		find(in, 1, "rank", 1,
		     "%s: rank %" PRId64 " of %" PRId64 " cannot be: the number of ranks is not "
		     "believed",
		     part->path, p->rank, p->world_size);
	}
	p->world_size = LAG_NONE;
}

/* Takes what an importer made of an input. */
static enum lag_status take(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	struct intake *in = sink->state;
	struct lag_proc *p = lag_vec_push(&in->procs);
	struct lag_source_row *row = &LAG_VEC_AT(&in->sources, struct lag_source_row, in->source);
	struct lag_spill *spill = in->m->spill;

	if (!p) {
		lag_part_release(part);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another process");
	}
	*p = (struct lag_proc){ .part = *part,
				.source = in->source,
				.rank = LAG_NONE,
				.first_ns = LAG_NONE,
				.last_ns = LAG_NONE,
				.gpu = LAG_VEC_SPILLED(struct lag_gpu, spill),
				.gpu_shapes = LAG_VEC_SPILLED(struct lag_gpu_shape, spill),
				.launches = LAG_VEC_SPILLED(struct lag_launch, spill),
				.op_links = LAG_VEC_SPILLED(struct lag_op_link, spill),
				.range_links = LAG_VEC_SPILLED(struct lag_range_link, spill),
				.devices = LAG_VEC_INIT(struct lag_device_row),
				.quarantine = LAG_VEC_SPILLED(struct lag_quarantine_row, spill),
				.findings = LAG_VEC_INIT(struct lag_finding_row) };
	check_world(in, &p->part);
	lag_source_count(row, part);
	for (size_t i = 0; i < part->notes.n; i++) {
		const char *note = (const char *)part->notes.items + i * LAG_ERR_TEXT_MAX;

		note_source(in, row, p->part.path, note);
	}
	memset(part, 0, sizeof(*part));
	return LAG_OK;
}

/* Packed text unpacks to about this many times its size: good enough for a forecast. */
#define UNPACKED_RATIO 12

static enum lag_status tell(struct intake *in, uint64_t at, struct lag_err *err)
{
	uint64_t more;

	at = at < in->file->size ? at : in->file->size;
	more = at > in->told ? at - in->told : 0;
	in->told += more;
	return lag_merge_advance(in->m, more, err);
}

static bool watch(struct lag_input *outer, uint64_t offset)
{
	struct intake *in = outer->state;

	outer->offset = offset;
	if (in->inner->size_hint != in->file->size)
		offset /= UNPACKED_RATIO;
	return tell(in, offset, NULL) == LAG_OK;
}

/* Passes reads on, and tells how far they are. */
static long read_watched(struct lag_input *outer, void *buf, size_t room, struct lag_err *err)
{
	struct intake *in = outer->state;
	long n = in->inner->read(in->inner, buf, room, err);

	if (!watch(outer, in->inner->offset)) {
		(void)lag_merge_interrupted(err);
		return -1;
	}
	return n;
}

static const struct lag_importer *importer_of(const struct lag_merge *m, const uint8_t *head,
					      size_t n)
{
	if (m->opts->from)
		return lag_importer_find(m->opts->from);
	for (size_t i = 0; lag_importers[i]; i++) {
		if (lag_importers[i]->probe(head, n))
			return lag_importers[i];
	}
	return NULL;
}

/* What to do with a file whose name says what its bytes do not. */
static const char *hint_of(const char *path)
{
	static const char *const endings[] = { ".nsys-rep", ".qdrep" };
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t k = strlen(endings[i]);

		if (n > k && strcasecmp(path + n - k, endings[i]) == 0) {
			return "; of a report of Nsight Systems `nsys export --type sqlite` makes "
			       "what laggard reads";
		}
	}
	return "";
}

static enum lag_status visit(struct lag_source_visitor *visitor, struct lag_input *input,
			     const uint8_t *head, size_t n_head, struct lag_err *err)
{
	struct intake *in = visitor->state;
	struct lag_source_row *row = add_source(in, input->path);
	struct lag_import_opts opts = { .cpu_ops = in->m->opts->cpu_ops };
	const struct lag_importer *importer;
	struct lag_input outer;
	struct lag_err why = { 0 };
	enum lag_status st;

	if (!row)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another input");
	in->source = (uint32_t)(in->sources.n - 1);
	if (n_head == 0) {
		(void)lag_err_set(&why, LAG_ERR_INPUT, "the file is empty%s", hint_of(input->path));
		refuse(in, row, LAG_SOURCE_EMPTY, why.text);
		return LAG_OK;
	}
	importer = importer_of(in->m, head, n_head);
	if (!importer) {
		(void)lag_err_set(&why, LAG_ERR_INPUT, "not a trace that laggard can read%s",
				  hint_of(input->path));
		refuse(in, row, LAG_SOURCE_REFUSED, why.text);
		return LAG_OK;
	}
	row->format = importer->name;
	in->inner = input;
	outer = *input;
	outer.read = read_watched;
	outer.watch = watch;
	outer.state = in;
	st = importer->import(&outer, &in->pool, &opts, &in->sink, &why);
	row = &LAG_VEC_AT(&in->sources, struct lag_source_row, in->source);
	if (atomic_load(&in->m->cancelled))
		return lag_merge_interrupted(err);
	if (st == LAG_ERR_SYSTEM)
		return lag_err_set(err, st, "%s", why.text);
	if (lag_failed(st)) {
		refuse(in, row, LAG_SOURCE_REFUSED, why.text);
	} else if (input->damage) {
		st = LAG_WARN;
		note_source(in, row, row->path, input->damage);
	}
	if (st == LAG_WARN)
		row->state = LAG_SOURCE_DAMAGED;
	if (st == LAG_WARN) {
		find(in, 1, "damaged", row->n_bad ? row->n_bad : 1,
		     "%s: damaged; what is whole was used", row->path);
	}
	return LAG_OK;
}

/* A file that cannot be opened, or a container that breaks off. */
static enum lag_status note_broken(struct intake *in, const struct lag_err *why,
				   struct lag_err *err)
{
	struct lag_source_row *row = add_source(in, in->file->path);

	if (!row)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another input");
	refuse(in, row, LAG_SOURCE_REFUSED, why->text);
	return LAG_OK;
}

static enum lag_status read_file(void *state, size_t i, struct lag_err *err)
{
	struct intake *in = (struct intake *)state + i;
	struct lag_err why = { 0 };
	enum lag_status st;

	in->sink = (struct lag_part_sink){ take, in };
	in->visitor = (struct lag_source_visitor){ visit, in };
	if (lag_failed(lag_pool_init(&in->pool)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	in->pool.spill = in->m->spill;
	st = lag_source_each(in->file->path, &in->visitor, &why);
	if (lag_failed(st) && why.status == st && !atomic_load(&in->m->cancelled) &&
	    (st != LAG_ERR_SYSTEM || (!in->procs.n && !in->sources.n))) {
		st = note_broken(in, &why, err);
	} else if (lag_failed(st) && why.status == st) {
		*err = why;
	}
	return st == LAG_OK ? tell(in, in->file->size, err) : st;
}

/* ---- many become one, in the files' order ---- */

static enum lag_status adopt_pool(struct lag_merge *m, struct lag_pool *pool)
{
	struct lag_pool_ids *ids = lag_vec_push(&m->pool_ids);
	size_t n_strings = lag_strtab_count(&pool->strings);

	if (!ids)
		return LAG_ERR_SYSTEM;
	/* Into an empty one it goes as it is. */
	if (m->pool_ids.n == 1 && !m->old.is) {
		lag_pool_release(&m->pool);
		m->pool = *pool;
		*pool = (struct lag_pool){ 0 };
		return LAG_OK;
	}
	ids->n_strings = n_strings;
	ids->n_configs = pool->configs.n;
	ids->strings = lag_calloc(n_strings, sizeof(*ids->strings));
	ids->configs = lag_calloc(pool->configs.n, sizeof(*ids->configs));
	if (!ids->strings || !ids->configs)
		return LAG_ERR_SYSTEM;
	for (uint32_t i = 0; i < n_strings; i++) {
		const struct lag_strtab_entry *e =
			&LAG_VEC_AT(&pool->strings.entries, struct lag_strtab_entry, i);

		ids->strings[i] = lag_strtab_add(&m->pool.strings, e->text, e->n);
		if (ids->strings[i] == LAG_STR_NONE)
			return LAG_ERR_SYSTEM;
	}
	for (size_t i = 0; i < pool->configs.n; i++) {
		int64_t id = lag_pool_config(
			&m->pool, &LAG_VEC_AT(&pool->configs, struct lag_rec_launch_config, i));

		if (id == LAG_NONE)
			return LAG_ERR_SYSTEM;
		ids->configs[i] = (uint32_t)id;
	}
	lag_pool_release(pool);
	return LAG_OK;
}

static enum lag_status adopt(struct lag_merge *m, struct intake *in)
{
	uint32_t first_source = (uint32_t)m->sources.n;

	if (lag_failed(lag_vec_reserve(&m->sources, in->sources.n)) ||
	    lag_failed(lag_vec_reserve(&m->procs, in->procs.n)) ||
	    lag_failed(adopt_pool(m, &in->pool)))
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < in->sources.n; i++) {
		struct lag_source_row *row = lag_vec_push(&m->sources);

		if (row)
			*row = LAG_VEC_AT(&in->sources, struct lag_source_row, i);
	}
	for (size_t i = 0; i < in->procs.n; i++) {
		struct lag_proc *p = lag_vec_push(&m->procs);

		if (!p)
			return LAG_ERR_SYSTEM;
		*p = LAG_VEC_AT(&in->procs, struct lag_proc, i);
		p->source += first_source;
		p->pool_ref = (uint32_t)m->pool_ids.n;
	}
	for (size_t i = 0; i < in->findings.n; i++) {
		struct lag_finding_row *row = lag_vec_push(&m->findings);

		if (row)
			*row = LAG_VEC_AT(&in->findings, struct lag_finding_row, i);
	}
	in->sources.n = in->procs.n = 0;
	return LAG_OK;
}

static void release(struct intake *in)
{
	for (size_t i = 0; i < in->sources.n; i++)
		lag_source_release(&LAG_VEC_AT(&in->sources, struct lag_source_row, i));
	for (size_t i = 0; i < in->procs.n; i++)
		lag_proc_release(&LAG_VEC_AT(&in->procs, struct lag_proc, i));
	lag_vec_release(&in->sources);
	lag_vec_release(&in->procs);
	lag_vec_release(&in->findings);
	lag_pool_release(&in->pool);
}

static enum lag_status read_files(struct lag_merge *m, const struct lag_vec *files,
				  struct lag_err *err)
{
	struct intake *all = lag_calloc(files->n, sizeof(*all));
	enum lag_status st;
	uint64_t total = 0;

	if (!all)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu files", files->n);
	for (size_t i = 0; i < files->n; i++) {
		all[i] = (struct intake){ .m = m,
					  .file = &LAG_VEC_AT(files, struct lag_run_file, i),
					  .sources = LAG_VEC_INIT(struct lag_source_row),
					  .procs = LAG_VEC_INIT(struct lag_proc),
					  .findings = LAG_VEC_INIT(struct lag_finding_row) };
		total += all[i].file->size;
	}
	lag_merge_phase(m, LAG_MERGE_READ, total);
	st = lag_merge_tasks(m, files->n, read_file, all, err);
	for (size_t i = 0; i < files->n && st == LAG_OK; i++) {
		st = adopt(m, &all[i]);
		if (st != LAG_OK)
			(void)lag_err_set(err, st, "no memory to join %zu files", files->n);
	}
	for (size_t i = 0; i < files->n; i++)
		release(&all[i]);
	free(all);
	return st;
}

enum lag_status lag_merge_intake(struct lag_merge *m, struct lag_err *err)
{
	struct lag_vec files = { 0 };
	enum lag_status st = lag_run_files(m->opts->inputs, m->opts->n_inputs, &files, err);

	if (st == LAG_OK)
		st = read_files(m, &files, err);
	lag_run_files_release(&files);
	return st;
}

void lag_merge_rename_ids(struct lag_merge *m, struct lag_proc *p)
{
	const struct lag_pool_ids *ids;

	if (!p->pool_ref)
		return;
	ids = &LAG_VEC_AT(&m->pool_ids, struct lag_pool_ids, p->pool_ref - 1);
	p->pool_ref = 0;
	if (ids->strings) {
		lag_part_rename_ids(&p->part,
				    &(struct lag_part_ids){ ids->strings, ids->configs,
							    ids->n_strings, ids->n_configs });
	}
}
