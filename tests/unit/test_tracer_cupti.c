/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's records as the tracer reads them: sizes measured with NVIDIA's own iterator where that library
 * is on the machine, and what becomes of records that are odd. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/cupti_api.h"

/* An iterator over records that are all `stride` long, as an old CUPTI's kernels would be. */
static size_t stride;

static CUptiResult walk(uint8_t *buffer, size_t valid, CUpti_Activity **rec)
{
	uint8_t *next = *rec ? (uint8_t *)*rec + stride : buffer;

	if (next + stride > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*rec = (CUpti_Activity *)(void *)next;
	return CUPTI_SUCCESS;
}

static void the_real_iterator_gives_the_headers_sizes(void **state)
{
	static const struct {
		CUpti_ActivityKind kind;
		size_t size;
	} expected[] = {
		{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10) },
		{ CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6) },
		{ CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4) },
		{ CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4) },
		{ CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI) },
		{ CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
		  sizeof(CUpti_ActivityExternalCorrelation) },
		{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2) },
		{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent2) },
	};

	void *lib = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	void *p = lib ? dlsym(lib, "cuptiActivityGetNextRecord") : NULL;
	struct lag_cupti_api api = { 0 };

	(void)state;
	if (!p) {
		print_message("no real libcupti.so.13 here\n");
		skip();
	}
	memcpy(&api.get_next_record, &p, sizeof(p));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(lag_cupti_stride(&api, expected[i].kind), expected[i].size);
	assert_int_equal(lag_cupti_stride(&api, CUPTI_ACTIVITY_KIND_INVALID), 0);
}

struct lab {
	struct lag_cupti_api api;
	struct lag_cupti_parser parser;
	struct lag_trace_file file;
	struct lag_trace_producer *prod;
	char path[64];
};

static void open_lab(struct lab *lab, size_t bytes)
{
	struct lag_trace_header head = { .host = "host" };
	struct lag_err err = { 0 };

	memset(lab, 0, sizeof(*lab));
	stride = bytes;
	lab->api.get_next_record = walk;
	(void)snprintf(lab->path, sizeof(lab->path), "/tmp/lag-cupti-%ld.lag", (long)getpid());
	(void)unlink(lab->path);
	lab->prod = calloc(1, sizeof(*lab->prod));
	assert_non_null(lab->prod);
	if (lag_failed(lag_trace_file_create(&lab->file, lab->path, 0600, &head, &err)))
		fail_msg("%s", err.text);
	lag_trace_producer_init(lab->prod, &lab->file, 1);
	lag_cupti_parser_init(&lab->parser, &lab->api);
	lab->parser.prod = lab->prod;
}

/* The records of a kind, in order; returns how many. */
static size_t records(struct lab *lab, enum lag_record_kind kind, struct lag_record *out,
		      size_t max)
{
	const uint8_t *p = (const uint8_t *)(lab->prod->chunk + 1), *end = p + lab->prod->used;
	struct lag_codec codec;
	size_t used, n = 0;

	lag_codec_start(&codec, lab->prod->chunk->base_ns);
	for (; p < end; p += used) {
		struct lag_record rec;

		assert_int_equal(lag_record_decode(p, (size_t)(end - p), &used, &codec, &rec),
				 LAG_OK);
		if (rec.kind == kind && n < max)
			out[n++] = rec;
	}
	return n;
}

static void close_lab(struct lab *lab)
{
	lag_trace_producer_close(lab->prod);
	lag_trace_file_close(&lab->file);
	free(lab->prod);
	assert_int_equal(unlink(lab->path), 0);
}

static void put32(uint8_t *rec, size_t at, uint32_t v)
{
	memcpy(rec + at, &v, sizeof(v));
}

static void put64(uint8_t *rec, size_t at, uint64_t v)
{
	memcpy(rec + at, &v, sizeof(v));
}

