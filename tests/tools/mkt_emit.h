/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a resolved step as the tracer would have recorded it: one .lag file a rank, on the clock of
 * the rank's host. */
#ifndef TESTS_TOOLS_MKT_EMIT_H
#define TESTS_TOOLS_MKT_EMIT_H

#include "schema/trace/trace_writer.h"
#include "tests/tools/mkt_run.h"

#define MKT_EPOCH_NS INT64_C(1790000000000000000)

/* True clocks: what a host's clock shows, and how far device times are off it. */
struct mkt_clock {
	double offset_ns, drift; /* of the host */
	int64_t device_ns[2];    /* before and after the step */
	int64_t device_step_ns;  /* true time */
};

struct mkt_clock mkt_clock_of(const struct mkt_options *opt, int rank);

/* Host clock's reading at a true time; with `device`, as a converted device timestamp. */
int64_t mkt_clock_read(const struct mkt_clock *clock, int64_t true_ns, bool device);

struct mkt_writer; /* all files of a run */

enum lag_status mkt_writer_open(const struct mkt_run *run, struct mkt_writer **out,
				struct lag_err *err) LAG_MUST_USE;

/* Writes the step that run has just resolved. */
enum lag_status mkt_writer_step(struct mkt_writer *w, const struct mkt_run *run,
				struct lag_err *err) LAG_MUST_USE;

/* Ends and closes all files; returns the number of records written. */
uint64_t mkt_writer_close(struct mkt_writer *w, const struct mkt_run *run);

#endif
