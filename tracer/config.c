/* SPDX-License-Identifier: Apache-2.0 */
/* Environment to struct lag_config. Read in whichever door is entered first, by one thread. */
#include "tracer/config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/env.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lag_config config;

/* A value that does not fit is as good as none: half a path must not be written to. */
static void take(char *out, size_t room, const char *name)
{
	const char *value = getenv(name);
	size_t n = value ? strlen(value) : 0;

	if (n < room)
		memcpy(out, value ? value : "", n + 1);
}

static bool wanted(const char *name)
{
	const char *value = getenv(name);

	return !value || strcmp(value, "off") != 0;
}

static void load(void)
{
	const char *size = getenv(LAG_ENV_MAX_SIZE);
	const char *nvtx = getenv(LAG_ENV_NVTX);

	take(config.dir, sizeof(config.dir), LAG_ENV_DIR);
	take(config.local, sizeof(config.local), LAG_ENV_LOCAL);
	take(config.debug, sizeof(config.debug), LAG_ENV_DEBUG);
	take(config.run_id, sizeof(config.run_id), LAG_ENV_RUN_ID);
	take(config.ranks, sizeof(config.ranks), LAG_ENV_RANKS);
	take(config.conflict, sizeof(config.conflict), LAG_ENV_CONFLICT);
	config.max_bytes = size ? strtoull(size, NULL, 10) : 0;
	if (!config.max_bytes)
		config.max_bytes = LAG_DEFAULT_MAX_SIZE;
	config.cupti = wanted(LAG_ENV_CUPTI);
	config.nvtx = wanted(LAG_ENV_NVTX);
	config.nccl = wanted(LAG_ENV_NCCL);
	config.nvtx_always = nvtx && !strcmp(nvtx, "always");
}

const struct lag_config *lag_config_get(void)
{
	(void)pthread_once(&once, load);
	return &config;
}

void lag_config_debug(const char *fmt, ...)
{
	const char *path = lag_config_get()->debug;
	char line[512];
	va_list ap;
	int n, fd;

	if (!path[0])
		return;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n++] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (write(fd, line, (size_t)n) < 0)
			line[0] = 0; /* nowhere left to complain to */
		close(fd);
	}
}
