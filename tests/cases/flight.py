#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flight Recorder dumps through the program: made here as pickles of every protocol and as JSON, then the
real ones at hand, entry by entry against what Python's own reader gives."""
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

from lib_merged import rows

LAGGARD = os.environ["LAGGARD"]
PLAIN = os.path.join(os.environ["LAGGARD_BUILD"], "plain")
DATA = os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "flight_recorder")
T0 = 1_758_000_000_000_000_000
FUNCS = {"all_reduce": 1, "_all_gather_base": 2, "_reduce_scatter_base": 3, "broadcast": 4, "all_to_all": 6,
         "send": 9, "recv": 10}
DTYPES = {"Float": 7, "BFloat16": 9, "Byte": 1, "Long": 4, "Int": 2, "Half": 6, "Double": 8, "Bool": 1}
STATES = {"scheduled": 1, "started": 2, "completed": 3}


def run(*args, code=0):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done)
    return done


def entry(record, group, seq, name="nccl:all_reduce", state="completed", p2p=0, **more):
    at = T0 + record * 1_000_000
    return {"record_id": record, "pg_id": 0 if group[0] == "0" else 3, "process_group": group,
            "thread_name": "python3", "thread_id": "4711", "collective_seq_id": seq, "p2p_seq_id": p2p,
            "op_id": record + 1, "profiling_name": name, "time_created_ns": at,
            "input_sizes": [[3, 4]], "input_dtypes": ["Float"], "output_sizes": [[3, 4]],
            "output_dtypes": ["Float"], "state": state,
            "time_discovered_started_ns": at + 100 if state != "scheduled" else None,
            "time_discovered_completed_ns": at + 9000 if state == "completed" else None,
            "duration_ms": 0.25 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": bool(p2p), **more}


def dump(rank, entries, enqueued, completed, world=2):
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))},
              "7": {"name": "7", "desc": "mine", "ranks": f"[{rank}]"}}
    return {"version": "2.9", "nccl_version": "2.27.3", "pg_config": groups, "entries": entries,
            "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_started_collective": -1,
                                "last_completed_collective": completed},
                          "3": {"last_enqueued_collective": -1, "last_started_collective": -1,
                                "last_completed_collective": -1}}}


def made(rank):
    world = ("0", "default_pg")
    entries = [entry(0, world, 1), entry(1, world, 2, state="started" if rank else "completed"),
               entry(2, world, 2, name=f"nccl:send {rank}->{1 - rank}", p2p=1, state="scheduled")]
    return dump(rank, entries, 2, 1 if rank else 2)


OPS = ("SELECT o.rank, c.name, o.func, o.seq, o.peer, o.count, o.datatype, o.raw_enter_ns, o.tid, s.state, "
       "s.record_id, s.timeout_ns, s.started_ns IS NOT NULL, s.completed_ns IS NOT NULL, s.duration_ns, s.sizes "
       "FROM nccl_op o JOIN op_seen s ON s.op_id = o.id JOIN communicator c ON c.id = o.comm_id "
       "ORDER BY o.rank, s.record_id")


def check_made(folder):
    db = os.path.join(folder, "made.db")
    expected = None
    for form in (0, 1, 2, 3, 4, 5, "json"):
        paths = []
        for rank in (0, 1):
            path = os.path.join(folder, f"x{form}_{'ab'[rank]}")
            with open(path, "wb") as file:
                if form == "json":
                    file.write(json.dumps(made(rank)).encode())
                else:
                    pickle.dump(made(rank), file, protocol=form)
            paths.append(path)
        run("merge", *paths, "-o", db, "-f")
        got = rows(db, OPS)
        expected = expected or got
        assert got == expected and len(got) == 6, (form, got)
        assert {r[0]: r[1] for r in rows(db, "SELECT rank, rank_source FROM process")} == {
            0: "pg_config and entries", 1: "pg_config and entries"}, form
        assert rows(db, "SELECT rank, comm_id, last_enqueued, last_started, last_completed FROM "
                        "comm_progress WHERE last_enqueued IS NOT NULL") == [
            (0, 1, 2, None, 2), (1, 1, 2, None, 1)], form
    assert expected[0][:9] == (0, "0", 1, 1, None, 12, 7, T0, 4711), expected[0]
    assert expected[0][9:] == (3, 0, 600_000_000_000, 1, 1, 250_000, "3x4 -> 3x4"), expected[0]
    assert expected[2][2:5] == (9, 0, 1), expected[2]  # the first from here to there
    assert expected[4][9:15] == (2, 1, 600_000_000_000, 1, 0, None), expected[4]


