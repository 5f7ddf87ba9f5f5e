# SPDX-License-Identifier: Apache-2.0
"""Synthetic runs through the whole program: mktrace, laggard merge, laggard report."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["LAGGARD_BUILD"])
LAGGARD = os.environ["LAGGARD"]
MKTRACE = BUILD / "mktrace"


def call(*words, codes=(0,)):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode not in codes:
        raise RuntimeError(f"{words[0]} {words[1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class Run:
    """One synthetic run, merged; use as a context manager."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="laggard-mk-"))
        try:
            call(MKTRACE, "--out", self.dir / "run", *self.options)
            call(LAGGARD, "merge", "-q", "-o", self.dir / "run.db", self.dir / "run")
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    def report(self, analysis, *options):
        # 1: something is wrong and named; 3: the data cannot tell.
        return json.loads(call(LAGGARD, "report", analysis, self.dir / "run.db", "--format", "json", *options,
                               codes=(0, 1, 3)))

    def truth(self):
        return json.loads((self.dir / "run/truth.json").read_text())


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
