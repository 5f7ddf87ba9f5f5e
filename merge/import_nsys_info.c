/* SPDX-License-Identifier: Apache-2.0 */
/* What an Nsight Systems report tells about itself: when and where it was made, by what, of what; which
 * devices and threads its processes had; what was lost. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"
#include "merge/nsys.h"

#define VALUE_N      256
#define WALL_LEAST   INT64_C(1000000000000000000) /* 2001 */
#define WALL_MOST    INT64_C(4000000000000000000)
#define NO_WALL      INT64_C(86400000000000) /* 1970-01-02: times before the start stay in range */
#define LOSSES_NOTED 16

/* ---- metadata: name and value ---- */

static enum lag_status add_meta(struct lag_nsys *s, const char *key, const char *value, size_t n,
				struct lag_err *err)
{
	/* Kept until there is a part to put it in. */
	lag_buf_puts(&s->meta, key);
	lag_buf_putc(&s->meta, '=');
	for (size_t i = 0; i < n && i < VALUE_N; i++)
		lag_buf_putc(&s->meta, (unsigned char)value[i] < ' ' ? ' ' : value[i]);
	lag_buf_putc(&s->meta, '\n');
	return s->meta.failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory") : LAG_OK;
}

static bool is(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(text, word, n) == 0;
}

static enum lag_status take_export(struct lag_nsys *s, struct lag_foreign_rows *r,
				   struct lag_err *err)
{
	size_t n, m;
	const char *name = lag_foreign_text(r, 0, &n), *value = lag_foreign_text(r, 1, &m);

	if (!name || !value)
		return LAG_OK;
	if (is(name, n, "EXPORT_PRODUCT_VERSION"))
		return add_meta(s, "nsys", value, m, err);
	if (is(name, n, "EXPORT_SCHEMA_VERSION"))
		return add_meta(s, "nsys_schema", value, m, err);
	/* `nsys export --ts-normalize=true` has added the session's start already. */
	if (is(name, n, "EXPORT_PARAM_TIME_NORMALIZE"))
		s->normalized = is(value, m, "true");
	if (is(name, n, "EXPORT_PARAM_TIME_SHIFT") && !is(value, m, "0") && m)
		lag_nsys_note(s, "exported with all times shifted by %.40s ns", value);
	return LAG_OK;
}

static enum lag_status take_env(struct lag_nsys *s, struct lag_foreign_rows *r, struct lag_err *err)
{
	size_t n, m;
	const char *name = lag_foreign_text(r, 0, &n), *value = lag_foreign_text(r, 1, &m);
	enum lag_status st = LAG_OK;
	int64_t id = 0;

	if (!name || !value || !m)
		return LAG_OK;
	if (is(name, n, "NvDriverVersion"))
		return add_meta(s, "driver", value, m, err);
	if (is(name, n, "CudaDriverVersion"))
		return add_meta(s, "cuda", value, m, err);
	if (is(name, n, "Hostname") && !s->host) {
		st = lag_nsys_string(s, value, m < VALUE_N ? m : VALUE_N, &id, err);
		s->host = (uint32_t)id;
	}
	return st;
}

static enum lag_status take_session(struct lag_nsys *s, struct lag_foreign_rows *r,
				    struct lag_err *err)
{
	int64_t utc = lag_foreign_int(r, 0);

	(void)err;
	if (!s->has_wall && utc >= WALL_LEAST && utc <= WALL_MOST) {
		s->base_ns = utc;
		s->has_wall = true;
	}
	return LAG_OK;
}

static enum lag_status take_process(struct lag_nsys *s, struct lag_foreign_rows *r,
				    struct lag_err *err)
{
	int64_t global = lag_foreign_int(r, 0), id = 0;
	enum lag_status st;
	size_t n;
	const char *name = lag_foreign_text(r, 1, &n);

	if (global == LAG_NONE || !name || !n)
		return LAG_OK;
	st = lag_nsys_string(s, name, n < VALUE_N ? n : VALUE_N, &id, err);
	if (!lag_failed(st) &&
	    lag_failed(lag_map_set(&s->process_names, LAG_NSYS_KEY(global), (uint64_t)id)))
		st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
	return st;
}

/* ---- the environment nsys was started in ---- */

struct variable {
	const char *rank, *world;
};

static const struct variable launchers[] = {
#define LAG_LAUNCHER(rank, world, local, local_world, node, restart) { rank, world },
#include "schema/launchers.def"
};

#define N_LAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

