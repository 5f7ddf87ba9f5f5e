/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's life in this process: open inside cuInit, callbacks on any thread, the rest on the writer's. */
#include "tracer/cupti_door.h"

#include <stdio.h>

#include "tracer/clock.h"
#include "tracer/config.h"
#include "tracer/cupti_api.h"
#include "tracer/guard.h"
#include "tracer/self.h"
#include "tracer/tracer.h"

#define NEVER_REFUSE_BELOW 27u /* CUPTI before 12.9 crashes when it is given no buffer */
#define OUR_KIND           CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 /* Kineto uses 0 and 1 */

static struct {
	struct lag_cupti_api api;
	struct lag_cupti_parser parser;
	CUpti_SubscriberHandle subscriber;
	_Atomic bool opened; /* open has run, with or without success */
	_Atomic bool active; /* buffers may come */
	_Atomic bool loaded; /* the clock can be read */
	char problem[160];   /* why it is not active */
	char missing[160];   /* kinds that were refused */
	int64_t opened_ns;
	bool described;
	_Atomic uint64_t requests, completed;
	uint64_t bad_counted;
} cupti;

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*max_records = 0;
	if (!lag_guard_on())
		(void)lag_tracer_start();
	atomic_fetch_add_explicit(&cupti.requests, 1, memory_order_relaxed);
	*buffer = lag_cupti_pool_take(size);
	if (!*buffer && cupti.api.version < NEVER_REFUSE_BELOW)
		*buffer = lag_cupti_pool_grow(size);
	if (!*buffer)
		*size = 0; /* CUPTI drops, and counts what it drops */
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	(void)context;
	(void)stream;
	(void)size;
	if (!buffer)
		return;
	atomic_fetch_add_explicit(&cupti.completed, 1, memory_order_relaxed);
	lag_cupti_pool_complete(buffer, valid);
}

/* A context is what makes this process worth a file: until now there is neither file nor thread. */
static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
				 const void *data)
{
	(void)user;
	(void)data;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
		(void)lag_tracer_start();
}

static const char *result_text(CUptiResult rc)
{
	const char *text = NULL;

	if (cupti.api.get_result_string && !cupti.api.get_result_string(rc, &text) && text)
		return text;
	return "unknown error";
}

static void problem(const char *what, CUptiResult rc)
{
	(void)snprintf(cupti.problem, sizeof(cupti.problem), "%s: %s (%d)", what, result_text(rc),
		       (int)rc);
}

static void missing(const char *what)
{
	size_t n = strlen(cupti.missing);

	(void)snprintf(cupti.missing + n, sizeof(cupti.missing) - n, "%s%s", n ? ", " : "", what);
}

/* One call at a time where CUPTI can (12.5), else the whole kind. */
static void enable_calls(bool driver)
{
	CUptiResult (*enable)(CUpti_CallbackId, uint8_t) =
		driver ? cupti.api.enable_driver_api : cupti.api.enable_runtime_api;
	bool any = false;

	for (uint32_t cbid = 1; enable && cbid < 2048; cbid++) {
		size_t n;

		(void)lag_cupti_call_name(&cupti.api, driver, cbid, &n);
		if (!n || !lag_cupti_call_wanted(&cupti.api, driver, cbid))
			continue;
		if (enable(cbid, 1))
			break;
		any = true;
	}
	if (!any &&
	    cupti.api.enable(driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME))
		missing(driver ? "driver calls" : "runtime calls");
}

static const struct {
	CUpti_ActivityKind kind;
	const char *name;
} kinds[] = {
	{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels" },
	{ CUPTI_ACTIVITY_KIND_MEMCPY, "copies" },
	{ CUPTI_ACTIVITY_KIND_MEMCPY2, "peer copies" },
	{ CUPTI_ACTIVITY_KIND_MEMSET, "sets" },
	{ CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "external correlation" },
	{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "synchronisation" },
	{ CUPTI_ACTIVITY_KIND_CUDA_EVENT, "events" },
	{ CUPTI_ACTIVITY_KIND_OVERHEAD, "overhead" },
};

static bool enable_kinds(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CUptiResult rc = cupti.parser.stride[kinds[i].kind]
					 ? cupti.api.enable(kinds[i].kind)
					 : CUPTI_ERROR_INVALID_KIND;

		if (rc && i == 0) {
			problem("kernels cannot be recorded", rc);
			return false;
		}
		if (rc)
			missing(kinds[i].name);
	}
	enable_calls(false);
	enable_calls(true);
	if (cupti.api.enable_all_sync)
		(void)cupti.api.enable_all_sync(0);
	return true;
}

