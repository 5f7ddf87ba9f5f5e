/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: order on streams, events, the legacy stream, copies, durations, host-side faults. */
#include "tests/simgpu/sim_test.h"

static const char *const quiet[] = { NO_NOISE, "SIMGPU_LAUNCH_US=4", NULL };

static float elapsed(cudaEvent_t a, cudaEvent_t b)
{
	float ms = -1.0F;

	NEED(cudaEventElapsedTime(&ms, a, b) == cudaSuccess);
	return ms;
}

static cudaEvent_t event(void)
{
	cudaEvent_t e;

	NEED(cudaEventCreate(&e) == cudaSuccess);
	return e;
}

/* Holds the stream back while a test enqueues, so that a busy machine cannot come between. */
static void gate(cudaStream_t stream)
{
	test_launch(test_kernel("beta"), 100000000, stream);
}

static void body_durations(void)
{
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	cudaEvent_t a = event(), b = event();

	gate(s);
	NEED(cudaEventRecord(a, s) == cudaSuccess);
	for (int i = 0; i < 10; i++) {
		test_launch(k, 1000000, s);
	}
	NEED(cudaEventRecord(b, s) == cudaSuccess);
	NEED(cudaEventQuery(b) == cudaErrorNotReady);
	NEED(cudaStreamQuery(s) == cudaErrorNotReady);
	NEED(cudaEventSynchronize(b) == cudaSuccess);
	/* Ten kernels of 1 ms, the launch latency, and the gaps between them. */
	NEED(elapsed(a, b) > 10.0F && elapsed(a, b) < 10.2F);
	NEED(cudaStreamQuery(s) == cudaSuccess);
}

static void kernels_take_their_parameter(void **state)
{
	(void)state;
	child_passes(body_durations, quiet);
}

static void body_streams(void)
{
	cudaStream_t s = test_stream(), t = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	cudaEvent_t a = event(), b = event(), c = event(), d = event();

	gate(s);
	NEED(cudaEventRecord(a, s) == cudaSuccess);
	NEED(cudaStreamWaitEvent(t, a, 0) == cudaSuccess);
	test_launch(k, 4000000, s);
	NEED(cudaEventRecord(b, s) == cudaSuccess);
	test_launch(k, 1000000, t);
	NEED(cudaEventRecord(c, t) == cudaSuccess);
	NEED(cudaStreamWaitEvent(t, b, 0) == cudaSuccess);
	test_launch(k, 1000000, t);
	NEED(cudaEventRecord(d, t) == cudaSuccess);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(elapsed(c, b) > 2.5F);                         /* the streams ran side by side */
	NEED(elapsed(b, d) > 1.0F && elapsed(b, d) < 1.1F); /* and met at the event */
}

static void streams_run_side_by_side_and_meet_at_events(void **state)
{
	(void)state;
	child_passes(body_streams, quiet);
}

static void body_legacy(void)
{
	cudaStream_t s, free_stream = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	cudaEvent_t a = event(), b = event(), c = event(), d = event();

	NEED(cudaStreamCreate(&s) == cudaSuccess);
	test_launch(k, 100000000, s);
	NEED(cudaEventRecord(a, s) == cudaSuccess);
	test_launch(k, 1000000, NULL); /* waits for s */
	NEED(cudaEventRecord(b, NULL) == cudaSuccess);
	test_launch(k, 1000000, s); /* waits for the legacy stream */
	NEED(cudaEventRecord(c, s) == cudaSuccess);
	test_launch(k, 100000, free_stream); /* waits for nobody */
	NEED(cudaEventRecord(d, free_stream) == cudaSuccess);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(elapsed(a, b) >= 1.0F);
	NEED(elapsed(b, c) >= 1.0F);
	NEED(elapsed(d, a) > 1.0F);
}

static void legacy_stream_orders_blocking_streams(void **state)
{
	(void)state;
	child_passes(body_legacy, quiet);
}

