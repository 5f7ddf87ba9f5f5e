/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the pickle reader: the machine that opcodes work on. */
#ifndef SCHEMA_BASE_PICKLE_INTERNAL_H
#define SCHEMA_BASE_PICKLE_INTERNAL_H

#include "schema/base/map.h"
#include "schema/base/mem.h"
#include "schema/base/pickle.h"

struct lag_pickle {
	const uint8_t *in;
	size_t n, at;
	size_t op_at; /* offset of the opcode at hand */
	struct lag_arena *arena;
	struct lag_vec stack; /* struct lag_datum * */
	struct lag_vec marks; /* size_t: heights of the stack */
	struct lag_map memo;  /* number -> address of a datum */
	struct lag_err *err;
};

/* Error texts name the opcode's offset. */
enum lag_status lag_pickle_bad(struct lag_pickle *p, const char *what);
enum lag_status lag_pickle_full(struct lag_pickle *p);

/* n bytes of argument; NULL (err is set) when the file ends before. */
const uint8_t *lag_pickle_take(struct lag_pickle *p, size_t n);
/* Little-endian number of n <= 8 bytes; false when the file ends before. */
bool lag_pickle_number(struct lag_pickle *p, unsigned n, uint64_t *out);
/* Up to the next newline, which is taken too. NULL (err is set) when there is none. */
const char *lag_pickle_line(struct lag_pickle *p, size_t *n);

/* Pushes d; NULL means that the arena is full. */
enum lag_status lag_pickle_push(struct lag_pickle *p, struct lag_datum *d) LAG_MUST_USE;

/* pickle_scalar.c: opcodes that push numbers and texts. */
enum lag_status lag_pickle_none(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_bool(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_int(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_long(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_digits(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_real(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_text(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;
enum lag_status lag_pickle_text_line(struct lag_pickle *p, uint8_t op) LAG_MUST_USE;

#endif
