#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard export -t chrome: a made run of four hosts, and a real one, read back strictly: every rank,
stream and launch is there, arrows have two ends, choices leave out the rest, no half file is left."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

from lib_chrome import Trace, ns

LAGGARD = os.environ["LAGGARD"]
BUILD = os.environ["LAGGARD_BUILD"]
DATA = os.environ.get("LAGGARD_TEST_DATA", "")


def run(*args, code=0):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def made_run(folder):
    raw, db = os.path.join(folder, "run"), os.path.join(folder, "run.db")
    subprocess.run([os.path.join(BUILD, "mktrace"), "--out", raw, "--seed", "3", "--pp", "2", "--dp", "2",
                    "--microbatches", "4", "--steps", "4", "--per-host", "1", "--slow", "1:1.3",
                    "--offset-ms", "5"], check=True, stdout=subprocess.DEVNULL)
    run("merge", raw, "-o", db)
    return db


def forecast_of(stderr):
    events, size, unit = re.search(r"([\d,]+) events, about ([\d.]+) (\w+) of JSON", stderr).groups()
    factor = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}[unit]
    return int(events.replace(",", "")), float(size) * factor


def check_made(folder):
    db = made_run(folder)
    out = os.path.join(folder, "all.json")
    done = run("export", "-t", "chrome", db, "-o", out)
    assert done.stdout == "", done.stdout
    trace = Trace(out)
    n_flows = trace.check()
    assert len(trace.process) == 4, trace.process
    for rank in range(4):
        name = trace.process[trace.pid_of_rank(rank)]
        assert re.fullmatch(rf"rank {rank} \(\S+, stage \d\)", name), name
    n_events, n_bytes = forecast_of(done.stderr)
    n_meta = sum(e["ph"] == "M" for e in trace.events)
    assert n_events == len(trace.events) - n_meta, (n_events, len(trace.events), n_meta)
    assert 0.6 < n_bytes / trace.n_bytes < 1.6, (n_bytes, trace.n_bytes)
    for pid in trace.process:
        assert len(trace.of("kernel", pid)) > 50
        assert [e["name"] for e in trace.of("step", pid)] == [f"step {i}" for i in range(4)]
        assert trace.of("user_annotation", pid) and trace.of("cuda_runtime", pid)
    nccl = [e for e in trace.of("kernel") if "Collective name" in e["args"]]
    assert {e["args"]["Collective name"] for e in nccl} >= {"allreduce", "send", "recv"}, nccl[0]
    cats = collections.Counter(e["cat"] for e in trace.events if e["ph"] == "s")
    assert cats["ac2g"] > 200 and cats["nccl"] > 50 and sum(cats.values()) == n_flows, cats
    assert trace.of("wait") and trace.of("lost_time")
    check_choices(folder, db, trace)
    check_round_trip(folder, db)


def check_choices(folder, db, whole):
    out = os.path.join(folder, "part.json.gz")
    run("export", db, "-o", out, "--ranks", "1,3", "--steps", "2", "-q")
    said = run("export", db, "-fqo", out, "--ranks", "1,3", "--step-by", "no such").stderr
    assert said.count("\n") == 1 and f"export: {db}: no annotation begins with \"no such\"; " in said, said
    assert not run("export", db, "-fqo", out, "--ranks", "1,3", "--steps", "2", "--step-by", "step").stderr
    part = Trace(out)
    part.check()
    assert len(part.process) == 2
    assert {e["name"] for e in part.of("step")} == {"step 2"}
    assert 0 < len(part.of("kernel")) < len(whole.of("kernel")) / 4
    assert part.doc["distributedInfo"]["rank"] == 1
    assert part.doc["baseTimeNanoseconds"] == whole.doc["baseTimeNanoseconds"]
    # What exists is not overwritten without -f, and what fails leaves nothing.
    refused = run("export", db, "-o", out, code=2)
    assert "-f" in refused.stderr
    said = run("export", db, "-o", out, "-f", "-k", "kernels").stderr.splitlines()
    # How large it was to be, and became.
    assert len(said) == 2 and ("before compression" in said[0]) == out.endswith(".gz"), said
    assert said[1].startswith(f"laggard: export: {out}, ") and "B; next: " in said[1], said
    only = Trace(out)
    only.check()
    assert {e["cat"] for e in only.slices} == {"kernel"}
    assert not any("Collective name" in e["args"] for e in only.slices)
    span = run("export", db, "-o", "-", "--time", "10ms-12ms", "-k", "kernels,nccl", "-q")
    cut = json.loads(span.stdout)["traceEvents"]
    cut = [e for e in cut if e["ph"] == "X"]
    assert cut and all(e["ts"] < 12000 and e["ts"] + e["dur"] >= 10000 for e in cut)
    for bad in (["--ranks", "9"], ["-k", "kernel"], ["--time", "2s-1s"], ["-t", "svg"], ["--steps", "x"],
                ["--steps", "999"], ["--time", "10-20"]):
        failed = os.path.join(folder, "failed.json")
        assert run("export", db, "-o", failed, *bad, code=2).stderr.startswith("laggard"), bad
        assert glob.glob(failed + "*") == [], bad
    # A device is written to, not replaced, and a full one is an error.
    assert "No space" in run("export", db, "-o", "/dev/full", "-f", "-q", code=2).stderr
    assert os.path.exists("/dev/full") and not os.path.isfile("/dev/full")
    os.symlink("/dev/full", os.path.join(folder, "full.json.gz"))
    assert "No space" in run("export", db, "-o", os.path.join(folder, "full.json.gz"), "-f", "-q", code=2).stderr
    check_gzip(folder, db)
    assert run("export", os.path.join(folder, "none.db"), "-o", "-", code=2).stdout == ""


