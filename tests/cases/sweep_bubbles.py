#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipeline bubbles through mktrace, merge and report, on hosts whose clocks are wrong, against the
independent oracle: ideal, measured and every rung within 1.0 point of the window, with transfers below
0.3 % and above 3 % of a forward and backward, with and without annotations; heavy stages, slow ranks and
longer sequences on their own rungs; what cannot be said is not said.
sweep_bubbles.py [SEEDS], 5 without."""
import sys

from lib_bubbles import Differences, MkTruth, compare
from lib_mktrace import Run, Tally
import oracle

SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SHAPES = [(order, p, m, 1) for order in ("gpipe", "1f1b") for p in (2, 4) for m in (4, 8)] + \
    [("interleaved", 2, 4, 2), ("interleaved", 2, 8, 2), ("interleaved", 4, 8, 2)]
DP, STEPS = 2, 4


def options(shape, seed, p2p_us):
    order, p, m, v = shape
    return ("--pp", p, "--dp", DP, "--microbatches", m, "--schedule", order, "--chunks", v, "--steps", STEPS,
            "--fwd-us", 2000, "--seed", seed, "--p2p-us", p2p_us, "--blocks")


def against_oracle(where, words, tally, total, stragglers=()):
    """Mean share of each rung by the oracle."""
    with Run(*words) as run:
        report, truth = run.report("bubbles"), MkTruth(run.truth())
    diff, wrong, mean = compare(report, truth.steps(), truth.shape, DP, stragglers)
    total.add(diff)
    shape = truth.shape
    closed = (shape.p - 1) / (shape.v * shape.m + shape.p - 1)
    tally.check(all(abs(row["ideal_share"] - closed) <= 0.001 for row in report["rows"]),
                f"{where}: ideal is not {100 * closed:.1f} %")
    tally.check(not wrong, f"{where}: " + "; ".join(wrong[:3]))
    return mean


def causes(seed, tally, total):
    """Each cause on its own rung, as the oracle has it."""
    shape = ("1f1b", 4, 8, 1)
    equal = options(shape, seed, 20) + ("--gpu-sigma", 0, "--embed-us", 0, "--loss-us", 0)
    for name, more, rung, stragglers in (
            ("a heavier stage", ("--layers", "4,4,6,4"), "imbalance", ()),
            ("a slow rank", ("--slow", "5:1.3"), "slow_ranks", ((1, 2),)),
            ("longer sequences", ("--seq-sigma", 0.3), "variation", ()),
            ("slow links", ("--p2p-us", 800), "send_recv", ()),
            # A host that needs 6 ms for what takes the GPU 2 to 5 ms.
            ("a slow host", ("--fwd-us", 400, "--host-us", 6000), "host", ())):
        mean = against_oracle(f"seed {seed}, {name}", equal + more, tally, total, stragglers)
        tally.check(mean.get(rung, 0) > 0.01, f"seed {seed}: {name} adds {mean.get(rung)} to {rung}")
        others = {r: v for r, v in mean.items() if r in oracle.RUNGS and r != rung and abs(v) > 0.01}
        tally.check(not others or name == "a slow host", f"seed {seed}: {name} also shows as {others}")


def unknown(seed, tally):
    with Run(*options(("1f1b", 4, 8, 1), seed, 20), "--missing", 3) as run:
        report = run.report("bubbles")
    tally.check({row["rank"] % 2 for row in report["rows"]} == {0}, f"seed {seed}: bubbles without a stage")
    tally.check(any("not on record" in note for note in report["trust"]["notes"]),
                f"seed {seed}: bubbles withheld without a reason")
    with Run("--pp", 1, "--dp", 4, "--steps", 3, "--seed", seed) as run:
        report = run.report("bubbles")
    tally.check(not report["rows"] and any("not applicable" in note for note in report["trust"]["notes"]),
                "no pipeline: bubbles must be not applicable")


def main():
    tally, total = Tally(), Differences()
    for seed in range(1, SEEDS + 1):
        for shape in SHAPES:
            for p2p_us in (20, 900):
                for more in ((), ("--no-nvtx",)):
                    words = options(shape, seed, p2p_us) + more
                    where = f"seed {seed}, {shape}, send/receive {p2p_us} us {' '.join(more)}"
                    against_oracle(where, words, tally, total)
        causes(seed, tally, total)
        unknown(seed, tally)
    print(f"largest differences in points: {total.text()}")
    tally.end()


main()