def check_beside_kineto(folder, db):
    """A profile's window begins somewhere: its first message is not the dump's first."""
    dumped, profile = os.path.join(folder, "p2p_0"), os.path.join(folder, "window.json")
    with open(dumped, "wb") as file:
        pickle.dump(dump(0, [entry(0, ("0", "default_pg"), 0, name="nccl:send 0->1", p2p=1)], 0, 0), file)
    args = {"device": 0, "context": 1, "stream": 7, "correlation": 9, "Collective name": "recv", "In msg nelems": 12,
            "Out msg nelems": 12, "Group size": 2, "dtype": "Float", "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Src Rank": 0, "Dst Rank": 0}
    with open(profile, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 0, "tid": 7, "ts": T0 / 1000,
             "dur": 5, "args": args}]}, file)
    run("merge", dumped, profile, "-o", db, "-f")
    assert rows(db, "SELECT rank, func, peer FROM nccl_op ORDER BY rank") == [(0, 9, 1), (1, 10, 0)]
    assert rows(db, "SELECT count(DISTINCT comm_id) FROM nccl_op") == [(1,)]
    assert rows(db, "SELECT max(n_recorded) FROM instance") == [(1,)]
    assert rows(db, "SELECT count FROM finding WHERE kind = 'unordered'") == [(1,)]


def check_messages(folder):
    """The k-th message of a sender to a receiver is the k-th, whatever else the two do; not where entries were
    overwritten, or the recorder was emptied meanwhile, which is said."""
    world, db = ("0", "default_pg"), os.path.join(folder, "p2p.db")
    calls = {0: ["send 0->1", "send 0->2", "send 0->1", "recv 0<-2"],
             1: ["recv 1<-0", "send 1->2", "recv 1<-0"],
             2: ["recv 2<-1", "recv 2<-0", "send 2->0"]}
    for first, before in ((0, 0), (5, 0), (0, 7)):
        paths, whole = [], first == before == 0
        for rank, names in calls.items():
            entries = [entry(first + i, world, 0, name=f"nccl:{name}", p2p=before + i + 1) for i, name in enumerate(names)]
            paths.append(os.path.join(folder, f"p2p_{rank}"))
            with open(paths[-1], "wb") as file:
                pickle.dump(dump(rank, entries, 0, 0, world=3), file)
        run("merge", *paths, "-o", db, "-f")
        got = rows(db, "SELECT src, dst, seq, n_recorded FROM instance ORDER BY src, dst, seq")
        assert got == ([] if not whole else [(0, 1, 0, 2), (0, 1, 1, 2), (0, 2, 0, 2), (1, 2, 0, 2), (2, 0, 0, 2)]), got
        notes = [n for (n,) in rows(db, "SELECT value FROM source_fact WHERE key = 'note'") if "not matched" in n]
        assert len(notes) == (0 if whole else 3), notes
    check_beside_kineto(folder, db)
    # A group that entries alone name may be the largest: how large the job is, is not known.
    odd = dump(0, [entry(0, ("0", "default_pg"), 1), entry(1, ("9", "odd"), 1)], 1, 1)
    path = os.path.join(folder, "p2p_0")
    for data, world in ((dump(0, odd["entries"][:1], 1, 1), 2), (odd, None)):
        with open(path, "wb") as file:
            pickle.dump(data, file)
        run("merge", path, "-o", db, "-f")
        assert rows(db, "SELECT world_size FROM process") == [(world,)], rows(db, "SELECT world_size FROM process")


