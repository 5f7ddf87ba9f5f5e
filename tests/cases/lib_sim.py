# SPDX-License-Identifier: Apache-2.0
"""Runs a training program on the simulated stack under `laggard record`, merges it, reads reports and
the simulator's truth."""
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
SIMRUN = BUILD / "simgpu/simrun"
PIPETRAIN = BUILD / "tests/apps/pipetrain"


def need(*paths):
    for path in paths:
        if not pathlib.Path(path).exists():
            print(f"skipped: {path} is not built")
            sys.exit(77)


class Run:
    """One recorded and merged job in a temporary folder; use as a context manager."""

    def __init__(self, train_args, env=None, ranks=8, hosts=4, merge_args=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="laggard-sim-"))
        self.train_args, self.env, self.ranks, self.hosts = train_args, env or {}, ranks, hosts
        self.merge_args = merge_args

    def __enter__(self):
        try:
            self.record()
            self.merge()
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def db(self):
        return self.dir / "run.db"

    def record(self):
        (self.dir / "rdv").mkdir()
        (self.dir / "truth").mkdir()
        environment = {**os.environ, **{k: str(v) for k, v in self.env.items()},
                       "PIPETRAIN_RDV": str(self.dir / "rdv")}
        done = subprocess.run(
            [LAGGARD, "record", "-o", self.dir / "run", "--", SIMRUN, "-n", str(self.ranks), "--hosts",
             str(self.hosts), "--truth", self.dir / "truth", "--", PIPETRAIN, *map(str, self.train_args)],
            env=environment, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(f"the job ended with {done.returncode}: {done.stderr[-2000:]}")
        self.stdout = done.stdout

    def merge(self):
        done = subprocess.run([LAGGARD, "merge", "-q", "-o", self.db, *self.merge_args, self.dir / "run"],
                              capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(f"merge ended with {done.returncode}: {done.stderr[-2000:]}")

    def report(self, analysis, *args):
        done = subprocess.run([LAGGARD, "report", analysis, self.db, "--format", "json", *args],
                              capture_output=True, text=True, check=False, timeout=300)
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(f"report {analysis} ended with {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def truth(self):
        return json.loads((self.dir / "truth/truth.json").read_text())

    def query(self, sql):
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]
