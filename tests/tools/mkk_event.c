/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of event, with the arguments and white space that PyTorch gives it. */
#include "tests/tools/mkk_event.h"

static void begin(struct mkk_out *o, const char *cat, const char *name)
{
	MKK_PUT(o, "  {\n    \"ph\": \"X\", \"cat\": \"");
	mkk_text(o, cat);
	MKK_PUT(o, "\", \"name\": \"");
	mkk_text(o, name);
}

static void place(struct mkk_out *o, int64_t pid, int64_t tid, int64_t start_ns, int64_t dur_ns)
{
	MKK_PUT(o, "\", \"pid\": ");
	mkk_int(o, pid);
	MKK_PUT(o, ", \"tid\": ");
	mkk_int(o, tid);
	MKK_PUT(o, ",\n    \"ts\": ");
	mkk_us(o, start_ns);
	MKK_PUT(o, ", \"dur\": ");
	mkk_us(o, dur_ns);
	MKK_PUT(o, ",\n    \"args\": {\n      ");
}

static void finish(struct mkk_out *o)
{
	MKK_PUT(o, "\n    }\n  },\n");
}

static void flow(struct mkk_out *o, bool start, int64_t id, int64_t pid, int64_t tid, int64_t at_ns)
{
	MKK_PUT(o, "  {\n    \"ph\": \"");
	mkk_text(o, start ? "s" : "f");
	MKK_PUT(o, "\", \"id\": ");
	mkk_int(o, id);
	MKK_PUT(o, ", \"pid\": ");
	mkk_int(o, pid);
	MKK_PUT(o, ", \"tid\": ");
	mkk_int(o, tid);
	MKK_PUT(o, ", \"ts\": ");
	mkk_us(o, at_ns);
	MKK_PUT(o, ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"");
	if (!start)
		MKK_PUT(o, ", \"bp\": \"e\"");
	MKK_PUT(o, "\n  },\n");
}

