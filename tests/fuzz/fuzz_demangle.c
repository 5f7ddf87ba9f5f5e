/* SPDX-License-Identifier: Apache-2.0 */
/* Names of any shape: demangling and shortening end, and stay within their limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "merge/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lag_buf full = { 0 }, brief = { 0 };
	char *name = malloc(size + 3);

	if (!name)
		return 0;
	/* Half of the inputs would not even begin like a mangled name. */
	memcpy(name, "_Z", 2);
	if (size)
		memcpy(name + 2, data, size);
	name[size + 2] = '\0';
	if (lag_demangle(name, &full)) {
		if (full.n == 0 || full.n > LAG_NAME_MAX + size + 16)
			abort();
		lag_name_short(full.text, &brief);
		if (brief.n > full.n)
			abort();
	}
	lag_buf_clear(&brief);
	lag_name_short(name + 2, &brief);
	(void)lag_name_is_communication(name);
	lag_buf_release(&full);
	lag_buf_release(&brief);
	free(name);
	return 0;
}
