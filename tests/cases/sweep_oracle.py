#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bubble's ladder against the independent oracle where messages queue in other ways than in
sweep_bubbles.py: communicators for each pair of stages, one kernel for a send and the receive that follows
it, with and without annotations and copies; long pipelines, and fewer microbatches than stages.
sweep_oracle.py [SEEDS], 1 without."""
import sys

from lib_bubbles import Differences, MkTruth, compare
from lib_mktrace import Run, Tally
import oracle

SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
DP, STEPS = 2, 4
SHAPES = [(oracle.GPIPE, 2, 4, 1), (oracle.GPIPE, 4, 8, 1), (oracle.GPIPE, 8, 16, 1), (oracle.ONE_F_ONE_B, 2, 8, 1),
          (oracle.ONE_F_ONE_B, 3, 2, 1), (oracle.ONE_F_ONE_B, 4, 8, 1), (oracle.ONE_F_ONE_B, 8, 16, 1),
          (oracle.INTERLEAVED, 2, 4, 2), (oracle.INTERLEAVED, 4, 8, 2)]
WAYS = [("--no-copies",), ("--pair-comms",), ("--batch-p2p",), ("--batch-p2p", "--no-nvtx")]


class Batched(MkTruth):
    """What mktrace does not tell of kernels that carry two messages is the same for all of them here."""

    def __init__(self, truth):
        super().__init__(truth)
        ns = truth["shape"]["p2p_ns"]
        self.messages = {key: {b: oracle.Message(ns, ns, True) for b in blocks} for key, blocks in self.blocks.items()}


def check(where, shape, words, lane, tally):
    with Run(*words) as run:
        report, truth = run.report("bubbles"), run.truth()
    observed = Batched(truth) if lane is oracle.batched else MkTruth(truth)
    diff, wrong, _ = compare(report, observed.steps(), shape, DP, (), lane)
    tally.check(not wrong, f"{where}: " + "; ".join(wrong[:4]))
    return diff


def main():
    tally, total = Tally(), Differences()
    for seed in range(1, SEEDS + 1):
        for p, m, v, order in ((p, m, v, order) for order, p, m, v in SHAPES):
            for p2p_us in (20, 800):  # 0.1 % and 3.3 % of a chunk's forward and backward
                for way in WAYS:
                    batched = "--batch-p2p" in way
                    if v > 1 and batched:
                        continue
                    words = ("--pp", p, "--dp", DP, "--microbatches", m, "--schedule", order, "--chunks", v, "--steps",
                             STEPS, "--fwd-us", 2000, "--layers", 4 * v, "--seed", seed, "--p2p-us", p2p_us,
                             "--act-bytes", "1M", "--blocks", *way)
                    total.add(check(f"seed {seed}: {' '.join(map(str, words))}", oracle.Shape(order, p, m, v),
                                    words + ("--comm-sigma", 0) * batched,
                                    oracle.batched if batched else oracle.streams, tally))
    print(f"largest differences in points: {total.text()}")
    tally.end()


main()
