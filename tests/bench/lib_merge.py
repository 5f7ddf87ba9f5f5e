# SPDX-License-Identifier: Apache-2.0
"""The merge end to end beside SQLite, its growth with the events, and its memory."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import threading
import time

from lib_bench import BUILD, LAGGARD, line, timed

BIG = int(os.environ.get("LAGGARD_BENCH_EVENTS", "1000000"))
ROUNDS = 5


def watch(merge, most):
    """Notes the most memory of its own that a process had at once, in KiB."""
    while merge.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{merge.pid}/status").read_text(encoding="ascii")
            most[0] = max([most[0], *(int(size) for size in re.findall(r"RssAnon:\s+(\d+) kB", status))])
        except OSError:
            pass
        time.sleep(0.02)


def merged(work, run, *options):
    """Seconds of a merge, seconds of processors, the most memory of its own it had at once in MiB, and MiB in a file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    merge = subprocess.Popen([LAGGARD, "merge", "-f", "-o", work / "big.db", *options, run], stderr=subprocess.PIPE, text=True)
    most = [0]
    watcher = threading.Thread(target=watch, args=(merge, most))
    watcher.start()
    text = merge.stderr.read()  # until it ends
    seconds = time.monotonic() - start
    merge.wait()
    watcher.join()
    if merge.returncode:
        sys.exit(f"merge: {text}")
    spilled = re.search(r"(\d+) MiB of temporary data", text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, most[0] / 1024, int(spilled.group(1)) if spilled else 0


def best_of(rounds):
    """The least of each figure: the machine is never quiet."""
    return [min(figures) for figures in zip(*rounds)]


def merging(work):
    """End to end (decode, align, order, tables, indexes) beside SQLite's best load of the same rows alone."""
    timed(BUILD / "mkbig", work / "big", "8", str(BIG))
    timed(BUILD / "mkbig", work / "big4", "8", str(4 * BIG))
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turn, so that both meet the same machine
        ours.append(merged(work, work / "big"))
        _, done = timed(BUILD / "tests/bench/bench_merge", work / "big.db", work / "reference.db")
        theirs.append([float(word) for word in done.stdout.split()])
    seconds, cpu, memory, _ = best_of(ours)
    rows, reference, reference_cpu = best_of(theirs)
    line("merge, end to end", rows / seconds, rows / reference, "rows/s", "SQLite's best, load and indexes only", True)
    line("merge, per processor", rows / cpu, rows / reference_cpu, "rows/s", "the same; where cores are busy with others",
         True)
    four, cpu4, memory4, _ = merged(work, work / "big4")
    line("merge, 4 times the events", 4 * BIG / cpu4, BIG / cpu, "events/s", "a quarter of them; per processor", True)
    small, _, memory_small, spilled = merged(work, work / "big4", "--memory", "128M")
    line("merge in --memory 128M", small, four, "s", f"512M; it had {memory_small:.0f} MiB and {spilled} MiB in a file",
         False)
    print(f"{'merge, memory of its own':<34} {memory4:>10.3g} {memory:>10.3g} MiB            {memory4 / memory:>7.2f}x  "
          "a quarter of the events")
    for name in ("big", "big4"):
        shutil.rmtree(work / name)
