# SPDX-License-Identifier: Apache-2.0
"""Clock alignment on synthetic runs of 4 hosts x 2 ranks, where only the gradient-norm all-reduce and
send/receive join hosts: offsets of up to 40 ms, short runs with drifts of up to 200 ppm or runs of ten
seconds and more with 20, device errors that step, uneven ends, a chronic straggler in every other seed.
The same limits as on the simulated stack (timing_clock.py). Argument: seeds (default 200)."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from lib_clock import Map, Score
from lib_sim import LAGGARD, need

MKTRACE = pathlib.Path(os.environ["LAGGARD_BUILD"]) / "mktrace"
N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
MOMENTS = 20
SHAPE = "--pp 4 --dp 2 --per-host 2 --microbatches 4 --steps 20 --layers 1 --offset-ms 40 --ring-us 20 --device-us 12"


def options(seed):
    args = SHAPE.split() + ["--seed", str(seed)]
    if seed % 3 == 0:
        args += ["--fwd-us", "25000", "--drift-ppm", "20"]  # 20 steps of half a second
    else:
        args += ["--fwd-us", "2000", "--drift-ppm", "200"]
    if seed % 2:
        args += ["--slow", f"{seed % 8}:1.3"]
    return args


class Truth:
    """All times here are relative to the epoch: a float has no room for nanoseconds since 1970."""

    def __init__(self, folder):
        self.json = json.loads((folder / "truth.json").read_text())
        self.epoch = self.json["epoch_ns"]
        self.ranks = {r["rank"]: r for r in self.json["ranks"]}
        self.hosts = {h["name"]: h for h in self.json["hosts"]}
        self.length = sum(self.json["step_ns"])

    def host(self, name, true_ns):
        h = self.hosts[name]
        return true_ns + h["offset_ns"] + h["drift_ppm"] * 1e-6 * true_ns

    def device(self, rank, true_ns):
        r = self.ranks[rank]
        return self.host(r["host"], true_ns) + r["device_error_ns"][true_ns >= r["device_step_ns"]]

    def true_of(self, name, raw):
        h = self.hosts[name]
        return (raw - h["offset_ns"]) / (1 + h["drift_ppm"] * 1e-6)


def judge(score, folder):
    subprocess.run([LAGGARD, "merge", "-q", "-o", folder / "run.db", folder / "run"], check=True, timeout=120)
    db = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)

    def query(sql):
        return db.execute(sql).fetchall()

    clock, truth = Map(query), Truth(folder / "run")
    names = dict(query("SELECT id, name FROM host"))
    reference = names[clock.reference]
    errors = []
    for rank in truth.ranks:
        for k in range(MOMENTS):
            true_ns = truth.length * (2 * k + 1) // (2 * MOMENTS)
            raw = truth.epoch + round(truth.device(rank, true_ns))
            added, stated = clock.correction(rank, raw)
            errors.append((abs(raw - truth.epoch + added - truth.host(reference, true_ns)), stated))

    def needed(host, raw):
        shown = raw - truth.epoch
        return truth.host(reference, truth.true_of(names[host], shown)) - shown

    score.run(clock, errors, needed)
    db.close()


def main():
    need(MKTRACE)
    score = Score()
    for seed in range(1, N_SEEDS + 1):
        with tempfile.TemporaryDirectory(prefix="laggard-clock-") as name:
            folder = pathlib.Path(name)
            subprocess.run([MKTRACE, "--out", folder / "run", *options(seed)], check=True, capture_output=True,
                           timeout=120)
            judge(score, folder)
    failed = score.verdict()
    print("failed: " + "; ".join(failed) if failed else "1 passed, 0 failed")
    sys.exit(bool(failed))


main()
