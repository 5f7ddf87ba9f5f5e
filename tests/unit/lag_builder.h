/* SPDX-License-Identifier: Apache-2.0 */
/* Makes small .lag files of one process for tests, record by record. */
#ifndef TESTS_UNIT_LAG_BUILDER_H
#define TESTS_UNIT_LAG_BUILDER_H

#include <stdint.h>

#include "schema/trace/trace_writer.h"

struct lag_builder {
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	char path[512];
	int64_t next_correlation;
};

/* A directory of its own for the test; remove_dir takes it away with everything in it. */
void lb_make_dir(char *path, size_t room);
void lb_remove_dir(const char *path);

/* The same as cmocka's setup and teardown of one test; lb_dir is the folder of the test that runs. */
int lb_setup(void **state);
int lb_teardown(void **state);
const char *lb_dir(void);

struct lb_who {
	int rank, world; /* rank -1: says none */
	const char *host;
};

#define LB_WHO(rank, world, host) ((struct lb_who){ (rank), (world), (host) })

/* Begins DIR/<name>.lag; the process started at start_ns. */
void lb_open(struct lag_builder *lb, const char *dir, const char *name, struct lb_who who,
	     int64_t start_ns);
void lb_close(struct lag_builder *lb);

int64_t lb_text(struct lag_builder *lb, const char *text);
void lb_add(struct lag_builder *lb, const struct lag_record *rec);

/* A launch call and the kernel it launches; returns their correlation. */
int64_t lb_kernel(struct lag_builder *lb, int64_t call_ns, int64_t start_ns, int64_t end_ns,
		  int64_t stream, const char *name);

/* A communicator as this process sees it, equal hash = the same one. */
void lb_comm(struct lag_builder *lb, int64_t comm_id, int64_t hash, int64_t n_ranks,
	     int64_t comm_rank);

struct lb_call {
	int64_t op_id, comm_id;
	enum lag_func func;
	int64_t seq, peer;
};

#define LB_CALL(op_id, comm_id, func, seq, peer) \
	((struct lb_call){ (op_id), (comm_id), (func), (seq), (peer) })

/* An operation of 1024 floats and its kernel, tied by external id. */
void lb_op(struct lag_builder *lb, struct lb_call call, int64_t start_ns, int64_t end_ns);

/* The whole file; freed by the caller. */
uint8_t *lb_read(const char *path, size_t *n);

#endif
