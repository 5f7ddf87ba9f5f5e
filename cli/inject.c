/* SPDX-License-Identifier: Apache-2.0 */
/* Options to environment variables. Variables that another tool has set are left alone: their door is
 * then closed to us, which is said and recorded. */
#include "cli/inject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cli/where.h"
#include "schema/base/parse.h"
#include "schema/env.h"

static enum lag_status put(struct lag_inject *inj, const char *name, const char *value,
			   struct lag_err *err)
{
	size_t room = sizeof(inj->vars[0].value);

	if ((size_t)snprintf(inj->vars[inj->n].value, room, "%s", value) >= room)
		return lag_err_set(err, LAG_ERR_LIMIT, "value of %s is too long", name);
	inj->vars[inj->n++].name = name;
	return LAG_OK;
}

static const char *first_of(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return "0";
}

/* Appends the value of one %-escape at p (behind the '%'); the text behind it, NULL when unknown. */
static const char *expand_one(char *out, size_t room, const char *p)
{
	static const char *const ranks[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
					     "SLURM_PROCID", NULL };
	static const char *const jobs[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", NULL };
	const char *end = p[1] == '{' ? strchr(p, '}') : NULL;
	char name[128];

	switch (*p) {
	case 'h':
		if (gethostname(out, room))
			return NULL;
		out[room - 1] = '\0';
		return p + 1;
	case 'p':
		(void)snprintf(out, room, "%ld", (long)getpid());
		return p + 1;
	case 'r':
		(void)snprintf(out, room, "%s", first_of(ranks));
		return p + 1;
	case 'j':
		(void)snprintf(out, room, "%s", first_of(jobs));
		return p + 1;
	case '%':
		(void)snprintf(out, room, "%%");
		return p + 1;
	case 'q':
		if (!end || (size_t)(end - p) - 2 >= sizeof(name))
			return NULL;
		memcpy(name, p + 2, (size_t)(end - p) - 2);
		name[end - p - 2] = '\0';
		(void)snprintf(out, room, "%s", getenv(name) ? getenv(name) : "");
		return end + 1;
	default:
		return NULL;
	}
}

static enum lag_status expand(char *out, size_t room, const char *text, struct lag_err *err)
{
	size_t n = 0;

	out[0] = '\0';
	for (const char *p = text; *p;) {
		if (n + 2 >= room)
			return lag_err_set(err, LAG_ERR_LIMIT, "output name is too long");
		if (*p != '%') {
			out[n++] = *p++;
			out[n] = '\0';
			continue;
		}
		p = expand_one(out + n, room - n, p + 1);
		if (!p) {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "'%s': of %%, only %%h %%p %%r %%j %%q{VAR} and %%%% "
					   "are known",
					   text);
		}
		n += strlen(out + n);
	}
	return LAG_OK;
}

static enum lag_status choose_dir(struct lag_inject *inj, const char *option, struct lag_err *err)
{
	char name[PATH_MAX / 2], cwd[PATH_MAX / 2], stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (option) {
		if (lag_failed(expand(name, sizeof(name), option, err)))
			return err->status;
	} else {
		(void)localtime_r(&now, &tm);
		(void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
		(void)snprintf(name, sizeof(name), "laggard-%s-%ld", stamp, (long)getpid());
	}
	if (!name[0])
		return lag_err_set(err, LAG_ERR_USAGE, "the output directory has no name");
	if (name[0] == '/') {
		(void)snprintf(inj->dir, sizeof(inj->dir), "%s", name);
		return LAG_OK;
	}
	if (!getcwd(cwd, sizeof(cwd)))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot tell the working directory");
	(void)snprintf(inj->dir, sizeof(inj->dir), "%s/%s", cwd, name);
	return LAG_OK;
}

/* The same on every node of a job step, so that the files of a run are known to belong together. */
static void choose_run_id(struct lag_inject *inj)
{
	const char *given = getenv(LAG_ENV_RUN_ID), *job = getenv("SLURM_JOB_ID");
	const char *step = getenv("SLURM_STEP_ID"), *space = getenv("PMIX_NAMESPACE");
	uint64_t random = 0;

	if (given && *given) {
		(void)snprintf(inj->run_id, sizeof(inj->run_id), "%s", given);
	} else if (job && step) {
		(void)snprintf(inj->run_id, sizeof(inj->run_id), "slurm-%s.%s", job, step);
	} else if (space) {
		(void)snprintf(inj->run_id, sizeof(inj->run_id), "pmix-%s", space);
	} else {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			random = (uint64_t)time(NULL) << 24 ^ (uint64_t)getpid();
		(void)snprintf(inj->run_id, sizeof(inj->run_id), "%016" PRIx64, random);
	}
	for (char *p = inj->run_id; *p; p++) {
		if (*p == '/')
			*p = '_'; /* it becomes part of a folder's name */
	}
}

static enum lag_status put_door(struct lag_inject *inj, const char *name, struct lag_err *err)
{
	const char *taken = getenv(name);
	size_t n = strlen(inj->conflict);

