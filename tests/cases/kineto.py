#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kineto traces through the program: two ranks written here, relative to bases that differ, then every
real trace at hand: it merges or is refused in one line, and what other tools found is found."""
import csv
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

from lib_merged import rows

LAGGARD = os.environ["LAGGARD"]
DATA = os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "kineto")
T0 = 1_716_000_000_000_000_000

# µs: events, span, busy, idle, compute, comm, mem, comm and compute, exposed comm.
DLRM = [[261, 13009, 6590, 6419, 1034, 5798, 19, 261, 5537],
        [326, 18749, 12321, 6428, 1246, 11336, 19, 280, 11056],
        [262, 11350, 4304, 7046, 1068, 3492, 19, 275, 3217],
        [337, 18853, 10708, 8145, 1240, 9774, 28, 324, 9440]]
COLUMNS = ["n_gpu_events", "span_ns", "busy_ns", "idle_ns", "compute_ns", "comm_ns", "mem_ns", "overlap_ns",
           "exposed_comm_ns"]


def run(*args, code=0):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done)
    return done


def report(analysis, db, code=0):
    return json.loads(run("report", analysis, db, "--format", "json", code=code).stdout)


def made_rank(path, rank, late_us):
    """Ten all-reduces of one group after compute; everything of rank 1 starts late_us later."""
    base = T0 + rank * 1_000_000  # bases of one job differ
    events = []

    def at(us):
        return round(us - (base - T0) / 1000, 3)

    for i in range(10):
        begin = 1000 * i + 100
        end = begin + 400 + late_us * rank
        corr = 10 * i + 1
        for c, start, stop, name, args in (
                (corr, begin, end, "gemm", {}),
                (corr + 1, end, begin + 700, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", {
                    "Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096,
                    "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0",
                    "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"})):
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9 + rank,
                           "tid": 9 + rank, "ts": at(begin - 60 + c % 10), "dur": 0.5,
                           "args": {"correlation": c}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7 + c % 10,
                           "ts": at(start), "dur": stop - start,
                           "args": {"device": rank, "context": 1, "stream": 7 + c % 10, "correlation": c,
                                    **args}})
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 9 + rank,
                       "tid": 9 + rank, "ts": at(1000 * i), "dur": 1000})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "host_name": "node0",
                   "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
                   "traceEvents": events[::-1], "baseTimeNanoseconds": base}, file)


def check_made(folder):
    paths = [os.path.join(folder, f"trace_{c}.json") for c in "ab"]
    for rank, path in enumerate(paths):
        made_rank(path, rank, 100)
    db = os.path.join(folder, "made.db")
    run("merge", *paths, "-o", db)
    breakdown = {row["rank"]: row for row in report("breakdown", db)["rows"]}
    for rank in (0, 1):
        assert breakdown[rank]["compute_ns"] == 10 * (400 + 100 * rank) * 1000, breakdown
        assert breakdown[rank]["comm_ns"] == 10 * (300 - 100 * rank) * 1000, breakdown
    (row,) = report("collectives", db)["rows"]
    assert (row["function"], row["count"], row["complete"]) == ("all_reduce", 10, 10), row
    assert row["bytes"] == 8192 and row["mismatched"] == 0, row
    # Rank 0 waits 100 us in each, rank 1 never.
    assert row["wait_ns"] == 10 * 100 * 1000, row
    assert report("steps", db, code=(0, 1))["rows"][0]["step"] == 0


def check_odd_head(folder):
    """What cannot be around the events is left out, counted and told; what can be stays."""
    path, db = os.path.join(folder, "odd_head.json"), os.path.join(folder, "odd_head.db")

    def merged(**head):
        made_rank(path, 1, 100)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        data.update(head)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
        run("merge", "-f", path, "-o", db)
        notes = [n for (n,) in rows(db, "SELECT value FROM source_fact WHERE key = 'note'") if "whole number" in n]
        return notes, rows(db, "SELECT rank, world_size FROM process"), [t for (t,) in rows(db, "SELECT text FROM finding")]

    notes, process, _ = merged(distributedInfo={"rank": 2.7, "world_size": "many"}, baseTimeNanoseconds=[])
    assert len(notes) == 1 and notes[0].startswith("3 values ") and "2.7" in notes[0], notes
    with open(path, "rb") as file:
        assert f"at byte {file.read().index(b'2.7')}: 2.7" in notes[0], notes
    assert process[0][1] is None, process
    notes, process, found = merged(distributedInfo={"rank": "1", "world_size": 2.0})
    assert not notes and process == [(1, 2)] and not [t for t in found if "number of ranks" in t], (notes, process, found)
    # Nor does it tell runs apart; it is told once, also when a late rank comes.
    late = os.path.join(folder, "odd_late.json")
    made_rank(late, 0, 100)
    for head, told in (({"rank": 9, "world_size": 8}, "rank 9 of 8 cannot be"),
                       ({"rank": 1, "world_size": 10**12}, "a job of 1000000000000 ranks cannot be")):
        _, process, found = merged(distributedInfo=head)
        assert process == [(head["rank"], None)] and len([t for t in found if told in t]) == 1, (process, found)
    run("merge", "--append", db, late)
    found = [t for (t,) in rows(db, "SELECT text FROM finding")]
    assert len([t for t in found if "cannot be" in t]) == 1, found
    run("merge", "-f", path, late, "-o", db)
    assert rows(db, "SELECT count(*) FROM process") == [(2,)]


def check_dlrm(folder):
    files = sorted(glob.glob(os.path.join(DATA, "dlrm/*.json")))
    db = os.path.join(folder, "dlrm.db")
    run("merge", *files, "-o", db)
    rows = report("breakdown", db)["rows"]
    for rank, want in enumerate(DLRM):
        (row,) = [r for r in rows if r["rank"] == rank]
        assert row["n_gpu_events"] == want[0], row
        for column, us in list(zip(COLUMNS, want))[1:]:
            assert abs(row[column] - us * 1000) <= 1000, (rank, column, row[column], us)
    late = report("stragglers", db, code=(0, 1, 3))
    assert late["trust"]["missing_ranks"] == [4, 5, 6, 7]
    assert any("4 of 8 ranks" in note for note in late["trust"]["notes"]), late["trust"]
    for row in late["rows"]:
        assert row["step_cost_ns"] is None and row["waiting_caused_ns"] is None, row


def check_timelines(folder):
    for path in sorted(glob.glob(os.path.join(DATA, "tracelens/*.gpu_timeline.csv"))):
        trace = path.replace(".gpu_timeline.csv", ".json.gz")
        want = {row["type"]: float(row["time ms"]) * 1e6 for row in csv.DictReader(open(path))}
        db = os.path.join(folder, os.path.basename(trace) + ".db")
        run("merge", trace, "-o", db)
        (row,) = report("breakdown", db)["rows"]
        for column, name in (("busy_ns", "busy_time"), ("idle_ns", "idle_time"), ("span_ns", "total_time"),
                             ("compute_ns", "computation_time"), ("exposed_comm_ns", "exposed_comm_time")):
            assert abs(row[column] - want[name]) <= 10, (trace, column, row[column], want[name])


def check_every_file(folder):
    files = [f for kind in ("*.json", "*.json.gz", "*.txt")
             for f in glob.glob(os.path.join(DATA, "*", kind)) if "gpu_timeline" not in f]
    for n, path in enumerate(sorted(files)):
        done = run("merge", path, "-o", os.path.join(folder, f"{n}.db"), code=(0, 2))
        if done.returncode == 2:
            assert len(done.stderr.splitlines()) == 1 and os.path.basename(path) in done.stderr, done
        else:
            report("summary", os.path.join(folder, f"{n}.db"), code=(0, 1, 3))


def check_cut(folder):
    whole = gzip.open(os.path.join(DATA, "hta/nccl_data.json.gz")).read()
    path, db = os.path.join(folder, "cut_rank0.json"), os.path.join(folder, "cut.db")
    with open(path, "wb") as file:
        file.write(whole[: len(whole) // 2])
    run("merge", path, "-o", db)
    assert report("breakdown", db)["rows"][0]["n_gpu_events"] > 100
    assert "cut off at byte" in json.dumps(report("trust", db, code=(0, 1, 3)))


def check_two_hosts(folder):
    """Eight files of one job from two hosts, whose clocks are 250 us apart, packed as profilers pack them: the
    offset is found within its stated error, and the rank that is slow is the one named."""
    files = os.path.join(folder, "eight")
    subprocess.run([os.path.join(os.environ["LAGGARD_BUILD"], "mkkineto"), "--out", files, "--size", "2000000", "--ranks", "8",
                    "--per-host", "4", "--clock", "1:250", "--straggler", "5:1.3"], check=True)
    for path in glob.glob(os.path.join(files, "*.json"))[::2]:
        subprocess.run(["gzip", "-1", path], check=True)
    db = os.path.join(folder, "eight.db")
    run("merge", files, "-o", db)
    rows = report("stragglers", db, code=(0, 1, 3))["rows"]
    assert [(r["rank"], r["cause"]) for r in rows if r["verdict"] == "chronic"] == [(5, "slow GPU")], rows
    (row,) = [r for r in report("clock", db)["rows"] if r["host"] == "node1" and r["device"] is None]
    assert abs(row["offset_ns"] + 250_000) <= row["uncertainty_ns"] < 200_000, row


def check_damaged(folder):
    """Damage of every kind between good events: those are all read, and what was wrong is counted."""
    def kernel(i, more="", name='"k"'):
        return ('{"ph": "X", "cat": "kernel", "name": %s, "pid": 0, "tid": 7, "ts": %d.5, "dur": 1, "args": {"device": 0, '
                '"stream": 7, "correlation": %d%s}}' % (name, 10 * i, i + 1, more))

    damage = [", \"x\": NaN", ", \"x\": inf", ", \"x\": -Infinity", ", \"x\": ", ", \"x\": \"a\x00b\"",
              ", \"x\": 99999999999999999999999", ", \"correlation\": 5, \"correlation\": 6", ", \"x\": []",
              ", \"x\": {}", ", \"x\": " + "[" * 1_000_000 + "]" * 1_000_000, ", \"x\": \"" + "y" * 100_000_000 + "\"",
              ", \"x\": \"C:\\new\"", ", \"x\": 1,", ", x\": 1", ", \"x\": 1;", ", \"x\": 1 \"y\": 2"]
    names = ['"a "quoted" name"', '"two\nlines"', '"\x01\x02"', '"\udc80\udcff"', '"torch\\cuda\\_init.py"', "null", "7"]
    events = []
    for i, more in enumerate(damage):
        events += [kernel(len(events)), kernel(len(events) + 1, more)]
    for name in names:
        events += [kernel(len(events)), kernel(len(events) + 1, name=name)]
    events += [kernel(len(events)), "7", "null", '"x"', "[[]]", "{}", kernel(len(events) + 1)]
    kernels = sum(e.startswith('{"ph"') for e in events)
    path, db = os.path.join(folder, "damaged_rank0.json"), os.path.join(folder, "damaged.db")
    with open(path, "wb") as file:
        file.write(('{"traceEvents": [' + ",\n".join(events) + "]}").encode("utf-8", "surrogateescape"))
    done = subprocess.run(["/usr/bin/env", "bash", "-c", 'ulimit -v 400000; exec "$@"', "-", LAGGARD, "merge", path, "-o", db],
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    (row,) = report("breakdown", db)["rows"]
    assert row["n_gpu_events"] == kernels, (row, kernels)
    told = json.dumps(report("trust", db, code=(0, 1, 3)))
    for kind in ("unquoted word", "missing value", "control byte", "bad escape", "invalid UTF-8", "quote inside", "missing quote",
                 "comma", "unexpected byte", "overlong string", "nested too deeply"):
        assert kind in told, (kind, told)


def check_behind(folder):
    """What follows the document, in the file or in another member of its gzip, is told; filler is nothing."""
    path, db = os.path.join(folder, "behind_rank0.json"), os.path.join(folder, "behind.db")
    made_rank(path, 0, 0)
    with open(path, "rb") as file:
        doc = file.read()
    os.remove(path)
    packed = gzip.compress(doc)
    for name, data, n in (("a.json", doc + b"\n" + doc, len(doc)), ("b.json.gz", packed + packed, len(doc)),
                          ("c.json", doc + b"]", 1), ("d.json", doc + b" \r\n" + bytes(5000) + b"\n", 0),
                          ("e.json.gz", packed + bytes(700), 0)):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        run("merge", "-f", path, "-o", db)
        os.remove(path)
        told = [text for (text,) in rows(db, "SELECT value FROM source_fact WHERE key = 'note'") if "document's end" in text]
        assert rows(db, "SELECT status, n_bad FROM source") == [("damaged", 1) if n else ("ok", 0)], (name, told)
        assert len(told) == bool(n) and all(text.startswith(f"{n} byte") for text in told), (name, told)


def check_exported(folder):
    """A job that laggard exported comes back as the same job: ranks, hosts, edges between streams."""
    run_dir, first, again = (os.path.join(folder, n) for n in ("job", "job.db", "again.db"))
    subprocess.run([os.path.join(os.environ["LAGGARD_BUILD"], "mktrace"), "--out", run_dir, "--pp", "2", "--dp", "2",
                    "--steps", "3"], check=True, stdout=subprocess.DEVNULL)
    run("merge", run_dir, "-o", first)
    trace = os.path.join(folder, "job.json.gz")
    run("export", "-t", "chrome", first, "-o", trace)
    run("merge", trace, "-o", again)
    for analysis in ("breakdown", "stragglers", "bubbles"):
        want, got = (report(analysis, db, code=(0, 1, 3))["rows"] for db in (first, again))
        assert want == got, (analysis, want, got)
    counts = [[rows(db, f"SELECT count(*) FROM {table}")[0][0]
               for table in ("gpu_event", "gpu_sync", "api_call", "rank", "host", "instance")]
              for db in (first, again)]
    assert counts[0] == counts[1], counts
    told = "SELECT count(*) FROM finding WHERE text LIKE '%of processes that the file does not list%'"
    assert rows(again, told) == [(0,)] and rows(again, "SELECT sum(n_bad) FROM source") == [(0,)]
    # Events of a process that is none of those in the file's list are nobody's: counted, not lost from sight.
    with gzip.open(trace) as file:
        doc = json.load(file)
    strange = [e for e in doc["traceEvents"] if e["ph"] == "X" and e.get("cat") == "kernel"][100:117]
    for event in strange:
        event["pid"] = 987654
    doc["traceEvents"].append({"ph": "C", "name": "a counter", "pid": 987654, "ts": strange[0]["ts"], "args": {"x": 1}})
    with gzip.open(trace, "wt", compresslevel=1) as file:
        json.dump(doc, file)
    run("merge", "-f", trace, "-o", again)
    assert rows(again, told.replace("'%of", "'%17 events of")) == [(1,)], rows(again, "SELECT text FROM finding")
    assert rows(again, "SELECT status, n_bad FROM source") == [("damaged", 17)]
    assert rows(again, "SELECT count(*) FROM gpu_event") == [(counts[0][0] - 17,)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_made(folder)
        check_odd_head(folder)
        check_two_hosts(folder)
        check_damaged(folder)
        check_exported(folder)
        check_behind(folder)
        if os.path.isdir(DATA):
            check_dlrm(folder)
            check_timelines(folder)
            check_every_file(folder)
            check_cut(folder)
        else:
            print("skipped: no real traces in LAGGARD_TEST_DATA")
    print("kineto: ok")


if __name__ == "__main__":
    sys.exit(main())
