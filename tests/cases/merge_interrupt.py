#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard merge, interrupted: a signal ends it within a second or two in whatever phase it is, with one line
and nothing left; what a killed one leaves is removed by the next merge to the same output, and nothing else is."""
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from lib_merged import BUILD, LAGGARD, Tally


def start(run, out, *options):
    return subprocess.Popen([LAGGARD, "merge", "-o", out, *options, run], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def duration(run, work):
    begin = time.monotonic()
    done = start(run, work / "whole.db", "-f")
    done.communicate()
    (work / "whole.db").unlink()
    return time.monotonic() - begin


def signals(tally, run, work):
    took = duration(run, work)
    ended = 0
    for which, number in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT)):
        merge = start(run, work / "out.db")
        time.sleep(took * (which + 0.5) / 5)
        begin = time.monotonic()
        merge.send_signal(number)
        _, text = merge.communicate(timeout=60)
        waited = time.monotonic() - begin
        if merge.returncode == 0:
            (work / "out.db").unlink()
            continue
        ended += 1
        lines = text.splitlines()
        tally.check(len(lines) == 1 and "interrupted" in lines[0], f"signal {which}: {merge.returncode}: {text!r}")
        tally.check(waited < 5, f"signal {which}: {waited:.1f} s until the end")
        left = [work / "out.db"] if "its result is complete" in text else []
        tally.check(list(work.iterdir()) == left, f"signal {which}: {text!r}, left {list(work.iterdir())}")
        for path in left:
            path.unlink()
    tally.check(ended > 0, "no merge was slow enough to be interrupted")


def killed(tally, run, work):
    out = work / "out.db"
    for _ in range(20):
        out.unlink(missing_ok=True)
        merge = start(run, out, "--writer", "sql")
        while merge.poll() is None and not list(work.glob("out.db.laggard-*")):
            time.sleep(0.005)
        merge.kill()
        merge.communicate()
        if list(work.glob("out.db.laggard-*")):
            break
    left = list(work.glob("out.db.laggard-*"))
    tally.check(len(left) == 1, f"killed: left {list(work.iterdir())}")
    # Not ours, or in use: these stay.
    stay = [work / name for name in ("out.db.laggard-1234567", "out.db.backup1", "other.db.laggard-123456",
                                     "out.db.laggard-abcdef")]
    for path in stay:
        path.write_bytes(b"")
    (work / "out.db.laggard-folder").mkdir()
    with open(stay[-1], "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = start(run, out)
        _, text = done.communicate()
        tally.check(done.returncode == 0, f"after the kill: {text!r}")
    names = sorted(p.name for p in work.iterdir())
    tally.check(names == sorted(["out.db", "out.db.laggard-folder", *(p.name for p in stay)]), f"cleaned up: {names}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-interrupt-") as folder:
        run, first, second = (pathlib.Path(folder) / name for name in ("run", "first", "second"))
        first.mkdir()
        second.mkdir()
        subprocess.run([BUILD / "mkbig", run, "4", "400000"], check=True)
        signals(tally, run, first)
        killed(tally, run, second)
    tally.end()


if __name__ == "__main__":
    sys.exit(main())
