# SPDX-License-Identifier: Apache-2.0
"""What recording costs and how many bytes it takes. Of the tracer as a whole: a training job on the
simulated stack with and without it, turn by turn."""
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from lib_bench import BUILD, LAGGARD, heading, line, program, timed

SIMRUN, PIPETRAIN = BUILD / "simgpu/simrun", BUILD / "tests/apps/pipetrain"
RANKS = 2
JOB = ("--pp", "2", "--microbatches", "8", "--layers", "12", "--steps", "40", "--fwd-us", "150", "--copies", "1")
N_TURNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def calls(work):
    """What a call costs more when it is recorded."""
    program_of_calls = BUILD / "tests/bench/bench_calls"
    _, plain = timed(program_of_calls)
    _, recorded = timed(LAGGARD, "record", "-q", "--nvtx", "always", "-o", work / "calls", "--", program_of_calls)
    shutil.rmtree(work / "calls", ignore_errors=True)
    nccl, nvtx, clock = (float(x) for x in plain.stdout.split())
    nccl_on, nvtx_on, _ = (float(x) for x in recorded.stdout.split())
    line("NCCL call, interposed", nccl_on - nccl, 2 * clock + 40, "ns", "two clock readings + 40 ns", False)
    line("NVTX push and pop", nvtx_on - nvtx, 2 * clock, "ns", "its two clock readings; 60 ns is the aim", False)


def content(file):
    """Bytes of chunks in use up to their last record, and records, from the headers of sealed chunks."""
    data = file.read_bytes()
    n_bytes = n_records = 0
    for at in range(8192, len(data) - 63, 65536):
        head = struct.unpack_from("<IIIIQqQIIIIQ", data, at)
        if head[9] == 2:
            n_records += head[7]
            n_bytes += 64 + head[8]
    return n_bytes, n_records


def train(work, out):
    """Wall and CPU seconds of one run of the job."""
    rdv = pathlib.Path(tempfile.mkdtemp(dir=work))
    record = (LAGGARD, "record", "-q", "-o", str(out), "--") if out else ()
    before, start = os.times(), time.monotonic()
    subprocess.run([*record, str(SIMRUN), "-n", str(RANKS), "--", str(PIPETRAIN), *JOB], check=True, capture_output=True,
                   env={**os.environ, "PIPETRAIN_RDV": str(rdv)})
    wall, after = time.monotonic() - start, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def job(work):
    if not SIMRUN.exists():
        print("no simulated stack here: a whole job is not measured")
        return
    without, recorded = [], []
    n_bytes = n_records = 0
    for turn in range(N_TURNS):
        without.append(train(work, None))
        recorded.append(train(work, work / f"job{turn}"))
        for file in (work / f"job{turn}").glob("*.lag"):
            more_bytes, more_records = content(file)
            n_bytes, n_records = n_bytes + more_bytes, n_records + more_records
        shutil.rmtree(work / f"job{turn}")
    line("bytes an event, of a job", n_bytes / n_records, 8, "B/event", "the aim", False)
    wall = statistics.median(x for x, _ in recorded)
    line("a job recorded, wall", wall, statistics.median(x for x, _ in without), "s",
         f"the same job; {n_records / N_TURNS / RANKS / wall:.0f} records/s a rank", False)
    line("a job recorded, CPU", statistics.median(x for _, x in recorded), statistics.median(x for _, x in without), "s",
         "the same job", False)


def main():
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        work = pathlib.Path(folder)
        heading()
        program("bench_append", False, work)
        program("bench_append", False, work, "paced")
        calls(work)
        job(work)
    print("1 passed, 0 failed")


main()