static void put_kernel(uint8_t *rec, uint64_t start, uint64_t end, uint32_t correlation)
{
	put32(rec, 0, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	rec[6] = 32;
	put64(rec, 16, start);
	put64(rec, 24, end);
	put32(rec, 40, 1);
	put32(rec, 44, 2);
	put32(rec, 48, 13);
	put32(rec, 52, 108);
	put32(rec, 64, 256);
	put32(rec, 92, correlation);
	put64(rec, 104, (uint64_t)(uintptr_t) "kernel_name");
}

/* CUDA 11.0's kernels have 160 bytes: the shortest that is read. */
static void a_kernel_of_cuda_11_is_read(void **state)
{
	uint64_t space[160 / 8 * 2] = { 0 };
	uint8_t *buffer = (uint8_t *)space;
	struct lag_record got[4];
	struct lab lab;

	(void)state;
	open_lab(&lab, 160);
	assert_int_equal(lab.parser.stride[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], 160);
	put_kernel(buffer, 1000, 2500, 7);
	put_kernel(buffer + 160, 3000, 4000, 8);
	put64(buffer + 160, 144, 99);
	put32(buffer + 160, 156, 5);
	assert_true(lag_cupti_parse(&lab.parser, buffer, sizeof(space)));
	assert_int_equal(records(&lab, LAG_REC_kernel, got, 4), 2);
	assert_int_equal(got[0].kernel.start_ns, 1000);
	assert_int_equal(got[0].kernel.end_ns, 2500);
	assert_int_equal(got[0].kernel.device, 1);
	assert_int_equal(got[0].kernel.context, 2);
	assert_int_equal(got[0].kernel.stream, 13);
	assert_int_equal(got[0].kernel.correlation, 7);
	assert_int_equal(got[0].kernel.graph_id, LAG_NONE);
	assert_int_equal(got[1].kernel.graph_node_id, 99);
	assert_int_equal(got[1].kernel.graph_id, 5);
	assert_int_equal(got[0].kernel.name, got[1].kernel.name);
	assert_int_equal(records(&lab, LAG_REC_launch_config, got, 4), 1);
	assert_int_equal(got[0].launch_config.grid_x, 108);
	assert_int_equal(got[0].launch_config.registers, 32);
	close_lab(&lab);
}

static void a_record_that_is_too_short_is_refused(void **state)
{
	uint64_t space[152 / 8] = { 0 };
	struct lab lab;

	(void)state;
	open_lab(&lab, 152);
	put_kernel((uint8_t *)space, 1000, 2500, 7);
	assert_false(lag_cupti_parse(&lab.parser, (uint8_t *)space, sizeof(space)));
	assert_int_equal(lab.parser.n_bad, 1);
	assert_null(lab.prod->chunk);
	close_lab(&lab);
}

/* What a forced flush shows of a queue behind a hung kernel. */
static void running_and_waiting_kernels_are_told_apart(void **state)
{
	uint64_t space[216 / 8 * 2] = { 0 };
	uint8_t *buffer = (uint8_t *)space;
	uint64_t before = lag_cupti_parser_unstarted();
	struct lag_record got[4];
	struct lab lab;

	(void)state;
	open_lab(&lab, 216);
	put_kernel(buffer, 1000, 0, 21);
	put_kernel(buffer + 216, 0, 0, 22);
	assert_false(lag_cupti_parse(&lab.parser, buffer, sizeof(space)));
	assert_int_equal(records(&lab, LAG_REC_kernel, got, 4), 1);
	assert_int_equal(got[0].kernel.end_ns, LAG_NONE);
	assert_int_equal(lag_cupti_parser_unstarted(), before + 1);
	/* Later both have ended. */
	put_kernel(buffer, 1000, 5000, 21);
	put_kernel(buffer + 216, 5100, 6000, 22);
	assert_true(lag_cupti_parse(&lab.parser, buffer, sizeof(space)));
	assert_int_equal(records(&lab, LAG_REC_kernel, got, 4), 3);
	assert_int_equal(lag_cupti_parser_unstarted(), before);
	close_lab(&lab);
}

static void put_event(uint8_t *rec, uint32_t correlation, uint32_t event, uint64_t sync_id)
{
	put32(rec, 0, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
	put32(rec, 4, correlation);
	put32(rec, 8, 1);
	put32(rec, 12, 13);
	put32(rec, 16, event);
	put64(rec, 48, sync_id);
}

static void a_wait_finds_the_recording_before_it(void **state)
{
	uint8_t event[56] = { 0 }, wait[56] = { 0 };
	struct lag_record got[8];
	struct lab lab;

	(void)state;
	open_lab(&lab, 56);
	lag_cupti_see_call(lab.prod, 100, 5000, 5100);
	put_event(event, 100, 3, 0);
	lag_cupti_see_event(lab.prod, event, 56);
	/* The event's record may also come before its call's. */
	put_event(event, 110, 3, 77);
	lag_cupti_see_event(lab.prod, event, 56);
	assert_int_equal(records(&lab, LAG_REC_sync, got, 8), 1);
	lag_cupti_see_call(lab.prod, 110, 6000, 6100);
	assert_int_equal(records(&lab, LAG_REC_sync, got, 8), 2);
	assert_int_equal(got[1].sync.start_ns, 6000);
	assert_int_equal(got[1].sync.sync_id, 77);
	put32(wait, 0, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	put32(wait, 4, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
	put64(wait, 8, 5500);
	put64(wait, 16, 5600);
	put32(wait, 24, 105);
	put32(wait, 32, 14);
	put32(wait, 36, 3);
	lag_cupti_see_sync(lab.prod, wait, 56);
	assert_int_equal(records(&lab, LAG_REC_sync, got, 8), 3);
	assert_int_equal(got[2].sync.kind, LAG_SYNC_STREAM_WAIT);
	assert_int_equal(got[2].sync.record_correlation, 100);
	put32(wait, 24, 120);
	lag_cupti_see_sync(lab.prod, wait, 56);
	assert_int_equal(records(&lab, LAG_REC_sync, got, 8), 4);
	assert_int_equal(got[3].sync.record_correlation, 110);
	assert_int_equal(got[3].sync.sync_id, LAG_NONE);
	close_lab(&lab);
}

static void the_pool_gives_back_in_order_and_never_lies(void **state)
{
	static uint8_t *taken[4096];
	size_t n = 0, size, valid, extra_size;
	uint8_t *buffer, *extra;

	(void)state;
	assert_true(lag_cupti_pool_open());
	while ((buffer = lag_cupti_pool_take(&size))) {
		assert_true(n < 4096);
		taken[n++] = buffer;
		buffer[0] = 1;
		buffer[size - 1] = 1;
	}
	assert_true(n > 100);
	extra = lag_cupti_pool_grow(&extra_size);
	assert_non_null(extra);
	assert_int_equal(extra_size, size);
	assert_null(lag_cupti_pool_next(&valid));
	lag_cupti_pool_complete(taken[5], 50);
	lag_cupti_pool_complete(taken[3], 30);
	lag_cupti_pool_complete(extra, 99);
	assert_ptr_equal(lag_cupti_pool_next(&valid), taken[5]);
	assert_int_equal(valid, 50);
	assert_ptr_equal(lag_cupti_pool_next(&valid), taken[3]);
	assert_int_equal(valid, 30);
	assert_ptr_equal(lag_cupti_pool_next(&valid), extra);
	assert_int_equal(valid, 99);
	assert_null(lag_cupti_pool_next(&valid));
	lag_cupti_pool_give(extra);
	lag_cupti_pool_give(taken[3]);
	assert_ptr_equal(lag_cupti_pool_take(&size), taken[3]);
	assert_null(lag_cupti_pool_take(&size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_real_iterator_gives_the_headers_sizes),
		cmocka_unit_test(a_kernel_of_cuda_11_is_read),
		cmocka_unit_test(a_record_that_is_too_short_is_refused),
		cmocka_unit_test(running_and_waiting_kernels_are_told_apart),
		cmocka_unit_test(a_wait_finds_the_recording_before_it),
		cmocka_unit_test(the_pool_gives_back_in_order_and_never_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
