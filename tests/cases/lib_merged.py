# SPDX-License-Identifier: Apache-2.0
"""A run in a folder of its own: made by a subclass, merged, and asked for its reports."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["LAGGARD_BUILD"])
LAGGARD = os.environ["LAGGARD"]


def need(*paths):
    for path in paths:
        if not pathlib.Path(path).exists():
            print(f"skipped: {path} is not built")
            sys.exit(77)


def call(*words, codes=(0,), **kw):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=300, **kw)
    if done.returncode not in codes:
        raise RuntimeError(f"{words[0]} {words[1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def rows(db, sql):
    """Of a trace that nobody writes."""
    connection = sqlite3.connect(f"file:{db}?immutable=1", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


class MergedRun:
    """Use as a context manager. A subclass has make(), which fills self.dir / "run"."""

    merge_args = ()

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="laggard-run-"))
        try:
            self.make()
            call(LAGGARD, "merge", "-q", "-o", self.db, *self.merge_args, self.dir / "run")
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def db(self):
        return self.dir / "run.db"

    def report(self, analysis, *options):
        # 1: something is wrong and named; 3: the data cannot tell.
        return json.loads(call(LAGGARD, "report", analysis, self.db, "--format", "json", *options, codes=(0, 1, 3)))

    def query(self, sql):
        return rows(self.db, sql)


class Tally:
    """Counts what was checked and what was wrong."""

    def __init__(self):
        self.n, self.bad = 0, 0

    def check(self, ok, text):
        self.n += 1
        if not ok:
            self.bad += 1
            print(text, flush=True)

    def end(self):
        print(f"{self.n} checks, {self.bad} failed")
        sys.exit(1 if self.bad or not self.n else 0)


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]
