/* SPDX-License-Identifier: Apache-2.0 */
/* Between json_read.c (grammar) and json_lex.c (bytes); nobody else includes this. */
#ifndef SCHEMA_BASE_JSON_LEX_H
#define SCHEMA_BASE_JSON_LEX_H

#include "schema/base/json_read.h"

#ifndef LAG_JSON_WINDOW /* smaller where its ends are to be met in short inputs */
#define LAG_JSON_WINDOW ((size_t)1 << 18)
#endif
/* So many bytes are at hand, where the input has them, when a token other than a string begins:
 * longer words and numbers are taken apart. */
#define LAG_JSON_AHEAD ((size_t)1024)

/* Where a string stands decides what may follow its closing quote. */
enum lag_json_place {
	LAG_JSON_AT_TOP,
	LAG_JSON_AS_KEY,
	LAG_JSON_IN_OBJECT,
	LAG_JSON_IN_ARRAY
};

/* Moves unread bytes to the window's front and fills the rest. */
enum lag_status lag_json_more(struct lag_json_reader *r, struct lag_err *err) LAG_MUST_USE;

/* Counts a repair at the current position; in strict mode it is the error instead. */
enum lag_status lag_json_repaired(struct lag_json_reader *r, enum lag_json_repair what,
				  struct lag_err *err) LAG_MUST_USE;

/* Skips white space; then pos == end only at the end of the input. */
enum lag_status lag_json_space(struct lag_json_reader *r, struct lag_err *err) LAG_MUST_USE;

/* At a quote: sets text and n, steps over the string. LAG_END: the input ended inside it. */
enum lag_status lag_json_string(struct lag_json_reader *r, enum lag_json_place place,
				struct lag_err *err) LAG_MUST_USE;

bool lag_json_is_word(char c);
bool lag_json_is_number(const char *text, size_t n);    /* by JSON's grammar */
bool lag_json_is_no_number(const char *text, size_t n); /* inf, -Infinity, NaN, ... */

#endif
