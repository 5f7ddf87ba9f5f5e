/* SPDX-License-Identifier: Apache-2.0 */
/* What a signal's handler finds, and what it says of it: nothing, something half made, or the result. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/outfile.h"
#include "schema/base/unfinished.h"

static char path[64];

static bool there(void)
{
	return access(path, F_OK) == 0;
}

/* The end is one for ever: each in its own process. */
static enum lag_left left_by(void (*work)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		work();
		_exit((int)lag_unfinished_remove_all());
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return (enum lag_left)WEXITSTATUS(status);
}

static void nothing(void)
{
}

static void half(void)
{
	struct lag_outfile file;

	if (lag_outfile_make(&file, path, NULL) != LAG_OK ||
	    lag_outfile_write(&file, "x", 1, NULL) != LAG_OK)
		abort();
}

static void given_up(void)
{
	struct lag_outfile file;

	if (lag_outfile_make(&file, path, NULL) != LAG_OK ||
	    lag_outfile_close(&file, false, NULL) != LAG_OK)
		abort();
}

static void all(void)
{
	struct lag_outfile file;

	if (lag_outfile_make(&file, path, NULL) != LAG_OK ||
	    lag_outfile_close(&file, true, NULL) != LAG_OK)
		abort();
}

static void all_and_half(void)
{
	all();
	half();
}

static void what_is_left_is_known(void **state)
{
	char folder[] = "/tmp/laggard-unfinished-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(left_by(nothing), LAG_LEFT_NOTHING);
	assert_int_equal(left_by(half), LAG_LEFT_REMOVED);
	assert_int_equal(left_by(given_up), LAG_LEFT_NOTHING);
	assert_false(there());
	assert_int_equal(left_by(all), LAG_LEFT_RESULT);
	assert_true(there());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(left_by(all_and_half), LAG_LEFT_REMOVED);
	assert_int_equal(unlink(path), 0);
	/* Nor does anything else lie there. */
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