/* The number of NAME="12"; LAG_NONE when that is not what stands there. */
static int64_t number_of(const char *text, size_t n, const char *name)
{
	size_t at = strlen(name), digits = 0;
	int64_t v = 0;

	if (n <= at + 1 || memcmp(text, name, at) != 0 || text[at] != '=')
		return LAG_NONE;
	at += text[at + 1] == '"' ? 2 : 1;
	for (; at < n && text[at] >= '0' && text[at] <= '9' && digits < 8; at++, digits++)
		v = v * 10 + (text[at] - '0');
	return digits && (at == n || text[at] == '"') ? v : LAG_NONE;
}

static enum lag_status take_capture(struct lag_nsys *s, struct lag_foreign_rows *r,
				    struct lag_err *err)
{
	static const char variable[] = ":ENVIRONMENT_VARIABLE";
	size_t n, m;
	const char *name = lag_foreign_text(r, 0, &n), *value = lag_foreign_text(r, 1, &m);

	(void)err;
	if (!name || !value || n < sizeof(variable) - 1 ||
	    memcmp(name + n - (sizeof(variable) - 1), variable, sizeof(variable) - 1) != 0)
		return LAG_OK;
	for (size_t i = 0; i < N_LAUNCHERS; i++) {
		int64_t rank = number_of(value, m, launchers[i].rank);
		int64_t world =
			launchers[i].world ? number_of(value, m, launchers[i].world) : LAG_NONE;

		if (rank != LAG_NONE)
			s->told_rank[i] = rank + 1;
		if (world != LAG_NONE)
			s->told_world[i] = world;
	}
	return LAG_OK;
}

_Static_assert(N_LAUNCHERS <= LAG_NSYS_LAUNCHERS_MAX, "there is room for every launcher");

static enum lag_status choose_rank(struct lag_nsys *s, struct lag_err *err)
{
	static const char file_name[] = "file name";
	const char *source = NULL;
	enum lag_status st;
	int64_t id = 0;

	for (size_t i = 0; i < N_LAUNCHERS && !source; i++) {
		if (!s->told_rank[i])
			continue;
		s->rank = s->told_rank[i] - 1;
		s->world_size = s->told_world[i] > 0 ? s->told_world[i] : LAG_NONE;
		source = launchers[i].rank;
	}
	if (!source) {
		s->rank = lag_kineto_rank_of_path(s->in->path);
		source = file_name;
	}
	if (s->rank == LAG_NONE)
		return LAG_OK;
	st = lag_nsys_string(s, source, strlen(source), &id, err);
	s->rank_source = (uint32_t)id;
	return st;
}

enum lag_status lag_nsys_read_info(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const named[] = { "name", "value" };
	static const char *const session[] = { "utcEpochNs" };
	static const char *const process[] = { "globalPid", "name" };
	enum lag_status st = LAG_NSYS_EACH(s, "META_DATA_EXPORT", named, take_export, err);

	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "META_DATA_CAPTURE", named, take_capture, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "TARGET_INFO_SYSTEM_ENV", named, take_env, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "TARGET_INFO_SESSION_START_TIME", session, take_session, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "PROCESSES", process, take_process, err);
	if (s->normalized) {
		s->base_ns = 0;
	} else if (!s->has_wall) {
		s->base_ns = NO_WALL;
		lag_nsys_note(s, "no wall-clock time of the session: its times count from "
				 "1970-01-02");
	}
	return lag_failed(st) ? st : choose_rank(s, err);
}

/* ---- devices and threads ---- */

static enum lag_status take_gpu(struct lag_nsys *s, struct lag_foreign_rows *r, struct lag_err *err)
{
	struct lag_nsys_gpu *gpu = lag_vec_push(&s->gpus);
	enum lag_status st;
	const char *text;
	size_t n;

	if (!gpu)
		return LAG_END; /* as many as anybody has */
	*gpu = (struct lag_nsys_gpu){ .id = lag_foreign_int(r, 0),
				      .cuda = lag_foreign_int(r, 1),
				      .memory_bytes = lag_foreign_int(r, 3),
				      .sm_count = lag_foreign_int(r, 4),
				      .cc_major = lag_foreign_int(r, 6),
				      .cc_minor = lag_foreign_int(r, 7) };
	text = lag_foreign_text(r, 2, &n);
	st = lag_nsys_string(s, text, n, &gpu->name, err);
	text = lag_foreign_text(r, 5, &n);
	return lag_failed(st) ? st : lag_nsys_string(s, text, n, &gpu->uuid, err);
}

