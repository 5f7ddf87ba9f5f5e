/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX annotations to range records, in the program's threads. NCCL's own domain is not recorded as
 * annotations: it becomes operations (nccl_noted.c). */
#include "tracer/clock.h"
#include "tracer/names.h"
#include "tracer/nccl_door.h"
#include "tracer/nvtx_internal.h"
#include "tracer/sink.h"

static _Atomic uint64_t last_id;
static __thread int depth __attribute__((tls_model("initial-exec")));

static const struct lag_nvtx_name *name_of(nvtxDomainHandle_t domain)
{
	return (const struct lag_nvtx_name *)(const void *)domain;
}

static bool is_nccl(nvtxDomainHandle_t domain)
{
	return domain && name_of(domain)->nccl;
}

static int64_t intern(struct lag_thread *t, const struct lag_nvtx_name *name)
{
	return name ? lag_trace_string(&t->prod, name->text, name->n) : 0;
}

static int64_t category(struct lag_thread *t, nvtxDomainHandle_t domain, uint32_t id)
{
	const struct lag_nvtx_name *name = id ? lag_nvtx_category_find(domain, id) : NULL;
	char digits[12], *p = digits + sizeof(digits);

	if (!id || name)
		return intern(t, name);
	for (; id; id /= 10)
		*--p = (char)('0' + id % 10);
	return lag_trace_string(&t->prod, p, (size_t)(digits + sizeof(digits) - p));
}

/* Integers only: a reader could not tell a double's bits from a number. */
static int64_t payload(const nvtxEventAttributes_t *attr)
{
	switch (attr->payloadType) {
	case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
	case NVTX_PAYLOAD_TYPE_INT64:
		return attr->payload.llValue >= 0 ? attr->payload.llValue : LAG_NONE;
	case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
		return attr->payload.uiValue;
	case NVTX_PAYLOAD_TYPE_INT32:
		return attr->payload.iValue >= 0 ? attr->payload.iValue : LAG_NONE;
	default:
		return LAG_NONE;
	}
}

static void begin(enum lag_range_kind kind, int64_t id, nvtxDomainHandle_t domain,
		  const nvtxEventAttributes_t *attr, const struct lag_nvtx_text *msg)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_range);
	struct lag_record rec;

	if (!t)
		return;
	lag_record_init(&rec, LAG_REC_range);
	rec.range.start_ns = lag_clock_now();
	rec.range.end_ns = kind == LAG_RANGE_MARK ? rec.range.start_ns : LAG_NONE;
	rec.range.tid = lag_sink_tid();
	rec.range.kind = kind;
	rec.range.id = id;
	rec.range.domain = intern(t, name_of(domain));
	rec.range.name = lag_trace_string(&t->prod, msg->text, msg->n);
	if (attr) {
		rec.range.category = category(t, domain, attr->category);
		if (attr->colorType == NVTX_COLOR_ARGB)
			rec.range.color = attr->color;
		rec.range.payload = payload(attr);
	}
	(void)lag_trace_append(&t->prod, &rec);
	lag_sink_leave(t);
}

static void end(enum lag_range_kind kind, int64_t id, nvtxDomainHandle_t domain)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_range_end);
	struct lag_record rec;

	if (!t)
		return;
	lag_record_init(&rec, LAG_REC_range_end);
	rec.range_end.end_ns = lag_clock_now();
	rec.range_end.tid = lag_sink_tid();
	rec.range_end.kind = kind;
	rec.range_end.id = id;
	rec.range_end.domain = intern(t, name_of(domain));
	(void)lag_trace_append(&t->prod, &rec);
	lag_sink_leave(t);
}

static void begin_attr(enum lag_range_kind kind, int64_t id, nvtxDomainHandle_t domain,
		       const nvtxEventAttributes_t *attr)
{
	struct lag_nvtx_text msg;

	if (!lag_guard_on())
		return;
	lag_nvtx_message(&msg, attr);
	begin(kind, id, domain, attr, &msg);
}

