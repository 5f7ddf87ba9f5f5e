/* SPDX-License-Identifier: Apache-2.0 */
/* Every way NVTX v3 has to annotate, without any CUDA.
 * Arguments: threads (default 1), push/pop pairs of each (default 0): with these only, for load. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *load(void *arg)
{
	int n = *(const int *)arg;

	for (int i = 0; i < n; i++) {
		nvtxRangePushA("outer");
		nvtxRangePushA("inner");
		nvtxRangePop();
		nvtxRangePop();
	}
	return NULL;
}

static int run_threads(int n_threads, int n)
{
	pthread_t *threads = calloc((size_t)n_threads, sizeof(*threads));

	if (!threads)
		return 1;
	for (int i = 0; i < n_threads; i++) {
		if (pthread_create(&threads[i], NULL, load, &n))
			return 1;
	}
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

static nvtxEventAttributes_t attributes(void)
{
	nvtxEventAttributes_t attr = { 0 };

	attr.version = NVTX_VERSION;
	attr.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	return attr;
}

static void plain(void)
{
	nvtxEventAttributes_t attr = attributes();
	nvtxRangeId_t id;

	nvtxMarkA("mark a");
	nvtxMarkW(L"mark w \u20ac");
	nvtxRangePushA("push a");
	nvtxRangePushW(L"push w");
	nvtxRangePop();
	nvtxRangePop();
	id = nvtxRangeStartA("start a");
	nvtxRangeEnd(id);
	nvtxNameCategoryA(7, "seventh");
	attr.category = 7;
	attr.colorType = NVTX_COLOR_ARGB;
	attr.color = 0xff336699;
	attr.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	attr.payload.llValue = 4711;
	attr.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attr.message.ascii = "push ex";
	nvtxRangePushEx(&attr);
	nvtxRangePop();
	attr.category = 8;
	attr.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	attr.payload.uiValue = 5;
	attr.message.ascii = "mark ex";
	nvtxMarkEx(&attr);
	nvtxNameOsThreadA((uint32_t)getpid(), "the one thread");
}

static void domains(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
	nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "registered");
	nvtxEventAttributes_t attr = attributes();
	nvtxRangeId_t a, b;

	nvtxDomainNameCategoryA(domain, 7, "library's seventh");
	attr.category = 7;
	attr.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	attr.message.registered = name;
	nvtxDomainRangePushEx(domain, &attr);
	nvtxDomainMarkEx(domain, &attr);
	nvtxDomainRangePop(domain);
	/* Not nested. */
	a = nvtxDomainRangeStartEx(domain, &attr);
	b = nvtxDomainRangeStartEx(domain, &attr);
	nvtxDomainRangeEnd(domain, a);
	nvtxDomainRangeEnd(domain, b);
	attr.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	attr.message.unicode = L"wide";
	nvtxDomainMarkEx(domain, &attr);
	nvtxDomainDestroy(domain);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return run_threads(atoi(argv[1]), atoi(argv[2]));
	plain();
	domains();
	nvtxRangePushA("left open");
	return 0;
}
