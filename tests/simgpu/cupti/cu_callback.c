/* SPDX-License-Identifier: Apache-2.0 */
/* The one subscriber, what it has enabled, and calls to it; knows when a thread is inside one. */
#include "tests/simgpu/common/simenv.h"
#include "tests/simgpu/cupti/cu.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <stdio.h>
#include <string.h>

#define MAX_CBID 1024

struct CUpti_Subscriber_st {
	CUpti_CallbackFunc callback;
	void *user;
	char name[64];
};

static struct CUpti_Subscriber_st subscriber;
static bool subscribed;
static bool wanted[CUPTI_CB_DOMAIN_SIZE][MAX_CBID];
static _Thread_local unsigned inside;

bool cu_in_callback(void)
{
	return inside > 0;
}

void cu_callback_enter(void)
{
	inside++;
}

void cu_callback_leave(void)
{
	inside--;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
			     void *user, const char *name)
{
	if (!handle || !callback) {
		return CUPTI_ERROR_INVALID_PARAMETER;
	}
	if (cu_mode() == CU_NO_DRIVER) {
		return CUPTI_ERROR_UNKNOWN;
	}
	if (cu_mode() == CU_TAKEN || subscribed) {
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	}
	subscriber.callback = callback;
	subscriber.user = user;
	snprintf(subscriber.name, sizeof subscriber.name, "%s", name ? name : "");
	subscribed = true;
	memset(wanted, 0, sizeof wanted);
	*handle = &subscriber;
	cu_hooks_install();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				    void *user)
{
	return cu_return(subscribe(handle, callback, user, NULL));
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				       void *user, CUpti_SubscriberParams *params)
{
	if (!params) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	CUptiResult r = subscribe(handle, callback, user, params->subscriberName);
	if (r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params->oldSubscriberName) {
		snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
			 subscribed ? subscriber.name : "another tool");
	}
	return cu_return(r);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	if (!handle || handle != &subscriber || !subscribed) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	subscribed = false;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
					 CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	if (!handle || domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE ||
	    cbid >= MAX_CBID) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	wanted[domain][cbid] = enable != 0;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
				       CUpti_CallbackDomain domain)
{
	if (!handle || domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	memset(wanted[domain], enable != 0, sizeof wanted[domain]);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
	if (!handle) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	memset(wanted, enable != 0, sizeof wanted);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle,
					   CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	if (!enable || !handle || domain >= CUPTI_CB_DOMAIN_SIZE || cbid >= MAX_CBID) {
		return cu_return(CUPTI_ERROR_INVALID_PARAMETER);
	}
	*enable = wanted[domain][cbid];
	return CUPTI_SUCCESS;
}

static void call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	cu_callback_enter();
	subscriber.callback(subscriber.user, domain, cbid, data);
	cu_callback_leave();
}

void cu_call_api(struct sim_api *a, bool enter)
{
	CUpti_CallbackDomain domain = a->domain == SIM_DOMAIN_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
								     : CUPTI_CB_DOMAIN_RUNTIME_API;

	if (!subscribed || a->cbid >= MAX_CBID || !wanted[domain][a->cbid]) {
		return;
	}
	CUpti_CallbackData d = {
		.callbackSite = enter ? CUPTI_API_ENTER : CUPTI_API_EXIT,
		.functionName = a->function,
		.functionParams = a->params,
		.functionReturnValue = enter ? NULL : &a->result,
		.symbolName = a->symbol,
		.context = sim_context_current(),
		.contextUid = sim_context_id(sim_context_current()),
		.correlationData = &a->user,
		.correlationId = a->corr,
	};
	call(domain, a->cbid, &d);
}

void cu_call_resource(enum sim_resource what, CUcontext ctx, const void *handle)
{
	static const CUpti_CallbackId ids[] = {
		[SIM_RES_CONTEXT_CREATED] = CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
		[SIM_RES_CONTEXT_DESTROYED] = CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
		[SIM_RES_STREAM_CREATED] = CUPTI_CBID_RESOURCE_STREAM_CREATED,
		[SIM_RES_STREAM_DESTROYED] = CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
		[SIM_RES_MODULE_LOADED] = CUPTI_CBID_RESOURCE_MODULE_LOADED,
	};
	CUpti_ResourceData d = { .context = ctx };

	if (!subscribed || !wanted[CUPTI_CB_DOMAIN_RESOURCE][ids[what]]) {
		return;
	}
	if (what == SIM_RES_STREAM_CREATED || what == SIM_RES_STREAM_DESTROYED) {
		memcpy(&d.resourceHandle.stream, &handle, sizeof handle);
	}
	call(CUPTI_CB_DOMAIN_RESOURCE, ids[what], &d);
}
