#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same files through laggard and through Holistic Trace Analysis (PyPI HolisticTraceAnalysis): the
breakdown and the overlap of communication and compute agree, and where they do not, the difference is
that of the definitions, to rounding: both are computed here from the raw events once more. Prints how long
each took. Skips, saying so, where HTA is not installed (./run setup compare)."""
import gzip
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from decimal import Decimal

LAGGARD = os.environ["LAGGARD"]
BUILD = pathlib.Path(os.environ["LAGGARD_BUILD"])
DATA = pathlib.Path(os.environ.get("LAGGARD_TEST_DATA", "")) / "kineto"
HTA = BUILD.parent / "hta"
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


# --- what is in the file ---------------------------------------------------------------------------

def read(path):
    """Numbers with a fraction stay decimal: nanoseconds of an absolute time do not fit a double."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=Decimal)


def stream_of(event):
    stream = (event.get("args") or {}).get("stream", -1)
    return stream if isinstance(stream, int) else -1


def kind_of(event):
    if event["name"].startswith("nccl"):
        return "comm"
    return "compute" if event["cat"] == "kernel" else "mem"


def kind_by_name(event):
    """Theirs: what is neither communication nor memory nor named Sync is compute, also a wait for an event."""
    if re.match("nccl.*Kernel", event["name"]):
        return "comm"
    if re.match("Memcpy|Memset|dma", event["name"]):
        return "mem"
    return "other" if re.match(".*Memcpy|Memset|.*Sync", event["name"]) else "compute"


def union(spans):
    """Disjoint spans in order, of spans in any; those that end before they start count as they are."""
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def length(spans):
    return sum(end - start for start, end in spans)


def intersection(a, b):
    """Length of what two unions have in common."""
    return length(a) + length(b) - length(union(a + b))


def numbers(events):
    """Of (kind, start, end): the figures both tools print, in the unit of the times."""
    spans = {kind: union([e[1:] for e in events if e[0] == kind]) for kind in ("compute", "comm", "mem")}
    busy = union([e[1:] for e in events])
    span = max(e[2] for e in events) - min(e[1] for e in events)
    return {"span": span, "busy": length(busy), "idle": span - length(busy), "compute": length(spans["compute"]),
            "comm": length(spans["comm"]), "overlap": intersection(spans["compute"], spans["comm"])}


def exact(events):
    """Ours: every GPU event that does work, to the nanosecond."""
    return [(kind_of(e), int(Decimal(e["ts"]) * 1000), int((Decimal(e["ts"]) + Decimal(e["dur"])) * 1000))
            for e in events if e.get("cat") in GPU and e.get("ph") == "X"]


def selected(events):
    """Theirs, which events: everything on a stream, synchronisation too; with two ProfilerSteps or more, only
    work whose launch call is in the file and began before the last of them."""
    spans = [e for e in events if e.get("ph") == "X" and e.get("cat") != "Trace"]
    steps = {e["name"] for e in spans if "ProfilerStep" in e["name"]}
    gpu = [e for e in spans if stream_of(e) >= 0]
    if len(steps) < 2:
        return gpu
    host = [e for e in spans if stream_of(e) < 0]
    last = max(e["ts"] for e in host if e["name"] in steps)
    launches = {(e.get("args") or {}).get("correlation", -1) for e in host if e["ts"] < last} - {-1}
    return [e for e in gpu if e["args"].get("correlation", -1) in launches]


def rounded(events, every):
    """Theirs, which times: where any time in the file has a fraction, starts go up and ends down to whole
    microseconds, in doubles; an event within one microsecond then ends before it starts."""
    fraction = any(isinstance(e.get("ts"), Decimal) for e in every)
    out = []
    for e in events:
        start, end = e["ts"], e["ts"] + e["dur"]
        if fraction:
            start, end = math.ceil(float(e["ts"])), math.floor(float(e["ts"]) + float(e["dur"]))
        out.append((kind_by_name(e), start, end))
    return out


# --- the two programs ------------------------------------------------------------------------------

