/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the closed sets, and the spellings that other tools use for them. */
#include "schema/record/enums.h"

#include <ctype.h>
#include <string.h>

static const char *const funcs[LAG_FUNC_LIMIT] = {
	[LAG_FUNC_UNKNOWN] = "unknown",
	[LAG_FUNC_ALL_REDUCE] = "all_reduce",
	[LAG_FUNC_ALL_GATHER] = "all_gather",
	[LAG_FUNC_REDUCE_SCATTER] = "reduce_scatter",
	[LAG_FUNC_BROADCAST] = "broadcast",
	[LAG_FUNC_REDUCE] = "reduce",
	[LAG_FUNC_ALL_TO_ALL] = "all_to_all",
	[LAG_FUNC_GATHER] = "gather",
	[LAG_FUNC_SCATTER] = "scatter",
	[LAG_FUNC_SEND] = "send",
	[LAG_FUNC_RECV] = "recv",
	[LAG_FUNC_SEND_RECV] = "send_recv",
	[LAG_FUNC_BARRIER] = "barrier",
};

static const struct {
	const char *name;
	size_t size;
} datatypes[LAG_DT_LIMIT] = {
	{ "int8", 1 },    { "uint8", 1 },    { "int32", 4 },       { "uint32", 4 },
	{ "int64", 8 },   { "uint64", 8 },   { "float16", 2 },     { "float32", 4 },
	{ "float64", 8 }, { "bfloat16", 2 }, { "float8_e4m3", 1 }, { "float8_e5m2", 1 },
};

static const char *const reasons[LAG_LOSS_LIMIT] = {
	[0] = "unknown",
	[LAG_LOSS_NO_CHUNK] = "no_buffer",
	[LAG_LOSS_DISK_FULL] = "disk_full",
	[LAG_LOSS_SIZE_CAP] = "size_cap",
	[LAG_LOSS_IO] = "io_error",
	[LAG_LOSS_CUPTI_DROPPED] = "cupti_dropped",
	[LAG_LOSS_CUPTI_BAD] = "cupti_unusable",
	[LAG_LOSS_TOO_LONG] = "too_long",
	[LAG_LOSS_CORRUPT] = "corrupt",
	[LAG_LOSS_REENTRY] = "reentry",
};

const char *lag_func_name(int64_t func)
{
	return funcs[func > 0 && func < LAG_FUNC_LIMIT ? func : 0];
}

const char *lag_datatype_name(int64_t datatype)
{
	return datatype >= 0 && datatype < LAG_DT_LIMIT ? datatypes[datatype].name : "unknown";
}

size_t lag_datatype_size(int64_t datatype)
{
	return datatype >= 0 && datatype < LAG_DT_LIMIT ? datatypes[datatype].size : 0;
}

const char *lag_loss_reason_name(int64_t reason)
{
	return reasons[reason > 0 && reason < LAG_LOSS_LIMIT ? reason : 0];
}

/* Spellings after folding: lower case, letters only. Longer ones first where one begins another. */
static const struct {
	const char *fold;
	enum lag_func func;
} spellings[] = {
	{ "allreduce", LAG_FUNC_ALL_REDUCE },
	{ "allgather", LAG_FUNC_ALL_GATHER },
	{ "reducescatter", LAG_FUNC_REDUCE_SCATTER },
	{ "alltoall", LAG_FUNC_ALL_TO_ALL },
	{ "broadcast", LAG_FUNC_BROADCAST },
	{ "bcast", LAG_FUNC_BROADCAST },
	{ "barrier", LAG_FUNC_BARRIER },
	{ "gather", LAG_FUNC_GATHER },
	{ "scatter", LAG_FUNC_SCATTER },
	{ "reduce", LAG_FUNC_REDUCE },
	{ "sendrecv", LAG_FUNC_SEND_RECV },
	{ "send", LAG_FUNC_SEND },
	{ "recv", LAG_FUNC_RECV },
};

enum lag_func lag_func_parse(const char *text, size_t n)
{
	static const char *const prefixes[] = { "ncclsymkdevkernel",
						"ncclsymkernel",
						"ncclkernel",
						"nccldevkernel",
						"nccl",
						"c10d",
						"rccl" };
	char fold[128];
	const char *p = fold;
	size_t m = 0;

	for (size_t i = 0; i < n && m + 1 < sizeof(fold); i++) {
		if (isalpha((unsigned char)text[i]))
			fold[m++] = (char)tolower((unsigned char)text[i]);
	}
	fold[m] = '\0';
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(p, prefixes[i], len) == 0)
			p += len;
	}
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		if (strncmp(p, spellings[i].fold, strlen(spellings[i].fold)) == 0)
			return spellings[i].func;
	}
	return LAG_FUNC_UNKNOWN;
}
