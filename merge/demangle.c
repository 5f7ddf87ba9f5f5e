/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the Itanium C++ ABI: encodings, nested and local names, operators, lambdas. What kernels
 * and their functors use; expressions in template arguments are left mangled. */
#include "merge/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "merge/names.h"

static struct lag_dm_text text(const char *s, size_t n)
{
	return (struct lag_dm_text){ s, n };
}

struct lag_dm_text lag_dm_lit(const char *s)
{
	return text(s, strlen(s));
}

struct lag_dm_text lag_dm_cat(struct lag_dm *d, struct lag_dm_text a, struct lag_dm_text b,
			      struct lag_dm_text c, struct lag_dm_text e)
{
	const struct lag_dm_text parts[] = { a, b, c, e };
	char *to = d->arena + d->used;
	size_t n = a.n + b.n + c.n + e.n, at = 0;

	if (n > LAG_NAME_MAX || n > LAG_DM_ARENA - d->used) {
		d->failed = true;
		return text("", 0);
	}
	for (size_t i = 0; i < 4; i++) {
		if (parts[i].n)
			memcpy(to + at, parts[i].s, parts[i].n);
		at += parts[i].n;
	}
	d->used += n;
	return text(to, n);
}

struct lag_dm_text lag_dm_cat2(struct lag_dm *d, struct lag_dm_text a, const char *b)
{
	return lag_dm_cat(d, a, lag_dm_lit(b), text("", 0), text("", 0));
}

bool lag_dm_fail(struct lag_dm *d)
{
	d->failed = true;
	return false;
}

char lag_dm_peek(const struct lag_dm *d, size_t ahead)
{
	if (ahead >= (size_t)(d->end - d->p))
		return '\0';
	return d->p[ahead];
}

bool lag_dm_eat(struct lag_dm *d, char c)
{
	if (d->p == d->end || *d->p != c)
		return false;
	d->p++;
	return true;
}

bool lag_dm_eat2(struct lag_dm *d, const char *two)
{
	if (lag_dm_peek(d, 0) != two[0] || lag_dm_peek(d, 1) != two[1])
		return false;
	d->p += 2;
	return true;
}

bool lag_dm_number(struct lag_dm *d, size_t *value)
{
	const char *begin = d->p;

	*value = 0;
	while (d->p < d->end && isdigit((unsigned char)*d->p)) {
		if (*value > 1u << 24)
			return lag_dm_fail(d);
		*value = *value * 10 + (size_t)(*d->p++ - '0');
	}
	return d->p > begin;
}

bool lag_dm_enter(struct lag_dm *d)
{
	if (d->failed || d->depth >= LAG_DM_DEPTH || ++d->steps > LAG_DM_STEPS)
		return lag_dm_fail(d);
	d->depth++;
	return true;
}

void lag_dm_leave(struct lag_dm *d)
{
	d->depth--;
}

bool lag_dm_remember(struct lag_dm *d, const struct lag_dm_type *type)
{
	if (d->n_substs == LAG_DM_SUBSTS)
		return lag_dm_fail(d);
	d->substs[d->n_substs++] = *type;
	return true;
}

static bool remember_text(struct lag_dm *d, struct lag_dm_text name)
{
	struct lag_dm_type type = { .left = name };

	return lag_dm_remember(d, &type);
}

bool lag_dm_source_name(struct lag_dm *d, struct lag_dm_text *out)
{
	static const char anonymous[] = "_GLOBAL__N";
	size_t n;

	if (!lag_dm_number(d, &n) || n == 0 || n > (size_t)(d->end - d->p))
		return lag_dm_fail(d);
	*out = text(d->p, n);
	d->p += n;
	if (n >= sizeof(anonymous) - 1 && memcmp(out->s, anonymous, sizeof(anonymous) - 1) == 0)
		*out = lag_dm_lit("(anonymous namespace)");
	return true;
}

