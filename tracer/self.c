/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, metadata and receipt records. On the starting thread first, then on the writer's. */
#include "tracer/self.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/argv.h"
#include "tracer/clock.h"

#define ARGV_MAX 4096

static size_t read_file(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	while (fd >= 0 && n < room && (got = read(fd, out + n, room - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	return n;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void parse_boot_id(const char *text, uint8_t out[16])
{
	unsigned n = 0;

	for (; *text && n < 32; text++) {
		if (hex(*text) < 0)
			continue;
		out[n / 2] = (uint8_t)(out[n / 2] << 4 | hex(*text));
		n++;
	}
}

void lag_self_read(struct lag_self *self)
{
	struct stat st;
	size_t n;

	memset(self, 0, sizeof(*self));
	n = read_file("/proc/sys/kernel/random/boot_id", self->boot_id, sizeof(self->boot_id) - 1);
	while (n && (self->boot_id[n - 1] == '\n' || self->boot_id[n - 1] == 0))
		self->boot_id[--n] = 0;
	parse_boot_id(self->boot_id, self->head.boot_id);
	if (gethostname(self->head.host, sizeof(self->head.host) - 1) || !self->head.host[0])
		memcpy(self->head.host, "unknown", sizeof("unknown"));
	self->head.pid = (uint64_t)getpid();
	self->head.pid_namespace = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
	self->head.start_ns = lag_clock_now();
	lag_rank_read(&self->rank);
}

static int64_t text(struct lag_trace_producer *prod, const char *s)
{
	return lag_trace_string(prod, s, strlen(s));
}

void lag_self_write(const struct lag_self *self, struct lag_trace_producer *prod)
{
	const struct lag_config *cfg = lag_config_get();
	char args[ARGV_MAX], line[ARGV_MAX];
	size_t n = read_file("/proc/self/cmdline", args, sizeof(args));
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_process);
	rec.process.start_ns = self->head.start_ns;
	rec.process.pid = (int64_t)self->head.pid;
	rec.process.rank = self->rank.rank;
	rec.process.world_size = self->rank.world_size;
	rec.process.local_rank = self->rank.local_rank;
	rec.process.local_world_size = self->rank.local_world_size;
	rec.process.node_rank = self->rank.node_rank;
	rec.process.restart = self->rank.restart;
	if (self->head.pid_namespace)
		rec.process.pid_namespace = (int64_t)self->head.pid_namespace;
	rec.process.host = text(prod, self->head.host);
	rec.process.boot_id = text(prod, self->boot_id);
	rec.process.run_id = text(prod, cfg->run_id);
	rec.process.argv =
		lag_trace_string(prod, line, lag_argv_clean(line, sizeof(line), args, n));
	rec.process.rank_source = text(prod, self->rank.source);
	(void)lag_trace_append(prod, &rec);
	lag_self_meta(prod, "tracer", LAG_VERSION);
	if (cfg->conflict[0])
		lag_self_meta(prod, "conflict", cfg->conflict);
	if (!cfg->cupti)
		lag_self_gap(prod, self->head.start_ns, "CUPTI", "switched off");
	if (!cfg->nvtx)
		lag_self_gap(prod, self->head.start_ns, "NVTX", "switched off");
	if (!cfg->nccl)
		lag_self_gap(prod, self->head.start_ns, "NCCL", "switched off");
}

void lag_self_meta(struct lag_trace_producer *prod, const char *key, const char *value)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_meta);
	rec.meta.key = text(prod, key);
	rec.meta.value = text(prod, value);
	(void)lag_trace_append(prod, &rec);
}

void lag_self_gap(struct lag_trace_producer *prod, int64_t from_ns, const char *what,
		  const char *reason)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_gap);
	rec.gap.from_ns = from_ns;
	rec.gap.what = text(prod, what);
	rec.gap.reason = text(prod, reason);
	(void)lag_trace_append(prod, &rec);
}

static uint64_t load(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static void write_losses(struct lag_trace_producer *prod, int64_t now)
{
	static uint64_t seen[LAG_LOSS_LIMIT];
	static int64_t since;

	for (size_t i = 1; i < LAG_LOSS_LIMIT; i++) {
		uint64_t n = load(&prod->file->counters->lost_reason[i]);
		struct lag_record rec;

		if (n == seen[i])
			continue;
		lag_record_init(&rec, LAG_REC_loss);
		rec.loss.from_ns = since ? since : now;
		rec.loss.until_ns = now;
		rec.loss.kind = 0;
		rec.loss.reason = (int64_t)i;
		rec.loss.count = (int64_t)(n - seen[i]);
		if (lag_trace_append(prod, &rec))
			seen[i] = n;
	}
	since = now;
}

void lag_self_receipt(struct lag_trace_producer *prod, int64_t thread_ns, bool clean)
{
	struct lag_trace_counters *c = prod->file->counters;
	int64_t now = lag_clock_now(), hook_ns = lag_sink_hook_ns();
	struct lag_record rec;

	atomic_store_explicit(&c->hook_ns, (uint64_t)hook_ns, memory_order_relaxed);
	atomic_store_explicit(&c->thread_ns, (uint64_t)thread_ns, memory_order_relaxed);
	/* A full file keeps what room is left for the last receipt; the counters page tells the rest. */
	if (!clean && atomic_load_explicit(&prod->file->full, memory_order_relaxed))
		return;
	write_losses(prod, now);
	lag_record_init(&rec, LAG_REC_receipt);
	rec.receipt.at_ns = now;
	rec.receipt.hook_ns = hook_ns;
	rec.receipt.thread_ns = thread_ns;
	rec.receipt.bytes = (int64_t)LAG_CHUNKS_AT +
			    (int64_t)LAG_CHUNK_BYTES * atomic_load_explicit(&prod->file->n_chunks,
									    memory_order_relaxed);
	rec.receipt.records = (int64_t)prod->n_records + 1;
	rec.receipt.lost = 0;
	for (size_t i = 0; i < LAG_REC_LIMIT; i++) {
		rec.receipt.records += (int64_t)load(&c->written[i]);
		rec.receipt.lost += (int64_t)load(&c->lost[i]);
	}
	rec.receipt.clean_exit = clean;
	(void)lag_trace_append(prod, &rec);
}
