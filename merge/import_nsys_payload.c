/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL writes into its annotations: communicator, bytes, peer. nsys exports it as bytes, laid out as
 * tables of the report say (`--include-blobs`), or as JSON (`--include-json`), or not at all. Bytes begin
 * with four 64-bit words: domain, layout, size of the payload, and where or how much it is. */
#include <stdlib.h>
#include <string.h>

#include "merge/nsys.h"
#include "schema/base/json_read.h"

#define HEADER_N 32

enum field {
	F_COMM,
	F_BYTES,
	F_N_RANKS,
	F_RANK,
	F_DEVICE,
	F_PEER,
	F_ROOT,
	F_LIMIT,
	F_NONE = F_LIMIT
};

static const char *const field_names[F_LIMIT] = { "NCCL communicator ID",
						  "Message size [bytes]",
						  "No. of ranks",
						  "Rank",
						  "CUDA device",
						  "Peer rank",
						  "Root" };

static enum field field_of(const char *name, size_t n)
{
	for (int i = 0; name && i < F_LIMIT; i++) {
		if (n == strlen(field_names[i]) && memcmp(name, field_names[i], n) == 0)
			return (enum field)i;
	}
	return F_NONE;
}

static enum lag_status take_layout(struct lag_nsys *s, struct lag_foreign_rows *r,
				   struct lag_err *err)
{
	size_t n;
	const char *name = lag_foreign_text(r, 3, &n);
	enum field what = field_of(name, n);
	int64_t domain = lag_foreign_int(r, 0), offset = lag_or(lag_foreign_int(r, 4), 0);
	struct lag_nsys_field *f;

	if (what == F_NONE || offset < 0 || offset > 4096)
		return LAG_OK;
	/* The domain's own name may be missing: whoever speaks of NCCL communicators is NCCL. */
	if (what == F_COMM && lag_failed(lag_map_set(&s->nccl_domains, (uint64_t)domain, 1)))
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for layouts");
	f = lag_vec_push(&s->fields);
	if (!f)
		return LAG_END;
	*f = (struct lag_nsys_field){ domain, lag_foreign_int(r, 1), lag_foreign_int(r, 2), offset,
				      (int)what };
	return LAG_OK;
}

enum lag_status lag_nsys_read_layouts(struct lag_nsys *s, struct lag_err *err)
{
	static const char *const columns[] = { "domainId", "schemaId", "type", "name", "offset" };

	return LAG_NSYS_EACH(s, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns, take_layout, err);
}

static uint64_t word_at(const char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return v;
}

/* Bytes of a payload's integer by NVTX's number of its type; 0 = no such. */
static size_t size_of(int64_t type)
{
	switch (type) {
	case 5: /* int, unsigned */
	case 6:
	case 15: /* of 32 bits */
	case 16:
		return 4;
	case 7: /* long, long long, of 64 bits, size_t */
	case 8:
	case 9:
	case 10:
	case 17:
	case 18:
	case 22:
		return 8;
	default:
		return 0;
	}
}

static void set_field(struct lag_nsys_call *call, int what, uint64_t v)
{
	int64_t *const to[F_LIMIT] = { [F_BYTES] = &call->bytes,    [F_N_RANKS] = &call->n_ranks,
				       [F_RANK] = &call->comm_rank, [F_DEVICE] = &call->device,
				       [F_PEER] = &call->peer,      [F_ROOT] = &call->peer };

	if (what == F_COMM) {
		call->comm = v;
		call->has_comm = v != 0;
	} else if (v <= INT64_MAX) {
		*to[what] = (int64_t)v;
	}
}

static bool read_bytes(const struct lag_nsys *s, struct lag_nsys_call *call, const char *bytes,
		       size_t n)
{
	uint64_t domain, schema, size;

	if (n < HEADER_N)
		return false;
	domain = word_at(bytes, 8);
	schema = word_at(bytes + 8, 8);
	size = word_at(bytes + 16, 8);
	if (size > n - HEADER_N)
		return false;
	for (size_t i = 0; i < s->fields.n; i++) {
		const struct lag_nsys_field *f = &LAG_VEC_AT(&s->fields, struct lag_nsys_field, i);
		size_t width = size_of(f->type);

		if ((uint64_t)f->domain != domain || (uint64_t)f->schema != schema || !width ||
		    (uint64_t)f->offset + width > size)
			continue;
		set_field(call, f->what, word_at(bytes + HEADER_N + f->offset, width));
	}
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Some exports have the bytes as hexadecimal text. */
static bool read_hex(const struct lag_nsys *s, struct lag_nsys_call *call, const char *text,
		     size_t n)
{
	char bytes[512];

	if (n % 2 || n / 2 > sizeof(bytes) || n / 2 < HEADER_N)
		return false;
	for (size_t i = 0; i < n / 2; i++) {
		int hi = hex_digit(text[2 * i]), lo = hex_digit(text[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		bytes[i] = (char)(hi << 4 | lo);
	}
	return read_bytes(s, call, bytes, n / 2);
}

/* Members with the fields' names, at any depth; numbers as such or as text. */
static bool read_json(struct lag_nsys_call *call, const char *text, size_t n)
{
	struct lag_json_reader r;
	enum field what = F_NONE;

	lag_json_init_bytes(&r, text, n, true);
	while (lag_json_next(&r, NULL) == LAG_OK) {
		char number[32];
		char *end;
		uint64_t v;

		if (r.kind == LAG_JSON_KEY) {
			what = field_of(r.text, r.n);
			continue;
		}
		if (what == F_NONE || (r.kind != LAG_JSON_NUMBER && r.kind != LAG_JSON_STRING) ||
		    r.n >= sizeof(number) || !r.n)
			continue;
		memcpy(number, r.text, r.n);
		number[r.n] = '\0';
		v = strtoull(number, &end, 0);
		if (*end == '\0' && number[0] != '-')
			set_field(call, what, v);
		what = F_NONE;
	}
	lag_json_release(&r);
	return true;
}

enum lag_status lag_nsys_keep_call(struct lag_nsys *s, struct lag_nsys_proc *p,
				   struct lag_nsys_call call, const char *name, const char *payload,
				   size_t n_payload, struct lag_err *err)
{
	struct lag_nsys_call *slot;

	call.bytes = call.peer = call.n_ranks = call.comm_rank = call.device = LAG_NONE;
	call.op_id = call.group_id = call.datatype = LAG_NONE;
	call.func = lag_func_parse(name, strlen(name));
	if (strncmp(name, "ncclGroupStart", 14) == 0) {
		call.kind = LAG_NSYS_GROUP_START;
	} else if (strncmp(name, "ncclGroupEnd", 12) == 0) {
		call.kind = LAG_NSYS_GROUP_END;
	} else if (strncmp(name, "ncclComm", 8) == 0) {
		call.kind = LAG_NSYS_INIT;
	} else if (call.func == LAG_FUNC_UNKNOWN) {
		return LAG_OK;
	}
	if (n_payload && payload[0] == '{') {
		(void)read_json(&call, payload, n_payload);
	} else if (n_payload && !read_bytes(s, &call, payload, n_payload)) {
		(void)read_hex(s, &call, payload, n_payload);
	}
	if (call.kind == LAG_NSYS_INIT && !call.has_comm)
		return LAG_OK;
	if (call.kind == LAG_NSYS_OP)
		p->has_payloads = p->has_payloads || call.has_comm;
	slot = lag_vec_push(&p->calls);
	if (!slot)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more operations");
	*slot = call;
	return LAG_OK;
}
