#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a real job treated as hosts: each trace's clock is shifted by milliseconds and made to drift,
and alignment must bring every GPU event back to where it puts it in the unshifted traces, within the
uncertainty that it states."""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
DATA = os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "kineto", "dlrm")
# Added offset (us) and drift of ranks 0 to 3; rank 0 is the reference and stays.
CASES = (
    ((0, 0), (25_000, 0), (-38_000, 0), (7, 0)),
    ((0, 0), (-40_000, 200e-6), (12_345, -200e-6), (39_999, 90e-6)),
)


def shifted(text, offset_us, drift):
    first = min(int(t) for t in re.findall(r'"ts": (\d+)', text))

    def move(match):
        ns = int(match[1]) * 1000
        ns += offset_us * 1000 + round(drift * (ns - first * 1000))
        return f'"ts": {ns // 1000}.{ns % 1000:03d}'

    return re.sub(r'"ts": (\d+)', move, text)


def merge(folder, files):
    out = os.path.join(folder, "run.db")
    done = subprocess.run([LAGGARD, "merge", "-q", "-f", "-o", out, *files], capture_output=True, text=True, check=False)
    assert os.path.exists(out), done.stderr
    db = sqlite3.connect(out)
    events = {}
    for rank, start in db.execute("SELECT rank, start_ns FROM gpu_event ORDER BY rank, raw_start_ns, id"):
        events.setdefault(rank, []).append(start)
    stated = dict(db.execute("SELECT device_rank, min(uncertainty_ns) FROM clock_map"
                             " WHERE device_rank IS NOT NULL GROUP BY device_rank"))
    violations = int(db.execute("SELECT value FROM meta WHERE key = 'clock_violations'").fetchone()[0])
    db.close()
    os.remove(out)
    return events, stated, violations


def main():
    if not os.path.isdir(DATA):
        print(f"skipped: no real traces in {DATA}")
        sys.exit(77)
    names = sorted(os.listdir(DATA))
    texts = [open(os.path.join(DATA, n), encoding="utf-8").read() for n in names]
    with tempfile.TemporaryDirectory() as folder:
        wanted, _, _ = merge(folder, [os.path.join(DATA, n) for n in names])
        for case in CASES:
            files = [os.path.join(folder, n) for n in names]
            for path, text, (offset, drift) in zip(files, texts, case):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(shifted(text, offset, drift))
            got, stated, violations = merge(folder, files)
            assert sorted(got) == sorted(wanted) == [0, 1, 2, 3], sorted(got)
            assert violations == 0, violations
            for rank, starts in got.items():
                assert len(starts) == len(wanted[rank]), rank
                worst = max(abs(a - b) for a, b in zip(starts, wanted[rank]))
                print(f"rank {rank}: shifted by {case[rank]}, restored to {worst} ns, stated {stated[rank]} ns")
                assert worst <= stated[rank], (rank, worst, stated[rank])
                # The shift itself is known exactly, so far less than the statement must remain.
                assert worst <= 5000, (rank, worst)


main()
