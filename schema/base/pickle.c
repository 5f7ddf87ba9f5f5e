/* SPDX-License-Identifier: Apache-2.0 */
/* The pickle machine: a stack, marks and a memo, and for each opcode what it does to them. What an
 * opcode may not do is in the same table, with its name for the message. */
#include <string.h>

#include "schema/base/pickle_internal.h"

#define MEMO_BYTES 48 /* what an entry of the memo takes, with the map's spare room */

typedef enum lag_status opcode(struct lag_pickle *p, uint8_t op);

static opcode op_refuse, op_proto, op_frame, op_mark, op_pop, op_pop_mark, op_dup, op_empty,
	op_append, op_extend, op_collect, op_tuple, op_set_item, op_put, op_get, op_memoize;

/* A NULL run is STOP. */
static const struct {
	const char *name; /* NULL: no such opcode */
	opcode *run;
} opcodes[256] = {
	['('] = { "MARK", op_mark },
	['.'] = { "STOP", NULL },
	['0'] = { "POP", op_pop },
	['1'] = { "POP_MARK", op_pop_mark },
	['2'] = { "DUP", op_dup },
	['F'] = { "FLOAT", lag_pickle_real },
	['I'] = { "INT", lag_pickle_digits },
	['J'] = { "BININT", lag_pickle_int },
	['K'] = { "BININT1", lag_pickle_int },
	['L'] = { "LONG", lag_pickle_digits },
	['M'] = { "BININT2", lag_pickle_int },
	['N'] = { "NONE", lag_pickle_none },
	['S'] = { "STRING", lag_pickle_text_line },
	['T'] = { "BINSTRING", lag_pickle_text },
	['U'] = { "SHORT_BINSTRING", lag_pickle_text },
	['V'] = { "UNICODE", lag_pickle_text_line },
	['X'] = { "BINUNICODE", lag_pickle_text },
	['B'] = { "BINBYTES", lag_pickle_text },
	['C'] = { "SHORT_BINBYTES", lag_pickle_text },
	['G'] = { "BINFLOAT", lag_pickle_real },
	['a'] = { "APPEND", op_append },
	['d'] = { "DICT", op_collect },
	['e'] = { "APPENDS", op_extend },
	['g'] = { "GET", op_get },
	['h'] = { "BINGET", op_get },
	['j'] = { "LONG_BINGET", op_get },
	['l'] = { "LIST", op_collect },
	['p'] = { "PUT", op_put },
	['q'] = { "BINPUT", op_put },
	['r'] = { "LONG_BINPUT", op_put },
	['s'] = { "SETITEM", op_set_item },
	['t'] = { "TUPLE", op_collect },
	['u'] = { "SETITEMS", op_extend },
	['}'] = { "EMPTY_DICT", op_empty },
	[']'] = { "EMPTY_LIST", op_empty },
	[')'] = { "EMPTY_TUPLE", op_empty },
	[0x80] = { "PROTO", op_proto },
	[0x85] = { "TUPLE1", op_tuple },
	[0x86] = { "TUPLE2", op_tuple },
	[0x87] = { "TUPLE3", op_tuple },
	[0x88] = { "NEWTRUE", lag_pickle_bool },
	[0x89] = { "NEWFALSE", lag_pickle_bool },
	[0x8a] = { "LONG1", lag_pickle_long },
	[0x8b] = { "LONG4", lag_pickle_long },
	[0x8c] = { "SHORT_BINUNICODE", lag_pickle_text },
	[0x8d] = { "BINUNICODE8", lag_pickle_text },
	[0x8e] = { "BINBYTES8", lag_pickle_text },
	[0x8f] = { "EMPTY_SET", op_empty },
	[0x90] = { "ADDITEMS", op_extend },
	[0x91] = { "FROZENSET", op_collect },
	[0x94] = { "MEMOIZE", op_memoize },
	[0x95] = { "FRAME", op_frame },
	[0x96] = { "BYTEARRAY8", lag_pickle_text },
	/* What makes, calls or fetches something. */
	['P'] = { "PERSID", op_refuse },
	['Q'] = { "BINPERSID", op_refuse },
	['R'] = { "REDUCE", op_refuse },
	['b'] = { "BUILD", op_refuse },
	['c'] = { "GLOBAL", op_refuse },
	['i'] = { "INST", op_refuse },
	['o'] = { "OBJ", op_refuse },
	[0x81] = { "NEWOBJ", op_refuse },
	[0x82] = { "EXT1", op_refuse },
	[0x83] = { "EXT2", op_refuse },
	[0x84] = { "EXT4", op_refuse },
	[0x92] = { "NEWOBJ_EX", op_refuse },
	[0x93] = { "STACK_GLOBAL", op_refuse },
	[0x97] = { "NEXT_BUFFER", op_refuse },
	[0x98] = { "READONLY_BUFFER", op_refuse },
};

