#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces whose annotations of steps and of communication were taken away: what laggard infers then (steps,
members and roles of communicators) is what it read before, or it says that it does not know. Made runs of
several layouts, and every real trace at hand that has such annotations."""
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from lib_merged import BUILD, LAGGARD, Tally, call, need

DATA = pathlib.Path(os.environ.get("LAGGARD_TEST_DATA", ""))
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")
NCCL_ARGS = ("Collective name", "In msg nelems", "Out msg nelems", "In split size", "Out split size", "Group size",
             "dtype", "Process Group Name", "Process Group Description", "Process Group Ranks", "Global rank start",
             "Global rank stride", "Src Rank", "Dst Rank", "Seq", "Comms Id", "Rank")
LAYOUTS = ("--pp 4 --dp 2", "--pp 2 --dp 2 --tp 2", "--dp 4 --tp 2 --pp 1", "--dp 8 --pp 1", "--tp 4 --dp 1 --pp 1",
           "--pp 4 --dp 1", "--pp 4 --dp 1 --tp 2 --batch-p2p", "--pp 2 --dp 2 --chunks 2 --schedule interleaved",
           "--pp 4 --dp 2 --pair-comms", "--pp 2 --dp 4 --grad-allreduce --schedule gpipe")
N_EXPORTED = 5  # of the layouts, also as Kineto traces
# Of the 40 verdicts on them. Nothing tells the roles of "--tp 4" and, without any metadata, of the exported ones.
MADE_EQUAL = 34
ROLES = {"pipeline": "pp", "data": "dp", "tensor": "tp"}


# --- taking away -----------------------------------------------------------------------------------

def strip_kineto(source, target, also_nccl):
    raw = gzip.open(source).read() if source.suffix == ".gz" else source.read_bytes()
    doc = json.loads(raw)
    doc["traceEvents"] = [e for e in doc["traceEvents"] if e.get("cat") not in ANNOTATIONS and
                          "ProfilerStep" not in str(e.get("name"))]
    if also_nccl:
        doc["traceEvents"] = [e for e in doc["traceEvents"] if e.get("name") != "record_param_comms"]
        for event in doc["traceEvents"]:
            for key in NCCL_ARGS:
                if isinstance(event.get("args"), dict):
                    event["args"].pop(key, None)
        for key in ("pg_config", "pg_count"):
            doc.get("distributedInfo", {}).pop(key, None)
    target.write_text(json.dumps(doc), encoding="utf-8")


def strip_nsys(source, target):
    shutil.copyfile(source, target)
    target.chmod(0o644)
    db = sqlite3.connect(target)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'NVTX%'").fetchall():
        db.execute(f"DROP TABLE {table}")
    db.commit()
    db.close()


# --- what laggard says -----------------------------------------------------------------------------

def report(analysis, db):
    return json.loads(call(LAGGARD, "report", analysis, db, "--format", "json", codes=(0, 1, 3)))


def merge(files, db):
    """False where a file has nothing of GPUs."""
    call(LAGGARD, "merge", "-q", "-o", db, *files, codes=(0, 2))
    return db.exists()


def steps_of(db):
    doc = report("steps", db)
    (note,) = [n for n in doc["trust"]["notes"] if n.startswith("steps from: ")]
    kind = "annotated" if "annotations" in note else "none" if "no step found" in note else \
        "unsure" if "unsure" in note else "inferred"
    return kind, [row for row in doc["rows"] if row["complete"] == "yes"]


def comms_of(db):
    return [row for row in report("communicators", db)["rows"] if row["n_ops"]]


# --- judgement -------------------------------------------------------------------------------------

def judge_steps(truth, db):
    """Equal: as many steps, but for a cut one at either end, each as long as the annotated one it overlaps most."""
    kind, found = steps_of(db)
    if kind in ("none", "unsure"):
        return "unsure"
    if not len(truth) - 2 <= len(found) <= len(truth):
        return f"wrong: {len(found)} steps instead of {len(truth)}"
    for row in found[1:-1]:
        overlap, best = max((min(row["end_ns"], t["end_ns"]) - max(row["start_ns"], t["start_ns"]), i)
                            for i, t in enumerate(truth))
        length = truth[best]["end_ns"] - truth[best]["start_ns"]
        if overlap < 0.9 * length or abs(row["step_ns"] - truth[best]["step_ns"]) > 0.1 * length:
            return f"wrong: step {row} instead of {truth[best]}"
    return "equal"


def judge_comms(truth, db):
    """Equal: each communicator that is claimed (it has a role) has the members and the role it had."""
    want = {(row["members"], row["role"]) for row in truth}
    sizes = {(row["n_ranks"], row["role"]) for row in truth}
    found = [row for row in comms_of(db) if row["role"] != "unsure"]
    for row in found:
        # Of members without a record nothing tells who they are.
        unknown = row["n_ranks"] > row["n_recorded"] and (row["n_ranks"], row["role"]) in sizes
        if (row["members"], row["role"]) not in want and not unknown:
            return f"wrong: {row['members']} as {row['role']}, had {sorted(want)}"
    known = {w for w in want if w[1] != "unsure"}
    return "equal" if {(row["members"], row["role"]) for row in found} == known else "unsure"


def judge_layout(truth_file, db):
    """Of a made run, roles against the layout it was made with."""
    shape = json.loads(truth_file.read_text())["shape"]
    rank = {(p, d, t): (p * shape["dp"] + d) * shape["tp"] + t for p in range(shape["pp"])
            for d in range(shape["dp"]) for t in range(shape["tp"])}
    groups = {"pp": set(), "dp": set(), "tp": set()}
    for p, d, t in rank:
        groups["pp"].add(frozenset(rank[i, d, t] for i in range(shape["pp"])))
        groups["dp"].add(frozenset(rank[p, i, t] for i in range(shape["dp"])))
        groups["tp"].add(frozenset(rank[p, d, i] for i in range(shape["tp"])))
    sure = True
    for row in comms_of(db):
        if row["role"] in ROLES:
            members = members_of(row["members"])
            if not any(members <= g for g in groups[ROLES[row["role"]]]):
                return f"wrong: {row['members']} as {row['role']}"
        elif row["role"] not in ("world", "unsure"):
            return f"wrong: {row['members']} as {row['role']}"
        sure &= row["role"] != "unsure"
    return "equal" if sure else "unsure"


def members_of(text):
    out = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


class Judge(Tally):
    def __init__(self):
        super().__init__()
        self.counts = {"equal": 0, "unsure": 0, "wrong": 0}

    def say(self, name, what, verdict):
        print(f"{name}: {what}: {verdict}", flush=True)
        self.counts[verdict.split(":")[0]] += 1
        self.check(not verdict.startswith("wrong"), f"{name}: {what}: {verdict}")


# --- the sets --------------------------------------------------------------------------------------

def check_kineto(judge, folder, name, files):
    """Once without annotations, once without what says who communicates with whom either."""
    whole = folder / f"{name}.db"
    if not merge(files, whole):
        return
    kind, steps = steps_of(whole)
    comms = comms_of(whole)
    for also_nccl in (False, True):
        place = folder / f"{name}-{also_nccl}"
        place.mkdir()
        for path in files:
            strip_kineto(path, place / (path.name.split(".json")[0] + ".json"), also_nccl)
        db = folder / f"{name}-{also_nccl}.db"
        if not merge(sorted(place.iterdir()), db):
            print(f"{name}: nothing is left of it")
            continue
        how = "no annotations" + (", no NCCL metadata" if also_nccl else "")
        if kind == "annotated":
            judge.say(name, f"steps, {how}", judge_steps(steps, db))
        if comms:
            judge.say(name, f"communicators, {how}", judge_comms(comms, db))


def check_made(judge, folder):
    for i, layout in enumerate(LAYOUTS):
        place = folder / f"made{i}"
        place.mkdir()
        whole, bare, db = place / "whole", place / "bare", place / "bare.db"
        for run, more in ((whole, []), (bare, ["--no-nvtx"])):
            call(BUILD / "mktrace", "--out", run, "--steps", "8", "--seed", str(i), *layout.split(), *more)
            merge([run], run.with_suffix(".db"))
        kind, steps = steps_of(whole.with_suffix(".db"))
        assert kind == "annotated" and len(steps) >= 7, (layout, kind, steps)
        judge.say(layout, "steps, no annotations", judge_steps(steps, db))
        judge.say(layout, "roles", judge_layout(bare / "truth.json", db))
        if i >= N_EXPORTED:
            continue
        trace = place / "export.json"
        call(LAGGARD, "export", "-q", whole.with_suffix(".db"), "-o", trace)
        shutil.rmtree(whole)
        shutil.rmtree(bare)
        check_kineto(judge, place, f"exported{i}", [trace])


def check_real(judge, folder):
    sets = {"dlrm": sorted((DATA / "kineto/dlrm").glob("*.json"))}
    for sub in ("hta", "tracelens", "amd", "tb_plugin"):
        for path in sorted((DATA / "kineto" / sub).glob("*.json*")):
            sets[path.name.split(".json")[0]] = [path]
    for name, files in sets.items():
        check_kineto(judge, folder, name, files)
    for name in ("mfu_2gpu_before", "mock", "healthy_1pct"):
        source, target = DATA / "nsys" / f"{name}.sqlite", folder / f"{name}-bare.sqlite"
        strip_nsys(source, target)
        assert merge([source], folder / f"{name}.db") and merge([target], folder / f"{name}-bare.db")
        if steps_of(folder / f"{name}.db")[0] == "annotated":
            judge.say(name, "steps", judge_steps(steps_of(folder / f"{name}.db")[1], folder / f"{name}-bare.db"))
        else:  # NVTX marks no steps here: taking it away must not change what is inferred
            same = steps_of(folder / f"{name}.db") == steps_of(folder / f"{name}-bare.db")
            judge.say(name, "steps", "equal" if same else "wrong: not what they were with NVTX")
        judge.say(name, "communicators", judge_comms(comms_of(folder / f"{name}.db"), folder / f"{name}-bare.db"))


def main():
    need(BUILD / "mktrace", BUILD / "mkkineto")
    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        check_made(judge, folder)
        # To be unsure of all would pass every other check.
        judge.check(judge.counts["equal"] >= MADE_EQUAL, f"made layouts: only {judge.counts['equal']} are as they were")
        subprocess.run([BUILD / "mkkineto", "--out", folder / "made", "--ranks", "4", "--size", "4000000"], check=True)
        check_kineto(judge, folder, "mkkineto", sorted((folder / "made").iterdir()))
        if (DATA / "kineto").is_dir():
            check_real(judge, folder)
        else:
            print("no real traces (set LAGGARD_TEST_DATA): made ones only")
    print(", ".join(f"{n} {what}" for what, n in judge.counts.items()))
    judge.end()


if __name__ == "__main__":
    sys.exit(main())
