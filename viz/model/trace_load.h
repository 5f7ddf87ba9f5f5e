/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the loader: what its files share. Each lag_load_* reads some tables into load->trace. */
#ifndef VIZ_MODEL_TRACE_LOAD_H
#define VIZ_MODEL_TRACE_LOAD_H

#include "schema/base/strtab.h"
#include "schema/db/db.h"
#include "viz/model/ids.h"
#include "viz/model/trace.h"

struct lag_kernel_name {
	uint32_t full, brief; /* string indices */
	uint8_t class;        /* enum lag_class */
};

struct lag_load {
	struct lag_trace *trace;
	struct lag_strtab *texts; /* what trace->memory points to */
	struct lag_err *err;
	struct lag_ids strings, hosts, comms, configs, apis, launches, instances;
	struct lag_ids names; /* kernel_name id -> position in kernel_names */
	struct lag_kernel_name *kernel_names;
	size_t n_kernel_names;
	size_t n_rows; /* rows kept so far of the statement that runs */
	struct lag_load_lanes *lanes;
	int64_t rank; /* the rank looked up last, and where it is */
	int rank_at;
	int64_t n_skipped; /* rows whose times or references cannot be true */
};

/* Fills *item (zeroed) from a row; LAG_END leaves the row out. load->n_rows is its position. */
typedef enum lag_status lag_load_row(struct lag_load *load, const struct lag_stmt *row, void *item);

/* Runs sql and makes an array of its rows: *(T **)array, of *n items of `size` bytes. */
enum lag_status lag_load_rows(struct lag_load *load, const char *sql, lag_load_row *row,
			      size_t size, void *array, size_t *n) LAG_MUST_USE;

enum lag_status lag_load_no_memory(struct lag_load *load); /* LAG_ERR_SYSTEM with its text */

const char *lag_load_text(struct lag_load *load, const struct lag_stmt *row, int column);
uint32_t lag_load_string(const struct lag_load *load, int64_t id); /* string index, 0 unknown */
int lag_load_rank(struct lag_load *load, int64_t rank);            /* rank index, -1 */

/* True when start and end (LAG_NONE allowed) can be times; else the row is counted as skipped. */
bool lag_load_times(struct lag_load *load, int64_t start_ns, int64_t end_ns);

enum lag_status lag_load_job(struct lag_load *load) LAG_MUST_USE; /* strings, ranks, comms */
enum lag_status
lag_load_events(struct lag_load *load) LAG_MUST_USE;                /* gpu (after comm), api, ... */
enum lag_status lag_load_comm(struct lag_load *load) LAG_MUST_USE;  /* launches, ops, instances */
enum lag_status lag_load_facts(struct lag_load *load) LAG_MUST_USE; /* clock, findings, losses */

#endif
