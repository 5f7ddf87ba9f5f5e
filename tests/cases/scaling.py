#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What grows in a trace costs in proportion: four times as many process groups, steps without work, or kernels
that overlap take some four times as long, not sixteen."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

from lib_merged import LAGGARD, Tally

START_US = 1700000000000000
SMALL, LARGE = 8000, 32000
MOST = 9  # four to eight are linear with caches that no longer hold it; sixteen is a square
FLOOR_S = 0.05


def event(cat, name, at, length, tid, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": START_US + at, "dur": length, "args": args}


def kernel(i, at, length, **args):
    return event("kernel", args.pop("name", "k"), at, length, 7, correlation=i, device=0, stream=7, **args)


def groups(n):
    for i in range(n):
        yield kernel(i, 10 * i, 5, name="ncclDevKernel_AllReduce_Sum_f32",
                     **{"Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "Group size": 2,
                        "dtype": "Float", "Process Group Name": f"pg{i}", "Process Group Ranks": "[0, 1]"})


def overlapping(n):
    for i in range(n):
        yield kernel(i, i, 900000)


def steps(n):
    """The first of them holds no work."""
    for i in range(n):
        yield event("user_annotation", f"ProfilerStep#{i}", 10 * i, 9, 1)
        if i:
            yield event("cuda_runtime", "cudaLaunchKernel", 10 * i, 1, 1, correlation=i)
            yield kernel(i, 10 * i + 3, 3)


def cpu_of(*args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1, 3), (args, done.returncode, done.stderr)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-scaling-") as folder:
        path, db = pathlib.Path(folder, "t.json"), pathlib.Path(folder, "t.db")
        for make in (groups, overlapping, steps):
            took = {}
            for n in (SMALL, LARGE):
                head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}}
                path.write_text(json.dumps(dict(head, traceEvents=list(make(n)))))
                times = [(cpu_of("merge", "-qf", path, "-o", db), cpu_of("report", "steps", "-F", "csv", db))
                         for _ in range(2)]
                took[n] = [min(column) for column in zip(*times)]
            for what, small, large in zip(("merge", "report"), took[SMALL], took[LARGE]):
                print(f"{make.__name__}, {what}: {small:.2f} s of {SMALL}, {large:.2f} s of {LARGE}")
                t.check(large < MOST * max(small, FLOOR_S), f"{make.__name__}: {what} took {small:.2f} and {large:.2f} s")
    t.end()


if __name__ == "__main__":
    sys.exit(main())
