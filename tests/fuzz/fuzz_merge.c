/* SPDX-License-Identifier: Apache-2.0 */
/* Whole merges of hostile recordings: whatever the records say, the result is a database or one error,
 * never a crash, and never a row that the schema refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "merge/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char input[64], output[64];
	const char *inputs[] = { input };
	struct lag_merge_opts opts = {
		.inputs = inputs, .n_inputs = 1, .output = output, .force = true
	};
	struct lag_merge_receipt receipt;
	struct lag_err err = { 0 };
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	(void)snprintf(input, sizeof(input), "/proc/self/fd/%d", fd);
	(void)snprintf(output, sizeof(output), "/tmp/laggard-fuzz-%d.db", (int)getpid());
	if (write(fd, data, size) == (ssize_t)size) {
		enum lag_status st = lag_merge_run(&opts, &receipt, &err);

		if (lag_failed(st) && st != LAG_ERR_INPUT && st != LAG_ERR_LIMIT) {
			(void)fprintf(stderr, "merge: %s\n", err.text);
			abort();
		}
		(void)unlink(output);
	}
	(void)close(fd);
	return 0;
}
