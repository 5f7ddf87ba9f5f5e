/* SPDX-License-Identifier: Apache-2.0 */
/* Small .lag files through the real writer. Anything that fails ends the test program. */
#include "tests/unit/lag_builder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "lag builder: %s\n", what);
	abort();
}

void lb_make_dir(char *path, size_t room)
{
	(void)snprintf(path, room, "/tmp/laggard-test-XXXXXX");
	need(mkdtemp(path) != NULL, "mkdtemp");
}

void lb_remove_dir(const char *path)
{
	DIR *dir = opendir(path);

	for (const struct dirent *e; dir && (e = readdir(dir));) {
		char full[1024];

		(void)snprintf(full, sizeof(full), "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.')
			(void)unlink(full);
	}
	if (dir)
		(void)closedir(dir);
	(void)rmdir(path);
}

static char test_dir[64];

int lb_setup(void **state)
{
	(void)state;
	lb_make_dir(test_dir, sizeof(test_dir));
	return 0;
}

int lb_teardown(void **state)
{
	(void)state;
	lb_remove_dir(test_dir);
	return 0;
}

const char *lb_dir(void)
{
	return test_dir;
}

void lb_open(struct lag_builder *lb, const char *dir, const char *name, struct lb_who who,
	     int64_t start_ns)
{
	struct lag_trace_header head = { .pid = (uint64_t)(1000 + who.rank), .start_ns = start_ns };
	struct lag_record rec;
	struct lag_err err = { 0 };

	memset(lb, 0, sizeof(*lb));
	lb->next_correlation = 1;
	(void)snprintf(head.host, sizeof(head.host), "%s", who.host);
	(void)snprintf(lb->path, sizeof(lb->path), "%s/%s.lag", dir, name);
	need(lag_trace_file_create(&lb->file, lb->path, 0600, &head, &err) == LAG_OK, err.text);
	lb->prod = calloc(1, sizeof(*lb->prod));
	need(lb->prod != NULL, "no memory");
	lag_trace_producer_init(lb->prod, &lb->file, 7);
	lag_record_init(&rec, LAG_REC_process);
	rec.process.start_ns = start_ns;
	rec.process.pid = 1000 + who.rank;
	rec.process.host = lb_text(lb, who.host);
	if (who.rank >= 0) {
		rec.process.rank = who.rank;
		rec.process.world_size = who.world;
	}
	lb_add(lb, &rec);
}

void lb_close(struct lag_builder *lb)
{
	lag_trace_producer_close(lb->prod);
	atomic_store(&lb->file.counters->clean_exit, 1);
	lag_trace_file_close(&lb->file);
	free(lb->prod);
}

int64_t lb_text(struct lag_builder *lb, const char *text)
{
	return lag_trace_string(lb->prod, text, strlen(text));
}

void lb_add(struct lag_builder *lb, const struct lag_record *rec)
{
	need(lag_trace_append(lb->prod, rec), "append");
}

int64_t lb_kernel(struct lag_builder *lb, int64_t call_ns, int64_t start_ns, int64_t end_ns,
		  int64_t stream, const char *name)
{
	struct lag_record rec;
	int64_t correlation = lb->next_correlation++;

	lag_record_init(&rec, LAG_REC_api);
	rec.api.start_ns = call_ns;
	rec.api.end_ns = call_ns + 100;
	rec.api.tid = 7;
	rec.api.domain = LAG_API_RUNTIME;
	rec.api.correlation = correlation;
	rec.api.name = lb_text(lb, "cudaLaunchKernel");
	rec.api.result = 0;
	lb_add(lb, &rec);
	lag_record_init(&rec, LAG_REC_kernel);
	rec.kernel.start_ns = start_ns;
	rec.kernel.end_ns = end_ns;
	rec.kernel.device = 0;
	rec.kernel.context = 1;
	rec.kernel.stream = stream;
	rec.kernel.correlation = correlation;
	rec.kernel.name = lb_text(lb, name);
	lb_add(lb, &rec);
	return correlation;
}

void lb_comm(struct lag_builder *lb, int64_t comm_id, int64_t hash, int64_t n_ranks,
	     int64_t comm_rank)
{
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.created_ns = 1000000000;
	rec.comm.comm_id = comm_id;
	rec.comm.hash = hash;
	rec.comm.n_ranks = n_ranks;
	rec.comm.comm_rank = comm_rank;
	lb_add(lb, &rec);
}

void lb_op(struct lag_builder *lb, struct lb_call call, int64_t start_ns, int64_t end_ns)
{
	struct lag_record rec;
	int64_t correlation;

	lag_record_init(&rec, LAG_REC_op);
	rec.op.enter_ns = start_ns - 2000;
	rec.op.leave_ns = start_ns - 1000;
	rec.op.tid = 7;
	rec.op.op_id = call.op_id;
	rec.op.comm_id = call.comm_id;
	rec.op.func = call.func;
	rec.op.seq = call.seq;
	rec.op.count = 1024;
	rec.op.datatype = LAG_DT_FLOAT32;
	rec.op.peer = call.peer;
	rec.op.stream = 20;
	rec.op.sources = LAG_OP_FROM_CALL;
	rec.op.result = 0;
	lb_add(lb, &rec);
	correlation = lb_kernel(lb, start_ns - 1500, start_ns, end_ns, 20, "ncclDevKernel_Generic");
	lag_record_init(&rec, LAG_REC_external);
	rec.external.kind = 5;
	rec.external.id = call.op_id;
	rec.external.correlation = correlation;
	lb_add(lb, &rec);
}

uint8_t *lb_read(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;

	need(file != NULL, path);
	(void)fseek(file, 0, SEEK_END);
	*n = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*n ? *n : 1);
	need(bytes && fread(bytes, 1, *n, file) == *n, "read");
	(void)fclose(file);
	return bytes;
}
