/* SPDX-License-Identifier: Apache-2.0 */
/* Every way NVTX v3 has to annotate, without any CUDA.
 * Arguments: threads, push/pop pairs of each: for load, and only these; or "signals": a handler that
 * annotates interrupts a thread that does, and the program prints how many marks each has made. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
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

#define N_SIGNALS 700

static volatile sig_atomic_t n_handled;

static void on_alarm(int sig)
{
	(void)sig;
	nvtxMarkA("from the handler");
	n_handled++;
}

static int run_signals(void)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm };
	long n = 1;

	/* NVTX waits for itself for ever when a handler interrupts its very first call. */
	nvtxMarkA("from the program");
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL))
		return 1;
	while (n_handled < N_SIGNALS) {
		nvtxMarkA("from the program");
		n++;
	}
	if (setitimer(ITIMER_REAL, &never, NULL))
		return 1;
	(void)printf("%ld %d\n", n, (int)n_handled);
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
	if (argc > 1 && !strcmp(argv[1], "signals"))
		return run_signals();
	plain();
	domains();
	nvtxRangePushA("left open");
	return 0;
}
