#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard merge: neither the number of threads nor where the events lie (memory, or a temporary file) changes
the trace; a folder without room for the file is one clear line, and nothing is left behind."""
import hashlib
import os
import pathlib
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile

from lib_merged import BUILD, LAGGARD, Tally


def merge(run, out, *options, **kwargs):
    return subprocess.run([LAGGARD, "merge", "-f", "-o", out, *options, run], capture_output=True,
                          text=True, check=False, **kwargs)


def rows(path):
    """A digest of each table's rows in their order."""
    digests = {}
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        digest = hashlib.sha256()
        for row in db.execute(f"SELECT * FROM {table}"):
            digest.update(repr(row).encode())
        digests[table] = digest.hexdigest()
    whole = db.execute("PRAGMA integrity_check").fetchall()
    db.close()
    return digests, whole


def same_whatever_the_threads(tally, run, work, content):
    first = None
    for options in (["--threads", "1"], ["--threads", "7"], ["--memory", "1M"],
                    ["--memory", "1M", "--threads", "5", "--tmp", work]):
        out = work / "out.db"
        done = merge(run, out, *options)
        tally.check(done.returncode == 0, f"{run.name} {options}: {done.returncode}: {done.stderr}")
        spilled = re.search(r", (\d+) MiB of temporary data", done.stderr)
        tally.check(bool(spilled) == ("1M" in options), f"{run.name} {options}: {done.stderr}")
        data = content(out) if out.exists() else None
        first = first if first is not None else data
        tally.check(data == first, f"{run.name} {options}: another trace than with one thread")
        tally.check(sorted(p.name for p in work.iterdir()) == ["out.db"],
                    f"{run.name} {options}: left {list(work.iterdir())}")
        out.unlink(missing_ok=True)


def no_room(tally, run, work):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))

    done = merge(run, work / "out.db", "--memory", "1M", preexec_fn=small_files)
    lines = done.stderr.splitlines()
    tally.check(done.returncode == 2 and len(lines) == 1 and "temporary" in lines[0],
                f"no room: {done.returncode}: {done.stderr!r}")
    tally.check(not list(work.iterdir()), f"no room: left {list(work.iterdir())}")
    done = merge(run, work / "out.db", "--tmp", work / "none")
    tally.check(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"no folder: {done.stderr!r}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-memory-") as folder:
        run, big, work = (pathlib.Path(folder) / name for name in ("run", "big", "work"))
        work.mkdir()
        subprocess.run([BUILD / "mktrace", "--out", run, "--pp", "2", "--dp", "2", "--steps", "6", "--offset-ms", "3"],
                       check=True, stdout=subprocess.DEVNULL)
        same_whatever_the_threads(tally, run, work, pathlib.Path.read_bytes)
        subprocess.run([BUILD / "mkbig", big, "3", "90000"], check=True)
        same_whatever_the_threads(tally, big, work, rows)
        no_room(tally, big, work)
    tally.end()


if __name__ == "__main__":
    sys.exit(main())
