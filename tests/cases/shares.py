#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every report states of one trace agrees: no share exceeds the whole, the ledger adds up to its
steps exactly, and the summary's mean step is the ledger's, whichever steps and ranks are asked for."""
import sys

from lib_mktrace import Run, Tally

REPORTS = ("summary", "steps", "ledger", "breakdown", "bubbles", "stragglers", "what-if", "waits", "collectives", "kernels")
SHAPES = (
    ("--pp", 2, "--dp", 2, "--steps", 4, "--batch-p2p", "--drop", "1:5"),
    ("--pp", 1, "--dp", 4, "--steps", 4, "--missing", 2, "--no-nvtx"),
    ("--pp", 2, "--dp", 2, "--steps", 4, "--pair-comms", "--stall", "1:2:80"),
)
CHOICES = ((), ("--steps", "1-2"), ("--ranks", "1"))


def check_shares(tally, where, doc):
    shares = [c["name"] for c in doc["columns"] if c["unit"] == "share"]
    for row in doc["rows"]:
        for name in shares:
            tally.check(row[name] is None or -1e-9 <= row[name] <= 1 + 1e-9, f"{where}: {name} of {row}")


def check_sums(tally, where, summary, ledger):
    for row in ledger:
        parts = sum(v or 0 for k, v in row.items() if k.endswith("_ns") and k not in ("time_ns", "unsplit_ns"))
        tally.check(parts == row["time_ns"], f"{where}: {row} does not add up")
        tally.check(row["unsplit_ns"] <= row["exposed_transfer_ns"], f"{where}: {row} is unsplit beyond its transfer")
    mean = next(r["value_ns"] for r in summary if r["item"] == "mean")
    n = sum(r["steps"] for r in ledger)
    tally.check(abs(sum(r["time_ns"] for r in ledger) / n - mean) <= 1, f"{where}: mean step {mean}")


def main():
    tally = Tally()
    for shape in SHAPES:
        with Run(*shape) as run:
            for choice in CHOICES:
                docs = {name: run.report(name, *choice) for name in REPORTS}
                where = " ".join(map(str, (*shape, *choice)))
                for name, doc in docs.items():
                    check_shares(tally, f"{name} of {where}", doc)
                    for given in choice[1:]:
                        said = any(given in note for note in doc["trust"]["notes"])
                        tally.check(said, f"{name} of {where} does not say what it was narrowed to")
                check_sums(tally, where, docs["summary"]["rows"], docs["ledger"]["rows"])
    print(f"{tally.n} checks, {tally.bad} wrong")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