void mkk_head(struct mkk_out *o, const struct mkk_who *w)
{
	MKK_PUT(o, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": ");
	mkk_int(o, w->device);
	MKK_PUT(o, ", \"name\": \"NVIDIA H100\", \"totalGlobalMem\": 85899345920,\n"
		   "      \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132\n    }\n  ],\n"
		   "  \"cuda_runtime_version\": 12010,\n  \"cuda_driver_version\": 12020,\n");
	if (w->host) {
		MKK_PUT(o, "  \"host_name\": \"");
		mkk_text(o, w->host);
		MKK_PUT(o, "\",\n");
	}
	MKK_PUT(o, "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": ");
	mkk_int(o, w->rank);
	MKK_PUT(o, ", \"world_size\": ");
	mkk_int(o, w->n_ranks);
	MKK_PUT(o, ", \"nccl_version\": \"2.20.5\"},\n  \"traceEvents\": [\n");
}

void mkk_tail(struct mkk_out *o, const struct mkk_who *w, int64_t end_ns)
{
	MKK_PUT(o, "  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": ");
	mkk_int(o, w->pid);
	MKK_PUT(o, ", \"tid\": 0,\n    \"args\": {\n      \"name\": \"python\"\n    }\n  },\n"
		   "  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n"
		   "    \"pid\": \"\", \"tid\": \"\", \"ts\": ");
	mkk_us(o, end_ns);
	MKK_PUT(o, "\n  }\n  ],\n  \"traceName\": \"synthetic\",\n  \"displayTimeUnit\": \"ms\",\n"
		   "  \"baseTimeNanoseconds\": ");
	mkk_int(o, w->base_ns);
	MKK_PUT(o, "\n}\n");
}

void mkk_op(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t start_ns,
	    int64_t dur_ns, int64_t id, bool shapes)
{
	begin(o, "cpu_op", name);
	place(o, w->pid, w->pid, start_ns, dur_ns);
	MKK_PUT(o, "\"External id\": ");
	mkk_int(o, id);
	MKK_PUT(o, ",\"Record function id\": 0");
	if (shapes) {
		MKK_PUT(o, ", \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": [\"float\", "
			   "\"float\", \"float\"], \"Input Strides\": [[1024, 1], [1, 1024], "
			   "[1]], \"Input Dims\": [[4096, 1024], [1024, 4096], [4096]]");
	}
	MKK_PUT(o, ", \"Ev Idx\": ");
	mkk_int(o, id);
	finish(o);
}

void mkk_python(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t start_ns,
		int64_t dur_ns, int64_t id)
{
	begin(o, "python_function", name);
	place(o, w->pid, w->pid, start_ns, dur_ns);
	MKK_PUT(o, "\"Python parent id\": ");
	mkk_int(o, id - 1);
	MKK_PUT(o, ", \"Python id\": ");
	mkk_int(o, id);
	MKK_PUT(o, ", \"Ev Idx\": ");
	mkk_int(o, id);
	finish(o);
}

void mkk_annotation(struct mkk_out *o, const struct mkk_who *w, const char *name, int64_t number,
		    int64_t start_ns, int64_t dur_ns)
{
	begin(o, "user_annotation", name);
	mkk_int(o, number);
	place(o, w->pid, w->pid, start_ns, dur_ns);
	MKK_PUT(o, "\"External id\": ");
	mkk_int(o, number);
	MKK_PUT(o, ",\"Record function id\": 0, \"Ev Idx\": ");
	mkk_int(o, number);
	finish(o);
}

void mkk_call(struct mkk_out *o, const struct mkk_who *w, const char *name, int cbid,
	      int64_t start_ns, int64_t dur_ns, int64_t id)
{
	begin(o, "cuda_runtime", name);
	place(o, w->pid, w->pid, start_ns, dur_ns);
	MKK_PUT(o, "\"External id\": ");
	mkk_int(o, id);
	MKK_PUT(o, ",\"cbid\": ");
	mkk_int(o, cbid);
	MKK_PUT(o, ", \"correlation\": ");
	mkk_int(o, id);
	finish(o);
	flow(o, true, id, w->pid, w->pid, start_ns);
}

static void put_collective(struct mkk_out *o, const struct mkk_who *w, int64_t elements)
{
	MKK_PUT(o, ",\n      \"Collective name\": \"allreduce\", \"In msg nelems\": ");
	mkk_int(o, elements);
	MKK_PUT(o, ", \"Out msg nelems\": ");
	mkk_int(o, elements);
	MKK_PUT(o, ", \"Group size\": ");
	mkk_int(o, w->n_ranks);
	MKK_PUT(o,
		", \"dtype\": \"BFloat16\", \"In split size\": \"[]\", \"Out split size\": \"[]\","
		" \"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\","
		" \"Process Group Ranks\": \"[");
	for (int i = 0; i < w->n_ranks; i++) {
		if (i)
			MKK_PUT(o, ", ");
		mkk_int(o, i);
	}
	MKK_PUT(o, "]\"");
}

void mkk_kernel(struct mkk_out *o, const struct mkk_who *w, const char *name, int stream,
		int64_t start_ns, int64_t dur_ns, int64_t id, int64_t elements)
{
	begin(o, "kernel", name);
	place(o, w->device, stream, start_ns, dur_ns);
	MKK_PUT(o, "\"External id\": ");
	mkk_int(o, id);
	MKK_PUT(o, ",\"queued\": 0, \"device\": ");
	mkk_int(o, w->device);
	MKK_PUT(o, ", \"context\": 1,\n      \"stream\": ");
	mkk_int(o, stream);
	MKK_PUT(o, ", \"correlation\": ");
	mkk_int(o, id);
	MKK_PUT(o, ",\n      \"registers per thread\": 168,\n      \"shared memory\": 49152,\n"
		   "      \"blocks per SM\": 3.878788,\n      \"warps per SM\": 31.030304,\n"
		   "      \"grid\": [");
	mkk_int(o, 64 + id % 7 * 32);
	MKK_PUT(o, ", 8, 1],\n      \"block\": [256, 1, 1],\n"
		   "      \"est. achieved occupancy %\": 25");
	if (elements)
		put_collective(o, w, elements);
	finish(o);
	flow(o, false, id, w->device, stream, start_ns);
}
