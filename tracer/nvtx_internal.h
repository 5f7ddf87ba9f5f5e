/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the tracer's NVTX part. */
#ifndef TRACER_NVTX_INTERNAL_H
#define TRACER_NVTX_INTERNAL_H

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "tracer/nccl_door.h"

#define LAG_NVTX_TEXT_MAX 2048 /* of a wide string after conversion */

struct lag_nvtx_text {
	const char *text;
	size_t n;
	char room[LAG_NVTX_TEXT_MAX]; /* for conversions */
};

/* What our handles point to; lives as long as the process. */
struct lag_nvtx_name {
	uint32_t n;
	bool nccl; /* a domain: NCCL's own */
	char text[];
};

/* NULL when the arena is full; the annotation then has no name. */
struct lag_nvtx_name *lag_nvtx_name_new(const char *text, size_t n);

/* Borrow the text of the program's string for the duration of the call. */
void lag_nvtx_ascii(struct lag_nvtx_text *out, const char *text);
void lag_nvtx_wide(struct lag_nvtx_text *out, const wchar_t *text);
void lag_nvtx_message(struct lag_nvtx_text *out, const nvtxEventAttributes_t *attr);

void lag_nvtx_category_name(nvtxDomainHandle_t domain, uint32_t category, const char *text,
			    size_t n);
const struct lag_nvtx_name *lag_nvtx_category_find(nvtxDomainHandle_t domain, uint32_t category);

/* Layout of NCCL's payloads, learnt from their registration. */
void lag_nvtx_schema_learn(const nvtxPayloadSchemaAttr_t *schema);
void lag_nvtx_schema_read(const nvtxPayloadData_t *data, struct lag_nccl_note *note);

#define LAG_NVTX_NO_NOTE \
	((struct lag_nccl_note){ 0, LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE, LAG_NONE })

/* The recording functions, put into NVTX's tables (nvtx_door.c). */
struct lag_nvtx_slot {
	unsigned id;
	void (*fn)(void);
};

extern const struct lag_nvtx_slot lag_nvtx_core[], lag_nvtx_core2[], lag_nvtx_payload[];
extern const size_t lag_nvtx_n_core, lag_nvtx_n_core2, lag_nvtx_n_payload;

#endif
