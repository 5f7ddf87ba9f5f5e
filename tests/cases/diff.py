# SPDX-License-Identifier: Apache-2.0
"""diff: a trace equals itself; the other clock changes times alone; a slow GPU shows where it should; what was
taken out, put in or changed by hand is found exactly; runs of another shape are refused."""
import csv
import io
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

from lib_merged import BUILD, LAGGARD, Tally, call, need

MKTRACE = BUILD / "mktrace"
SHAPE = ("--pp", "2", "--dp", "2", "--microbatches", "4", "--layers", "4", "--steps", "12")


def diff(*args, code):
    done = subprocess.run([LAGGARD, "diff", *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (args, done.returncode, done.stdout[-1000:], done.stderr)
    return done


def changes(*args, code=1):
    return list(csv.DictReader(io.StringIO(diff("-F", "csv", "-n", "0", *args, code=code).stdout)))


def summary(*args, code=1):
    answer = json.loads(diff("-F", "json", *args, code=code).stdout)
    return {row["view"]: row for row in answer["summary"]["rows"]}, answer["changes"]["rows"]


def make(tmp, name, *options, shape=SHAPE, merge=()):
    if not (tmp / name).exists():
        call(MKTRACE, "--out", tmp / name, *shape, *options)
    call(LAGGARD, "merge", "-qf", "-o", tmp / f"{name}.db", *merge, tmp / name)
    return tmp / f"{name}.db"


def edited(db, name, sql):
    copy = db.with_name(name)
    shutil.copy(db, copy)
    connection = sqlite3.connect(copy)
    for statement in sql:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return copy


def check_same(t, a, tmp):
    views, found = summary("-d", a, a, code=0)
    t.check(not found and len(views) == 18, f"a trace differs from itself: {found[:3]}")
    t.check(all(v["same"] == v["rows_a"] == v["rows_b"] for v in views.values()), f"counts: {views}")
    t.check(views["data.gpu_event"]["rows_a"] > 5000 and views["kernels"]["rows_a"] > 5, "nothing was compared")
    for form in ("text", "md"):
        t.check("kernels" in diff("-F", form, a, a, code=0).stdout, form)
    again = tmp / "again"
    shutil.copytree(tmp / "a", again)
    t.check(not changes("-d", a, make(tmp, "again"), code=0), "two merges of one run differ")


def check_other_clock(t, a, tmp):
    wall = tmp / "wall.db"
    call(LAGGARD, "merge", "-q", "-a", "wall", "-o", wall, tmp / "a")
    found = changes("-d", a, wall)
    data = [c for c in found if c["view"].startswith("data.")]
    t.check(data and all(c["change"] == "changed" and c["column"] in ("since_previous_ns", "duration_ns") for c in data),
            "another clock changes more than times of events")
    shape = [c for c in found if c["view"] in ("kernels", "collectives", "ranks", "communicators", "steps")
             and (c["change"] != "changed" or c["column"] in ("count", "bytes", "n_ranks", "host", "stage", "members"))]
    t.check(not shape, f"another clock changes what was run: {shape[:3]}")
    t.check(any(c["view"] == "clock" for c in found), "the clock itself does not differ")


def check_headline(t, a, b):
    """The first table says whether the step became longer, and whose verdict changed."""
    rows = json.loads(diff("-F", "json", a, b, code=1).stdout)["headline"]["rows"]
    step, verdicts = rows[0], [r for r in rows if r["kind"] == "verdict"]
    t.check(step["kind"] == "step" and step["b_ns"] - step["a_ns"] == step["difference_ns"] > 0, f"the step: {rows}")
    for db, side in ((a, "a_ns"), (b, "b_ns")):
        page = subprocess.run([LAGGARD, "report", "-F", "json", db], capture_output=True, text=True, check=False)
        mean = [r["value_ns"] for r in json.loads(page.stdout)["rows"] if r["section"] == "step" and r["item"] == "mean"]
        t.check(mean == [step[side]], f"the summary's step is another: {mean} {step}")
    t.check([(r["rank"], r["a_text"]) for r in verdicts] == [(3, "not slow")] and
            verdicts[0]["b_text"].startswith("chronic, 1."), f"verdicts: {verdicts}")
    back = json.loads(diff("-F", "json", b, a, code=1).stdout)["headline"]["rows"]
    t.check([r["b_text"] for r in back if r["kind"] == "verdict"] == ["not slow"], f"verdicts: {back}")
    text = diff(a, b, code=1).stdout.splitlines()
    t.check(text[2].startswith("step, mean ") and "+" in text[2] and any(x.startswith("rank 3 ") for x in text[:14]),
            f"not first: {text[:14]}")
    # Rows: the verdict first, what says how well a number is known last.
    found = changes(a, b)
    t.check(found[0]["column"] == "verdict", f"{found[0]}")
    vague = [i for i, c in enumerate(found) if c["view"] in ("clock", "trust")
             or any(x in c["column"] for x in ("error", "uncertainty", "bound_", "sigma"))]
    t.check(vague == list(range(len(found) - len(vague), len(found))), "errors among changes")


def check_straggler(t, a, b):
    views, top = summary("-n", "12", a, b)
    t.check(len(top) == 12, "--top")
    t.check(any(c["view"] == "stragglers" and c["row"] == "rank 3" for c in top), f"rank 3 is not on top: {top}")
    found = changes(a, b)
    verdict = [c for c in found if c["view"] == "stragglers" and c["row"] == "rank 3" and c["column"] == "verdict"]
    t.check(len(verdict) == 1 and verdict[0]["a_text"] == "none" and verdict[0]["b_text"] == "chronic", f"{verdict}")
    ratio = [c for c in found if c["column"] == "compute_ratio" and c["row"] == "rank 3"]
    t.check(len(ratio) == 1 and 0.2 < float(ratio[0]["difference"]) < 0.4, f"compute ratio: {ratio}")
    kernels = [c for c in found if c["view"] == "kernels" and c["column"] == "slowest_rank"]
    t.check(any(float(c["b"]) == 3 for c in kernels), "no kernel is slowest on rank 3")
    t.check(all(c["change"] == "changed" for c in found if c["view"] in ("kernels", "collectives", "steps", "ledger")),
            "a slow GPU adds or removes work")
    # Each number has its difference, and its share of A.
    for c in found:
        if c["difference"]:
            x, y, d = float(c["a"]), float(c["b"]), float(c["difference"])
            t.check(abs(y - x - d) <= 1e-6 * max(abs(x), abs(y)), f"difference: {c}")
            if x:
                t.check(abs(d / abs(x) - float(c["relative"])) < 1e-6 * max(1, abs(d / x)), f"relative: {c}")
    # Tolerance and ignored columns leave fewer; what is left is beyond them.
    some = changes("-T", "20%", a, b)
    t.check(0 < len(some) < len(found), f"tolerance: {len(some)} of {len(found)}")
    t.check(all(abs(float(c["difference"])) > 0.2 * max(abs(float(c["a"])), abs(float(c["b"]))) for c in some
                if c["difference"]), "within the tolerance")
    t.check(len(changes("-T", "0.2", a, b)) == len(some), "20% is not 0.2")
    only = changes("-V", "kernels", "-i", "total_ns,kernels.share,steps.step_ns", a, b)
    columns = {c["column"] for c in only}
    t.check("mean_ns" in columns and not columns & {"total_ns", "share"}, f"ignored: {columns}")
    t.check({c["view"] for c in only} == {"kernels"}, "--views")


def check_edits(t, a):
    """What is done to a copy is what is found."""
    db = sqlite3.connect(a)
    ids = [r[0] for r in db.execute("SELECT id FROM gpu_event WHERE rank = 2 AND kind = 0 ORDER BY id LIMIT 400")]
    end = db.execute("SELECT max(id) FROM gpu_event").fetchone()[0]
    db.close()
    # Not compared: tables of analyses, which feel every edit.
    view = ("-d", "-V", "communicators", "-i", "communicators.n_launches,communicators.time_ns")
    gone = edited(a, "gone.db", [f"DELETE FROM gpu_event WHERE id IN ({ids[100]}, {ids[200]}, {ids[201]})"])
    views, _ = summary(*view, "-i", "since_previous_ns,time_ns,n_launches", a, gone)
    row = views["data.gpu_event"]
    # Of equal names in a row, which one is missing cannot be told.
    t.check((row["removed"], row["added"]) == (3, 0) and row["changed"] <= 6, f"three rows taken out: {row}")
    views, _ = summary(*view, "-i", "since_previous_ns,time_ns,n_launches", gone, a)
    row = views["data.gpu_event"]
    t.check((row["removed"], row["added"]) == (0, 3) and row["changed"] <= 6, f"three rows put in: {row}")
    longer = edited(a, "longer.db", [f"UPDATE gpu_event SET end_ns = end_ns + 1000 WHERE id = {ids[50]}",
                                     f"UPDATE gpu_event SET bytes = 77 WHERE id = {ids[60]}"])
    found = [c for c in changes(*view, a, longer) if c["view"] == "data.gpu_event"]
    t.check(len(found) == 2, f"two cells changed: {found}")
    t.check({(c["column"], c["difference"]) for c in found} == {("duration_ns", "1000"), ("bytes", "")}, f"{found}")
    t.check(all(c["row"].startswith("rank 2, stream ") for c in found), f"{found}")
    many = edited(a, "many.db", [f"DELETE FROM gpu_event WHERE id > {end // 2} AND id % 3 = 0"])
    db = sqlite3.connect(many)
    left = db.execute("SELECT count(*) FROM gpu_event").fetchone()[0]
    db.close()
    views, _ = summary(*view, a, many)
    row = views["data.gpu_event"]
    t.check(row["rows_b"] == left and row["rows_a"] - row["removed"] == left - row["added"] == row["same"] + row["changed"],
            f"rows do not add up: {row}")


def check_refusals(t, tmp, a):
    big = make(tmp, "big", shape=("--pp", "2", "--dp", "4", *SHAPE[4:]))
    done = diff(a, big, code=3)
    said = diff(a, a, "--step-by", "no such", "-V", "kernels", code=0).stderr
    t.check(said.count(f"diff: {a}: no annotation begins with \"no such\"; ") == 2 and said.count("\n") == 2, said)
    t.check(not diff(a, a, "--step-by", "step", "-V", "kernels", code=0).stderr, "a line without reason")
    t.check("4 ranks and 8 ranks" in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done.stderr)
    other = make(tmp, "other", shape=("--pp", "4", "--dp", "1", *SHAPE[4:]))
    t.check("not comparable" in diff(a, other, code=3).stderr, "another layout")
    missing = make(tmp, "missing", "--missing", "1")
    t.check("rank 1" in diff(a, missing, code=3).stderr, "a rank without a record")
    (tmp / "text.db").write_text("no database")
    for words in ((a, tmp / "absent.db"), (tmp / "text.db", a), ("-T", "2", a, a), ("-T", "x", a, a), ("-F", "x", a, a),
                  ("-V", "nonsense", a, a), ("-V", "", a, a), ("-V", ",", a, a), ("-i", "nonsense", a, a),
                  ("-i", "kernels.rank_x", a, a), ("-n", "-1", a, a), (a,)):
        done = diff(*words, code=2)
        t.check(done.stderr.count("\n") == 1 and not done.stdout, f"{words}: {done.stderr}")


def main():
    need(MKTRACE)
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-diff-") as folder:
        tmp = pathlib.Path(folder)
        a = make(tmp, "a")
        check_same(t, a, tmp)
        check_other_clock(t, a, tmp)
        slow = make(tmp, "b", "--slow", "3:1.3")
        check_headline(t, a, slow)
        check_straggler(t, a, slow)
        check_edits(t, a)
        check_refusals(t, tmp, a)
    t.end()


main()
