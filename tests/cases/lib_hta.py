#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holistic Trace Analysis on a folder of Kineto files, in a process of its own (it and what it needs lie
apart from the system's Python): its answers per rank and the seconds it took, as JSON."""
import json
import logging
import sys
import time
import warnings


def main():
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    begun = time.monotonic()
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415: not where this file is only looked at

    loaded = time.monotonic()
    trace = TraceAnalysis(trace_dir=sys.argv[1])
    ranks = {int(row["rank"]): row for row in trace.get_temporal_breakdown(visualize=False).to_dict("records")}
    for row in trace.get_comm_comp_overlap(visualize=False).to_dict("records"):
        ranks[int(row["rank"])].update(row)
    json.dump({"import_s": loaded - begun, "run_s": time.monotonic() - loaded,
               "ranks": {rank: {k: float(v) for k, v in row.items()} for rank, row in ranks.items()}}, sys.stdout)


if __name__ == "__main__":
    main()
