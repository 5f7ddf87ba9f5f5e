#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""merge --repair-order: off unless asked for; then what contradicts cause and effect is moved, counted, named as
a finding and in the method, can be reproduced from the trace, and recorded times stay."""
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
MKTRACE = pathlib.Path(os.environ["LAGGARD_BUILD"]) / "mktrace"
SHAPE = "--pp 4 --dp 2 --per-host 2 --microbatches 4 --steps 6 --layers 1 --offset-ms 0.2 --seed 5"


def merge(folder, *options):
    out = folder / "run.db"
    subprocess.run([LAGGARD, "merge", "-q", "-f", "-o", out, *options, folder / "run"], check=True, timeout=120)
    db = sqlite3.connect(out)
    meta = dict(db.execute("SELECT key, value FROM meta"))
    # The host's calls move with the GPU events around them.
    events = db.execute("SELECT rank, raw_start_ns, start_ns FROM (SELECT 1 AS t, * FROM (SELECT id, rank, raw_start_ns, start_ns"
                        " FROM gpu_event) UNION ALL SELECT 2, id, rank, raw_start_ns, start_ns FROM api_call)"
                        " ORDER BY rank, raw_start_ns, t, id").fetchall()
    repairs = {}
    for rank, at, shift in db.execute("SELECT rank, at_ns, shift_ns FROM clock_repair ORDER BY rank, at_ns"):
        repairs.setdefault(rank, []).append((at, shift))
    found = [t for (t,) in db.execute("SELECT text FROM finding WHERE kind = 'clock_repaired'")]
    db.close()
    return meta, events, repairs, found


def shift(rows, at):
    for (a, s), (b, t) in zip(rows, rows[1:]):
        if a <= at < b:
            return s + (t - s) * (at - a) / (b - a)
    return 0


def main():
    if not MKTRACE.exists():
        print(f"skipped: {MKTRACE} is not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([MKTRACE, "--out", folder / "run", *SHAPE.split()], check=True, capture_output=True, timeout=120)
        meta, plain, repairs, found = merge(folder, "--align", "none")
        broken = int(meta["clock_violations"])
        assert broken > 0 and meta["clock_method"] == "none", meta
        assert not repairs and not found and "clock_repaired" not in meta, "repaired unasked"

        meta, moved, repairs, found = merge(folder, "--align", "none", "--repair-order")
        assert meta["clock_method"] == "none, order repaired", meta
        assert int(meta["clock_repaired"]) == broken and int(meta["clock_violations"]) == 0, meta
        assert len(found) == 1 and f"{broken:d} of" in found[0], found
        assert [e[:2] for e in moved] == [e[:2] for e in plain], "recorded times changed"
        largest = int(meta["clock_repair_max_ns"])
        for old, new in zip(plain, moved):
            by = new[2] - old[2]
            assert 0 <= by <= largest, (old, new)
            assert abs(by - shift(repairs.get(old[0], []), old[2])) <= 1.5, (old, new)
        assert any(new[2] > old[2] for old, new in zip(plain, moved))
        for a, b in zip(moved, moved[1:]):
            assert a[0] != b[0] or a[2] <= b[2], (a, b)

        # Aligned clocks leave nothing to repair, and then nothing says so.
        meta, _, repairs, found = merge(folder, "--repair-order")
        assert meta["clock_violations"] == "0" and meta["clock_method"] == "collective", meta
        assert not repairs and not found
    print("1 passed, 0 failed")


main()