def run_laggard(files, db):
    begun = time.monotonic()
    for words in (["merge", "-q", "--align", "none", *map(str, files), "-o", db],
                  ["report", "breakdown", db, "-F", "json"]):
        done = subprocess.run([LAGGARD, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
    return time.monotonic() - begun, {row["rank"]: row for row in json.loads(done.stdout)["rows"]}


def run_hta(folder):
    """Seconds (without the import of its libraries), and its rows by rank; None where it gave up."""
    script = pathlib.Path(__file__).with_name("lib_hta.py")
    done = subprocess.run([sys.executable, "-B", script, folder], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(HTA)})
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    answer = json.loads(done.stdout)
    return answer["run_s"], {int(rank): row for rank, row in answer["ranks"].items()}


def prepare(files, folder):
    """HTA takes every file of a folder, and finds the rank by '"rank": N' in the text."""
    for i, path in enumerate(files):
        raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        doc = json.loads(raw)
        if "rank" not in doc.get("distributedInfo", {}):
            raw = raw.replace(b"{", b'{"distributedInfo": {"rank": %d},' % i, 1)
        (folder / f"{i}.json").write_bytes(raw)


# --- comparison ------------------------------------------------------------------------------------

def compare_rank(name, rank, doc, ours, theirs):
    every = [e for e in doc["traceEvents"] if isinstance(e, dict)]
    gpu = [e for e in every if e.get("cat") in GPU and e.get("ph") == "X"]
    mine, kept = numbers(exact(every)), selected(every)
    for field, value in mine.items():
        assert ours[field + "_ns"] == value, (name, rank, field, ours, value)
    want = numbers(rounded(kept, every))
    backward = sum(end < start for _, start, end in rounded(kept, every))
    got = {"span": theirs["kernel_time(us)"], "idle": theirs["idle_time(us)"], "compute": theirs["compute_time(us)"],
           "busy": theirs["compute_time(us)"] + theirs["non_compute_time(us)"]}
    for field, value in got.items():
        # Events that end before they start merge as the order of equal starts has it.
        assert abs(value - want[field]) <= backward, (name, rank, field, value, want)
    share = theirs["comp_comm_overlap_pctg"]
    if want["comm"]:
        assert abs(share - 100 * want["overlap"] / want["comm"]) <= 0.006 + 100 * backward / want["comm"], \
            (name, rank, share, want)
    else:
        assert math.isnan(share), (name, rank, share)
    # What separates the two, one rule after the other.
    work = [e for e in kept if e["cat"] in GPU]
    chosen = numbers(exact(work))
    same = len(work) == len(gpu) == len(kept)
    for field in ("span", "busy", "compute"):
        by_choice, rest = (mine[field] - chosen[field]) / 1000, chosen[field] / 1000 - got[field]
        assert abs(rest) <= 2 * len(kept) or len(kept) > len(work), (name, rank, field)
        assert by_choice == 0 or len(work) < len(gpu), (name, rank, field)
        print(f"  {name} rank {rank} {field}: {mine[field] / 1000:.3f} us, HTA {got[field]:.0f}: {by_choice:.3f} in "
              f"{len(gpu) - len(work)} events that it leaves out, {rest:.3f} by rounding to whole us and in "
              f"{len(kept) - len(work)} events on a stream that are no work and that it counts")
    return same and all(abs(got[f] - mine[f] / 1000) < 1 for f in ("span", "busy", "compute", "idle"))


def compare(name, files, folder):
    place = folder / name
    place.mkdir()
    prepare(files, place)
    copies = sorted(place.iterdir())
    hta_s, theirs = run_hta(place)
    own_s, ours = run_laggard(copies, folder / f"{name}.db")
    if hta_s is None:
        print(f"{name}: HTA cannot read it: {theirs}")
        return 0, 0, 0, 0
    assert sorted(ours) == sorted(theirs), (name, sorted(ours), sorted(theirs))
    equal = 0
    for path in copies:
        doc = read(path)
        rank = doc["distributedInfo"]["rank"]
        equal += compare_rank(name, rank, doc, ours[rank], theirs[rank])
    print(f"{name}: {len(ours)} ranks, {equal} equal to 1 us, the others by definition; laggard merge and report "
          f"{own_s:.3f} s, HTA {hta_s:.3f} s: {hta_s / own_s:.1f} times as long", flush=True)
    return len(ours), equal, own_s, hta_s


def main():
    if not (HTA / "hta").is_dir():
        print("skipped: no Holistic Trace Analysis in build/hta (./run setup compare installs it)")
        return 77
    if not shutil.which(str(BUILD / "mkkineto")):
        print("skipped: mkkineto is not built")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([BUILD / "mkkineto", "--out", folder / "rank", "--ranks", "4", "--size", "4000000"], check=True)
        sets = {"made": sorted((folder / "rank").iterdir())}
        if DATA.is_dir():
            sets["dlrm"] = sorted((DATA / "dlrm").glob("*.json"))
            sets.update({path.name.split(".")[0]: [path] for sub in ("hta", "tracelens", "amd")
                         for path in sorted((DATA / sub).glob("*.json*"))
                         if any(e.get("cat") in GPU for e in read(path)["traceEvents"])})
        else:
            print("no real traces (set LAGGARD_TEST_DATA): the made set only")
        results = [compare(name, files, folder) for name, files in sets.items()]
        ranks, equal, own_s, hta_s = (sum(column) for column in zip(*results))
    print(f"all: {ranks} ranks, {equal} equal to 1 us; HTA takes {hta_s / own_s:.1f} times as long, without the import "
          "of its libraries")
    assert ranks >= 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
