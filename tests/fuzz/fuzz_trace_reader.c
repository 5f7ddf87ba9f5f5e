/* SPDX-License-Identifier: Apache-2.0 */
/* The .lag reader on any bytes: it ends, stays inside, and its records are of known kinds. */
#include <stdlib.h>

#include "schema/trace/trace_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lag_trace_reader *rd = NULL;
	struct lag_record rec;
	struct lag_err err;
	uint32_t producer;
	uint64_t tid;
	size_t n = 0;

	if (lag_trace_reader_open(data, size, &rd, &err) != LAG_OK)
		return 0;
	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK) {
		/* Two bytes of file a record at least: more would be made up. */
		if (!lag_record_info_get(rec.kind) || ++n > size / 2)
			abort();
		if (rec.kind == LAG_REC_string &&
		    ((const uint8_t *)rec.bytes < data ||
		     (const uint8_t *)rec.bytes + rec.n_bytes > data + size))
			abort();
	}
	lag_trace_reader_close(rd);
	return 0;
}