static const char *name_at(const struct lag_pickle *p)
{
	const char *name = opcodes[p->in[p->op_at]].name;

	return name ? name : "unknown";
}

enum lag_status lag_pickle_bad(struct lag_pickle *p, const char *what)
{
	return lag_err_set(p->err, LAG_ERR_INPUT, "pickle: %s at byte %zu %s", name_at(p), p->op_at,
			   what);
}

enum lag_status lag_pickle_full(struct lag_pickle *p)
{
	return lag_err_set(p->err, LAG_ERR_LIMIT, "pickle: more data than is allowed, at byte %zu",
			   p->op_at);
}

const uint8_t *lag_pickle_take(struct lag_pickle *p, size_t n)
{
	const uint8_t *at = p->in + p->at;

	if (n > p->n - p->at) {
		(void)lag_pickle_bad(p, "goes beyond the end of the file");
		return NULL;
	}
	p->at += n;
	return at;
}

bool lag_pickle_number(struct lag_pickle *p, unsigned n, uint64_t *out)
{
	const uint8_t *bytes = lag_pickle_take(p, n);

	*out = 0;
	for (unsigned i = n; bytes && i > 0; i--)
		*out = *out << 8 | bytes[i - 1];
	return bytes != NULL;
}

const char *lag_pickle_line(struct lag_pickle *p, size_t *n)
{
	const uint8_t *at = p->in + p->at;
	const uint8_t *end = p->at < p->n ? memchr(at, '\n', p->n - p->at) : NULL;

	if (!end) {
		(void)lag_pickle_bad(p, "goes beyond the end of the file");
		return NULL;
	}
	*n = (size_t)(end - at);
	p->at += *n + 1;
	if (*n && at[*n - 1] == '\r')
		--*n;
	return (const char *)at;
}

enum lag_status lag_pickle_push(struct lag_pickle *p, struct lag_datum *d)
{
	struct lag_datum **slot = d ? lag_vec_push(&p->stack) : NULL;

	if (!slot)
		return lag_pickle_full(p);
	*slot = d;
	return LAG_OK;
}

/* Height below which the opcode may not reach: items under a mark are another's. */
static size_t floor_of(const struct lag_pickle *p)
{
	return p->marks.n ? LAG_VEC_AT(&p->marks, size_t, p->marks.n - 1) : 0;
}

/* The top item, taken off; NULL (err is set) when there is none. */
static struct lag_datum *pop(struct lag_pickle *p)
{
	if (p->stack.n <= floor_of(p)) {
		(void)lag_pickle_bad(p, "finds nothing on the stack");
		return NULL;
	}
	return LAG_VEC_AT(&p->stack, struct lag_datum *, --p->stack.n);
}

static struct lag_datum *top(struct lag_pickle *p)
{
	struct lag_datum *d = pop(p);

	p->stack.n += d != NULL;
	return d;
}

static enum lag_status op_refuse(struct lag_pickle *p, uint8_t op)
{
	(void)op;
	return lag_pickle_bad(p, "would make more than plain data: refused");
}

static enum lag_status op_proto(struct lag_pickle *p, uint8_t op)
{
	uint64_t version;

	(void)op;
	if (!lag_pickle_number(p, 1, &version))
		return LAG_ERR_INPUT;
	return version > 5 ? lag_pickle_bad(p, "is of a protocol above 5") : LAG_OK;
}

/* Frames only say how much to read ahead. */
static enum lag_status op_frame(struct lag_pickle *p, uint8_t op)
{
	(void)op;
	return lag_pickle_take(p, 8) ? LAG_OK : LAG_ERR_INPUT;
}

