# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks print: a figure of laggard's beside a reference measured in the same run."""
import os
import pathlib
import subprocess
import sys
import time

BUILD = pathlib.Path(os.environ["LAGGARD_BUILD"])
LAGGARD = os.environ["LAGGARD"]


def heading():
    print(f"{'what':<34} {'laggard':>10} {'reference':>10} {'unit':<14} {'ratio':>8}  reference is")


def timed(*command):
    start = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{command}: {done.stderr}")
    return time.monotonic() - start, done


def line(what, ours, reference, unit, of, higher_is_better):
    ratio = ours / reference if higher_is_better else reference / ours
    print(f"{what:<34} {ours:>10.3g} {reference:>10.3g} {unit:<14} {ratio:>7.2f}x  {of}", flush=True)


def program(name, higher_is_better, *arguments):
    """Lines of a program that measures both sides itself."""
    _, done = timed(BUILD / "tests/bench" / name, *arguments)
    for row in done.stdout.splitlines():
        name, ours, reference, unit, _, of = row.split("\t")
        line(name, float(ours), float(reference), unit, of, higher_is_better)
