/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing and looking up a merged trace. Rows are read in the order they lie in the file and
 * arranged afterwards, which is faster than asking SQLite to sort. */
#include "viz/model/trace.h"

#include <stdlib.h>
#include <string.h>

#include "viz/model/interval.h"
#include "viz/model/trace_build.h"
#include "viz/model/trace_load.h"

enum lag_status lag_load_no_memory(struct lag_load *load)
{
	return lag_err_set(load->err, LAG_ERR_SYSTEM, "no memory for the trace");
}

enum lag_status lag_load_rows(struct lag_load *load, const char *sql, lag_load_row *row,
			      size_t size, void *array, size_t *n)
{
	struct lag_vec vec = { .item_size = size };
	struct lag_stmt *stmt;
	enum lag_status status;

	status = lag_stmt_prepare(load->trace->db, sql, NULL, &stmt, load->err);
	if (status != LAG_OK)
		return status;
	while ((status = lag_stmt_step(stmt, load->err)) == LAG_OK) {
		void *item = lag_vec_push(&vec);

		load->n_rows = vec.n - 1;
		status = item ? row(load, stmt, item) : lag_load_no_memory(load);
		if (lag_failed(status))
			break;
		if (status == LAG_END)
			vec.n--;
	}
	lag_stmt_free(stmt);
	/* Also after a failure: what was read belongs to the trace, which is then closed. */
	memcpy(array, &vec.items, sizeof(vec.items));
	*n = vec.n;
	return status == LAG_END ? LAG_OK : status;
}

const char *lag_load_text(struct lag_load *load, const struct lag_stmt *row, int column)
{
	const char *text = lag_stmt_text(row, column);
	uint32_t id = lag_strtab_add(load->texts, text, strlen(text));

	return lag_strtab_get(load->texts, id);
}

uint32_t lag_load_string(const struct lag_load *load, int64_t id)
{
	int32_t at = lag_ids_find(&load->strings, id);

	return at < 0 ? 0 : (uint32_t)at;
}

int lag_load_rank(struct lag_load *load, int64_t rank)
{
	if (load->rank != rank) {
		load->rank_at = lag_trace_find_rank(load->trace, rank);
		load->rank = rank;
	}
	if (load->rank_at < 0)
		load->n_skipped++;
	return load->rank_at;
}

bool lag_load_times(struct lag_load *load, int64_t start_ns, int64_t end_ns)
{
	if (start_ns > -LAG_TIME_MAX_NS && start_ns < LAG_TIME_MAX_NS &&
	    (end_ns == LAG_NONE || (end_ns >= start_ns && end_ns < LAG_TIME_MAX_NS)))
		return true;
	load->n_skipped++;
	return false;
}

static void release_load(struct lag_load *load)
{
	lag_ids_release(&load->strings);
	lag_ids_release(&load->hosts);
	lag_ids_release(&load->comms);
	lag_ids_release(&load->configs);
	lag_ids_release(&load->apis);
	lag_ids_release(&load->launches);
	lag_ids_release(&load->instances);
	lag_ids_release(&load->names);
	free(load->kernel_names);
}

/* A trace whose rows were skipped must say so. */
static enum lag_status note_skipped(struct lag_load *load)
{
	struct lag_trace *t = load->trace;
	struct lag_finding *more;

	if (!load->n_skipped)
		return LAG_OK;
	more = realloc(t->findings, (t->n_findings + 1) * sizeof(*more));
	if (!more)
		return LAG_ERR_SYSTEM;
	t->findings = more;
	more[t->n_findings++] = (struct lag_finding){
		.severity = 1,
		.rank = LAG_NONE,
		.count = load->n_skipped,
		.kind = "unusable_row",
		.text = "rows of the trace name ranks or times that cannot be; they are left out",
	};
	return LAG_OK;
}

static enum lag_status make_strings(struct lag_trace *t)
{
	const struct lag_strtab *tab = t->memory;

	t->n_strings = lag_strtab_count(tab);
	t->strings = lag_calloc(t->n_strings, sizeof(*t->strings));
	if (!t->strings)
		return LAG_ERR_SYSTEM;
	for (size_t i = 0; i < t->n_strings; i++)
		t->strings[i] = lag_strtab_get(tab, (uint32_t)i);
	return LAG_OK;
}

static enum lag_status load_all(struct lag_trace *t, bool events, struct lag_err *err)
{
	struct lag_load load = {
		.trace = t, .texts = t->memory, .err = err, .rank = LAG_NONE, .rank_at = -1
	};
	enum lag_status status;

