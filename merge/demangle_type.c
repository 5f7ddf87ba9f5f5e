/* SPDX-License-Identifier: Apache-2.0 */
/* Types, template arguments, substitutions and literals of the Itanium C++ ABI. */
#include <ctype.h>
#include <string.h>

#include "merge/demangle.h"

static const struct lag_dm_text none = { "", 0 };

static struct lag_dm_type plain(struct lag_dm_text text)
{
	return (struct lag_dm_type){ .left = text, .right = none };
}

struct lag_dm_text lag_dm_join(struct lag_dm *d, const struct lag_dm_type *type)
{
	struct lag_dm_text all = none;

	if (!type->pack) {
		return type->right.n ? lag_dm_cat(d, type->left, type->right, none, none)
				     : type->left;
	}
	for (size_t i = 0; i < type->n && !d->failed; i++) {
		all = lag_dm_cat(d, all, lag_dm_lit(i ? ", " : ""),
				 lag_dm_join(d, &d->members[type->first + i]), none);
	}
	return all;
}

static const char *builtin(char c)
{
	static const struct {
		char c;
		const char *name;
	} types[] = {
		{ 'v', "void" },        { 'w', "wchar_t" },
		{ 'b', "bool" },        { 'c', "char" },
		{ 'a', "signed char" }, { 'h', "unsigned char" },
		{ 's', "short" },       { 't', "unsigned short" },
		{ 'i', "int" },         { 'j', "unsigned int" },
		{ 'l', "long" },        { 'm', "unsigned long" },
		{ 'x', "long long" },   { 'y', "unsigned long long" },
		{ 'n', "__int128" },    { 'o', "unsigned __int128" },
		{ 'f', "float" },       { 'd', "double" },
		{ 'e', "long double" }, { 'g', "__float128" },
		{ 'z', "..." },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].c == c)
			return types[i].name;
	}
	return NULL;
}

static const char *builtin_d(char c)
{
	static const struct {
		char c;
		const char *name;
	} types[] = {
		{ 'd', "decimal64" },      { 'e', "decimal128" },
		{ 'f', "decimal32" },      { 'h', "half" },
		{ 'i', "char32_t" },       { 's', "char16_t" },
		{ 'u', "char8_t" },        { 'a', "auto" },
		{ 'c', "decltype(auto)" }, { 'n', "decltype(nullptr)" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].c == c)
			return types[i].name;
	}
	return NULL;
}

/* Base-36 number of "S1A_" and decimal one of "T3_", counted from the bare form. */
static bool sequence_number(struct lag_dm *d, unsigned base, size_t *index)
{
	size_t value = 0;
	bool any = false;

	while (!lag_dm_eat(d, '_')) {
		char c = lag_dm_peek(d, 0);
		unsigned digit;

		if (isdigit((unsigned char)c)) {
			digit = (unsigned)(c - '0');
		} else if (base == 36 && c >= 'A' && c <= 'Z') {
			digit = (unsigned)(c - 'A') + 10;
		} else {
			return lag_dm_fail(d);
		}
		value = value * base + digit;
		if (value > 1u << 20)
			return lag_dm_fail(d);
		any = true;
		d->p++;
	}
	*index = any ? value + 1 : 0;
	return true;
}

bool lag_dm_substitution(struct lag_dm *d, struct lag_dm_type *out, bool *std_only)
{
	static const char *const names[] = {
		"t std",
		"a std::allocator",
		"b std::basic_string",
		"s std::string",
		"i std::basic_istream<char, std::char_traits<char> >",
		"o std::basic_ostream<char, std::char_traits<char> >",
		"d std::basic_iostream<char, std::char_traits<char> >"
	};
	size_t index;

	*std_only = false;
	if (!lag_dm_eat(d, 'S'))
		return lag_dm_fail(d);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (lag_dm_peek(d, 0) != names[i][0])
			continue;
		d->p++;
		*std_only = i == 0;
		*out = plain(lag_dm_lit(names[i] + 2));
		return true;
	}
	if (!sequence_number(d, 36, &index) || index >= d->n_substs)
		return lag_dm_fail(d);
	*out = d->substs[index];
	return true;
}

bool lag_dm_template_param(struct lag_dm *d, struct lag_dm_type *out)
{
	size_t index;

	if (!lag_dm_eat(d, 'T') || !sequence_number(d, 10, &index))
		return lag_dm_fail(d);
	/* A lambda's "auto" parameters stand before any arguments are known. */
	if (index >= d->n_args) {
		*out = plain(lag_dm_lit("auto"));
		return d->n_args == 0 ? true : lag_dm_fail(d);
	}
	*out = d->args[index];
	if (out->pack && d->expanding) {
		d->expand_n = out->n;
		if (d->expand_index < out->n) {
			*out = d->members[out->first + d->expand_index];
		} else {
			*out = plain(none);
		}
	}
	return true;
}

