#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the screens show of a merged run is what the report says of it: step times, shares, findings,
straggler verdicts, bubbles, and the waiting that the timeline tells of a place."""
import re
import subprocess

from lib_mktrace import LAGGARD, Run, Tally

SLOW = 5


def number(text):
    """"8.902 ms" in ns."""
    found = re.fullmatch(r"(-?[\d.]+) (ns|µs|ms|s)", text)
    return float(found[1]) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[found[2]]


def close(shown, ns):
    return abs(shown - ns) <= max(1, abs(ns)) * 0.0006


def screen(run, view, *options):
    return subprocess.run([LAGGARD, "tui", "--print", view, *map(str, options), run.dir / "run.db"],
                          capture_output=True, text=True, check=True, timeout=120).stdout


def overview(run, tally):
    text, summary = screen(run, "overview", "--width", 160), run.report("summary")
    rows = {(row["section"], row["item"]): row for row in summary["rows"]}
    step = re.search(r"Step +([\d.]+ \w+)", text)
    tally.check(close(number(step[1]), rows["step", "mean"]["value_ns"]), f"step: {step[0]}")
    for title, items in (("compute", ["compute"]), ("pipeline bubble", ["bubble"]),
                         ("exposed comm", ["exposed_transfer", "exposed_wait"])):
        shown = re.search(rf"{title} +([\d.]+ \S+) +([\d.]+) %", text)
        want = sum(rows["time", item]["value_ns"] for item in items)
        share = sum(rows["time", item]["share"] for item in items)
        tally.check(close(number(shown[1]), want), f"{title}: {shown[1]} for {want}")
        tally.check(abs(float(shown[2]) - 100 * share) <= 0.051, f"{title}: {shown[2]} % for {share}")
    for row in summary["rows"]:
        if row["section"] == "finding":
            tally.check(row["text"] in text, f"finding not shown: {row['text']}")


def stragglers(run, tally):
    lines = screen(run, "stragglers", "--width", 160).splitlines()
    for row in run.report("stragglers")["rows"]:
        line = next(line for line in lines if re.match(rf"rank {row['rank']} ", line))
        accused = row["verdict"] in ("chronic", "rotating", "one-off")
        tally.check((row["verdict"] in line) == accused, f"verdict of rank {row['rank']}: {line}")
        tally.check(accused == ("█" in line) or not accused, f"heat of rank {row['rank']}: {line}")
        if accused:
            cost = re.search(r"([\d.]+ \S?s) ", line[line.index("█"):])
            tally.check(close(number(cost[1]), row["step_cost_ns"]), f"cost of rank {row['rank']}: {line}")
    tally.check(any(f"rank {SLOW} " in line and "chronic" in line for line in lines), "nobody is chronic")


def steps_shown(run, tally):
    """Steps that have no room are said to be there."""
    n = len(run.report("steps")["rows"])
    text = screen(run, "stragglers", "--width", 80)
    found = re.search(r"(\d+) of (\d+) steps", text)
    tally.check(found and int(found[2]) == n and int(found[1]) < n, f"{n} steps: {text}")
    tally.check("▸" in text or "◂" in text, f"no mark that there are more steps: {text}")
    tally.check(f"of {n} steps" not in screen(run, "stragglers", "--width", 200), "all of them have room")


def bubbles(run, tally):
    for step in (1, 3):
        text = screen(run, "pipeline", "--width", 160, "--keys", f": step Space {step} Enter")
        group = int(re.search(r"pipeline (\d) of", text)[1]) - 1
        for row in run.report("bubbles", "--steps", step)["rows"]:
            if row["group"] != group:
                continue
            line = re.search(rf"^ s{row['stage']} r{row['rank']} .*$", text, re.M)[0]
            shown = re.findall(r"(-?[\d.]+) %", line)
            tally.check(abs(float(shown[0]) - 100 * row["measured_share"]) <= 0.051 and
                        abs(float(shown[1]) - 100 * row["ideal_share"]) <= 0.051,
                        f"bubble of rank {row['rank']} in step {step}: {line}")


def place(run, tally):
    """From the overview to the evidence with Enter alone, then to a late arrival."""
    text = screen(run, "overview", "--width", 120, "--height", 30, "--keys", "Enter Enter")
    tally.check(re.search(rf"rank {SLOW} .*◂ slow", text) is not None, f"no way to the slow rank:\n{text}")
    text = screen(run, "timeline", "--width", 120, "--height", 30, "--keys", "0 g n")
    tally.check("came last" in text, f"no late arrival:\n{text}")


def main():
    tally = Tally()
    with Run("--pp", 4, "--dp", 2, "--microbatches", 8, "--steps", 8, "--seed", 11,
             "--slow", f"{SLOW}:1.3") as run:
        overview(run, tally)
        stragglers(run, tally)
        bubbles(run, tally)
        place(run, tally)
    with Run("--dp", 2, "--steps", 60, "--seed", 11) as run:
        steps_shown(run, tally)
    tally.end()


main()