static void begin_ascii(enum lag_range_kind kind, int64_t id, const char *text)
{
	struct lag_nvtx_text msg;

	if (!lag_guard_on())
		return;
	lag_nvtx_ascii(&msg, text);
	begin(kind, id, NULL, NULL, &msg);
}

static void begin_wide(enum lag_range_kind kind, int64_t id, const wchar_t *text)
{
	struct lag_nvtx_text msg;

	if (!lag_guard_on())
		return;
	lag_nvtx_wide(&msg, text);
	begin(kind, id, NULL, NULL, &msg);
}

static nvtxRangeId_t next_id(void)
{
	return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

static void nccl_begins(const nvtxEventAttributes_t *attr)
{
	const nvtxPayloadData_t *data = NULL;
	struct lag_nccl_note note = LAG_NVTX_NO_NOTE;
	struct lag_nvtx_text msg;

	lag_nvtx_message(&msg, attr);
	if (attr && attr->payloadType == (int32_t)NVTX_PAYLOAD_TYPE_EXT && attr->reserved0 > 0)
		data = (const nvtxPayloadData_t *)(uintptr_t)attr->payload.ullValue;
	if (data)
		lag_nvtx_schema_read(data, &note);
	lag_nccl_annotated(msg.text, msg.n, &note);
}

/* ---- NVTX's core functions ---- */

static void NVTX_API mark_ex(const nvtxEventAttributes_t *attr)
{
	begin_attr(LAG_RANGE_MARK, LAG_NONE, NULL, attr);
}

static void NVTX_API mark_a(const char *text)
{
	begin_ascii(LAG_RANGE_MARK, LAG_NONE, text);
}

static void NVTX_API mark_w(const wchar_t *text)
{
	begin_wide(LAG_RANGE_MARK, LAG_NONE, text);
}

static nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t *attr)
{
	nvtxRangeId_t id = next_id();

	begin_attr(LAG_RANGE_START, (int64_t)id, NULL, attr);
	return id;
}

static nvtxRangeId_t NVTX_API start_a(const char *text)
{
	nvtxRangeId_t id = next_id();

	begin_ascii(LAG_RANGE_START, (int64_t)id, text);
	return id;
}

static nvtxRangeId_t NVTX_API start_w(const wchar_t *text)
{
	nvtxRangeId_t id = next_id();

	begin_wide(LAG_RANGE_START, (int64_t)id, text);
	return id;
}

static void NVTX_API range_end(nvtxRangeId_t id)
{
	end(LAG_RANGE_START, (int64_t)id, NULL);
}

static int NVTX_API push_ex(const nvtxEventAttributes_t *attr)
{
	begin_attr(LAG_RANGE_PUSH, LAG_NONE, NULL, attr);
	return depth++;
}

static int NVTX_API push_a(const char *text)
{
	begin_ascii(LAG_RANGE_PUSH, LAG_NONE, text);
	return depth++;
}

static int NVTX_API push_w(const wchar_t *text)
{
	begin_wide(LAG_RANGE_PUSH, LAG_NONE, text);
	return depth++;
}

static int NVTX_API pop(void)
{
	end(LAG_RANGE_PUSH, LAG_NONE, NULL);
	return depth > 0 ? --depth : -1;
}

static void name_thread(uint32_t tid, const struct lag_nvtx_text *text)
{
	struct lag_thread *t = lag_sink_enter(LAG_REC_thread);
	struct lag_record rec;

	if (!t)
		return;
	lag_names_claim(tid);
	lag_record_init(&rec, LAG_REC_thread);
	rec.thread.tid = tid;
	rec.thread.name = lag_trace_string(&t->prod, text->text, text->n);
	(void)lag_trace_append(&t->prod, &rec);
	lag_sink_leave(t);
}

static void NVTX_API name_thread_a(uint32_t tid, const char *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_ascii(&t, text);
	name_thread(tid, &t);
}