/* L <type> <value> E, or L_Z <encoding> E */
static bool literal(struct lag_dm *d, struct lag_dm_type *out)
{
	static const char *const suffixes[] = { "i", "ju", "ll", "mul", "xll", "yull" };
	struct lag_dm_text value, prefix = none;
	struct lag_dm_type type;
	const char *suffix = NULL;
	char kind = lag_dm_peek(d, 0);
	const char *begin;

	if (lag_dm_eat2(d, "_Z")) {
		if (!lag_dm_encoding(d, &value) || !lag_dm_eat(d, 'E'))
			return lag_dm_fail(d);
		*out = plain(value);
		return true;
	}
	if (!lag_dm_type(d, &type))
		return false;
	if (lag_dm_eat(d, 'n'))
		prefix = lag_dm_lit("-");
	begin = d->p;
	while (d->p < d->end && isalnum((unsigned char)*d->p) && *d->p != 'E')
		d->p++;
	value = (struct lag_dm_text){ begin, (size_t)(d->p - begin) };
	if (!lag_dm_eat(d, 'E'))
		return lag_dm_fail(d);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (suffixes[i][0] == kind)
			suffix = suffixes[i] + 1;
	}
	if (kind == 'b' && value.n == 1) {
		*out = plain(lag_dm_lit(value.s[0] == '1' ? "true" : "false"));
	} else if (suffix) {
		*out = plain(lag_dm_cat(d, prefix, value, lag_dm_lit(suffix), none));
	} else {
		value = lag_dm_cat(d, lag_dm_lit(")"), prefix, value, none);
		*out = plain(lag_dm_cat(d, lag_dm_lit("("), lag_dm_join(d, &type), value, none));
	}
	return !d->failed;
}

static bool template_arg(struct lag_dm *d, struct lag_dm_type *out)
{
	struct lag_dm_type members[64];
	size_t n = 0;

	if (lag_dm_eat(d, 'L'))
		return literal(d, out);
	if (lag_dm_eat(d, 'X')) {
		/* The one expression that is a plain value. */
		return lag_dm_eat(d, 'L') && literal(d, out) && lag_dm_eat(d, 'E') ? true
										   : lag_dm_fail(d);
	}
	if (!lag_dm_eat(d, 'J'))
		return lag_dm_type(d, out);
	while (!lag_dm_eat(d, 'E')) {
		if (n == 64 || !template_arg(d, &members[n]))
			return lag_dm_fail(d);
		n++;
	}
	if (n > LAG_DM_MEMBERS - d->n_members)
		return lag_dm_fail(d);
	*out = (struct lag_dm_type){ .pack = true, .first = d->n_members, .n = n };
	if (n)
		memcpy(&d->members[d->n_members], members, n * sizeof(members[0]));
	d->n_members += n;
	return true;
}

bool lag_dm_template_args(struct lag_dm *d, struct lag_dm_text *out, bool keep)
{
	struct lag_dm_type args[64];
	struct lag_dm_text all = lag_dm_lit("<");
	size_t n = 0;
	bool first = true;

	if (!lag_dm_enter(d) || !lag_dm_eat(d, 'I'))
		return lag_dm_fail(d);
	while (!lag_dm_eat(d, 'E')) {
		if (n == 64 || !template_arg(d, &args[n]))
			return lag_dm_fail(d);
		if (!args[n].pack || args[n].n) {
			all = lag_dm_cat(d, all, lag_dm_lit(first ? "" : ", "),
					 lag_dm_join(d, &args[n]), none);
			first = false;
		}
		n++;
	}
	lag_dm_leave(d);
	if (keep) {
		memcpy(d->args, args, n * sizeof(args[0]));
		d->n_args = n;
	}
	*out = lag_dm_cat2(d, all, all.n && all.s[all.n - 1] == '>' ? " >" : ">");
	return !d->failed;
}

bool lag_dm_params(struct lag_dm *d, struct lag_dm_text *out)
{
	struct lag_dm_text all = lag_dm_lit("(");
	bool first = true;

	if (lag_dm_peek(d, 0) == 'v' && (d->end - d->p == 1 || d->p[1] == 'E' || d->p[1] == '.')) {
		d->p++;
		*out = lag_dm_lit("()");
		return true;
	}
	do {
		struct lag_dm_type type;

		if (!lag_dm_type(d, &type))
			return false;
		if (type.pack && !type.n)
			continue;
		all = lag_dm_cat(d, all, lag_dm_lit(first ? "" : ", "), lag_dm_join(d, &type),
				 none);
		first = false;
	} while (d->p < d->end && *d->p != 'E' && *d->p != '.');
	*out = lag_dm_cat2(d, all, ")");
	return !d->failed;
}

