/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of a trace file tells when the trace itself does not: rank and host. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "merge/kineto.h"

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *colon;

	path = slash ? slash + 1 : path;
	colon = strrchr(path, ':'); /* archive.tar:member */
	return colon ? colon + 1 : path;
}

/* Digits at p, with one separator allowed before them: "rank3", "rank_3", "rank-03". */
static int64_t digits_at(const char *p)
{
	int64_t v = 0;
	int n = 0;

	if (*p == '_' || *p == '-' || *p == '.' || *p == '=')
		p++;
	for (; isdigit((unsigned char)p[n]) && n < 7; n++)
		v = v * 10 + (p[n] - '0');
	return n && n < 7 ? v : LAG_NONE;
}

static int64_t after_word(const char *text, const char *word)
{
	int64_t rank = LAG_NONE;

	for (const char *p = text; (p = strcasestr(p, word)); p += strlen(word)) {
		int64_t v = digits_at(p + strlen(word));

		if (v != LAG_NONE)
			rank = v;
	}
	return rank;
}

/* "trace_3.json": one short number at the stem's end, not the end of a date. */
static int64_t at_stem_end(const char *base)
{
	const char *end = strstr(base, ".pt.trace"), *p;

	if (!end)
		end = strstr(base, ".json");
	if (!end)
		return LAG_NONE;
	for (p = end; p > base && isdigit((unsigned char)p[-1]);)
		p--;
	if (p == end || end - p > 4)
		return LAG_NONE;
	if (p == base)
		return digits_at(p);
	if (p[-1] != '_' && p[-1] != '-' && p[-1] != '.')
		return LAG_NONE;
	return p - base >= 2 && isdigit((unsigned char)p[-2]) ? LAG_NONE : digits_at(p);
}

int64_t lag_kineto_rank_of_path(const char *path)
{
	const char *base = base_of(path);
	int64_t rank = after_word(base, "rank");

	if (rank == LAG_NONE)
		rank = after_word(base, "worker");
	if (rank == LAG_NONE)
		rank = after_word(path, "rank");
	return rank != LAG_NONE ? rank : at_stem_end(base);
}

/* torch.profiler's own handler names files HOST_PID.MILLISECONDS.pt.trace.json. */
size_t lag_kineto_host_of_path(const char *path, const char **host)
{
	const char *base = base_of(path), *mark = strstr(base, ".pt.trace.json"), *p = mark;
	const char *pid;

	if (!mark)
		return 0;
	while (p > base && isdigit((unsigned char)p[-1]))
		p--;
	if (mark - p < 10 || p == base || *--p != '.')
		return 0;
	for (pid = p; pid > base && isdigit((unsigned char)pid[-1]);)
		pid--;
	if (pid == p || pid - base < 2 || pid[-1] != '_')
		return 0;
	/* The handler takes a worker's name in the host's place when it is given one. */
	if (strncasecmp(base, "worker", 6) == 0 || strncasecmp(base, "rank", 4) == 0)
		return 0;
	*host = base;
	return (size_t)(pid - 1 - base);
}