bool lag_dm_operator(struct lag_dm *d, struct lag_dm_text *out, bool *conversion)
{
	static const char names[][14] = {
		"nw new", "na new[]", "dl delete", "da delete[]", "ps +",  "ng -",  "ad &",
		"de *",   "co ~",     "pl +",      "mi -",        "ml *",  "dv /",  "rm %",
		"an &",   "or |",     "eo ^",      "aS =",        "pL +=", "mI -=", "mL *=",
		"dV /=",  "rM %=",    "aN &=",     "oR |=",       "eO ^=", "ls <<", "rs >>",
		"lS <<=", "rS >>=",   "eq ==",     "ne !=",       "lt <",  "gt >",  "le <=",
		"ge >=",  "ss <=>",   "nt !",      "aa &&",       "oo ||", "pp ++", "mm --",
		"cm ,",   "pm ->*",   "pt ->",     "cl ()",       "ix []", "qu ?",
	};
	struct lag_dm_type type;

	*conversion = false;
	if (lag_dm_eat2(d, "cv")) {
		*conversion = true;
		if (!lag_dm_type(d, &type))
			return false;
		*out = lag_dm_cat(d, lag_dm_lit("operator "), lag_dm_join(d, &type), text("", 0),
				  text("", 0));
		return !d->failed;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (lag_dm_peek(d, 0) != names[i][0] || lag_dm_peek(d, 1) != names[i][1])
			continue;
		d->p += 2;
		*out = lag_dm_cat2(
			d,
			lag_dm_lit(isalpha((unsigned char)names[i][3]) ? "operator " : "operator"),
			names[i] + 3);
		return !d->failed;
	}
	return lag_dm_fail(d);
}

/* "[number] _" after a lambda or unnamed type: none is the first. */
static bool ordinal(struct lag_dm *d, struct lag_dm_text *out)
{
	char digits[24];
	size_t n = 0, at = sizeof(digits);
	bool numbered = isdigit((unsigned char)lag_dm_peek(d, 0));

	if (numbered && !lag_dm_number(d, &n))
		return false;
	if (!lag_dm_eat(d, '_'))
		return lag_dm_fail(d);
	n = numbered ? n + 2 : 1;
	for (; n; n /= 10)
		digits[--at] = (char)('0' + n % 10);
	*out = lag_dm_cat(d, text(digits + at, sizeof(digits) - at), text("", 0), text("", 0),
			  text("", 0));
	return !d->failed;
}

/* Ul...E_ and Ut_ */
static bool unnamed(struct lag_dm *d, struct lag_dm_text *out)
{
	struct lag_dm_text params, number;

	if (lag_dm_eat2(d, "Ul")) {
		if (!lag_dm_params(d, &params) || !lag_dm_eat(d, 'E') || !ordinal(d, &number))
			return lag_dm_fail(d);
		*out = lag_dm_cat(d, lag_dm_lit("{lambda"), params, lag_dm_lit("#"), number);
	} else {
		if (!lag_dm_eat2(d, "Ut") || !ordinal(d, &number))
			return lag_dm_fail(d);
		*out = lag_dm_cat(d, lag_dm_lit("{unnamed type#"), number, text("", 0),
				  text("", 0));
	}
	*out = lag_dm_cat2(d, *out, "}");
	return !d->failed;
}

/* Constructors and destructors take the name of their class without its arguments. */
static bool structor(struct lag_dm *d, struct lag_dm_name *name, struct lag_dm_text *out)
{
	bool destructor = lag_dm_peek(d, 0) == 'D';

	if (!isdigit((unsigned char)lag_dm_peek(d, 1)))
		return lag_dm_fail(d);
	d->p += 2;
	*out = lag_dm_cat(d, lag_dm_lit(destructor ? "~" : ""), name->last, text("", 0),
			  text("", 0));
	name->no_return = true;
	return !d->failed;
}

static bool unqualified(struct lag_dm *d, struct lag_dm_name *name, struct lag_dm_text *out)
{
	struct lag_dm_text tag;
	char c;

	(void)lag_dm_eat(d, 'L');
	c = lag_dm_peek(d, 0);
	if (isdigit((unsigned char)c)) {
		if (!lag_dm_source_name(d, out))
			return false;
	} else if (c == 'U') {
		if (!unnamed(d, out))
			return false;
	} else if (c == 'C' || c == 'D') {
		if (!structor(d, name, out))
			return false;
	} else if (!lag_dm_operator(d, out, &name->no_return)) {
		return false;
	}
	while (lag_dm_eat(d, 'B')) {
		if (!lag_dm_source_name(d, &tag))
			return false;
		*out = lag_dm_cat(d, *out, lag_dm_lit("[abi:"), tag, lag_dm_lit("]"));
	}
	return !d->failed;
}