def check_refused(folder):
    """One line, exit 2, and nothing runs."""
    mark = os.path.join(folder, "ran")

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {mark}",)

    path = os.path.join(folder, "_dump_0")
    for value, word in ((Evil(), "refused"), ({"entries": [Evil()]}, "refused"), ([1, 2], "no Flight Recorder"),
                        ({"entries": 3}, "no Flight Recorder")):
        for protocol in range(2, 6):
            with open(path, "wb") as file:
                pickle.dump(value, file, protocol=protocol)
            done = run("merge", path, "-o", os.path.join(folder, "no.db"), code=2)
            assert done.stderr.count("\n") == 1 and word in done.stderr, done.stderr
            assert not os.path.exists(mark) and not os.path.exists(os.path.join(folder, "no.db"))
    whole = pickle.dumps(made(0), protocol=4)
    for cut in range(0, len(whole) - 1, 97):
        with open(path, "wb") as file:
            file.write(whole[:cut])
        assert run("merge", path, "-o", os.path.join(folder, "no.db"), code=2).stderr.count("\n") == 1


def check_damaged(folder):
    """Entries without what they need are counted; a JSON dump that breaks off gives its first part."""
    bad = made(0)
    bad["entries"] += [{}, 5, entry(9, ("0", "default_pg"), 3, time_created_ns="never")]
    path, db = os.path.join(folder, "_dump_0"), os.path.join(folder, "bad.db")
    with open(path, "wb") as file:
        pickle.dump(bad, file)
    run("merge", path, "-o", db, "-f")
    assert rows(db, "SELECT status, n_bad FROM source") == [("damaged", 3)]
    text = json.dumps(made(0))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:text.rindex('"pg_status"')])
    run("merge", path, "-o", db, "-f")
    assert rows(db, "SELECT status FROM source") == [("damaged",)]
    assert len(rows(db, OPS)) == 3


def check_behind(folder):
    """What follows the dump is told, as JSON and as a pickle; white space is nothing."""
    path, db = os.path.join(folder, "behind_0"), os.path.join(folder, "behind.db")
    text, pickled = json.dumps(made(0)).encode(), pickle.dumps(made(0))
    for data, told in ((text + text, "bytes after the document's end are not read"), (pickled + b"x", "after the pickle's end"),
                       (text + b"\n \0", None)):
        with open(path, "wb") as file:
            file.write(data)
        run("merge", path, "-o", db, "-f")
        notes = [n for (n,) in rows(db, "SELECT value FROM source_fact WHERE key = 'note'") if "'s end" in n]
        assert len(notes) == bool(told) and all(told in n for n in notes), (told, notes)
    os.remove(path)


def check_bad_ranks(folder):
    """What can be no rank, in a group's list, does not give its place to the next: nobody's is known, and it is
    said. The other groups are as they were."""
    path, db = os.path.join(folder, "_dump_0"), os.path.join(folder, "bad.db")
    known = "SELECT c.name, count(m.comm_id) FROM communicator c LEFT JOIN comm_member m ON m.comm_id = c.id " \
            "AND m.rank IS NOT NULL GROUP BY c.id ORDER BY c.name"
    told = "SELECT count(*) FROM finding WHERE text LIKE '%1 process group lists what cannot be ranks%'"
    for ranks in ([-1, 0, 1], [0, "x", 1], [0, 1 << 40, 1], [0, None, 1], "[-1, 0, 1]", "[0, x, 1]", "[0, 1099511627776]",
                  [0, 1], "[0, 1]", "[0, 1, ...]"):
        bad = made(0)
        bad["pg_config"]["0"]["ranks"] = ranks
        good, cut = ranks in ([0, 1], "[0, 1]"), "..." in ranks
        for form in (pickle.dumps(bad), json.dumps(bad).encode()):
            with open(path, "wb") as file:
                file.write(form)
            run("merge", path, "-o", db, "-f")
            world, mine = rows(db, known)
            assert mine == ("7", 1) and (world[1] == 2) == good, (ranks, world, mine)
            assert rows(db, told) == [(int(not good and not cut),)], (ranks, rows(db, "SELECT text FROM finding"))
            assert rows(db, "SELECT status, n_bad FROM source") == [("ok", 0) if good or cut else ("damaged", 1)], ranks
            assert len(rows(db, OPS)) == 3, ranks


def key_order(value):
    return json.loads(json.dumps(value))


def count_of(name, e):
    sizes = e["output_sizes" if name in ("_reduce_scatter_base", "recv") else "input_sizes"]
    total = 0
    for dims in sizes:
        n = 1
        for d in dims:
            n *= d
        total += n
    return None if name == "all_to_all" else total


