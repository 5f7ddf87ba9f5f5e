#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real traces of one host (the DLRM step), each rank's clock shifted and drifting as if it were a host
of its own: the alignment restores the unshifted times to within the uncertainty that it states."""
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
FILES = sorted(glob.glob(os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "kineto/dlrm/*.json")))
CASES = [[(0, 0), (0, 0), (0, 0), (0, 0)],
         [(0, 0), (17_000_000, 40), (-31_000_000, -25), (8_000_000, 120)],
         [(0, 0), (-400_000, 200), (900, -200), (39_000_000, 0)]]  # ns, ppm


def shifted(path, out, rank, offset_ns, drift_ppm):
    doc = json.load(open(path))
    doc["host_name"] = f"host{rank}"
    first = min(e["ts"] for e in doc["traceEvents"] if e.get("ph") == "X")
    doc["baseTimeNanoseconds"] = first * 1000
    for e in doc["traceEvents"]:
        if e.get("ph") == "X":
            start, end = ((e["ts"] + extra - first) * 1000 for extra in (0, e["dur"]))
            start, end = (round(t * (1 + drift_ppm / 1e6)) + offset_ns for t in (start, end))
            e["ts"], e["dur"] = start / 1000, (end - start) / 1000
    with open(out, "w", encoding="utf-8") as file:
        json.dump(doc, file)


def starts(db):
    rows = sqlite3.connect(db).execute(
        "SELECT rank, correlation, kind, stream, start_ns, raw_start_ns FROM gpu_event")
    return {tuple(row[:4]): row[4:] for row in rows}


def uncertainties(db):
    out = subprocess.run([LAGGARD, "report", "clock", db, "--format", "json"], check=True,
                         capture_output=True, text=True).stdout
    return {row["host"]: row["uncertainty_ns"] for row in json.loads(out)["rows"]}


def main():
    if not FILES:
        print("skipped: no real traces in LAGGARD_TEST_DATA")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for n, case in enumerate(CASES):
            inputs = []
            for rank, (offset, drift) in enumerate(case):
                inputs.append(os.path.join(folder, f"case{n}_rank{rank}.json"))
                shifted(FILES[rank], inputs[-1], rank, offset, drift)
            db = os.path.join(folder, f"case{n}.db")
            subprocess.run([LAGGARD, "merge", *inputs, "-o", db], check=True, capture_output=True)
            got, stated = starts(db), uncertainties(db)
            if n == 0:
                truth = {key: raw for key, (_, raw) in got.items()}
            for rank, (offset, _) in enumerate(case):
                mine = [key for key in got if key[0] == rank]
                assert len(mine) > 200
                worst = max(abs(got[key][0] - truth[key]) for key in mine)
                undone = max(abs(got[key][1] - truth[key]) for key in mine)
                print(f"case {n} rank {rank}: off by at most {worst} ns, before alignment {undone} ns, "
                      f"stated {stated[f'host{rank}']} ns")
                # Ends of one collective differ by up to 7 us between these ranks.
                assert worst <= min(7000, stated[f"host{rank}"]), (n, rank, worst, stated)
                assert abs(undone - abs(offset)) < 10_000  # the shift was there to be undone
    return 0


if __name__ == "__main__":
    sys.exit(main())