static struct lag_dm_text qualify(struct lag_dm *d, struct lag_dm_text scope,
				  struct lag_dm_text name)
{
	return scope.n ? lag_dm_cat(d, scope, lag_dm_lit("::"), name, text("", 0)) : name;
}

/* One component of a nested name; *more is false at its end. */
static bool component(struct lag_dm *d, struct lag_dm_name *out, bool keep_args, bool *remember)
{
	struct lag_dm_type type;
	struct lag_dm_text part;
	bool std_only;
	char c = lag_dm_peek(d, 0);

	*remember = true;
	out->template_args = false;
	if (c == 'S') {
		if (out->text.n || !lag_dm_substitution(d, &type, &std_only))
			return lag_dm_fail(d);
		out->text = out->last = lag_dm_join(d, &type);
		*remember = false;
		return !d->failed;
	}
	if (c == 'T') {
		if (out->text.n || !lag_dm_template_param(d, &type))
			return lag_dm_fail(d);
		out->text = out->last = lag_dm_join(d, &type);
		return !d->failed;
	}
	if (c == 'I') {
		if (!out->text.n || !lag_dm_template_args(d, &part, keep_args))
			return lag_dm_fail(d);
		out->text = lag_dm_cat(d, out->text, part, text("", 0), text("", 0));
		out->template_args = true;
		return !d->failed;
	}
	if (!unqualified(d, out, &part))
		return false;
	out->text = qualify(d, out->text, part);
	out->last = part;
	return !d->failed;
}

static bool nested(struct lag_dm *d, struct lag_dm_name *out, bool keep_args)
{
	bool is_const, is_volatile, remember;
	struct lag_dm_text ref = text("", 0);

	(void)lag_dm_eat(d, 'r');
	is_volatile = lag_dm_eat(d, 'V');
	is_const = lag_dm_eat(d, 'K');
	if (lag_dm_eat(d, 'R')) {
		ref = lag_dm_lit(" &");
	} else if (lag_dm_eat(d, 'O')) {
		ref = lag_dm_lit(" &&");
	}
	while (!lag_dm_eat(d, 'E')) {
		if (lag_dm_eat(d, 'M'))
			continue;
		if (!component(d, out, keep_args, &remember))
			return false;
		if (remember && lag_dm_peek(d, 0) != 'E' && !remember_text(d, out->text))
			return false;
	}
	out->cv = lag_dm_cat(d, lag_dm_lit(is_const ? " const" : ""),
			     lag_dm_lit(is_volatile ? " volatile" : ""), ref, text("", 0));
	return out->text.n ? !d->failed : lag_dm_fail(d);
}

/* "_", "__n_": which of several equal names in one function. */
static void discriminator(struct lag_dm *d)
{
	size_t n;

	if (lag_dm_peek(d, 0) != '_')
		return;
	if (lag_dm_peek(d, 1) == '_' && isdigit((unsigned char)lag_dm_peek(d, 2))) {
		d->p += 2;
		(void)lag_dm_number(d, &n);
		(void)lag_dm_eat(d, '_');
	} else if (isdigit((unsigned char)lag_dm_peek(d, 1))) {
		d->p += 2;
	}
}

/* Z <function> E <name>: something declared inside a function. */
static bool local(struct lag_dm *d, struct lag_dm_name *out, bool keep_args)
{
	struct lag_dm_text function, number;
	size_t skip;

	if (!lag_dm_encoding(d, &function) || !lag_dm_eat(d, 'E'))
		return lag_dm_fail(d);
	if (lag_dm_eat(d, 's')) {
		discriminator(d);
		out->text = lag_dm_cat2(d, function, "::string literal");
		return !d->failed;
	}
	if (lag_dm_eat(d, 'd')) {
		if (isdigit((unsigned char)lag_dm_peek(d, 0)) && !lag_dm_number(d, &skip))
			return false;
		if (!lag_dm_eat(d, '_'))
			return lag_dm_fail(d);
	}
	if (!lag_dm_name(d, out, keep_args))
		return false;
	discriminator(d);
	number = out->text;
	out->text = qualify(d, function, number);
	return !d->failed;
}

