/* SPDX-License-Identifier: Apache-2.0 */
/* State of one demangling. Everything is text: a component is rendered once, substitutions and template
 * parameters refer to rendered text. Memory, depth and steps are bounded; hostile names fail. */
#ifndef MERGE_DEMANGLE_H
#define MERGE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define LAG_DM_ARENA   262144u
#define LAG_DM_DEPTH   96
#define LAG_DM_STEPS   20000u
#define LAG_DM_SUBSTS  1024u
#define LAG_DM_ARGS    256u
#define LAG_DM_MEMBERS 1024u

struct lag_dm_text {
	const char *s; /* in the arena, or constant */
	size_t n;
};

/* A type stands left and right of what it declares: "void (*" and ")(int)". */
struct lag_dm_type {
	struct lag_dm_text left, right;
	bool wraps; /* function or array: a pointer to it needs parentheses */
	bool pack;  /* members[first .. first + n) of it */
	size_t first, n;
};

struct lag_dm {
	const char *p, *end;
	char *arena;
	size_t used;
	unsigned depth, steps;
	bool failed;
	struct lag_dm_type substs[LAG_DM_SUBSTS];
	size_t n_substs;
	struct lag_dm_type args[LAG_DM_ARGS]; /* what T_, T0_, ... stand for */
	size_t n_args;
	struct lag_dm_type members[LAG_DM_MEMBERS]; /* of packs */
	size_t n_members;
	/* While a pack expansion is rendered: which member, and how many the packs in it have. */
	bool expanding;
	size_t expand_index, expand_n;
};

/* What a name turned out to be. */
struct lag_dm_name {
	struct lag_dm_text text;
	struct lag_dm_text last; /* its last component, for constructors */
	struct lag_dm_text cv;   /* " const" of a member function */
	bool template_args;      /* ends in template arguments: the function has a return type */
	bool no_return;          /* constructor, destructor, conversion */
};

/* ---- text ---- */

struct lag_dm_text lag_dm_lit(const char *s);
/* Up to four texts in a row. Sets failed when the arena is full. */
struct lag_dm_text lag_dm_cat(struct lag_dm *d, struct lag_dm_text a, struct lag_dm_text b,
			      struct lag_dm_text c, struct lag_dm_text e);
struct lag_dm_text lag_dm_cat2(struct lag_dm *d, struct lag_dm_text a, const char *b);

/* ---- reading ---- */

bool lag_dm_eat(struct lag_dm *d, char c);
bool lag_dm_eat2(struct lag_dm *d, const char *two);
char lag_dm_peek(const struct lag_dm *d, size_t ahead); /* '\0' past the end */
bool lag_dm_number(struct lag_dm *d, size_t *value);
bool lag_dm_fail(struct lag_dm *d);  /* false */
bool lag_dm_enter(struct lag_dm *d); /* depth and steps; every success needs a leave */
void lag_dm_leave(struct lag_dm *d);
bool lag_dm_remember(struct lag_dm *d, const struct lag_dm_type *type);

/* ---- grammar; false = failed ---- */

bool lag_dm_encoding(struct lag_dm *d, struct lag_dm_text *out);
bool lag_dm_name(struct lag_dm *d, struct lag_dm_name *out, bool keep_args);
bool lag_dm_type(struct lag_dm *d, struct lag_dm_type *out);
bool lag_dm_template_args(struct lag_dm *d, struct lag_dm_text *out, bool keep);
/* "S_", "S0_", "St" and friends; *known says that more than "std" was named. */
bool lag_dm_substitution(struct lag_dm *d, struct lag_dm_type *out, bool *std_only);
bool lag_dm_template_param(struct lag_dm *d, struct lag_dm_type *out);
/* Types up to `stop` ('E' or the end): "(int, float)"; a lone void is "()". */
bool lag_dm_params(struct lag_dm *d, struct lag_dm_text *out);
bool lag_dm_source_name(struct lag_dm *d, struct lag_dm_text *out);
bool lag_dm_operator(struct lag_dm *d, struct lag_dm_text *out, bool *conversion);

/* The type as one text. */
struct lag_dm_text lag_dm_join(struct lag_dm *d, const struct lag_dm_type *type);

#endif
