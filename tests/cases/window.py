# SPDX-License-Identifier: Apache-2.0
"""Profilers that start late or stop early: a rank that is not on record must not look fast or idle, what
all ranks recorded is what counts, and what is left out is said."""
import json
import pathlib
import tempfile

from lib_merged import BUILD, LAGGARD, call


def report(db, name, *options):
    # 1 is a finding: there is one in these runs.
    return json.loads(call(LAGGARD, "report", "--format", "json", *options, name, db, codes=(0, 1, 3)))


def step_spans(trace):
    """Where each step begins and ends on the profiled host, in us."""
    return sorted((e["ts"], e["ts"] + e["dur"]) for e in trace["traceEvents"]
                  if e.get("name", "").startswith("ProfilerStep#") and e["cat"] == "user_annotation")


def cut(path, begin=None, end=None):
    """As if the profiler had run from begin to end only: what is outside is not there, and annotations
    are as long as it was."""
    trace = json.loads(path.read_text())
    kept = []
    for e in trace["traceEvents"]:
        if "ts" not in e:
            kept.append(e)
            continue
        until = e["ts"] + e.get("dur", 0)
        note = e.get("cat") == "user_annotation"
        if (end is not None and e["ts"] >= end) or (begin is not None and until <= begin):
            continue
        if not note and ((end is not None and until > end) or (begin is not None and e["ts"] < begin)):
            continue
        if note:
            low = max(e["ts"], begin) if begin is not None else e["ts"]
            high = min(until, end) if end is not None else until
            e = dict(e, ts=low, dur=round(high - low, 3))
        kept.append(e)
    trace["traceEvents"] = kept
    path.write_text(json.dumps(trace))


def merged(folder, db):
    call(LAGGARD, "merge", "-q", "-f", folder, "-o", db)
    return db


def complete(db, *options):
    return [row["step"] for row in report(db, "steps", *options)["rows"] if row["complete"] == "yes"]


def accused(db, *options):
    return [(row["rank"], row["cause"]) for row in report(db, "stragglers", *options)["rows"]
            if row["verdict"] != "none"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        run = tmp / "run"
        call(BUILD / "mkkineto", "--out", run, "--size", "1500000", "--ranks", "4", "--per-host", "4",
             "--straggler", "1:1.3")
        whole = merged(run, tmp / "whole.db")
        steps = [row["step"] for row in report(whole, "steps")["rows"]]
        assert complete(whole) == steps and len(steps) >= 8, steps
        assert accused(whole) == [(1, "slow GPU")], accused(whole)
        assert not [r for r in report(whole, "trust")["rows"] if r["kind"] == "window"]

        spans = step_spans(json.loads((run / "rank2.json").read_text()))
        late = spans[1][0] + 0.5 * (spans[1][1] - spans[1][0])
        cut(run / "rank2.json", begin=late)
        spans = step_spans(json.loads((run / "rank3.json").read_text()))
        early = spans[6][0] + 0.6 * (spans[6][1] - spans[6][0])
        cut(run / "rank3.json", end=early)
        db = merged(run, tmp / "cut.db")
        # Steps that reach out of the common window count nowhere; the guilty one stays the only one.
        assert complete(db) == [2, 3, 4, 5], complete(db)
        assert accused(db) == [(1, "slow GPU")], accused(db)
        said = [r for r in report(db, "trust")["rows"] if r["kind"] == "window"]
        assert len(said) == 1 and said[0]["severity"] == "warning", said
        assert "rank 2 begins" in said[0]["text"] and "rank 3 ends" in said[0]["text"], said
        answer = report(db, "stragglers")
        assert any("common window" in note for note in answer["trust"]["notes"]), answer["trust"]
        length = answer["trust"]["window_until_ns"] - answer["trust"]["window_from_ns"]
        assert abs((early - late) * 1000 - length) < 300_000, (early - late, length)

        # Who asks for it gets everything that was recorded, the halves of steps included.
        more = complete(db, "--window", "all")
        assert set(more) > {2, 3, 4, 5} and 6 in more, more
        assert not any("common window" in note
                       for note in report(db, "steps", "--window", "all")["trust"]["notes"])


main()
