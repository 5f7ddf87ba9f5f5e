/* SPDX-License-Identifier: Apache-2.0 */
/* Removes secrets from command lines: values of names that sound like one, tokens by their well-known
 * beginnings, and the user part of URLs. Errs on the side of removing. */
#include "tracer/argv.h"

#include <stdbool.h>
#include <string.h>

#define HIDDEN "***"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool contains(const char *text, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++) {
		size_t k = 0;

		while (k < len && lower(text[i + k]) == word[k])
			k++;
		if (k == len)
			return true;
	}
	return false;
}

static bool secret_name(const char *text, size_t n)
{
	static const char *const words[] = { "token",       "password",   "passwd",  "passphrase",
					     "secret",      "apikey",     "api_key", "api-key",
					     "access_key",  "access-key", "auth",    "credential",
					     "private_key", "private-key" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (contains(text, n, words[i])) {
			/* A tokenizer's path is no secret, and worth reading. */
			return !contains(text, n, "tokeniz") && !contains(text, n, "tokens");
		}
	}
	return false;
}

static bool secret_value(const char *text, size_t n)
{
	static const char *const starts[] = {
		"hf_", "ghp_", "gho_", "ghs_", "github_pat_", "sk-",
		"xox", "AKIA", "ASIA", "eyJ",  "glpat-",      "nvapi-"
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		size_t len = strlen(starts[i]);

		if (n >= len + 8 && !memcmp(text, starts[i], len))
			return true;
	}
	return false;
}

struct out {
	char *p;
	size_t n, room;
};

static void put(struct out *o, const char *text, size_t n)
{
	if (n > o->room - o->n)
		n = o->room - o->n;
	memcpy(o->p + o->n, text, n);
	o->n += n;
}

/* "scheme://user:password@host" loses what is before the '@'. */
static void put_value(struct out *o, const char *text, size_t n)
{
	const char *scheme = memmem(text, n, "://", 3);
	const char *at = scheme ? memchr(scheme, '@', n - (size_t)(scheme - text)) : NULL;

	if (secret_value(text, n)) {
		put(o, HIDDEN, strlen(HIDDEN));
	} else if (at) {
		put(o, text, (size_t)(scheme + 3 - text));
		put(o, HIDDEN, strlen(HIDDEN));
		put(o, at, n - (size_t)(at - text));
	} else {
		put(o, text, n);
	}
}

size_t lag_argv_clean(char *out, size_t room, const char *args, size_t n)
{
	struct out o = { out, 0, room };
	bool hide_next = false;

	for (size_t at = 0; at < n;) {
		const char *arg = args + at;
		size_t len = strnlen(arg, n - at);
		const char *eq = memchr(arg, '=', len);
		size_t name = eq ? (size_t)(eq - arg) : len;

		if (at)
			put(&o, " ", 1);
		if (hide_next && arg[0] != '-') {
			put(&o, HIDDEN, strlen(HIDDEN));
			hide_next = false;
		} else if (eq) {
			put(&o, arg, name + 1);
			if (secret_name(arg, name)) {
				put(&o, HIDDEN, strlen(HIDDEN));
			} else {
				put_value(&o, eq + 1, len - name - 1);
			}
			hide_next = false;
		} else {
			put_value(&o, arg, len);
			hide_next = len > 1 && arg[0] == '-' && secret_name(arg, len);
		}
		at += len + 1;
	}
	return o.n;
}