static enum lag_status take_cuda_device(struct lag_nsys *s, struct lag_foreign_rows *r,
					struct lag_err *err)
{
	struct lag_nsys_cuda *d = lag_vec_push(&s->cuda);

	(void)err;
	if (!d)
		return LAG_END;
	*d = (struct lag_nsys_cuda){ lag_foreign_int(r, 0), lag_foreign_int(r, 1),
				     lag_foreign_int(r, 2) };
	return LAG_OK;
}

/* The GPU that a process calls `device`. CUDA_VISIBLE_DEVICES gives each process numbers of its own;
 * older reports know but one numbering. */
static const struct lag_nsys_gpu *gpu_of(const struct lag_nsys *s, const struct lag_nsys_proc *p,
					 int64_t device)
{
	const struct lag_nsys_gpu *by_id = NULL, *by_cuda = NULL;
	int64_t id = LAG_NONE;

	for (size_t i = 0; i < s->cuda.n; i++) {
		const struct lag_nsys_cuda *d = &LAG_VEC_AT(&s->cuda, struct lag_nsys_cuda, i);

		if (d->cuda == device && d->pid == LAG_NSYS_PID(p->key))
			id = d->gpu;
	}
	for (size_t i = 0; i < s->gpus.n; i++) {
		const struct lag_nsys_gpu *gpu = &LAG_VEC_AT(&s->gpus, struct lag_nsys_gpu, i);

		if (gpu->id == (id != LAG_NONE ? id : device))
			by_id = gpu;
		if (gpu->cuda == device)
			by_cuda = gpu;
	}
	return id == LAG_NONE && by_cuda ? by_cuda : by_id;
}

static enum lag_status add_devices(struct lag_nsys *s, struct lag_nsys_proc *p, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < p->devices.n && !lag_failed(st); i++) {
		int64_t device = LAG_VEC_AT(&p->devices, int64_t, i);
		const struct lag_nsys_gpu *gpu = gpu_of(s, p, device);
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_device);
		rec.device.device = device;
		if (!i || (gpu && gpu->id < p->gpu))
			p->gpu = gpu ? gpu->id : device;
		if (gpu) {
			rec.device.name = gpu->name;
			rec.device.uuid = gpu->uuid;
			rec.device.cc_major = gpu->cc_major;
			rec.device.cc_minor = gpu->cc_minor;
			rec.device.sm_count = gpu->sm_count;
			rec.device.memory_bytes = gpu->memory_bytes;
		}
		st = lag_part_add(&p->part, &rec, err);
	}
	return st;
}

static enum lag_status take_thread(struct lag_nsys *s, struct lag_foreign_rows *r,
				   struct lag_err *err)
{
	int64_t global = lag_foreign_int(r, 0);
	struct lag_record rec;
	enum lag_status st;
	uint64_t at;
	size_t name;

	/* Only threads of processes that have events. */
	if (global == LAG_NONE || !lag_map_find(&s->proc_of, LAG_NSYS_KEY(global), &at))
		return LAG_OK;
	st = lag_nsys_name(s, lag_foreign_int(r, 1), &name, err);
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = LAG_NSYS_TID(global);
	if (lag_failed(st) || !name)
		return st;
	rec.thread.name = lag_nsys_name_at(s, name)->id;
	return lag_part_add(&LAG_VEC_AT(&s->procs, struct lag_nsys_proc, at).part, &rec, err);
}

/* "key=value" lines to records. */
static enum lag_status add_metas(struct lag_nsys *s, struct lag_part *part, struct lag_err *err)
{
	const char *at = lag_buf_text(&s->meta);
	enum lag_status st = LAG_OK;

	while (*at && !lag_failed(st)) {
		const char *value = strchr(at, '=') + 1, *end = strchr(value, '\n');
		struct lag_record rec;

		lag_record_init(&rec, LAG_REC_meta);
		st = lag_nsys_string(s, at, (size_t)(value - 1 - at), &rec.meta.key, err);
		if (!lag_failed(st)) {
			st = lag_nsys_string(s, value, (size_t)(end - value), &rec.meta.value, err);
		}
		if (!lag_failed(st))
			st = lag_part_add(part, &rec, err);
		at = end + 1;
	}
	return st;
}

/* A report is of one machine; processes of one without a name are known to share its clock. */
static enum lag_status name_host(struct lag_nsys *s, struct lag_err *err)
{
	const char *slash = strrchr(s->in->path, '/');
	const char *base = slash ? slash + 1 : s->in->path;
	enum lag_status st;
	int64_t id = 0;