static void NVTX_API name_thread_w(uint32_t tid, const wchar_t *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_wide(&t, text);
	name_thread(tid, &t);
}

/* ---- domains ---- */

static void NVTX_API domain_name_category_a(nvtxDomainHandle_t domain, uint32_t id,
					    const char *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_ascii(&t, text);
	lag_nvtx_category_name(domain, id, t.text, t.n);
}

static void NVTX_API domain_name_category_w(nvtxDomainHandle_t domain, uint32_t id,
					    const wchar_t *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_wide(&t, text);
	lag_nvtx_category_name(domain, id, t.text, t.n);
}

static void NVTX_API name_category_a(uint32_t id, const char *text)
{
	domain_name_category_a(NULL, id, text);
}

static void NVTX_API name_category_w(uint32_t id, const wchar_t *text)
{
	domain_name_category_w(NULL, id, text);
}

static void NVTX_API domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attr)
{
	if (!is_nccl(domain))
		begin_attr(LAG_RANGE_MARK, LAG_NONE, domain, attr);
}

static nvtxRangeId_t NVTX_API domain_start_ex(nvtxDomainHandle_t domain,
					      const nvtxEventAttributes_t *attr)
{
	nvtxRangeId_t id = next_id();

	begin_attr(LAG_RANGE_START, (int64_t)id, domain, attr);
	return id;
}

static void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
	end(LAG_RANGE_START, (int64_t)id, domain);
}

static int NVTX_API domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attr)
{
	if (is_nccl(domain)) {
		nccl_begins(attr);
	} else {
		begin_attr(LAG_RANGE_PUSH, LAG_NONE, domain, attr);
	}
	return depth++;
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain)
{
	if (is_nccl(domain)) {
		lag_nccl_annotation_ends(NULL);
	} else {
		end(LAG_RANGE_PUSH, LAG_NONE, domain);
	}
	return depth > 0 ? --depth : -1;
}

static nvtxStringHandle_t NVTX_API domain_register_a(nvtxDomainHandle_t domain, const char *text)
{
	struct lag_nvtx_text t;

	(void)domain;
	lag_nvtx_ascii(&t, text);
	return (nvtxStringHandle_t)(void *)lag_nvtx_name_new(t.text, t.n);
}

static nvtxStringHandle_t NVTX_API domain_register_w(nvtxDomainHandle_t domain, const wchar_t *text)
{
	struct lag_nvtx_text t;

	(void)domain;
	lag_nvtx_wide(&t, text);
	return (nvtxStringHandle_t)(void *)lag_nvtx_name_new(t.text, t.n);
}

static nvtxDomainHandle_t new_domain(const struct lag_nvtx_text *t)
{
	struct lag_nvtx_name *name = lag_nvtx_name_new(t->text, t->n);

	if (name)
		name->nccl = name->n == 4 && !__builtin_memcmp(name->text, "NCCL", 4);
	return (nvtxDomainHandle_t)(void *)name;
}

static nvtxDomainHandle_t NVTX_API domain_create_a(const char *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_ascii(&t, text);
	return new_domain(&t);
}

static nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t *text)
{
	struct lag_nvtx_text t;

	lag_nvtx_wide(&t, text);
	return new_domain(&t);
}

/* ---- payload extension ---- */

static uint64_t NVTX_API schema_register(nvtxDomainHandle_t domain,
					 const nvtxPayloadSchemaAttr_t *schema)
{
	static _Atomic uint64_t last = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;

	if (!schema)
		return 0;
	if (is_nccl(domain))
		lag_nvtx_schema_learn(schema);
	return schema->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID && schema->schemaId
		       ? schema->schemaId
		       : atomic_fetch_add(&last, 1);
}

static uint64_t NVTX_API enum_register(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *attr)
{
	static _Atomic uint64_t last = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;

	(void)domain;
	return attr && attr->schemaId ? attr->schemaId : atomic_fetch_add(&last, 1);
}

