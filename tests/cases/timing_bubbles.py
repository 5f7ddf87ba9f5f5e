# SPDX-License-Identifier: Apache-2.0
"""Bubbles on the simulated stack against the independent oracle, with kernel noise: GPipe and 1F1B (2 and
4 stages, 4 and 8 microbatches), interleaved (2 stages, 2 chunks), two replicas, once with transfers below
0.3 % and once above 3 % of a forward and backward. Ideal, measured and each rung have to be within 1.0
point of the window. A stage with more layers is imbalance, not a straggler; a slow rank the reverse.

timing_bubbles.py [FILTER]: only cases whose name contains FILTER."""
import statistics
import sys

from lib_bubbles import Differences, SimTruth, compare
from lib_sim import PIPETRAIN, SIMRUN, Run, need
import oracle

DP, STEPS, FORWARD_US = 2, 6, 8000
CLOCKS = {"SIMGPU_HOST_OFFSET_SPREAD_MS": 40, "SIMGPU_HOST_DRIFT_SPREAD_PPM": 50, "SIMGPU_DEVICE_ERROR_US": 5}
SLOW = {"SIMGPU_INTRA_GBPS": 10, "SIMGPU_INTER_GBPS": 10}
SHAPES = [(order, p, m, 1) for order in (oracle.GPIPE, oracle.ONE_F_ONE_B) for p in (2, 4) for m in (4, 8)] + \
    [(oracle.INTERLEAVED, 2, 4, 2), (oracle.INTERLEAVED, 2, 8, 2)]


class Case:
    def __init__(self, name, shape, seed, layers=None, act_bytes=1 << 20, env=None, stragglers=(), args=()):
        self.name, self.shape = name, oracle.Shape(*shape)
        self.layers = layers or [self.shape.v] * self.shape.p  # a chunk's forward is 8 ms
        self.act_bytes, self.stragglers, self.args = act_bytes, stragglers, args
        self.env = {"SIMGPU_SEED": seed, "SIMGPU_TRUTH_WORK": 1, **CLOCKS, **(env or {})}

    def options(self):
        s = self.shape
        more = ("--chunks", s.v) if s.v > 1 else ()
        return ("--pp", s.p, "--dp", DP, "--microbatches", s.m, "--schedule", s.order, *more, "--steps", STEPS,
                "--fwd-us", FORWARD_US, "--layers", ",".join(map(str, self.layers)), "--act-bytes",
                self.act_bytes, *self.args)

    def lane(self):
        """pipetrain's default: communicators of their own for each pair and direction if interleaved."""
        if "--batch-p2p" in self.args:
            return oracle.batched
        return oracle.streams if self.shape.v > 1 else oracle.communicators

    def run(self):
        ranks = self.shape.p * DP
        with Run(self.options(), self.env, ranks=ranks, hosts=ranks // 2) as run:
            truth = SimTruth(run.dir / "truth", run.truth(), self.shape, DP, self.layers)
            return truth.steps(), run.report("bubbles"), run.report("stragglers")


def transfer_share(steps, shape):
    """Median transfer over a median forward and backward."""
    flat = [step for group in steps for step in group]
    hop = sorted(m.recv for step in flat for of_stage in step.messages for m in of_stage.values())
    work = sorted(sum(d.values()) for step in flat for d in step.durations)
    return hop[len(hop) // 2] / (work[len(work) // 2] / (shape.m * shape.v))


def cases():
    out = []
    for i, shape in enumerate(SHAPES):
        name = "%s p=%d m=%d v=%d" % shape
        out.append(Case(name + " fast", shape, i + 1))
        out.append(Case(name + " slow", shape, i + 1, act_bytes=12 << 20, env=SLOW))
    shape = (oracle.ONE_F_ONE_B, 4, 8, 1)
    out.append(Case("batched slow", shape, 20, act_bytes=12 << 20, env=SLOW, args=("--batch-p2p",)))
    out.append(Case("heavy stage fast", shape, 21, layers=[1, 1, 2, 1]))
    out.append(Case("slow rank fast", shape, 22, env={"SIMGPU_SLOW": "5:1.3"}, stragglers={(1, 2)}))
    out.append(Case("uneven data fast", shape, 24, args=("--work-jitter", 0.1)))
    # Both stages' hosts need longer than their GPUs, so that these wait.
    out.append(Case("late host fast", (oracle.GPIPE, 2, 4, 1), 23, args=("--host-us", 20000)))
    return out


# By case: what has to be seen there, in points of the window on some stage of the group that is hit.
EXPECTED = {"heavy stage fast": ("imbalance", 10), "slow rank fast": ("slow_ranks", 3),
            "uneven data fast": ("variation", 3), "late host fast": ("host", 10)}


def accused(report):
    return [row["rank"] for row in report["rows"] if row["verdict"] in ("chronic", "rotating")]


def check_fault(case, report, stragglers):
    """The rung on which a fault shows, and whom the stragglers' report names for it."""
    wrong = []
    named = [s * DP + g for g, s in case.stragglers]
    if accused(stragglers) != named:
        wrong.append(f"accused {accused(stragglers)}, not {named}")
    if case.name in EXPECTED:
        rung, points = EXPECTED[case.name]
        for name in ("imbalance", "slow_ranks", "variation", "host"):
            shares = {}
            for row in report["rows"]:
                shares.setdefault(row["rank"], []).append(row[name + "_ns"] / row["window_ns"])
            seen = 100 * max(map(statistics.median, shares.values()), key=abs)
            if (abs(seen) >= points) != (name == rung):
                wrong.append(f"{name} is {seen:.2f} points at most")
    return wrong


def main():
    need(SIMRUN, PIPETRAIN)
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    total, n, n_bad = Differences(), 0, 0
    for case in cases():
        if only not in case.name:
            continue
        steps, report, stragglers = case.run()
        diff, wrong, mean = compare(report, steps, case.shape, DP, case.stragglers, case.lane())
        wrong += check_fault(case, report, stragglers)
        share = transfer_share(steps, case.shape)
        if not (share <= 0.003 if "fast" in case.name else share >= 0.03):
            wrong.append(f"a transfer is {100 * share:.2f} % of a forward and backward")
        total.add(diff)
        n, n_bad = n + 1, n_bad + bool(wrong)
        print(f"{case.name}: transfer {100 * share:.2f} %; off by {diff.text()}\n  oracle "
              + ", ".join(f"{k} {100 * v:.2f}" for k, v in mean.items()), flush=True)
        for text in wrong:
            print("  " + text)
    print(f"largest differences in points: {total.text()}\n{n - n_bad} passed, {n_bad} failed")
    sys.exit(bool(n_bad))


main()
