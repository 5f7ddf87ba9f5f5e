/* SPDX-License-Identifier: Apache-2.0 */
/* Packed rank files: read block by block, so that no more of one is in memory than its records. */
#include "merge/import_lag.h"
#include "merge/lagz.h"

static enum lag_status import_records(struct lag_import *im, struct lag_packed_reader *rd,
				      struct lag_err *err)
{
	const struct lag_chunk_header *chunk = NULL;
	enum lag_status st = LAG_OK;
	struct lag_record rec;

	while (st == LAG_OK) {
		st = lag_packed_next(rd, &rec, &chunk, err);
		/* Ids count up by one, and each takes a record. */
		lag_import_max_ids(im, lag_packed_n_seen(rd) + 2);
		if (st == LAG_OK)
			st = lag_import_record(im, &rec, chunk->producer, err);
	}
	return st;
}

static enum lag_status import(struct lag_input *in, struct lag_pool *pool,
			      const struct lag_import_opts *opts, struct lag_part_sink *sink,
			      struct lag_err *err)
{
	struct lag_packed_reader *rd = NULL;
	struct lag_import_facts facts = { 0 };
	struct lag_import im;
	enum lag_status st;

	(void)opts;
	if (lag_failed(lag_import_begin(&im, pool, in->path, "lagz")))
		return lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory", in->path);
	st = lag_packed_open(in, &rd, err);
	if (st == LAG_OK) {
		facts = (struct lag_import_facts){ lag_packed_trace_header(rd),
						   lag_packed_counters(rd), lag_packed_damage(rd) };
		st = import_records(&im, rd, err);
	}
	st = lag_import_end(&im, st, &facts, sink, err);
	lag_packed_close(rd);
	return st;
}

const struct lag_importer lag_importer_lagz = { .name = "lagz",
						.clock = LAG_OUR_CLOCK,
						.tells_gaps = true,
						.probe = lag_packed_probe,
						.import = import };