	if (s->host || s->procs.n < 2)
		return LAG_OK;
	st = lag_nsys_string(s, base, strlen(base), &id, err);
	s->host = (uint32_t)id;
	return st;
}

enum lag_status lag_nsys_read_devices(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const gpu[] = { "id",      "cuDevice", "name",         "totalMemory",
					   "smCount", "uuid",     "computeMajor", "computeMinor" };
	static const char *const cuda[] = { "gpuId", "cudaId", "pid" };
	static const char *const thread[] = { "globalTid", "nameId" };
	enum lag_status st = LAG_NSYS_EACH(s, "TARGET_INFO_GPU", gpu, take_gpu, err);

	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "TARGET_INFO_CUDA_DEVICE", cuda, take_cuda_device, err);
	if (!lag_failed(st))
		st = LAG_NSYS_EACH(s, "ThreadNames", thread, take_thread, err);
	if (!lag_failed(st))
		st = name_host(s, err);
	for (size_t i = 0; i < s->procs.n && !lag_failed(st); i++) {
		struct lag_nsys_proc *p = &LAG_VEC_AT(&s->procs, struct lag_nsys_proc, i);

		st = add_devices(s, p, err);
		if (!lag_failed(st))
			st = add_metas(s, &p->part, err);
	}
	return st;
}

/* ---- losses ---- */

static bool any_at(const char *at, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

/* How many events a text says were lost: "...: N", "dropped N" or "N events". 0: it does not say; other
 * numbers in it are versions and the like. */
static int64_t count_in(const char *text)
{
	static const char *const before[] = { ": ", "dropped ", "lost " };
	static const char *const units[] = { " event", " record" };
	bool told = false;

	for (const char *at = text; *at;) {
		const char *from = at;
		int64_t v = 0;

		while (*at >= '0' && *at <= '9' && at - from < 15)
			v = v * 10 + (*at++ - '0');
		if (v > 0 && (told || any_at(at, units, 2)))
			return v;
		told = false;
		for (size_t i = 0; i < 3 && at == from && !told; i++) {
			told = any_at(at, &before[i], 1);
			at += told ? strlen(before[i]) : 0;
		}
		at += at == from;
	}
	return 0;
}

static bool says_loss(const char *text)
{
	static const char *const words[] = { "dropped", " lost", "Not all", "not all", "overflow" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(text, words[i]))
			return true;
	}
	return false;
}

static enum lag_status take_diagnostic(struct lag_nsys *s, struct lag_foreign_rows *r,
				       struct lag_err *err)
{
	enum {
		TIMESTAMP,
		TEXT,
		GLOBAL_PID,
		SEVERITY
	};

	int64_t severity = lag_foreign_int(r, SEVERITY), global = lag_foreign_int(r, GLOBAL_PID);
	struct lag_record rec;
	uint64_t at = 0;
	size_t n;
	const char *text = lag_foreign_text(r, TEXT, &n);

	if (!text || !s->procs.n)
		return LAG_OK;
	if (severity == 3 && s->n_errors_noted++ < LOSSES_NOTED)
		lag_nsys_note(s, "error while it was recorded: %.300s", text);
	/* "Number of events dropped: 0" is good news. */
	if (!says_loss(text) || strstr(text, ": 0") || severity < 2 || severity > 3)
		return LAG_OK;
	if (severity != 3 && s->n_errors_noted++ < LOSSES_NOTED)
		lag_nsys_note(s, "said while it was recorded: %.300s", text);
	if (global == LAG_NONE || !lag_map_find(&s->proc_of, LAG_NSYS_KEY(global), &at))
		at = 0;
	lag_record_init(&rec, LAG_REC_loss);
	rec.loss.from_ns = rec.loss.until_ns = lag_nsys_time(s, lag_foreign_int(r, TIMESTAMP));
	rec.loss.kind = 0;
	rec.loss.reason = LAG_LOSS_CUPTI_DROPPED;
	rec.loss.count = count_in(text);
	if (!rec.loss.count) {
		rec.loss.count = 1;
		if (s->n_errors_noted++ < LOSSES_NOTED)
			lag_nsys_note(s, "how many were lost then is not said: counted as one");
	}
	return lag_part_add(&LAG_VEC_AT(&s->procs, struct lag_nsys_proc, at).part, &rec, err);
}

enum lag_status lag_nsys_read_losses(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const columns[] = { "timestamp", "text", "globalPid", "severity" };

	return LAG_NSYS_EACH(s, "DIAGNOSTIC_EVENT", columns, take_diagnostic, err);
}