def hang(db, code):
    doc = json.loads(run("report", "hang", db, "--format", "json", code=code).stdout)
    return ([(r["rank"], r["verdict"]) for r in doc["rows"] if r["kind"] == "suspect"],
            [r for r in doc["rows"] if r["kind"] == "communicator"])


def check_hang(folder):
    """Two ranks made here: as far as each other, one silent, one dump missing, nothing under way."""
    world = ("0", "default_pg")
    done, open_ = entry(0, world, 1), {"state": "scheduled"}
    cases = (
        ([done], [done], (1, 1), (1, 1), [], 0),
        ([done, entry(1, world, 2, **open_)], [done], (2, 1), (1, 1), [(1, "never called it")], 1),
        ([done, entry(1, world, 2, **open_)], [], (2, 1), (1, 1), [(1, "never called it")], 1),
        ([done, entry(1, world, 2, **open_)], [done, entry(1, world, 2, **open_)], (2, 1), (2, 1),
         [(None, "cannot tell")], 3),
        ([done, entry(1, world, 2, state="started")], [done, entry(1, world, 2, state="started")], (2, 1),
         (2, 1), [(None, "communication")], 1),
        ([done, entry(1, world, 2, **open_)], [done, entry(1, world, 2)], (2, 1), (2, 2), [(0, "its own")], 1),
        ([done, entry(1, world, 2, **open_)], None, (2, 1), None, [(1, "no record")], 3),
    )
    for number, (a, b, status_a, status_b, expected, code) in enumerate(cases):
        paths = []
        for rank, (entries, status) in enumerate(((a, status_a), (b, status_b))):
            if entries is None:
                continue
            paths.append(os.path.join(folder, f"hang{number}_dump_{rank}"))
            with open(paths[-1], "wb") as file:
                pickle.dump(dump(rank, entries, *status), file)
        db = os.path.join(folder, "hang.db")
        run("merge", *paths, "-o", db, "-f")
        assert hang(db, code)[0] == expected, (number, hang(db, code))
        said = "nothing hangs" in run("report", "hang", db, code=code).stdout
        assert said == (code == 0), number


def screen(db, *options):
    return run("tui", db, *options).stdout


def check_screens(db, suspects):
    """A run that stands opens with that, and Enter leads to the rows of the report, told in full."""
    first, rank = screen(db, "--print", "overview"), suspects[0][0]
    found = [line for line in first.splitlines() if f"rank {rank}" in line]
    assert found and first.index(found[0]) < first.index("withheld"), first
    for size in (("-W", 80, "-H", 24), ("-W", 120, "-H", 35), ("-W", 160, "-H", 50)):
        opened = screen(db, "--print", "overview", *size, "--keys", "Enter")
        assert "8 hang" in opened, opened
        for r, verdict in suspects:
            assert re.search(rf"suspect +{r} +{verdict}", opened), (r, opened)
        doc = json.loads(run("report", "hang", db, "--format", "json", code=1).stdout)
        words = doc["rows"][0]["text"].split()
        assert re.search(r"\s+".join(map(re.escape, words)), opened), (words, opened)
        timeline = screen(db, "--print", "overview", *size, "--keys", "Enter Enter")
        assert "suspect" not in timeline and f"rank {rank}" in timeline, timeline
    third = screen(db, "--print", "hang", "-H", 24, "--keys", "Down Down")
    assert re.search(r"; ranks? [\d, -]+ stands? in it", third), third