static bool array_of(const struct lag_dm_type *type)
{
	return type->right.n && type->right.s[0] == '[';
}

/* Reference to reference collapses, as it does where templates are instantiated. */
static struct lag_dm_type point(struct lag_dm *d, struct lag_dm_type type, const char *sign)
{
	const struct lag_dm_text l = type.left;
	bool ref = l.n && l.s[l.n - 1] == '&' && sign[0] == '&' && !type.wraps;
	bool rref = ref && l.n > 1 && l.s[l.n - 2] == '&';

	if (ref && rref && sign[1] == '\0') {
		type.left.n--;
	} else if (!ref && type.wraps) {
		type.left = lag_dm_cat(d, type.left, lag_dm_lit("("), lag_dm_lit(sign), none);
	} else if (!ref) {
		type.left = lag_dm_cat2(d, type.left, sign);
	}
	if (type.wraps) {
		type.right = lag_dm_cat(d, lag_dm_lit(array_of(&type) ? ") " : ")"), type.right,
					none, none);
	}
	type.wraps = false;
	return type;
}

static bool pointer(struct lag_dm *d, struct lag_dm_type *out, const char *sign)
{
	if (!lag_dm_type(d, out))
		return false;
	*out = point(d, *out, sign);
	return !d->failed && lag_dm_remember(d, out);
}

static bool qualified(struct lag_dm *d, struct lag_dm_type *out)
{
	bool restricted = lag_dm_eat(d, 'r');
	bool is_volatile = lag_dm_eat(d, 'V');
	bool is_const = lag_dm_eat(d, 'K');
	struct lag_dm_text cv = lag_dm_cat(d, lag_dm_lit(is_const ? " const" : ""),
					   lag_dm_lit(is_volatile ? " volatile" : ""),
					   lag_dm_lit(restricted ? " restrict" : ""), none);
	bool function;

	function = lag_dm_peek(d, 0) == 'F';
	if (!lag_dm_type(d, out))
		return false;
	/* A member function's qualifiers are part of its type, not one more component. */
	d->n_substs -= function && d->n_substs;
	if (out->wraps) {
		out->right = lag_dm_cat(d, out->right, cv, none, none);
	} else {
		out->left = lag_dm_cat(d, out->left, cv, none, none);
	}
	return !d->failed && lag_dm_remember(d, out);
}

static bool function(struct lag_dm *d, struct lag_dm_type *out)
{
	struct lag_dm_type ret;
	struct lag_dm_text params;

	(void)lag_dm_eat(d, 'Y');
	if (!lag_dm_type(d, &ret) || !lag_dm_params(d, &params))
		return false;
	(void)(lag_dm_eat(d, 'R') || lag_dm_eat(d, 'O'));
	if (!lag_dm_eat(d, 'E'))
		return lag_dm_fail(d);
	*out = (struct lag_dm_type){ .left = lag_dm_cat2(d, ret.left, " "),
				     .right = lag_dm_cat(d, params, ret.right, none, none),
				     .wraps = true };
	return !d->failed && lag_dm_remember(d, out);
}

static bool array(struct lag_dm *d, struct lag_dm_type *out)
{
	const char *begin = d->p;
	struct lag_dm_text size;
	struct lag_dm_type of;
	size_t n;

	if (lag_dm_peek(d, 0) != '_' && !lag_dm_number(d, &n))
		return lag_dm_fail(d);
	size = (struct lag_dm_text){ begin, (size_t)(d->p - begin) };
	if (!lag_dm_eat(d, '_') || !lag_dm_type(d, &of))
		return lag_dm_fail(d);
	*out = (struct lag_dm_type){ .left = array_of(&of) ? of.left : lag_dm_cat2(d, of.left, " "),
				     .right = lag_dm_cat(d, lag_dm_lit("["), size, lag_dm_lit("]"),
							 of.right),
				     .wraps = true };
	return !d->failed && lag_dm_remember(d, out);
}

static bool member_pointer(struct lag_dm *d, struct lag_dm_type *out)
{
	struct lag_dm_type class, of;
	struct lag_dm_text sign;

	if (!lag_dm_type(d, &class) || !lag_dm_type(d, &of))
		return false;
	sign = lag_dm_cat2(d, lag_dm_join(d, &class), "::*");
	*out = of;
	out->left = lag_dm_cat(d, of.left, lag_dm_lit(of.wraps ? "(" : " "), sign, none);
	if (of.wraps)
		out->right = lag_dm_cat(d, lag_dm_lit(")"), of.right, none, none);
	out->wraps = false;
	return !d->failed && lag_dm_remember(d, out);
}

