# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: each line is laggard's figure beside a reference measured in the same run, and their ratio.
Absolute times only describe this machine; the ratios are what can be compared."""
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import time

from lib_bench import BUILD, LAGGARD, heading, line, program, timed
from lib_merge import merging

STEPS = sys.argv[1] if len(sys.argv) > 1 else "60"


def packing(work, n):
    """A run packed and unpacked; what zstd alone makes of the same files is the reference."""
    if not shutil.which("zstd"):
        print("pack: no zstd program to compare with")
        return
    size = sum(f.stat().st_size for f in (work / "run").glob("*.lag")) / 1e6
    timed("tar", "-C", work, "-cf", work / "run.tar", "run")
    reference, _ = timed("zstd", "-q", "-3", "-f", work / "run.tar", "-o", work / "reference.zst")
    back, _ = timed("zstd", "-q", "-d", "-f", work / "reference.zst", "-o", work / "run.tar")
    seconds, _ = timed(LAGGARD, "pack", "-q", "-o", work / "run.tar.zst", work / "run")
    line("bytes an event, packed", (work / "run.tar.zst").stat().st_size / n,
         (work / "reference.zst").stat().st_size / n, "B/event", "tar and zstd -3; at most 6 is the aim", False)
    line("pack", size / seconds, size / reference, "MB/s", "zstd -3 of a tar file", True)
    seconds, _ = timed(LAGGARD, "unpack", "-q", "-C", work / "unpacked", work / "run.tar.zst")
    line("unpack", size / seconds, size / back, "MB/s", "zstd -d to a tar file", True)


def detail(work, events):
    """The level of detail: its share of the merge, its size, and what a frame costs."""
    timed(BUILD / "mkbig", work / "big", "15", events)
    best = {}
    for name in ("with", "without") * 3:  # alternating, the best of each: the machine is never quiet
        options = () if name == "with" else ("--no-pyramid",)
        seconds, _ = timed(LAGGARD, "merge", "-q", "-f", *options, "-o", work / f"{name}.db", work / "big")
        best[name] = min(seconds, best.get(name, seconds))
    line("merge with level of detail", best["with"], best["without"], "s", "without it; at least 0.9x is the aim", False)
    db = sqlite3.connect(work / "with.db")
    size, n = db.execute("SELECT (SELECT sum(length(buckets)) FROM pyramid),"
                         " (SELECT sum(n_events) FROM pyramid_lane WHERE device IS NULL)").fetchone()
    db.close()
    line("level of detail, bytes an event", size / n, 1.5, "B/event", "the aim", False)
    program("bench_frames", False, work / "with.db")


def main():
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        work = pathlib.Path(folder)
        heading()
        program("bench_load", True, work)
        merging(work)
        timed(BUILD / "mktrace", "--out", work / "run", "--pp", "4", "--dp", "2", "--microbatches", "8",
              "--layers", "8", "--steps", STEPS)
        seconds, _ = timed(LAGGARD, "merge", "-q", "-o", work / "run.db", work / "run")
        db = sqlite3.connect(work / "run.db")
        n = sum(db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                for t in ("gpu_event", "api_call", "gpu_sync", "nvtx_range", "nccl_op"))
        db.close()
        print(f"{'merge of a small run':<34} {seconds:>10.3g} {'':>10} s for {n} events")
        packing(work, n)
        detail(work, "2000000")
        for analysis in ("summary", "breakdown", "stragglers", "bubbles"):
            took, _ = timed(LAGGARD, "report", analysis, work / "run.db", "--format", "json")
            print(f"{'report ' + analysis:<34} {took:>10.3g} {'':>10} s for {n} events")
        took, _ = timed(LAGGARD, "tui", "--print", "timeline", "--width", "200", "--height", "60", work / "run.db")
        print(f"{'tui: load and first timeline':<34} {took:>10.3g} {'':>10} s for {n} events")
        seconds, _ = timed(LAGGARD, "export", "-t", "chrome", work / "run.db", "-o", work / "trace.json")
        size = (work / "trace.json").stat().st_size / 1e6
        start = time.monotonic()
        with open(work / "trace.json", encoding="utf-8") as f:
            trace = json.load(f)
        load = time.monotonic() - start
        start = time.monotonic()
        json.dumps(trace)
        line("export as Chrome trace", size / seconds, size / (time.monotonic() - start), "MB/s", "Python json.dumps", True)
        del trace
        seconds, _ = timed(LAGGARD, "merge", "-q", "-o", work / "again.db", work / "trace.json")
        line("import of that JSON, whole merge", size / seconds, size / load, "MB/s", "Python json.load only", True)
    print("1 passed, 0 failed")


main()