static void NVTX_API mark_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data,
				  size_t n)
{
	(void)data;
	(void)n;
	if (!is_nccl(domain))
		begin_attr(LAG_RANGE_MARK, LAG_NONE, domain, NULL);
}

static int NVTX_API push_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
	(void)data;
	(void)n;
	return domain_push_ex(domain, NULL);
}

/* NCCL tells only here what it has made. */
static int NVTX_API pop_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
	struct lag_nccl_note note;

	if (!is_nccl(domain) || !data || !n)
		return domain_pop(domain);
	lag_nvtx_schema_read(data, &note);
	lag_nccl_annotation_ends(&note);
	return depth > 0 ? --depth : -1;
}

static nvtxRangeId_t NVTX_API start_payload(nvtxDomainHandle_t domain,
					    const nvtxPayloadData_t *data, size_t n)
{
	(void)data;
	(void)n;
	return domain_start_ex(domain, NULL);
}

static void NVTX_API end_payload(nvtxDomainHandle_t domain, nvtxRangeId_t id,
				 const nvtxPayloadData_t *data, size_t n)
{
	(void)data;
	(void)n;
	domain_end(domain, id);
}

/* Must say yes: newer headers do not send anything otherwise. */
static uint8_t NVTX_API domain_is_enabled(nvtxDomainHandle_t domain)
{
	(void)domain;
	return 1;
}

/* The tables take functions of any type; NVTX casts them back. */
#define FN(f) ((void (*)(void))(f))

const struct lag_nvtx_slot lag_nvtx_core[] = {
	{ 1, FN(mark_ex) },          { 2, FN(mark_a) },         { 3, FN(mark_w) },
	{ 4, FN(start_ex) },         { 5, FN(start_a) },        { 6, FN(start_w) },
	{ 7, FN(range_end) },        { 8, FN(push_ex) },        { 9, FN(push_a) },
	{ 10, FN(push_w) },          { 11, FN(pop) },           { 12, FN(name_category_a) },
	{ 13, FN(name_category_w) }, { 14, FN(name_thread_a) }, { 15, FN(name_thread_w) },
};

const struct lag_nvtx_slot lag_nvtx_core2[] = {
	{ 1, FN(domain_mark_ex) },
	{ 2, FN(domain_start_ex) },
	{ 3, FN(domain_end) },
	{ 4, FN(domain_push_ex) },
	{ 5, FN(domain_pop) },
	{ 8, FN(domain_name_category_a) },
	{ 9, FN(domain_name_category_w) },
	{ 10, FN(domain_register_a) },
	{ 11, FN(domain_register_w) },
	{ 12, FN(domain_create_a) },
	{ 13, FN(domain_create_w) },
};

const struct lag_nvtx_slot lag_nvtx_payload[] = {
	{ NVTX3EXT_CBID_nvtxPayloadSchemaRegister, FN(schema_register) },
	{ NVTX3EXT_CBID_nvtxPayloadEnumRegister, FN(enum_register) },
	{ NVTX3EXT_CBID_nvtxMarkPayload, FN(mark_payload) },
	{ NVTX3EXT_CBID_nvtxRangePushPayload, FN(push_payload) },
	{ NVTX3EXT_CBID_nvtxRangePopPayload, FN(pop_payload) },
	{ NVTX3EXT_CBID_nvtxRangeStartPayload, FN(start_payload) },
	{ NVTX3EXT_CBID_nvtxRangeEndPayload, FN(end_payload) },
	{ NVTX3EXT_CBID_nvtxDomainIsEnabled, FN(domain_is_enabled) },
};

const size_t lag_nvtx_n_core = sizeof(lag_nvtx_core) / sizeof(lag_nvtx_core[0]);
const size_t lag_nvtx_n_core2 = sizeof(lag_nvtx_core2) / sizeof(lag_nvtx_core2[0]);
const size_t lag_nvtx_n_payload = sizeof(lag_nvtx_payload) / sizeof(lag_nvtx_payload[0]);
