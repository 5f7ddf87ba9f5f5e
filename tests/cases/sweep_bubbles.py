#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipeline bubbles through files, merge and report, against the truth of each run: measured to 1 point,
ideal by the closed forms of the papers, ladders that add up, a heavier stage on its own rung.
sweep_bubbles.py [SEEDS], 2 without."""
import sys

from lib_mktrace import Run, Tally

SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
RUNGS = ("imbalance_ns", "slow_ranks_ns", "variation_ns", "send_recv_ns", "host_ns", "residual_ns")
SHAPES = [(order, p, m, 1) for order in ("gpipe", "1f1b") for p in (2, 4) for m in (4, 8)] + \
    [("interleaved", 2, 4, 2), ("interleaved", 2, 8, 2)]


def options(shape, seed, p2p_us):
    order, p, m, v = shape
    return ("--pp", p, "--dp", 2, "--microbatches", m, "--schedule", order, "--chunks", v, "--steps", 4,
            "--fwd-us", 2000, "--seed", seed, "--p2p-us", p2p_us)


def windows(truth):
    """True window of each (group, step): first forward's start to last backward's end of its stages."""
    dp = truth["shape"]["dp"]
    out = {}
    for step, ranks in enumerate(truth["work"]):
        for rank, (_, _, first, last) in enumerate(ranks):
            key = (rank % dp, step)
            lo, hi = out.get(key, (first, last))
            out[key] = (min(lo, first), max(hi, last))
    return out


def ideal_share(shape):
    _, p, m, v = shape
    return (p - 1) / (v * m + p - 1)


def check_rows(report, truth, shape, where, tally):
    true_windows, worst = windows(truth), 0
    tally.check(len(report["rows"]) == len(truth["work"]) * len(truth["work"][0]), f"{where}: rows missing")
    for row in report["rows"]:
        lo, hi = true_windows[row["rank"] % 2, row["step"]]
        fwd, bwd, _, _ = truth["work"][row["step"]][row["rank"]]
        true_share = 1 - (fwd + bwd) / (hi - lo)
        # Copies count as work, gaps between kernels do not.
        worst = max(worst, abs(row["measured_ns"] / row["window_ns"] - true_share))
        tally.check(row["ideal_ns"] + sum(row[r] for r in RUNGS) == row["measured_ns"],
                    f"{where}: the ladder does not add up: {row}")
        tally.check(abs(row["residual_ns"]) <= 0.01 * row["window_ns"], f"{where}: residual {row}")
        tally.check(abs(row["ideal_share"] - ideal_share(shape)) <= 0.01,
                    f"{where}: ideal {row['ideal_share']:.3f}, by the papers {ideal_share(shape):.3f}")
    tally.check(worst <= 0.01, f"{where}: measured is off by {100 * worst:.2f} points")
    return worst


def check_rungs(report, where, p2p_us, tally):
    """Equal stages and GPUs: every rung but send/receive stays near zero."""
    n = len(report["rows"])
    share = {r: sum(row[r] / row["window_ns"] for row in report["rows"]) / n for r in RUNGS}
    tally.check(abs(share["slow_ranks_ns"]) <= 0.01 and abs(share["host_ns"]) <= 0.01,
                f"{where}: rungs {share}")
    # GPipe sends behind the next forward, so that most of it is hidden.
    tally.check((share["send_recv_ns"] > 0.005) == (p2p_us > 100), f"{where}: send/receive {share}")


def main():
    tally, worst = Tally(), 0
    for seed in range(1, SEEDS + 1):
        for p2p_us in (20, 800):  # below 0.3 % and above 3 % of a forward and backward
            for shape in SHAPES:
                where = f"seed {seed}, {shape}, send/recv {p2p_us} us"
                for extra in ((), ("--no-nvtx",)):
                    with Run(*options(shape, seed, p2p_us), *extra) as run:
                        report, truth = run.report("bubbles"), run.truth()
                    worst = max(worst, check_rows(report, truth, shape, where + " ".join(extra), tally))
                with Run(*options(shape, seed, p2p_us), "--gpu-sigma", 0, "--embed-us", 0, "--loss-us", 0) as run:
                    check_rungs(run.report("bubbles"), where, p2p_us, tally)
        with Run(*options(("1f1b", 4, 8, 1), seed, 20), "--layers", "4,4,6,4") as run:
            rows = run.report("bubbles")["rows"]
        light = [row for row in rows if row["stage"] != 2]
        share = sum(row["imbalance_ns"] / row["window_ns"] for row in light) / len(light)
        tally.check(share > 0.1, f"seed {seed}: a heavier stage shows {share:.3f} of imbalance")
        slow = max(abs(row["slow_ranks_ns"]) / row["window_ns"] for row in rows)
        tally.check(slow < 0.03, f"seed {seed}: a heavier stage shows {slow:.3f} of slow ranks")
        with Run(*options(("1f1b", 4, 8, 1), seed, 20), "--missing", 3) as run:
            report = run.report("bubbles")
        tally.check({row["rank"] % 2 for row in report["rows"]} == {0}, f"seed {seed}: bubbles without a stage")
        tally.check(any("not on record" in note for note in report["trust"]["notes"]),
                    f"seed {seed}: bubbles withheld without a reason")
    print(f"measured: at most {100 * worst:.2f} points off")
    with Run("--pp", 1, "--dp", 4, "--steps", 3) as run:
        report = run.report("bubbles")
    tally.check(not report["rows"] and any("not" in note for note in report["trust"]["notes"]),
                "no pipeline: bubbles must be not applicable")
    tally.end()


main()
