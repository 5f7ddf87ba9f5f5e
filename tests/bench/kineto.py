# SPDX-License-Identifier: Apache-2.0
"""The reader of Kineto traces beside other readers of JSON on one job, and from .gz beside from the plain file."""
import gzip
import json
import pathlib
import shutil
import sys
import tempfile
import time

from lib_bench import BUILD, heading, line, timed


class Job:
    """One reader's run over a Kineto trace: events, checksum, seconds, bytes of the file, private KiB."""

    def __init__(self, name, *args):
        _, done = timed(BUILD / "tests/bench" / name, *args)
        events, checksum, seconds, size, kib = done.stdout.split()
        self.events, self.checksum, self.seconds = int(events), checksum, float(seconds)
        self.size, self.kib = int(size), int(kib)


def python_seconds(path):
    """The same fields of every event by Python's own json."""
    data = path.read_bytes()
    start = time.process_time()
    rows = [(e.get("ph"), e.get("cat"), e.get("name"), e.get("pid"), e.get("tid"), e.get("ts"), e.get("dur"),
             a.get("External id"), a.get("correlation"), a.get("stream"), a.get("device"))
            for e in json.loads(data)["traceEvents"] for a in (e.get("args", {}),)]
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
                # Several rounds: a reader's buffers are there after the first.
                job = Job(name, *(["memory"] if name == "bench_kineto" else []), path, 3)
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
         "Python json, eleven fields of a smaller file", True)


def main():
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        heading()
        kineto(pathlib.Path(folder))
    print("1 passed, 0 failed")


main()