/* A name that is not nested: std::x, S_, or x; with or without template arguments. */
static bool unscoped(struct lag_dm *d, struct lag_dm_name *out, bool keep_args)
{
	struct lag_dm_type type;
	struct lag_dm_text part;
	bool std_only = false, known = false;

	if (lag_dm_peek(d, 0) == 'S') {
		if (!lag_dm_substitution(d, &type, &std_only))
			return false;
		out->text = out->last = lag_dm_join(d, &type);
		known = !std_only;
	}
	if (!known) {
		if (!unqualified(d, out, &part))
			return false;
		out->text = qualify(d, out->text, part);
		out->last = part;
	}
	if (lag_dm_peek(d, 0) == 'I') {
		if (!known && !remember_text(d, out->text))
			return false;
		if (!lag_dm_template_args(d, &part, keep_args))
			return false;
		out->text = lag_dm_cat(d, out->text, part, text("", 0), text("", 0));
		out->template_args = true;
	} else if (known) {
		return lag_dm_fail(d);
	}
	return !d->failed;
}

bool lag_dm_name(struct lag_dm *d, struct lag_dm_name *out, bool keep_args)
{
	bool good;

	*out = (struct lag_dm_name){ 0 };
	if (!lag_dm_enter(d))
		return false;
	if (lag_dm_eat(d, 'N')) {
		good = nested(d, out, keep_args);
	} else if (lag_dm_eat(d, 'Z')) {
		good = local(d, out, keep_args);
	} else {
		good = unscoped(d, out, keep_args);
	}
	lag_dm_leave(d);
	return good && !d->failed;
}

static bool at_end(const struct lag_dm *d)
{
	return d->p == d->end || *d->p == 'E' || *d->p == '.';
}

static bool encoding(struct lag_dm *d, struct lag_dm_text *out)
{
	struct lag_dm_name name;
	struct lag_dm_type ret = { 0 };
	struct lag_dm_text params, head;

	/* Tables, guards and thunks are no functions. */
	if (lag_dm_peek(d, 0) == 'T' || lag_dm_peek(d, 0) == 'G')
		return lag_dm_fail(d);
	if (!lag_dm_name(d, &name, true))
		return false;
	if (at_end(d)) {
		*out = name.text;
		return true;
	}
	if (name.template_args && !name.no_return && !lag_dm_type(d, &ret))
		return false;
	if (!lag_dm_params(d, &params))
		return false;
	head = ret.left.n ? lag_dm_cat2(d, ret.left, ret.wraps ? "" : " ") : text("", 0);
	*out = lag_dm_cat(d, head, name.text, params, ret.right);
	*out = lag_dm_cat(d, *out, name.cv, text("", 0), text("", 0));
	return !d->failed;
}

bool lag_dm_encoding(struct lag_dm *d, struct lag_dm_text *out)
{
	bool good;

	if (!lag_dm_enter(d))
		return false;
	good = encoding(d, out);
	lag_dm_leave(d);
	return good && !d->failed;
}

bool lag_demangle(const char *mangled, struct lag_buf *out)
{
	size_t n = strlen(mangled);
	struct lag_dm_text result = { 0 };
	struct lag_dm *d;
	bool good;

	if (n < 3 || mangled[0] != '_' || mangled[1] != 'Z' || n > LAG_NAME_MAX)
		return false;
	d = calloc(1, sizeof(*d));
	if (!d)
		return false;
	d->arena = malloc(LAG_DM_ARENA);
	d->p = mangled + 2;
	d->end = mangled + n;
	good = d->arena && lag_dm_encoding(d, &result) && (d->p == d->end || *d->p == '.');
	if (good) {
		lag_buf_add(out, result.s, result.n);
		/* A compiler's copy of the function: ".constprop.0". */
		if (d->p != d->end)
			lag_buf_printf(out, " [clone %s]", d->p);
	}
	free(d->arena);
	free(d);
	return good;
}
