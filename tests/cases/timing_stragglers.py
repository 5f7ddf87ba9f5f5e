# SPDX-License-Identifier: Apache-2.0
"""Slow ranks on the simulated stack: per seed one run without a fault, one with a rank slowed 1.3 times,
one with 1.1 times. The slow rank has to be named, chronic, cause "slow GPU", nobody else accused, and
its step_cost_ns within 10 % of what the same seed gains without the fault (by the simulator's truth).
The run without a fault accuses nobody; with one rank per stage the verdict is that nobody can tell."""
import sys

from lib_sim import PIPETRAIN, SIMRUN, Run, need

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
ARGS = ("--pp", 4, "--dp", 2, "--microbatches", 4, "--steps", 25, "--fwd-us", 2000, "--layers", 1)
ALONE = ("--pp", 4, "--dp", 1, "--microbatches", 4, "--steps", 25, "--fwd-us", 2000, "--layers", 1)


def true_step_ns(run):
    """Mean time from one gradient-norm all-reduce to the next, without the first three."""
    ends = sorted(op["ranks"][0]["end_true_ns"] for op in run.truth()["operations"]
                  if op["func"] == "ncclAllReduce" and op["nranks"] == run.ranks)
    return (ends[-1] - ends[3]) / (len(ends) - 4)


def accused(report):
    return [row for row in report["rows"] if row["verdict"] in ("chronic", "rotating", "one-off", "cannot tell: rank or stage")
            and row["cause"] == "slow GPU" or row["verdict"] in ("chronic", "rotating")]


def check(seed, factor, clean_ns, slow):
    env = {"SIMGPU_SEED": seed, "SIMGPU_SLOW": f"{slow}:{factor}", "SIMGPU_HOST_OFFSET_SPREAD_MS": 40,
           "SIMGPU_HOST_DRIFT_SPREAD_PPM": 50}
    with Run(ARGS, env) as run:
        rows = accused(run.report("stragglers"))
        gain = true_step_ns(run) - clean_ns
    named = [row["rank"] for row in rows]
    bad = []
    if named != [slow]:
        bad.append(f"accused {named}")
    else:
        row = rows[0]
        if row["verdict"] != "chronic" or row["cause"] != "slow GPU":
            bad.append(f"verdict {row['verdict']}, cause {row['cause']}")
        if row["step_cost_ns"] is None or abs(row["step_cost_ns"] - gain) > 0.1 * gain:
            bad.append(f"cost {(row['step_cost_ns'] or 0) / 1e6:.2f} ms")
    print(f"seed {seed}: rank {slow} x{factor}: gain {gain / 1e6:.2f} ms, "
          f"said {rows[0]['step_cost_ns'] / 1e6 if named == [slow] else float('nan'):.2f} ms"
          + ("; " + "; ".join(bad) if bad else ""), flush=True)
    return bool(bad)


def main():
    need(SIMRUN, PIPETRAIN)
    n_bad = 0
    for seed in range(1, N_SEEDS + 1):
        with Run(ARGS, {"SIMGPU_SEED": seed}) as run:
            clean_ns = true_step_ns(run)
            named = [row["rank"] for row in accused(run.report("stragglers"))]
        if named:
            print(f"seed {seed}: a clean run accuses {named}")
            n_bad += 1
        for factor in (1.3, 1.1):
            n_bad += check(seed, factor, clean_ns, (3 * seed) % 8)
    with Run(ALONE, {"SIMGPU_SEED": 1, "SIMGPU_SLOW": "2:1.3"}, ranks=4, hosts=2) as run:
        verdicts = {row["verdict"] for row in run.report("stragglers")["rows"] if row["rank"] == 2}
    if verdicts != {"cannot tell: rank or stage"}:
        print(f"one rank per stage: {verdicts}")
        n_bad += 1
    print(f"{3 * N_SEEDS + 1 - n_bad} passed, {n_bad} failed")
    sys.exit(bool(n_bad))


main()
