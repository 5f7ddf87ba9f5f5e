/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's own NVTX ranges: domain "NCCL", registered names. */
#include "tests/simgpu/nccl/nc.h"

#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_once_t once;
	nvtxDomainHandle_t domain;
	bool off;
	pthread_mutex_t lock;

	struct {
		const char *name;
		nvtxStringHandle_t handle;
	} names[64];

	size_t n_names;
} nvtx = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static void domain_open(void)
{
	const char *off = getenv("NCCL_NVTX_DISABLE");

	nvtx.off = off && strcmp(off, "0") != 0;
	if (!nvtx.off) {
		nvtx.domain = nvtxDomainCreateA("NCCL");
	}
}

static nvtxStringHandle_t name_handle(const char *name)
{
	nvtxStringHandle_t h = NULL;
	size_t i;

	pthread_mutex_lock(&nvtx.lock);
	for (i = 0; i < nvtx.n_names && strcmp(nvtx.names[i].name, name) != 0; i++) {
	}
	if (i == nvtx.n_names && i < sizeof nvtx.names / sizeof nvtx.names[0]) {
		nvtx.names[i].name = name;
		nvtx.names[i].handle = nvtxDomainRegisterStringA(nvtx.domain, name);
		nvtx.n_names++;
	}
	if (i < nvtx.n_names) {
		h = nvtx.names[i].handle;
	}
	pthread_mutex_unlock(&nvtx.lock);
	return h;
}

static bool ready(void)
{
	pthread_once(&nvtx.once, domain_open);
	return !nvtx.off;
}

static void push(const char *name)
{
	nvtxEventAttributes_t e = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED,
	};

	e.message.registered = name_handle(name);
	nvtxDomainRangePushEx(nvtx.domain, &e);
}

void nc_nvtx_push_plain(const char *name)
{
	if (ready()) {
		push(name);
	}
}

void nc_nvtx_push(const struct nc_op *op)
{
	nc_nvtx_push_plain(op->api);
}

void nc_nvtx_pop(void)
{
	if (ready()) {
		nvtxDomainRangePop(nvtx.domain);
	}
}