def check_real_hang(folder, case):
    """The suspects are the ranks that the faults were injected into, and those whom the reference names."""
    source, db = os.path.join(DATA, case), os.path.join(folder, case + ".db")
    with open(os.path.join(source, "fault_injection.log"), encoding="utf-8") as file:
        faults = json.loads(file.readline().split(":")[1])
    with open(os.path.join(source, "reference.txt"), encoding="utf-8") as file:
        named = [int(r) for r in file.read().splitlines()[1].split("|")[5].split(",")]
    suspects, comms = hang(db, 1)
    assert [r for r, _ in suspects] == faults, suspects
    assert set(named) <= set(faults), named
    verdict = "never called it" if case == "lock_gil_1st" else "its own"
    assert all(v == verdict for _, v in suspects), suspects
    # The summary says it in a sentence, and has no rows of nothing; the merge says where to look.
    page = run("report", db, code=1).stdout
    words = "has not called" if case == "lock_gil_1st" else "has not finished"
    assert all(f"the job stands: rank {r} {words} " in page for r in faults), page
    assert " of EXPERT_MODEL_PARALLEL_GROUP (" in page or " of TENSOR_MODEL_PARALLEL_GROUP (" in page, page
    assert "exposed waiting" not in page and "host-bound" not in page, page
    assert f"next: laggard report hang {db}" in run("merge", source, "-o", db, "-f").stderr
    check_screens(db, suspects)
    expert = [c for c in comms if c["description"] == "EXPERT_MODEL_PARALLEL_GROUP" and c["verdict"] == verdict]
    assert len(expert) == 1 and all(str(r) in expert[0]["text"] for r in faults), expert
    # A rank without its dump stays suspect, and says why.
    for empty in (False, True):
        fewer = os.path.join(folder, f"{case}_{empty}")
        os.mkdir(fewer)
        for rank in range(16):
            with open(os.path.join(source, f"_dump_{rank}"), "rb") as file:
                data = file.read()
            if rank == faults[0] and not empty:
                continue
            with open(os.path.join(fewer, f"_dump_{rank}"), "wb") as file:
                file.write(b"" if rank == faults[0] else data)
        run("merge", fewer, "-o", db, "-f")
        assert sorted(hang(db, 1)[0]) == sorted([(faults[0], "no record"), (faults[1], verdict)]), hang(db, 1)


def check_real(folder, case):
    source, db = os.path.join(DATA, case), os.path.join(folder, case + ".db")
    run("merge", source, "-o", db, "-f")
    expected = []
    for rank in range(16):
        path = os.path.join(source, f"_dump_{rank}")
        with open(path, "rb") as file:
            whole = pickle.load(file)
        done = subprocess.run([PLAIN, path], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == key_order(whole), path
        for e in whole["entries"]:
            name = e["profiling_name"].split(":")[1].split(" ")[0]
            peer = e["profiling_name"].replace("->", " ").replace("<-", " ").split(" ")
            sizes = " -> ".join(", ".join("x".join(map(str, d)) for d in e[k])
                                for k in ("input_sizes", "output_sizes"))
            expected.append((rank, e["process_group"][0], FUNCS[name],
                             None if e["is_p2p"] else e["collective_seq_id"],
                             int(peer[2]) if e["is_p2p"] else None, count_of(name, e),
                             DTYPES[e["input_dtypes"][0]], e["time_created_ns"], int(e["thread_id"]),
                             STATES[e["state"]], e["record_id"], e["timeout_ms"] * 1_000_000,
                             int(e["time_discovered_started_ns"] is not None),
                             int(e["time_discovered_completed_ns"] is not None), None, sizes))
        members = rows(db, "SELECT c.name, c.description, '[' || group_concat(m.rank, ', ') || ']' FROM "
                           "communicator c JOIN (SELECT * FROM comm_member ORDER BY comm_id, comm_rank) m "
                           "ON m.comm_id = c.id GROUP BY c.id "
                           f"HAVING max(m.rank = {rank}) ORDER BY c.name")
        assert members == sorted((n, g["desc"], g["ranks"]) for n, g in whole["pg_config"].items()), rank
        status = sorted((s["last_enqueued_collective"], s["last_completed_collective"])
                        for s in whole["pg_status"].values() if s["last_enqueued_collective"] >= 0)
        assert status == sorted(rows(db, "SELECT last_enqueued, last_completed FROM comm_progress WHERE "
                                         f"rank = {rank} AND last_enqueued IS NOT NULL")), rank
    got = rows(db, OPS)
    assert got == sorted(expected, key=lambda r: (r[0], r[10])), case
    assert rows(db, "SELECT count(*) FROM rank WHERE process_id IS NOT NULL") == [(16,)]
    print(f"{case}: {len(got)} entries of 16 ranks, every field as Python reads it")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_made(folder)
        check_refused(folder)
        check_messages(folder)
        check_damaged(folder)
        check_behind(folder)
        check_bad_ranks(folder)
        check_hang(folder)
        if not os.path.isdir(DATA):
            print("no real dumps at hand: those checks are skipped")
            return 0
        for case in ("gpu_error_1st", "lock_gil_1st"):
            check_real(folder, case)
            check_real_hang(folder, case)
    return 0


if __name__ == "__main__":
    sys.exit(main())