static enum lag_status op_mark(struct lag_pickle *p, uint8_t op)
{
	size_t *mark = p->marks.n < LAG_PICKLE_NESTING_MAX ? lag_vec_push(&p->marks) : NULL;

	(void)op;
	if (!mark)
		return lag_pickle_full(p);
	*mark = p->stack.n;
	return LAG_OK;
}

static enum lag_status op_pop_mark(struct lag_pickle *p, uint8_t op)
{
	(void)op;
	if (!p->marks.n)
		return lag_pickle_bad(p, "has no mark");
	p->stack.n = floor_of(p);
	p->marks.n--;
	return LAG_OK;
}

static enum lag_status op_pop(struct lag_pickle *p, uint8_t op)
{
	if (p->marks.n && p->stack.n == floor_of(p))
		return op_pop_mark(p, op);
	return pop(p) ? LAG_OK : LAG_ERR_INPUT;
}

static enum lag_status op_dup(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *d = top(p);

	(void)op;
	return d ? lag_pickle_push(p, d) : LAG_ERR_INPUT;
}

static enum lag_datum_kind kind_of(uint8_t op)
{
	switch (op) {
	case '}':
	case 'd':
	case 's':
	case 'u':
		return LAG_DATUM_DICT;
	case ')':
	case 't':
		return LAG_DATUM_TUPLE;
	case 0x8f:
	case 0x90:
	case 0x91:
		return LAG_DATUM_SET;
	default:
		return LAG_DATUM_LIST;
	}
}

static enum lag_status op_empty(struct lag_pickle *p, uint8_t op)
{
	return lag_pickle_push(p, lag_datum_new(p->arena, kind_of(op)));
}

/* Moves what lies above the last mark into `to`, and the mark away. */
static enum lag_status gather(struct lag_pickle *p, struct lag_datum *to)
{
	size_t from = floor_of(p);

	if (to->kind == LAG_DATUM_DICT && (p->stack.n - from) % 2)
		return lag_pickle_bad(p, "has a key without a value");
	for (size_t i = from; i < p->stack.n; i++) {
		if (!lag_datum_append(p->arena, to, LAG_VEC_AT(&p->stack, struct lag_datum *, i)))
			return lag_pickle_full(p);
	}
	p->stack.n = from;
	p->marks.n--;
	return LAG_OK;
}

/* LIST, TUPLE, DICT, FROZENSET: of what lies above the mark. */
static enum lag_status op_collect(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *d;
	enum lag_status st;

	if (!p->marks.n)
		return lag_pickle_bad(p, "has no mark");
	d = lag_datum_new(p->arena, kind_of(op));
	st = d ? gather(p, d) : lag_pickle_full(p);
	return lag_failed(st) ? st : lag_pickle_push(p, d);
}

/* APPENDS, SETITEMS, ADDITEMS: into what lies below the mark. */
static enum lag_status op_extend(struct lag_pickle *p, uint8_t op)
{
	size_t from = floor_of(p);
	size_t below = p->marks.n > 1 ? LAG_VEC_AT(&p->marks, size_t, p->marks.n - 2) : 0;
	struct lag_datum *to;

	if (!p->marks.n || from <= below)
		return lag_pickle_bad(p, "has nothing to add to");
	to = LAG_VEC_AT(&p->stack, struct lag_datum *, from - 1);
	if (to->kind != kind_of(op))
		return lag_pickle_bad(p, "adds to something of another kind");
	return gather(p, to);
}

static enum lag_status op_append(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *item = pop(p), *to = item ? top(p) : NULL;

	if (!to)
		return LAG_ERR_INPUT;
	if (to->kind != kind_of(op))
		return lag_pickle_bad(p, "adds to something of another kind");
	return lag_datum_append(p->arena, to, item) ? LAG_OK : lag_pickle_full(p);
}

static enum lag_status op_set_item(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *value = pop(p), *key = value ? pop(p) : NULL;
	struct lag_datum *to = key ? top(p) : NULL;

	if (!to)
		return LAG_ERR_INPUT;
	if (to->kind != kind_of(op))
		return lag_pickle_bad(p, "adds to something of another kind");
	return lag_datum_append(p->arena, to, key) && lag_datum_append(p->arena, to, value)
		       ? LAG_OK
		       : lag_pickle_full(p);
}