static bool activate(void)
{
	CUptiResult rc;

	if (!lag_cupti_pool_open()) {
		(void)snprintf(cupti.problem, sizeof(cupti.problem), "no memory for buffers");
		return false;
	}
	lag_cupti_parser_init(&cupti.parser, &cupti.api);
	rc = cupti.api.subscribe(&cupti.subscriber, on_callback, NULL);
	if (rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
		problem("another tool holds CUPTI", rc);
		return false;
	}
	if (rc) {
		problem("cuptiSubscribe", rc);
		return false;
	}
	(void)cupti.api.enable_callback(1, cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
					CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
	rc = cupti.api.register_callbacks(on_request, on_complete);
	if (rc) {
		problem("cuptiActivityRegisterCallbacks", rc);
		return false;
	}
	if (cupti.api.set_thread_id_type)
		(void)cupti.api.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	return enable_kinds();
}

void lag_cupti_open(void)
{
	const char *why = NULL;

	cupti.opened_ns = lag_clock_now();
	if (lag_cupti_load(&cupti.api, &why)) {
		atomic_store(&cupti.loaded, true);
		atomic_store(&cupti.active, activate());
	} else {
		(void)snprintf(cupti.problem, sizeof(cupti.problem), "%s", why);
	}
	atomic_store_explicit(&cupti.opened, true, memory_order_release);
	/* A process that uses CUDA under another tool's CUPTI gets its file all the same: the
	 * annotations and NCCL's calls are in it, and the gap with its reason. */
	if (!atomic_load(&cupti.active) && strncmp(cupti.problem, "another tool", 12) == 0)
		(void)lag_tracer_start();
}

void lag_cupti_describe(struct lag_trace_producer *prod)
{
	char version[32];

	if (cupti.described || !atomic_load_explicit(&cupti.opened, memory_order_acquire))
		return;
	cupti.described = true;
	if (atomic_load(&cupti.loaded)) {
		(void)snprintf(version, sizeof(version), "%u", cupti.api.version);
		lag_self_meta(prod, "cupti", version);
		lag_self_meta(prod, "cupti_path", cupti.api.path);
		lag_self_meta(prod, "cupti_choice", cupti.api.why);
	}
	if (!atomic_load(&cupti.active)) {
		lag_self_gap(prod, cupti.opened_ns, "CUPTI", cupti.problem);
		lag_config_debug("CUPTI: %s", cupti.problem);
	}
	if (cupti.missing[0])
		lag_self_meta(prod, "cupti_missing", cupti.missing);
}

bool lag_cupti_drain(struct lag_trace_producer *prod)
{
	bool finished = false;
	uint8_t *buffer;
	size_t valid;

	if (!atomic_load(&cupti.active))
		return false;
	cupti.parser.prod = prod;
	while ((buffer = lag_cupti_pool_next(&valid))) {
		finished |= lag_cupti_parse(&cupti.parser, buffer, valid);
		lag_cupti_pool_give(buffer);
	}
	return finished;
}

void lag_cupti_flush(bool force)
{
	if (atomic_load(&cupti.active))
		(void)cupti.api.flush_all(force ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

static void count(struct lag_trace_counters *c, uint64_t n, enum lag_loss_reason reason)
{
	atomic_fetch_add_explicit(&c->lost[0], n, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->lost_reason[reason], n, memory_order_relaxed);
}

void lag_cupti_count_lost(struct lag_trace_counters *counters, bool last)
{
	size_t dropped = 0;

	if (!atomic_load(&cupti.active))
		return;
	if (cupti.api.get_dropped && !cupti.api.get_dropped(NULL, 0, &dropped) && dropped)
		count(counters, dropped, LAG_LOSS_CUPTI_DROPPED);
	if (cupti.parser.n_bad > cupti.bad_counted) {
		count(counters, cupti.parser.n_bad - cupti.bad_counted, LAG_LOSS_CUPTI_BAD);
		cupti.bad_counted = cupti.parser.n_bad;
	}
	if (last)
		count(counters, lag_cupti_parser_unstarted(), LAG_LOSS_CUPTI_BAD);
}

uint64_t lag_cupti_requests(void)
{
	return atomic_load_explicit(&cupti.requests, memory_order_relaxed);
}

uint64_t lag_cupti_completed(void)
{
	return atomic_load_explicit(&cupti.completed, memory_order_relaxed);
}

bool lag_cupti_is_active(void)
{
	return atomic_load_explicit(&cupti.active, memory_order_acquire);
}

bool lag_cupti_timestamp(int64_t *ns)
{
	uint64_t now;

	if (!atomic_load_explicit(&cupti.loaded, memory_order_acquire) ||
	    cupti.api.get_timestamp(&now))
		return false;
	*ns = (int64_t)now;
	return true;
}

bool lag_cupti_push(int64_t id)
{
	return atomic_load_explicit(&cupti.active, memory_order_acquire) && cupti.api.push_id &&
	       cupti.api.pop_id && !cupti.api.push_id(OUR_KIND, (uint64_t)id);
}

void lag_cupti_pop(void)
{
	uint64_t id;

	(void)cupti.api.pop_id(OUR_KIND, &id);
}

int64_t lag_cupti_stream_id(void *stream)
{
	uint32_t id;

	if (!atomic_load_explicit(&cupti.active, memory_order_acquire) ||
	    !cupti.api.get_stream_id ||
	    cupti.api.get_stream_id(NULL, stream, stream == CU_STREAM_PER_THREAD, &id))
		return LAG_NONE;
	return id;
}
