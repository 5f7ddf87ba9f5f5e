#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real Kineto traces, merged and reported: the breakdown of DLRM's four ranks equals the published table
to 1 us, the single-rank traces equal another tool's timeline to 0.01 us, and where members of the job
have no record, nobody is blamed."""
import csv
import json
import os
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
DATA = os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "kineto")

# rank: events, span, busy, idle, compute, comm, mem, comm and compute, exposed comm (us)
DLRM = {
    0: (261, 13009, 6590, 6419, 1034, 5798, 19, 261, 5537),
    1: (326, 18749, 12321, 6428, 1246, 11336, 19, 280, 11056),
    2: (262, 11350, 4304, 7046, 1068, 3492, 19, 275, 3217),
    3: (337, 18853, 10708, 8145, 1240, 9774, 28, 324, 9440),
}
FIELDS = ("span_ns", "busy_ns", "idle_ns", "compute_ns", "comm_ns", "mem_ns", "overlap_ns", "exposed_comm_ns")


def merge(out, *files):
    done = subprocess.run([LAGGARD, "merge", *files, "-o", out], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert os.path.exists(out), done.stderr


def report(name, path, codes=(0,)):
    done = subprocess.run([LAGGARD, "report", name, path, "-F", "json"], capture_output=True, text=True,
                          check=False)
    assert done.returncode in codes, (name, done.returncode, done.stderr)
    return json.loads(done.stdout)


def check_dlrm(folder):
    path = os.path.join(folder, "dlrm.db")
    files = sorted(os.listdir(os.path.join(DATA, "dlrm")))
    merge(path, *[os.path.join(DATA, "dlrm", f) for f in files])
    rows = {r["rank"]: r for r in report("breakdown", path)["rows"]}
    assert sorted(rows) == sorted(DLRM), rows
    for rank, want in DLRM.items():
        assert rows[rank]["n_gpu_events"] == want[0], (rank, rows[rank])
        for field, us in zip(FIELDS, want[1:]):
            assert abs(rows[rank][field] - us * 1000) <= 1000, (rank, field, rows[rank][field], us)
    # Ranks 4 to 7 have no record: who was last cannot be known, and the report says why.
    doc = report("stragglers", path, codes=(3,))
    assert doc["trust"]["missing_ranks"] == [4, 5, 6, 7], doc["trust"]
    assert any("record" in note for note in doc["trust"]["notes"]), doc["trust"]
    assert not [r for r in doc["rows"] if r["verdict"] in ("chronic", "rotating", "one-off")], doc["rows"]
    assert report("waits", path)["rows"] == []
    for row in report("collectives", path)["rows"]:
        assert row["complete"] == 0 and row["transfer_ns"] is None and row["busbw_gbps"] is None, row
    for row in report("ledger", path)["rows"]:
        parts = [v or 0 for k, v in row.items() if k.endswith("_ns") and k not in ("time_ns", "unsplit_ns")]
        assert sum(parts) == row["time_ns"], row
    assert "cannot" in json.dumps(report("summary", path, codes=(3,))["rows"]) or \
        "withheld" in json.dumps(report("summary", path, codes=(3,))["rows"])


def check_tracelens(folder):
    base = os.path.join(DATA, "tracelens")
    for name in sorted(os.listdir(base)):
        if not name.endswith(".gpu_timeline.csv"):
            continue
        stem = name[:-len(".gpu_timeline.csv")]
        path = os.path.join(folder, stem + ".db")
        merge(path, os.path.join(base, stem + ".json.gz"))
        with open(os.path.join(base, name), newline="", encoding="utf-8") as f:
            want = {row["type"]: float(row["time ms"]) * 1e6 for row in csv.DictReader(f)}
        (row,) = report("breakdown", path)["rows"]
        for field, theirs in (("busy_ns", "busy_time"), ("idle_ns", "idle_time"), ("span_ns", "total_time"),
                              ("compute_ns", "computation_time"), ("exposed_comm_ns", "exposed_comm_time"),
                              ("exposed_mem_ns", "exposed_memcpy_time")):
            assert abs(row[field] - want[theirs]) <= 10, (stem, field, row[field], want[theirs])
        assert report("summary", path, codes=(3,))["rows"], stem


def main():
    if not os.path.isdir(os.path.join(DATA, "dlrm")):
        print("skipped: no real traces (set LAGGARD_TEST_DATA)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_dlrm(folder)
        check_tracelens(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
