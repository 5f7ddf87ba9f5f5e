/* SPDX-License-Identifier: Apache-2.0 */
/* From the tracer's records to a part, shared by the importers of .lag files and of packed ones. */
#ifndef MERGE_IMPORT_LAG_H
#define MERGE_IMPORT_LAG_H

#include "merge/importer.h"
#include "schema/trace/trace_reader.h"

struct lag_import {
	struct lag_part part;
	struct lag_pool *pool;
	uint32_t producer;      /* whose ids the vectors hold */
	struct lag_vec strings; /* uint32_t pool id by producer id */
	struct lag_vec configs; /* int64_t likewise */
	uint64_t n_unresolved;
};

/* What a file says of itself and what its reader found; borrowed. Zeroed: it was not opened. */
struct lag_import_facts {
	const struct lag_trace_header *header;
	const struct lag_trace_counters *counters;
	const struct lag_trace_damage *damage;
};

/* LAG_ERR_SYSTEM: no memory, nothing to end. */
enum lag_status lag_import_begin(struct lag_import *im, struct lag_pool *pool, const char *path,
				 const char *format) LAG_MUST_USE;

/* No producer may define ids from n on; before the first record, and as more is known. */
void lag_import_max_ids(struct lag_import *im, uint64_t n);

/* Takes a record; its ids become the pool's. Records of one producer come together. */
enum lag_status lag_import_record(struct lag_import *im, struct lag_record *rec, uint32_t producer,
				  struct lag_err *err) LAG_MUST_USE;

/* st: what reading ended with. LAG_END: the facts are used and the part goes to the sink; a failure is
 * returned with the path before its text. Releases what lag_import_begin made. */
enum lag_status lag_import_end(struct lag_import *im, enum lag_status st,
			       const struct lag_import_facts *facts, struct lag_part_sink *sink,
			       struct lag_err *err) LAG_MUST_USE;

#endif
