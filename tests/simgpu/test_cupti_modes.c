/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI as a tool may find it: older releases, held by another tool, without a driver; its callbacks
 * and what must not be done inside them; and how the driver loads a tool. */
#include "tests/simgpu/cupti_sink.h"

#include <cupti_runtime_cbid.h>
#include <signal.h>
#include <sys/resource.h>

/* Sizes of records by release, from the headers of each: kernel, copy, overhead, synchronisation. */
static size_t want_version, want_kernel, want_copy, want_overhead, want_sync;

static size_t stride(CUpti_ActivityKind kind)
{
	static uint64_t words[128];
	CUpti_Activity *r = NULL;

	for (size_t i = 0; i < 128; i++) {
		words[i] = kind;
	}
	NEED(cuptiActivityGetNextRecord((uint8_t *)words, sizeof words, &r) == CUPTI_SUCCESS);
	NEED(cuptiActivityGetNextRecord((uint8_t *)words, sizeof words, &r) == CUPTI_SUCCESS);
	return (size_t)((uint8_t *)r - (uint8_t *)words);
}

static void body_release(void)
{
	uint32_t v;

	NEED(cuptiGetVersion(&v) == CUPTI_SUCCESS && v == want_version);
	NEED(stride(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == want_kernel);
	NEED(stride(CUPTI_ACTIVITY_KIND_KERNEL) == want_kernel);
	NEED(stride(CUPTI_ACTIVITY_KIND_MEMCPY) == want_copy);
	NEED(stride(CUPTI_ACTIVITY_KIND_OVERHEAD) == want_overhead);
	NEED(stride(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) == want_sync);
	sink_start(sink_kernels, 1);
	test_launch(test_kernel("beta"), 3000000, NULL);
	test_launch(test_kernel("beta"), 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
	NEED(sink_count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == 2);
	NEED(sink.buffers[0].valid == 2 * want_kernel);
	NEED(strcmp(sink_kernel(0)->name, "beta") == 0);
	NEED(sink_kernel(0)->end - sink_kernel(0)->start == 3000000);
}

static void older_releases_have_shorter_records(void **state)
{
	static const struct {
		const char *env;
		size_t version, kernel, copy, overhead, sync;
	} releases[] = {
		{ "SIMGPU_CUPTI_VERSION=11.8", 18, 200, 88, 40, 40 },
		{ "SIMGPU_CUPTI_VERSION=12.0", 19, 208, 88, 40, 40 },
		{ "SIMGPU_CUPTI_VERSION=12.4", 22, 208, 88, 56, 40 },
		{ "SIMGPU_CUPTI_VERSION=12.8", 26, 208, 96, 56, 56 },
		{ "SIMGPU_CUPTI_VERSION=13.0", 130000, 216, 96, 56, 56 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++) {
		const char *env[] = { NO_NOISE, releases[i].env, NULL };
		want_version = releases[i].version;
		want_kernel = releases[i].kernel;
		want_copy = releases[i].copy;
		want_overhead = releases[i].overhead;
		want_sync = releases[i].sync;
		child_passes(body_release, env);
	}
}

static unsigned n_calls;

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			     const void *data)
{
	const CUpti_CallbackData *d = data;

	NEED(user == &n_calls);
	if (domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
	    cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) {
		NEED(strcmp(d->functionName, "cudaLaunchKernel_v7000") == 0);
		NEED(strcmp(d->symbolName, "alpha") == 0 && d->correlationId > 0);
		const cudaLaunchKernel_v7000_params *given = d->functionParams;
		NEED(given->gridDim.x == 1 && given->stream == NULL && given->args);
		if (d->callbackSite == CUPTI_API_ENTER) {
			*d->correlationData = 4711;
		} else {
			NEED(*d->correlationData == 4711);
			NEED(*(const int *)d->functionReturnValue == 0);
		}
		n_calls++;
	}
	if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED) {
		n_calls += 100;
	}
}

/* A subscriber gets enter and exit of the calls it enabled; there is one subscriber at a time. */
static void body_subscribe(void)
{
	CUpti_SubscriberHandle h, second;

	NEED(cuptiSubscribe(&h, on_call, &n_calls) == CUPTI_SUCCESS);
	NEED(cuptiSubscribe(&second, on_call, NULL) ==
	     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	char holder[16] = "";
	CUpti_SubscriberParams p = { .structSize = sizeof p,
				     .oldSubscriberName = holder,
				     .oldSubscriberSize = sizeof holder };
	NEED(cuptiSubscribe_v2(&second, on_call, NULL, &p) ==
	     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	cudaKernel_t k = test_kernel("alpha");
	test_launch(k, 1000, NULL);
	NEED(n_calls == 0);
	NEED(cuptiEnableCallback(1, h, CUPTI_CB_DOMAIN_RUNTIME_API,
				 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) == CUPTI_SUCCESS);
	NEED(cuptiEnableDomain(1, h, CUPTI_CB_DOMAIN_RESOURCE) == CUPTI_SUCCESS);
	test_launch(k, 1000, NULL);
	NEED(n_calls == 2);
	test_stream();
	NEED(n_calls == 102);
	NEED(cuptiUnsubscribe(h) == CUPTI_SUCCESS);
	test_launch(k, 1000, NULL);
	NEED(n_calls == 102);
	NEED(cuptiSubscribe(&second, on_call, NULL) == CUPTI_SUCCESS);
}

static void one_subscriber_hears_what_it_enabled(void **state)
{
	(void)state;
	child_passes(body_subscribe, NULL);
}

static void body_taken(void)
{
	CUpti_SubscriberHandle h;

	NEED(cuptiSubscribe(&h, on_call, NULL) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) ==
	     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	test_launch(test_kernel("alpha"), 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
}

static void a_taken_cupti_says_39(void **state)
{
	static const char *const env[] = { "SIMGPU_CUPTI=taken", NULL };

	(void)state;
	child_passes(body_taken, env);
}

static void body_no_driver(void)
{
	CUpti_SubscriberHandle h;
	uint32_t v;
	uint64_t t;

	NEED(cuptiSubscribe(&h, on_call, NULL) == CUPTI_ERROR_UNKNOWN);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_ERROR_UNKNOWN);
	NEED(cuptiActivityFlushAll(0) == CUPTI_ERROR_UNKNOWN);
	NEED(cuptiActivityFlushPeriod(100) == CUPTI_ERROR_UNKNOWN);
	NEED(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1) ==
	     CUPTI_ERROR_UNKNOWN);
	NEED(cuptiGetVersion(&v) == CUPTI_SUCCESS && cuptiGetTimestamp(&t) == CUPTI_SUCCESS);
}

static void without_a_driver_it_says_999(void **state)
{
	static const char *const env[] = { "SIMGPU_CUPTI=nodriver", NULL };

	(void)state;
	child_passes(body_no_driver, env);
}

static void no_core(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	NEED(freopen("/dev/null", "w", stderr));
}

static void CUPTIAPI cuda_in_completion(CUcontext c, uint32_t s, uint8_t *b, size_t n, size_t v)
{
	(void)c;
	(void)s;
	(void)b;
	(void)n;
	(void)v;
	cudaDeviceSynchronize();
}

static void CUPTIAPI flush_in_completion(CUcontext c, uint32_t s, uint8_t *b, size_t n, size_t v)
{
	(void)c;
	(void)s;
	(void)b;
	(void)n;
	(void)v;
	cuptiActivityFlushAll(0);
}

static CUpti_BuffersCallbackCompleteFunc forbidden;

static void body_forbidden(void)
{
	no_core();
	NEED(cuptiActivityRegisterCallbacks(sink_request, forbidden) == CUPTI_SUCCESS);
	NEED(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
	test_launch(test_kernel("alpha"), 1000, NULL);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	cuptiActivityFlushAll(0);
}

/* Neither CUDA nor a flush may be called from a buffer callback: the simulator ends the process. */
static void callbacks_must_not_call_back(void **state)
{
	(void)state;
	forbidden = cuda_in_completion;
	int status = in_child(body_forbidden, NULL);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	forbidden = flush_in_completion;
	status = in_child(body_forbidden, NULL);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void body_injection(void)
{
	NEED(!getenv("SIM_TEST_INJECTED"));
	NEED(cuInit(0) == CUDA_SUCCESS);
	NEED(env_number("SIM_TEST_INJECTED") == 1);
	NEED(cuInit(0) == CUDA_SUCCESS);
	NEED(cudaDeviceSynchronize() == cudaSuccess);
	NEED(env_number("SIM_TEST_INJECTED") == 1);
}

/* The first cuInit loads CUDA_INJECTION64_PATH and calls InitializeInjection, once. */
static void injection_runs_once_at_the_first_init(void **state)
{
	static const char *const env[] = { "CUDA_INJECTION64_PATH=" SIM_TEST_INJECTION, NULL };

	(void)state;
	child_passes(body_injection, env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(older_releases_have_shorter_records),
		cmocka_unit_test(one_subscriber_hears_what_it_enabled),
		cmocka_unit_test(a_taken_cupti_says_39),
		cmocka_unit_test(without_a_driver_it_says_999),
		cmocka_unit_test(callbacks_must_not_call_back),
		cmocka_unit_test(injection_runs_once_at_the_first_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