	status = lag_load_job(&load);
	if (!lag_failed(status) && events)
		status = lag_load_comm(&load);
	if (!lag_failed(status) && events)
		status = lag_load_events(&load);
	if (!lag_failed(status))
		status = lag_load_facts(&load);
	if (!lag_failed(status))
		status = lag_trace_arrange(t, err);
	if (!lag_failed(status) && (lag_failed(note_skipped(&load)) || lag_failed(make_strings(t))))
		status = lag_load_no_memory(&load);
	release_load(&load);
	return status;
}

static enum lag_status open_trace(const char *path, bool events, struct lag_trace **out,
				  struct lag_err *err)
{
	struct lag_trace *t = lag_calloc(1, sizeof(*t));
	struct lag_strtab *texts = lag_calloc(1, sizeof(*texts));
	enum lag_status status;

	*out = NULL;
	if (!t || !texts || lag_failed(lag_strtab_init(texts))) {
		free(texts);
		free(t);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	}
	t->memory = texts;
	t->world_size = LAG_NONE;
	t->path = strdup(path);
	status = lag_db_open(path, &t->db, err);
	if (!lag_failed(status)) {
		status = load_all(t, events, err);
		if (lag_failed(status))
			(void)lag_err_wrap(err, "%s", path);
	}
	if (lag_failed(status)) {
		lag_trace_close(t);
		return status;
	}
	*out = t;
	return LAG_OK;
}

enum lag_status lag_trace_open(const char *path, struct lag_trace **out, struct lag_err *err)
{
	return open_trace(path, true, out, err);
}

enum lag_status lag_trace_open_facts(const char *path, struct lag_trace **out, struct lag_err *err)
{
	return open_trace(path, false, out, err);
}

void lag_trace_close(struct lag_trace *t)
{
	if (!t)
		return;
	lag_db_close(t->db);
	free(t->path);
	free(t->ranks);
	free(t->hosts);
	free(t->gpu);
	free(t->lanes);
	free(t->ranges);
	free(t->api);
	free(t->syncs);
	free(t->launches);
	free(t->ops);
	free(t->instances);
	free(t->instance_ops);
	free(t->comms);
	free(t->members);
	free(t->configs);
	free(t->clock);
	free(t->findings);
	free(t->losses);
	free(t->sources);
	free(t->gaps);
	free(t->quarantine);
	free(t->unrecorded);
	free(t->strings);
	if (t->memory)
		lag_strtab_release(t->memory);
	free(t->memory);
	free(t);
}

size_t lag_trace_n_recorded(const struct lag_trace *trace)
{
	size_t n = 0;

	for (size_t r = 0; r < trace->n_ranks; r++)
		n += trace->ranks[r].recorded;
	return n;
}

int64_t lag_trace_clock_error(const struct lag_trace *trace)
{
	int64_t worst = 0;

	for (size_t r = 0; r < trace->n_ranks; r++) {
		if (trace->ranks[r].recorded && trace->ranks[r].uncertainty_ns > worst)
			worst = trace->ranks[r].uncertainty_ns;
	}
	return worst == INT64_MAX || lag_trace_n_recorded(trace) < 2 ? LAG_NONE : worst;
}

int32_t lag_trace_find_peer(const struct lag_trace *trace, uint32_t comm, int32_t peer)
{
	const struct lag_comm *c = &trace->comms[comm];

	for (uint32_t m = 0; m < c->n_members; m++) {
		const struct lag_member *member = &trace->members[c->first_member + m];

		if (member->comm_rank == peer && member->r >= 0)
			return member->r;
	}
	return -1;
}

int lag_trace_find_rank(const struct lag_trace *trace, int64_t rank)
{
	size_t lo = 0, hi = trace->n_ranks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (trace->ranks[mid].rank < rank) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo < trace->n_ranks && trace->ranks[lo].rank == rank ? (int)lo : -1;
}

size_t lag_trace_find_gpu(const struct lag_trace *trace, size_t r, int64_t ns)
{
	size_t lo = trace->ranks[r].gpu_begin, hi = trace->ranks[r].gpu_end;
	size_t begin = lo, first;

	/* Ends are not sorted: find the first start after ns, then look back for what still ran. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (trace->gpu[mid].start_ns <= ns) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	first = lo;
	for (size_t back = 0; lo > begin && back < LAG_FIND_GPU_BACK; back++) {
		lo--;
		if (trace->gpu[lo].end_ns == LAG_NONE || trace->gpu[lo].end_ns > ns)
			first = lo;
	}
	return first;
}