static enum lag_status op_tuple(struct lag_pickle *p, uint8_t op)
{
	struct lag_datum *d = lag_datum_new(p->arena, LAG_DATUM_TUPLE);
	size_t n = op - 0x84u;

	if (p->stack.n - floor_of(p) < n)
		return lag_pickle_bad(p, "finds nothing on the stack");
	for (size_t i = p->stack.n - n; d && i < p->stack.n; i++) {
		if (!lag_datum_append(p->arena, d, LAG_VEC_AT(&p->stack, struct lag_datum *, i)))
			d = NULL;
	}
	p->stack.n -= n;
	return lag_pickle_push(p, d);
}

/* Memo numbers stand as a byte, four bytes, or digits. */
static bool memo_number(struct lag_pickle *p, uint8_t op, uint64_t *out)
{
	const char *line;
	size_t n;

	if (op == 'q' || op == 'h')
		return lag_pickle_number(p, 1, out);
	if (op == 'r' || op == 'j')
		return lag_pickle_number(p, 4, out);
	line = lag_pickle_line(p, &n);
	*out = 0;
	for (size_t i = 0; line && i < n; i++) {
		if (line[i] < '0' || line[i] > '9' || n > 10) {
			(void)lag_pickle_bad(p, "is no memo number");
			return false;
		}
		*out = *out * 10 + (uint64_t)(line[i] - '0');
	}
	return line != NULL;
}

static enum lag_status put(struct lag_pickle *p, uint64_t number)
{
	struct lag_datum *d = top(p);

	if (!d)
		return LAG_ERR_INPUT;
	/* What the memo takes is bounded like what it names. */
	if (p->memo.n >= p->arena->max / MEMO_BYTES)
		return lag_pickle_full(p);
	return lag_failed(lag_map_set(&p->memo, number, (uint64_t)(uintptr_t)d))
		       ? lag_pickle_full(p)
		       : LAG_OK;
}

static enum lag_status op_put(struct lag_pickle *p, uint8_t op)
{
	uint64_t number;

	return memo_number(p, op, &number) ? put(p, number) : LAG_ERR_INPUT;
}

static enum lag_status op_memoize(struct lag_pickle *p, uint8_t op)
{
	(void)op;
	return put(p, p->memo.n);
}

static enum lag_status op_get(struct lag_pickle *p, uint8_t op)
{
	uint64_t number, at;

	if (!memo_number(p, op, &number))
		return LAG_ERR_INPUT;
	if (!lag_map_find(&p->memo, number, &at))
		return lag_pickle_bad(p, "asks for what was never memoised");
	return lag_pickle_push(p, (struct lag_datum *)(uintptr_t)at);
}

static enum lag_status run(struct lag_pickle *p, struct lag_datum **out)
{
	while (p->at < p->n) {
		uint8_t op = p->in[p->op_at = p->at++];
		enum lag_status st;

		if (!opcodes[op].name) {
			return lag_err_set(p->err, LAG_ERR_INPUT,
					   "pickle: byte 0x%02x at byte %zu is no opcode", op,
					   p->op_at);
		}
		if (!opcodes[op].run) {
			*out = pop(p);
			return *out ? LAG_OK : LAG_ERR_INPUT;
		}
		st = opcodes[op].run(p, op);
		if (lag_failed(st))
			return st;
	}
	return lag_err_set(p->err, LAG_ERR_INPUT, "pickle: cut off at byte %zu: no STOP", p->n);
}

enum lag_status lag_pickle_read(const void *bytes, size_t n, struct lag_arena *arena,
				struct lag_datum **out, size_t *used, struct lag_err *err)
{
	struct lag_err own = { 0 };
	struct lag_pickle p = { .in = bytes,
				.n = n,
				.arena = arena,
				.stack = LAG_VEC_INIT(struct lag_datum *),
				.marks = LAG_VEC_INIT(size_t),
				.err = err ? err : &own };
	enum lag_status st;

	/* What a stack item costs counts as data, too. */
	p.stack.max = arena->max / sizeof(struct lag_datum *) + 1;
	st = run(&p, out);
	if (used)
		*used = p.at;
	lag_vec_release(&p.stack);
	lag_vec_release(&p.marks);
	lag_map_release(&p.memo);
	return st;
}