/* Dp <type>: the type once for each member of the packs in it. */
static bool expansion(struct lag_dm *d, struct lag_dm_type *out)
{
	const char *begin = d->p;
	struct lag_dm_type members[64];
	size_t n = 1, substs = 0;

	if (d->expanding)
		return lag_dm_fail(d);
	for (size_t i = 0; i < n; i++) {
		bool good;

		d->p = begin;
		d->expanding = true;
		d->expand_index = i;
		d->expand_n = 1;
		good = n <= 64 && lag_dm_type(d, &members[i]);
		d->expanding = false;
		if (!good)
			return lag_dm_fail(d);
		if (i == 0) {
			n = d->expand_n;
			substs = d->n_substs;
		}
		d->n_substs = substs;
	}
	if (n > 64 || n > LAG_DM_MEMBERS - d->n_members)
		return lag_dm_fail(d);
	*out = (struct lag_dm_type){ .pack = true, .first = d->n_members, .n = n };
	if (n)
		memcpy(&d->members[d->n_members], members, n * sizeof(members[0]));
	d->n_members += n;
	return true;
}

/* D... : further built-in types. */
static bool d_type(struct lag_dm *d, struct lag_dm_type *out)
{
	const char *name = builtin_d(lag_dm_peek(d, 0));
	size_t bits;

	if (lag_dm_eat(d, 'p'))
		return expansion(d, out);
	if (lag_dm_eat(d, 'F')) {
		if (!lag_dm_number(d, &bits))
			return lag_dm_fail(d);
		if (lag_dm_eat(d, 'b')) {
			*out = plain(lag_dm_lit("std::bfloat16_t"));
		} else if (lag_dm_eat(d, '_') && bits == 16) {
			*out = plain(lag_dm_lit("_Float16"));
		} else {
			return lag_dm_fail(d);
		}
		return true;
	}
	if (!name)
		return lag_dm_fail(d);
	d->p++;
	*out = plain(lag_dm_lit(name));
	return true;
}

/* A parameter or an earlier component, which may be a template that gets its arguments here. */
static bool reused(struct lag_dm *d, struct lag_dm_type *out, bool parameter)
{
	struct lag_dm_text args = none;
	bool std_only = false;

	if (parameter ? !lag_dm_template_param(d, out) : !lag_dm_substitution(d, out, &std_only))
		return false;
	if (parameter && !lag_dm_remember(d, out))
		return false;
	if (lag_dm_peek(d, 0) != 'I')
		return true;
	if (!lag_dm_template_args(d, &args, false))
		return false;
	*out = plain(lag_dm_cat(d, lag_dm_join(d, out), args, none, none));
	return !d->failed && lag_dm_remember(d, out);
}

static bool named(struct lag_dm *d, struct lag_dm_type *out)
{
	struct lag_dm_type args[LAG_DM_ARGS];
	size_t n = d->n_args;
	struct lag_dm_name name;
	bool good;

	/* A local name parses a whole function, whose arguments are its own. */
	memcpy(args, d->args, n * sizeof(args[0]));
	good = lag_dm_name(d, &name, false);
	memcpy(d->args, args, n * sizeof(args[0]));
	d->n_args = n;
	if (!good)
		return false;
	*out = plain(name.text);
	return lag_dm_remember(d, out);
}

static bool any_type(struct lag_dm *d, struct lag_dm_type *out)
{
	char c = lag_dm_peek(d, 0);
	const char *name = builtin(c);
	struct lag_dm_text vendor;

	if (name) {
		d->p++;
		*out = plain(lag_dm_lit(name));
		return true;
	}
	if (strchr("rVK", c) && c)
		return qualified(d, out);
	if (isdigit((unsigned char)c) || c == 'N' || c == 'Z' ||
	    (c == 'S' && lag_dm_peek(d, 1) == 't'))
		return named(d, out);
	switch (c) {
	case 'P':
		d->p++;
		return pointer(d, out, "*");
	case 'R':
		d->p++;
		return pointer(d, out, "&");
	case 'O':
		d->p++;
		return pointer(d, out, "&&");
	case 'F':
		d->p++;
		return function(d, out);
	case 'A':
		d->p++;
		return array(d, out);
	case 'M':
		d->p++;
		return member_pointer(d, out);
	case 'D':
		d->p++;
		return d_type(d, out);
	case 'T':
		return reused(d, out, true);
	case 'S':
		return reused(d, out, false);
	case 'u':
		d->p++;
		if (!lag_dm_source_name(d, &vendor))
			return false;
		*out = plain(vendor);
		return lag_dm_remember(d, out);
	default:
		return lag_dm_fail(d);
	}
}

bool lag_dm_type(struct lag_dm *d, struct lag_dm_type *out)
{
	bool good;

	*out = plain(none);
	if (!lag_dm_enter(d))
		return false;
	good = any_type(d, out);
	lag_dm_leave(d);
	return good && !d->failed;
}
