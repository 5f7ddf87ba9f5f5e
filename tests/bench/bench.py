# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: each line is laggard's figure beside a reference measured in the same run, and their ratio.
Absolute times only describe this machine; the ratios are what can be compared."""
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import time

from lib_bench import BUILD, LAGGARD, heading, line, program, timed

STEPS = sys.argv[1] if len(sys.argv) > 1 else "60"


def insert_seconds(work, n):
    """SQLite's own prepared inserts of as many 20-column rows, and an index, as a floor to compare with."""
    db = sqlite3.connect(work / "reference.db")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA journal_mode = OFF")
    columns = ", ".join(f"c{i} INTEGER" for i in range(19))
    db.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})")
    row = list(range(1700000000000000000, 1700000000000000019))
    start = time.monotonic()
    db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 20)})", ((i, i % 8, *row[1:]) for i in range(n)))
    db.execute("CREATE INDEX i ON t (c0, c1)")
    db.commit()
    seconds = time.monotonic() - start
    db.close()
    return seconds


class Job:
    """One reader's run over a Kineto trace: events, checksum, seconds, bytes of the file, private KiB."""

    def __init__(self, name, *args):
        _, done = timed(BUILD / "tests/bench" / name, *args)
        events, checksum, seconds, size, kib = done.stdout.split()
        self.events, self.checksum, self.seconds = int(events), checksum, float(seconds)
        self.size, self.kib = int(size), int(kib)


def python_seconds(path):
    """The same fields of every event by Python's own json."""
    start = time.process_time()
    rows = [(e.get("ph"), e.get("cat"), e.get("name"), e.get("pid"), e.get("tid"), e.get("ts"), e.get("dur"),
             a.get("External id"), a.get("correlation"), a.get("stream"), a.get("device"))
            for e in json.loads(path.read_bytes())["traceEvents"] for a in (e.get("args", {}),)]
    return time.process_time() - start, len(rows)


def kineto(work):
    """Eleven fields of every event of a Kineto trace: rounds in turn, the best of each, sums must agree."""
    path, small = work / "kineto.json", work / "small.json"
    for target, size in ((path, 400_000_000), (small, 64_000_000)):
        timed(BUILD / "mkkineto", "--out", target, "--size", size, "--begin", "10")
    readers = [("bench_kineto", "laggard"), ("bench_simdjson", "simdjson on-demand, built for this machine"),
               ("bench_simdjson_v2", "simdjson on-demand, built for x86-64-v2"), ("bench_yajl", "yajl")]
    best = {}
    for _ in range(4):
        for name, _ in readers:
            if (BUILD / "tests/bench" / name).exists():
                job = Job(name, *(["memory"] if name == "bench_kineto" else []), path)
                if name not in best or job.seconds < best[name].seconds:
                    best[name] = job
    ours = best["bench_kineto"]
    for name, what in readers[1:]:
        if name not in best:
            print(f"kineto: {what}: not here")
            continue
        if (best[name].events, best[name].checksum) != (ours.events, ours.checksum):
            sys.exit(f"{name} reads something else")
        line("kineto, in memory", ours.size / 1e6 / ours.seconds, ours.size / 1e6 / best[name].seconds, "MB/s", what, True)
    seconds, n = python_seconds(small)
    job = min((Job("bench_kineto", "memory", small) for _ in range(3)), key=lambda j: j.seconds)
    if n != job.events:
        sys.exit("Python reads something else")
    line("kineto, in memory", job.size / 1e6 / job.seconds, job.size / 1e6 / seconds, "MB/s", "Python json", True)
    with open(path, "rb") as plain, gzip.open(work / "kineto.json.gz", "wb", 1) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    walls = {suffix: min((Job("bench_kineto", "stream", str(path) + suffix) for _ in range(4)), key=lambda j: j.seconds)
             for suffix in ("", ".gz")}
    line("kineto, .gz from the disk", ours.size / 1e6 / walls[".gz"].seconds, ours.size / 1e6 / walls[""].seconds, "MB/s",
         "the plain file; at least 0.83 is the aim", True)
    line("kineto, private memory", walls[""].kib / 1024, 64, "MiB", "the aim", False)
    job = min((Job("bench_kineto", "import", path) for _ in range(2)), key=lambda j: j.seconds)
    line("kineto, to records", ours.size / 1e6 / job.seconds, small.stat().st_size / 1e6 / seconds, "MB/s",
         "Python json alone", True)


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


def main():
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        work = pathlib.Path(folder)
        heading()
        program("bench_load", True, work)
        kineto(work)
        timed(BUILD / "mktrace", "--out", work / "run", "--pp", "4", "--dp", "2", "--microbatches", "8",
              "--layers", "8", "--steps", STEPS)
        seconds, _ = timed(LAGGARD, "merge", "-q", "-o", work / "run.db", work / "run")
        db = sqlite3.connect(work / "run.db")
        n = sum(db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                for t in ("gpu_event", "api_call", "gpu_sync", "nvtx_range", "nccl_op"))
        db.close()
        line("merge, end to end", n / seconds, n / insert_seconds(work, n), "events/s", "SQLite inserts + index only", True)
        packing(work, n)
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
