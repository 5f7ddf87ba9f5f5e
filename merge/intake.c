/* SPDX-License-Identifier: Apache-2.0 */
/* Reads every file the user named into parts. What is wrong with one file is a row and a finding;
 * only the machine's refusals (memory) end the merge. */
#include <stdlib.h>
#include <string.h>

#include "merge/source.h"
#include "merge/state.h"

struct intake {
	struct lag_part_sink sink;
	struct lag_source_visitor visitor;
	struct lag_merge *m;
	const struct lag_run_file *file;
	struct lag_input *inner; /* of the input being read */
	uint64_t done, total;    /* bytes of files */
	uint32_t source;         /* row of the input being read */
};

static struct lag_source_row *add_source(struct lag_merge *m, const char *path)
{
	struct lag_source_row *row = lag_vec_push(&m->sources);

	if (!row)
		return NULL;
	row->format = "unknown";
	row->path = strdup(path);
	if (row->path)
		return row;
	m->sources.n--;
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
	lag_merge_find(in->m, whole_run ? 1 : 0, state == LAG_SOURCE_EMPTY ? "empty" : "refused",
		       LAG_ABOUT(LAG_NONE, LAG_NONE, 1), "%s: %s", row->path, row->note);
}

static void note_source(struct intake *in, struct lag_source_row *row, const char *note)
{
	if (!row->note[0])
		set_note(row, note);
	lag_merge_find(in->m, 0, "source", LAG_ABOUT(LAG_NONE, LAG_NONE, 1), "%s: %s", row->path,
		       note);
}

/* Takes what an importer made of an input. */
static enum lag_status take(struct lag_part_sink *sink, struct lag_part *part, struct lag_err *err)
{
	struct intake *in = sink->state;
	struct lag_proc *p = lag_vec_push(&in->m->procs);
	struct lag_source_row *row =
		&LAG_VEC_AT(&in->m->sources, struct lag_source_row, in->source);

	if (!p) {
		lag_part_release(part);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another process");
	}
	*p = (struct lag_proc){ .part = *part,
				.source = in->source,
				.rank = LAG_NONE,
				.first_ns = LAG_NONE,
				.last_ns = LAG_NONE,
				.gpu = LAG_VEC_INIT(struct lag_gpu),
				.gpu_shapes = LAG_VEC_INIT(struct lag_gpu_shape),
				.launches = LAG_VEC_INIT(struct lag_launch),
				.op_links = LAG_VEC_INIT(struct lag_op_link),
				.range_links = LAG_VEC_INIT(struct lag_range_link),
				.devices = LAG_VEC_INIT(struct lag_device_row) };
	row->n_records += part->n_records;
	row->n_bad += part->n_bad;
	for (size_t i = 0; i < part->notes.n; i++) {
		const char *note = (const char *)part->notes.items + i * LAG_ERR_TEXT_MAX;

		note_source(in, row, note);
	}
	memset(part, 0, sizeof(*part));
	return LAG_OK;
}

/* Packed text unpacks to about this many times its size: good enough for a forecast. */
#define UNPACKED_RATIO 12

/* Passes reads on, and tells how far they are. */
static long read_watched(struct lag_input *outer, void *buf, size_t room, struct lag_err *err)
{
	struct intake *in = outer->state;
	long n = in->inner->read(in->inner, buf, room, err);
	uint64_t at = in->inner->offset;

	outer->offset = at;
	if (in->inner->size_hint != in->file->size)
		at /= UNPACKED_RATIO;
	if (at > in->file->size)
		at = in->file->size;
	if (lag_merge_step(in->m, LAG_MERGE_READ, in->done + at, in->total, err) != LAG_OK)
		return -1;
	return n;
}

static const struct lag_importer *importer_of(const uint8_t *head, size_t n)
{
	for (size_t i = 0; lag_importers[i]; i++) {
		if (lag_importers[i]->probe(head, n))
			return lag_importers[i];
	}
	return NULL;
}

static enum lag_status visit(struct lag_source_visitor *visitor, struct lag_input *input,
			     const uint8_t *head, size_t n_head, struct lag_err *err)
{
	struct intake *in = visitor->state;
	struct lag_source_row *row = add_source(in->m, input->path);
	struct lag_import_opts opts = { .cpu_ops = in->m->opts->cpu_ops };
	const struct lag_importer *importer;
	struct lag_input outer;
	struct lag_err why = { 0 };
	enum lag_status st;

	if (!row)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another input");
	in->source = (uint32_t)(in->m->sources.n - 1);
	if (n_head == 0) {
		refuse(in, row, LAG_SOURCE_EMPTY, "the file is empty");
		return LAG_OK;
	}
	importer = importer_of(head, n_head);
	if (!importer) {
		refuse(in, row, LAG_SOURCE_REFUSED, "not a trace that laggard can read");
		return LAG_OK;
	}
	row->format = importer->name;
	in->inner = input;
	outer = *input;
	outer.read = read_watched;
	outer.state = in;
	st = importer->import(&outer, &in->m->pool, &opts, &in->sink, &why);
	row = &LAG_VEC_AT(&in->m->sources, struct lag_source_row, in->source);
	if (st == LAG_ERR_SYSTEM)
		return lag_err_set(err, st, "%s", why.text);
	if (lag_failed(st)) {
		refuse(in, row, LAG_SOURCE_REFUSED, why.text);
	} else if (input->damage) {
		st = LAG_WARN;
		note_source(in, row, input->damage);
	}
	if (st == LAG_WARN)
		row->state = LAG_SOURCE_DAMAGED;
	if (st == LAG_WARN) {
		lag_merge_find(in->m, 1, "damaged",
			       LAG_ABOUT(LAG_NONE, LAG_NONE, row->n_bad ? row->n_bad : 1),
			       "%s: damaged; what is whole was used", row->path);
	}
	return LAG_OK;
}

/* A file that cannot be opened, or a container that breaks off. */
static enum lag_status note_broken(struct intake *in, const struct lag_err *why,
				   struct lag_err *err)
{
	struct lag_source_row *row = add_source(in->m, in->file->path);

	if (!row)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for another input");
	refuse(in, row, LAG_SOURCE_REFUSED, why->text);
	return LAG_OK;
}

enum lag_status lag_merge_intake(struct lag_merge *m, struct lag_err *err)
{
	struct intake in = { .m = m };
	struct lag_vec files = { 0 };
	enum lag_status st;

	in.sink = (struct lag_part_sink){ take, &in };
	in.visitor = (struct lag_source_visitor){ visit, &in };
	st = lag_run_files(m->opts->inputs, m->opts->n_inputs, &files, err);
	for (size_t i = 0; i < files.n; i++)
		in.total += LAG_VEC_AT(&files, struct lag_run_file, i).size;
	for (size_t i = 0; i < files.n && st == LAG_OK; i++) {
		size_t n_procs = m->procs.n, n_sources = m->sources.n;
		struct lag_err why = { 0 };

		in.file = &LAG_VEC_AT(&files, struct lag_run_file, i);
		st = lag_merge_step(m, LAG_MERGE_READ, in.done, in.total, err);
		if (st == LAG_OK)
			st = lag_source_each(in.file->path, &in.visitor, &why);
		if (lag_failed(st) && why.status == st &&
		    (st != LAG_ERR_SYSTEM ||
		     (m->procs.n == n_procs && m->sources.n == n_sources))) {
			st = note_broken(&in, &why, err);
		} else if (lag_failed(st) && why.status == st) {
			*err = why;
		}
		in.done += in.file->size;
	}
	lag_run_files_release(&files);
	return st;
}