	if (!taken || !*taken || !strcmp(taken, inj->lib))
		return put(inj, name, inj->lib, err);
	(void)snprintf(inj->conflict + n, sizeof(inj->conflict) - n, "%s%s is taken by %s",
		       n ? ", " : "", name, taken);
	return LAG_OK;
}

static enum lag_status put_option(struct lag_inject *inj, const struct lag_args *args,
				  const char *option, const char *name, struct lag_err *err)
{
	const char *value = lag_args_get(args, option);

	return value ? put(inj, name, value, err) : LAG_OK;
}

enum lag_status lag_inject_build(struct lag_inject *inj, const struct lag_args *args,
				 struct lag_err *err)
{
	const char *ranks = lag_args_get(args, "ranks");
	char size[32], real[PATH_MAX];
	long long max_bytes;

	memset(inj, 0, sizeof(*inj));
	if (ranks && !lag_list_valid(ranks)) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "--ranks '%s': a list such as 0,8-15,every:8 is wanted", ranks);
	}
	if (lag_failed(lag_args_i64(args, "max-size", (long long)LAG_DEFAULT_MAX_SIZE, &max_bytes,
				    err)) ||
	    lag_failed(lag_where(LAG_TRACER_NAME, inj->lib, sizeof(inj->lib), err)) ||
	    lag_failed(choose_dir(inj, lag_args_get(args, "output"), err)))
		return err->status;
	/* One spelling everywhere: the same path through all doors is one instance of the library. */
	if (realpath(inj->lib, real))
		memcpy(inj->lib, real, sizeof(inj->lib));
	if (strpbrk(inj->lib, " :\t")) {
		return lag_err_set(
			err, LAG_ERR_INPUT,
			"'%s': LD_PRELOAD cannot hold a path with blanks or colons; install "
			"laggard elsewhere",
			inj->lib);
	}
	if (max_bytes < 1 << 20)
		return lag_err_set(err, LAG_ERR_USAGE, "--max-size must be at least 1M");
	inj->max_bytes = max_bytes;
	choose_run_id(inj);
	(void)snprintf(size, sizeof(size), "%lld", max_bytes);
	if (lag_failed(put(inj, LAG_ENV_DIR, inj->dir, err)) ||
	    lag_failed(put(inj, LAG_ENV_LIB, inj->lib, err)) ||
	    lag_failed(put(inj, LAG_ENV_RUN_ID, inj->run_id, err)) ||
	    lag_failed(put(inj, LAG_ENV_MAX_SIZE, size, err)) ||
	    lag_failed(put_option(inj, args, "ranks", LAG_ENV_RANKS, err)) ||
	    lag_failed(put_option(inj, args, "cupti", LAG_ENV_CUPTI, err)) ||
	    lag_failed(put_option(inj, args, "nvtx", LAG_ENV_NVTX, err)) ||
	    lag_failed(put_option(inj, args, "nccl", LAG_ENV_NCCL, err)) ||
	    lag_failed(put_option(inj, args, "local", LAG_ENV_LOCAL, err)) ||
	    lag_failed(put_door(inj, "CUDA_INJECTION64_PATH", err)) ||
	    lag_failed(put_door(inj, "NVTX_INJECTION64_PATH", err)))
		return err->status;
	return inj->conflict[0] ? put(inj, LAG_ENV_CONFLICT, inj->conflict, err) : LAG_OK;
}

enum lag_status lag_inject_preload(const struct lag_inject *inj, char *out, size_t room,
				   struct lag_err *err)
{
	const char *old = getenv("LD_PRELOAD");
	size_t n;

	/* Nested use must not load it twice; the list is separated by colons or blanks. */
	if (old && strstr(old, inj->lib)) {
		n = (size_t)snprintf(out, room, "%s", old);
	} else {
		n = (size_t)snprintf(out, room, "%s%s%s", old ? old : "", old && *old ? ":" : "",
				     inj->lib);
	}
	return n < room ? LAG_OK : lag_err_set(err, LAG_ERR_LIMIT, "LD_PRELOAD is too long");
}

enum lag_status lag_inject_apply(const struct lag_inject *inj, struct lag_err *err)
{
	char preload[2 * PATH_MAX];

	if (lag_failed(lag_inject_preload(inj, preload, sizeof(preload), err)))
		return err->status;
	for (size_t i = 0; i < inj->n; i++) {
		if (setenv(inj->vars[i].name, inj->vars[i].value, 1)) {
			return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot set %s",
					     inj->vars[i].name);
		}
	}
	if (setenv("LD_PRELOAD", preload, 1))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot set LD_PRELOAD");
	return LAG_OK;
}