def check_gzip(folder, db):
    """The same bytes, as one member: some viewers read no second one."""
    out = os.path.join(folder, "one.json.gz")
    run("export", db, "-o", out, "-q")
    with open(out, "rb") as f:
        packed = f.read()
    inflater = zlib.decompressobj(31)
    plain = inflater.decompress(packed)
    assert inflater.eof and inflater.unused_data == b"", len(inflater.unused_data)
    assert plain.decode() == run("export", db, "-o", "-", "-q").stdout
    assert len(packed) < len(plain) / 5, (len(packed), len(plain))


def check_round_trip(folder, db):
    """Rank by rank out, as PyTorch's profiler would have written it, and back in: the same answers."""
    files = []
    for rank in range(4):
        files.append(os.path.join(folder, f"rank{rank}.json.gz"))
        run("export", db, "-o", files[-1], "-q", "--ranks", rank)
    back = os.path.join(folder, "back.db")
    run("merge", *files, "-o", back)
    before, after = ([json.loads(run("report", what, d, "--format", "json").stdout)["rows"]
                      for what in ("breakdown", "communicators")] for d in (db, back))
    for a, b in zip(before[0], after[0]):
        for name, value in a.items():
            # The second alignment may move times by what the first has left.
            assert abs(value - b[name]) <= 1e-4 * abs(value) + 10, (name, a, b)
    known = [sorted((row["members"], row["role"], row["n_ops"], row["n_launches"], row["bytes"])
                    for row in part[1]) for part in (before, after)]
    assert known[0] == known[1] and len(known[0]) > 4, known


def originals():
    return sorted(glob.glob(os.path.join(DATA, "kineto/dlrm/*.json")))


def check_real(folder):
    db, out = os.path.join(folder, "dlrm.db"), os.path.join(folder, "dlrm.json")
    run("merge", *originals(), "-o", db)
    run("export", db, "-o", out)
    trace = Trace(out)
    trace.check()
    assert len(trace.process) == 4, trace.process
    assert trace.doc["distributedInfo"]["world_size"] == 8
    assert trace.doc["laggard"]["ranks not on record"] == [4, 5, 6, 7], trace.doc["laggard"]
    for rank, path in enumerate(originals()):
        pid = trace.pid_of_rank(rank)
        events = [e for e in json.load(open(path))["traceEvents"] if e["ph"] == "X"]
        calls = {e["args"]["correlation"] for e in events if e["cat"] == "cuda_runtime"}
        gpu = [e for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
        ours = [e for e in trace.slices if e["pid"] == pid and
                e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
        key = lambda e: (e["cat"], e["args"]["stream"], e["args"]["correlation"])  # noqa: E731
        assert collections.Counter(map(key, gpu)) == collections.Counter(map(key, ours))
        # The clock's correction stretches by a few parts in a million.
        before, after = sum(e["dur"] for e in gpu) * 1000, sum(ns(e["dur"]) for e in ours)
        assert abs(after - before) <= before * 1e-4, (before, after)
        streams = {name for (p, _), name in trace.thread.items() if p == pid and name.startswith("GPU ")}
        assert {re.search(r"stream (\d+)", s).group(1) for s in streams} == \
            {str(e["args"]["stream"]) for e in gpu}
        launched = sum(e["args"]["correlation"] in calls for e in gpu)
        arrows = sum(e["ph"] == "s" and e["cat"] == "ac2g" and e["pid"] == pid for e in trace.events)
        assert arrows == launched, (rank, arrows, launched)
        steps = [e["name"] for e in trace.of("user_annotation", pid) if "ProfilerStep" in e["name"]]
        assert len(steps) == sum("ProfilerStep" in e["name"] for e in events
                                 if e["cat"] == "user_annotation")
    assert any(e["ph"] == "s" and e["cat"] == "nccl" for e in trace.events)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_made(folder)
        if originals():
            check_real(folder)
        else:
            print("skipped: no real traces in LAGGARD_TEST_DATA")
    print("export: ok")


if __name__ == "__main__":
    sys.exit(main())
