/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a synthetic Kineto trace, as PyTorch 2.4 writes them. Times are ns relative to the
 * file's base. */
#ifndef TESTS_TOOLS_MKK_EVENT_H
#define TESTS_TOOLS_MKK_EVENT_H

#include "tests/tools/mkk_out.h"

struct mkk_who {
	int rank, n_ranks, device, pid;
	int64_t base_ns;
	const char *host; /* NULL: the file does not tell */
};

void mkk_head(struct mkk_out *o, const struct mkk_who *w);
void mkk_tail(struct mkk_out *o, const struct mkk_who *w, int64_t end_ns);

void mkk_op(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t start_ns,
	    int64_t dur_ns, int64_t id, bool shapes);
void mkk_python(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t start_ns,
		int64_t dur_ns, int64_t id);
void mkk_annotation(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t number,
		    int64_t start_ns, int64_t dur_ns);
/* A runtime call with its flow to the GPU. */
void mkk_call(struct mkk_out *o, const struct mkk_who *w, const char *name, int cbid,
	      int64_t start_ns, int64_t dur_ns, int64_t id);
/* A kernel, its flow's other end; elements > 0: an all-reduce of all ranks. */
void mkk_kernel(struct mkk_out *o, const struct mkk_who *w, const char *name, int stream,
		int64_t start_ns, int64_t dur_ns, int64_t id, int64_t elements);

#endif
