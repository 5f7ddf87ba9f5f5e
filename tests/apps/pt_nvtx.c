/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pops through the real NVTX v3 headers: no-ops when no tool is attached. */
#include "tests/apps/pt_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

void pt_nvtx_init(struct pt_nvtx *nvtx, bool on, const char *domain)
{
	nvtx->on = on;
	nvtx->domain = on && domain ? nvtxDomainCreateA(domain) : NULL;
}

void pt_nvtx_release(struct pt_nvtx *nvtx)
{
	if (nvtx->domain)
		nvtxDomainDestroy(nvtx->domain);
	nvtx->domain = NULL;
}

void pt_nvtx_push(const struct pt_nvtx *nvtx, const char *name, int number)
{
	if (!nvtx->on)
		return;
	char text[64];
	if (number < 0)
		snprintf(text, sizeof(text), "%s", name);
	else
		snprintf(text, sizeof(text), "%s %d", name, number);
	nvtxEventAttributes_t attr = { .version = NVTX_VERSION,
				       .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				       .messageType = NVTX_MESSAGE_TYPE_ASCII,
				       .message.ascii = text };
	if (nvtx->domain)
		nvtxDomainRangePushEx(nvtx->domain, &attr);
	else
		nvtxRangePushA(text);
}

void pt_nvtx_pop(const struct pt_nvtx *nvtx)
{
	if (!nvtx->on)
		return;
	if (nvtx->domain)
		nvtxDomainRangePop(nvtx->domain);
	else
		nvtxRangePop();
}
