/* SPDX-License-Identifier: Apache-2.0 */
/* Short names by brackets alone, names that mean communication, and the user's own names. */
#include "merge/names.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX 1000
#define LINE_N    4096

/* An operator's own brackets are part of its name. */
static size_t operator_length(const char *at, const char *begin)
{
	static const char *const operators[] = { "operator()",  "operator<<=", "operator>>=",
						 "operator->*", "operator<=>", "operator<<",
						 "operator>>",  "operator<=",  "operator>=",
						 "operator->",  "operator<",   "operator>" };

	if (at > begin && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
		return 0;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (strncmp(at, operators[i], strlen(operators[i])) == 0)
			return strlen(operators[i]);
	}
	return 0;
}

/* The end of the bracket that opens at `at`; NULL when it does not close. */
static const char *closing(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		if (at[0] == '-' && at[1] == '>') {
			at++;
		} else if (strchr("<([{", *at)) {
			depth++;
		} else if (strchr(">)]}", *at) && --depth <= 0) {
			return at + 1;
		}
	}
	return NULL;
}

/* The name with template arguments cut out, up to its parameter list. */
static void strip(const char *full, struct lag_buf *out)
{
	static const char anonymous[] = "(anonymous namespace)::";

	for (const char *at = full; *at;) {
		size_t n = operator_length(at, full);

		/* Where it was declared tells a person nothing. */
		if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
			at += sizeof(anonymous) - 1;
			continue;
		}
		if (n) {
			lag_buf_add(out, at, n);
			at += n;
		} else if (*at == '<' || *at == '{') {
			const char *end = closing(at);

			/* Lambdas are named by what they stand in; "{...}" is kept as it is. */
			if (*at == '{' && end) {
				lag_buf_puts(out,
					     strncmp(at, "{lambda", 7) == 0 ? "{lambda}" : "{...}");
			}
			if (!end)
				return;
			at = end;
		} else if (*at == '(') {
			return;
		} else {
			lag_buf_putc(out, *at++);
		}
	}
}

void lag_name_short(const char *full, struct lag_buf *out)
{
	struct lag_buf stripped = { 0 };
	const char *name, *space;
	size_t n;

	strip(full, &stripped);
	name = lag_buf_text(&stripped);
	n = strlen(name);
	while (n && name[n - 1] == ' ')
		n--;
	/* What stands before the last blank is the return type; "operator new" is not. */
	space = n ? memrchr(name, ' ', n) : NULL;
	if (space && !strstr(name, "operator ")) {
		n -= (size_t)(space + 1 - name);
		name = space + 1;
	} else if (strncmp(name, "void ", 5) == 0) {
		name += 5;
		n -= 5;
	}
	while (n && strchr("*&", *name)) {
		name++;
		n--;
	}
	if (n) {
		lag_buf_add(out, name, n);
	} else {
		lag_buf_puts(out, full);
	}
	lag_buf_release(&stripped);
}

bool lag_name_is_communication(const char *name)
{
	static const char *const parts[] = { "nccl",
					     "ncclx",
					     "NCCL",
					     "rccl",
					     "nvshmem",
					     "deep_ep",
					     "deepep",
					     "cross_device_reduce",
					     "one_shot_all",
					     "two_shot_all",
					     "multimem_all",
					     "multimem_one_shot",
					     "allreduce_fusion",
					     "trtllm_allreduce" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strstr(name, parts[i]))
			return true;
	}
	return false;
}

struct rule {
	regex_t regex;
	char *name;
};

static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

static enum lag_status add_rule(struct lag_renames *out, char *line, struct lag_err *err)
{
	char *arrow = strstr(line, "=>"), why[256], *pattern;
	struct rule *rule;
	int rc;

	if (!arrow)
		return lag_err_set(err, LAG_ERR_INPUT, "no '=>' in the rule");
	*arrow = '\0';
	pattern = trim(line);
	if (!*pattern || !*trim(arrow + 2))
		return lag_err_set(err, LAG_ERR_INPUT, "both sides of '=>' must say something");
	rule = lag_vec_push(&out->rules);
	if (!rule)
		return lag_err_set(err, LAG_ERR_LIMIT, "more than %d rules", RULES_MAX);
	rc = regcomp(&rule->regex, pattern, REG_EXTENDED);
	if (rc != 0) {
		out->rules.n--;
		(void)regerror(rc, &rule->regex, why, sizeof(why));
		return lag_err_set(err, LAG_ERR_INPUT, "'%s': %s", pattern, why);
	}
	rule->name = strdup(trim(arrow + 2));
	return rule->name ? LAG_OK : lag_err_set(err, LAG_ERR_SYSTEM, "no memory");
}

enum lag_status lag_renames_load(const char *path, struct lag_renames *out, struct lag_err *err)
{
	FILE *file = fopen(path, "re");
	enum lag_status st = LAG_OK;
	char line[LINE_N];

	out->rules = (struct lag_vec){ .item_size = sizeof(struct rule), .max = RULES_MAX };
	if (!file)
		return lag_err_errno(err, LAG_ERR_INPUT, "%s", path);
	for (int number = 1; st == LAG_OK && fgets(line, sizeof(line), file); number++) {
		char *text = trim(line);

		if (*text && *text != '#')
			st = add_rule(out, text, err);
		if (st != LAG_OK)
			(void)lag_err_wrap(err, "%s:%d", path, number);
	}
	if (st == LAG_OK && ferror(file))
		st = lag_err_errno(err, LAG_ERR_INPUT, "%s", path);
	(void)fclose(file);
	if (st != LAG_OK)
		lag_renames_release(out);
	return st;
}

static void expand(const char *name, const char *full, const regmatch_t *groups,
		   struct lag_buf *out)
{
	for (; *name; name++) {
		const regmatch_t *g;

		if (name[0] != '\\' || name[1] < '0' || name[1] > '9') {
			lag_buf_putc(out, *name);
			continue;
		}
		g = &groups[*++name - '0'];
		if (g->rm_so >= 0)
			lag_buf_add(out, full + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
	}
}

bool lag_renames_apply(const struct lag_renames *renames, const char *full, struct lag_buf *out)
{
	regmatch_t groups[10];

	for (size_t i = 0; i < renames->rules.n; i++) {
		const struct rule *rule = &LAG_VEC_AT(&renames->rules, struct rule, i);

		if (regexec(&rule->regex, full, 10, groups, 0) != 0)
			continue;
		expand(rule->name, full, groups, out);
		return true;
	}
	return false;
}

void lag_renames_release(struct lag_renames *renames)
{
	for (size_t i = 0; i < renames->rules.n; i++) {
		struct rule *rule = &LAG_VEC_AT(&renames->rules, struct rule, i);

		regfree(&rule->regex);
		free(rule->name);
	}
	lag_vec_release(&renames->rules);
}