static void body_copies(void)
{
	cudaStream_t s = test_stream();
	int host[4] = { 1, 2, 3, 4 }, back[4] = { 0 };
	void *dev;

	NEED(cudaMalloc(&dev, sizeof host) == cudaSuccess);
	NEED(cudaMemcpyAsync(dev, host, sizeof host, cudaMemcpyHostToDevice, s) == cudaSuccess);
	NEED(cudaMemsetAsync(dev, 0xff, sizeof host[0], s) == cudaSuccess);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(cudaMemcpy(back, dev, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess);
	NEED(back[0] == -1 && back[1] == 2 && back[3] == 4);
	struct cudaPointerAttributes p;
	NEED(cudaPointerGetAttributes(&p, (char *)dev + 4) == cudaSuccess);
	NEED(p.type == cudaMemoryTypeDevice);
	NEED(cudaPointerGetAttributes(&p, host) == cudaSuccess);
	NEED(p.type == cudaMemoryTypeUnregistered);
	NEED(cudaFree(dev) == cudaSuccess);
	NEED(cudaFree(dev) == cudaErrorInvalidValue);
	NEED(cudaGetLastError() == cudaErrorInvalidValue);
	NEED(cudaGetLastError() == cudaSuccess);
}

static void copies_move_data_and_memory_knows_its_place(void **state)
{
	(void)state;
	child_passes(body_copies, quiet);
}

static void body_big_copy(void)
{
	cudaStream_t s = test_stream();
	cudaEvent_t a = event(), b = event();
	char *host = malloc(1), *dev;

	NEED(cudaMalloc((void **)&dev, 1UL << 36) == cudaSuccess); /* 64 GiB cost nothing */
	NEED(cudaMallocHost((void **)&host, 250000000) == cudaSuccess);
	gate(s);
	NEED(cudaEventRecord(a, s) == cudaSuccess);
	NEED(cudaMemcpyAsync(dev, host, 250000000, cudaMemcpyHostToDevice, s) == cudaSuccess);
	NEED(cudaEventRecord(b, s) == cudaSuccess);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(elapsed(a, b) > 9.9F && elapsed(a, b) < 10.1F); /* at 25 GB/s */
}

static void copies_are_charged_for_all_bytes(void **state)
{
	(void)state;
	child_passes(body_big_copy, quiet);
}

static int order[3], n_order;

static void note(void *arg)
{
	order[n_order++] = (int)(intptr_t)arg;
}

static void body_host_functions(void)
{
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	int64_t t0 = test_now();

	NEED(cudaLaunchHostFunc(s, note, (void *)1) == cudaSuccess);
	test_launch(k, 5000000, s);
	NEED(cudaLaunchHostFunc(s, note, (void *)2) == cudaSuccess);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	NEED(n_order == 2 && order[0] == 1 && order[1] == 2);
	NEED(test_now() - t0 > 5000000);
}

static void host_functions_run_in_stream_order(void **state)
{
	(void)state;
	child_passes(body_host_functions, quiet);
}

static void body_queue(void)
{
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");
	int64_t t0 = test_now();

	for (int i = 0; i < 12; i++) {
		test_launch(k, 2000000, s);
	}
	NEED(test_now() - t0 > 14000000); /* the last launches waited for room */
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
}

static void full_queue_makes_the_launch_wait(void **state)
{
	static const char *const env[] = { NO_NOISE, "SIMGPU_QUEUE_DEPTH=4", NULL };

	(void)state;
	child_passes(body_queue, env);
}

static void body_stall(void)
{
	cudaStream_t s = test_stream();
	cudaKernel_t k = test_kernel("alpha");

	test_launch(k, 1000, s);
	int64_t t0 = test_now();
	test_launch(k, 1000, s);
	NEED(test_now() - t0 > 200000000);
	t0 = test_now();
	test_launch(k, 1000, s);
	NEED(test_now() - t0 < 150000000);
}

static void stall_hits_one_launch(void **state)
{
	static const char *const env[] = { NO_NOISE, "RANK=2", "SIMGPU_STALL=0:1:500,2:1:200",
					   NULL };

	(void)state;
	child_passes(body_stall, env);
}

static float one_kernel_ms(void)
{
	cudaStream_t s = test_stream();
	cudaEvent_t a = event(), b = event();

	gate(s);
	NEED(cudaEventRecord(a, s) == cudaSuccess);
	test_launch(test_kernel("alpha"), 4000000, s);
	NEED(cudaEventRecord(b, s) == cudaSuccess);
	NEED(cudaStreamSynchronize(s) == cudaSuccess);
	return elapsed(a, b);
}

static void body_slow(void)
{
	float ms = one_kernel_ms();

	NEED(ms > 5.19F && ms < 5.3F);
}

static void slow_rank_stretches_kernels(void **state)
{
	static const char *const env[] = { NO_NOISE, "RANK=3", "SIMGPU_SLOW=1:9,3:1.3", NULL };

	(void)state;
	child_passes(body_slow, env);
}

static void body_noise(void)
{
	float ms = one_kernel_ms();

	NEED(ms < 3.99F || ms > 4.02F);
}

static void noise_changes_durations(void **state)
{
	static const char *const env[] = { "SIMGPU_GPU_SIGMA=0.3", "SIMGPU_SEED=11", NULL };

	(void)state;
	child_passes(body_noise, env);
}

static void body_errors(void)
{
	cudaKernel_t k = test_kernel("alpha");
	dim3 none = { 0, 1, 1 }, one = { 1, 1, 1 };
	uint64_t ns = 1;
	void *args[] = { &ns };
	CUmodule m;
	CUfunction f;
	int n;

	NEED(cudaLaunchKernel((const void *)k, none, one, args, 0, NULL) ==
	     cudaErrorInvalidConfiguration);
	NEED(cudaSetDevice(2) == cudaErrorInvalidDevice);
	NEED(cudaSetDevice(1) == cudaSuccess);
	NEED(cudaGetDeviceCount(&n) == cudaSuccess && n == 2);
	NEED(cuModuleLoadData(&m, ".entry only (.param .u64 p)") == CUDA_SUCCESS);
	NEED(cuModuleGetFunction(&f, m, "only") == CUDA_SUCCESS);
	NEED(cuModuleGetFunction(&f, m, "onl") == CUDA_ERROR_NOT_FOUND);
	NEED(strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady") == 0);
}

static void errors_are_told(void **state)
{
	static const char *const env[] = { "SIMGPU_GPUS=2", NULL };

	(void)state;
	child_passes(body_errors, env);
}

static void body_identity(void)
{
	struct cudaDeviceProp p, q;
	CUuuid u;

	NEED(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
	NEED(cudaGetDeviceProperties(&q, 1) == cudaSuccess);
	NEED(memcmp(&p.uuid, &q.uuid, sizeof p.uuid) != 0);
	NEED(cuDeviceGetUuid(&u, 0) == CUDA_SUCCESS);
	NEED(memcmp(&u, &p.uuid, sizeof u) == 0);
	NEED(strcmp(p.name, "Card") == 0);
}

static void devices_have_names_and_ids(void **state)
{
	static const char *const env[] = { "SIMGPU_NAME=Card", NULL };

	(void)state;
	child_passes(body_identity, env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_take_their_parameter),
		cmocka_unit_test(streams_run_side_by_side_and_meet_at_events),
		cmocka_unit_test(legacy_stream_orders_blocking_streams),
		cmocka_unit_test(copies_move_data_and_memory_knows_its_place),
		cmocka_unit_test(copies_are_charged_for_all_bytes),
		cmocka_unit_test(host_functions_run_in_stream_order),
		cmocka_unit_test(full_queue_makes_the_launch_wait),
		cmocka_unit_test(stall_hits_one_launch),
		cmocka_unit_test(slow_rank_stretches_kernels),
		cmocka_unit_test(noise_changes_durations),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(devices_have_names_and_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
