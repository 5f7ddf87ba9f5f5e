#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nsight Systems exports of every shape, made here: what is missing is not recorded, what is wrong is counted,
what is hostile does nothing, and what is cut off is read as far as it goes."""
import glob
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

from lib_merged import rows
from lib_nsys import (COMM_ID, EPOCH, KERNELS, OLD_KERNEL, STEPS, base, events, global_pid, made, payload, table)

LAGGARD = os.environ["LAGGARD"]


def run(*args, code=0):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done)
    return done


def merge(folder, *inputs, more=(), code=0):
    db = os.path.join(folder, "out.db")
    done = run("merge", *inputs, "-o", db, "-f", *more, code=code)
    if done.returncode == 2:
        assert len(done.stderr.splitlines()) == 1, done
        return done.stderr
    return db


def findings(db):
    return "\n".join(text for (text,) in rows(db, "SELECT text FROM finding"))


def breakdown(db):
    return json.loads(run("report", "breakdown", db, "--format", "json").stdout)["rows"]


def path_of(folder, name="made.sqlite"):
    return os.path.join(folder, name)


def check_payloads(folder):
    """What NCCL's annotations say is what the trace says: communicator, members, bytes, order."""
    path = path_of(folder)
    made(path).close()
    db = merge(folder, path)
    assert rows(db, "SELECT nccl_hash, n_ranks FROM communicator") == [(COMM_ID - (1 << 64), 2)]
    assert rows(db, "SELECT comm_rank, rank FROM comm_member ORDER BY 1") == [(0, 0), (1, 1)]
    got = rows(db, "SELECT rank, func, bytes, count, datatype, sources, launch_id IS NULL FROM nccl_op")
    assert len(got) == 2 * STEPS and {g[1:] for g in got} == {(1, 4096, 1024, 7, 2, 0)}, got[:3]
    linked = rows(db, "SELECT count(DISTINCT l.gpu_event_id) FROM nccl_op o JOIN nccl_launch l ON l.id = o.launch_id")
    assert linked == [(2 * STEPS,)], linked
    (row,) = json.loads(run("report", "collectives", db, "--format", "json").stdout)["rows"]
    assert (row["function"], row["count"], row["complete"], row["bytes"]) == ("all_reduce", STEPS, STEPS, 4096)
    # Rank 1 comes 50 us late each time.
    assert row["wait_ns"] == STEPS * 50_000, row
    for r in breakdown(db):
        assert r["compute_ns"] == STEPS * KERNELS * 90_000 and r["comm_ns"] == STEPS * (300_000 - 50_000 * r["rank"])
    assert rows(db, f"SELECT min(raw_start_ns) - {EPOCH} FROM gpu_event") == [(1_000_000,)]
    assert rows(db, "SELECT DISTINCT s.value FROM api_call a JOIN string s ON s.id = a.name_id") == [("cudaLaunchKernel",)]
    assert rows(db, "SELECT argv, rank FROM process ORDER BY rank") == [("train50", 0), ("train51", 1)]
    assert json.loads(run("report", "steps", db, "--format", "json", code=(0, 1)).stdout)["rows"], "no steps"
    # As JSON, and as hexadecimal text, the same.
    for column, convert in (("jsonText TEXT", as_json), ("binaryData TEXT", lambda b: b.hex())):
        connection = made(path)
        old = connection.execute("SELECT * FROM NVTX_EVENTS").fetchall()
        connection.execute("DROP TABLE NVTX_EVENTS")
        table(connection, "NVTX_EVENTS", ("start", "end", "eventType", "globalTid", "textId", "text TEXT",
                                          "domainId", column),
              [(*r[:7], convert(r[7]) if r[7] else None) for r in old])
        connection.commit()
        db = merge(folder, path)
        assert sorted(rows(db, "SELECT rank, func, bytes, count, datatype, sources, launch_id IS NULL"
                               " FROM nccl_op")) == sorted(got), column


def as_json(blob):
    schema = struct.unpack_from("<Q", blob, 8)[0]
    comm, second = struct.unpack_from("<QQ", blob, 32)
    if schema == 1:
        ranks, rank = struct.unpack_from("<ii", blob, 40)
        return json.dumps({"payload": {"NCCL communicator ID": comm, "No. of ranks": ranks, "Rank": rank}})
    return json.dumps({"NCCL communicator ID": str(comm), "Message size [bytes]": second})


def check_groups(folder):
    """Sends and receives between GroupStart and GroupEnd belong to the kernel launched at its end."""
    path, pids = path_of(folder), (50, 51)
    connection = base(path, pids)
    kernels, calls, notes = [], [], []
    for rank, pid in enumerate(pids):
        thread = global_pid(pid) | pid
        notes.append((1, None, 75, thread, 8, 7, None))
        notes.append((2, 3, 59, thread, 9, 7, payload(1, struct.pack("<Qiii4x", 5, 2, rank, rank))))
        for i in range(STEPS):
            at = 1_000_000 * (i + 1)
            kernels.append((at + 50_000 + 10_000 * rank, at + 90_000, rank, 1, 9, 10 + i, global_pid(pid), 14, 14,
                            1, 1, 1, 64, 1, 1))
            calls.append((at + 4000, at + 5000, thread, 10 + i, 5, 0, 0))
            notes.append((at, at + 100, 59, thread, 10, 7, None))
            for name, start in ((12, at + 200), (13, at + 400)):
                notes.append((start, start + 100, 59, thread, name, 7,
                              payload(3, struct.pack("<QQi4x", 5, 2048, 1 - rank))))
            notes.append((at + 3000, at + 6000, 59, thread, 11, 7, None))
    table(connection, "CUPTI_ACTIVITY_KIND_KERNEL", OLD_KERNEL, kernels)
    table(connection, "CUPTI_ACTIVITY_KIND_RUNTIME",
          ("start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"), calls)
    table(connection, "NVTX_EVENTS", ("start", "end", "eventType", "globalTid", "textId", "domainId",
                                      "binaryData BLOB"), notes)
    from lib_nsys import SCHEMA_ENTRIES
    table(connection, "NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "schemaId", "idx", "type", "name TEXT", "offset"),
          SCHEMA_ENTRIES)
    connection.commit()
    db = merge(folder, path)
    ops = rows(db, "SELECT o.rank, o.func, o.peer, o.bytes, l.n_ops, l.gpu_event_id IS NOT NULL FROM nccl_op o"
                   " JOIN nccl_launch l ON l.id = o.launch_id")
    assert len(ops) == 4 * STEPS, len(ops)
    assert set(ops) == {(r, f, 1 - r, 2048, 2, 1) for r in (0, 1) for f in (9, 10)}, set(ops)
    assert rows(db, "SELECT count(*) FROM instance WHERE src != dst") == [(2 * STEPS,)]


def check_missing(folder):
    """Without annotations, strings, processes, launch configurations: what is there is used."""
    path = path_of(folder)
    made(path, payloads=False).close()
    db = merge(folder, path)
    assert rows(db, "SELECT count(*), min(sources), max(sources) FROM nccl_op") == [(2 * STEPS, 16, 16)]
    assert "without a communicator" in findings(db) and "does not tell its rank" in findings(db)
    connection = made(path, payloads=False, strings=False)
    db = merge(folder, path)
    assert "no table of strings" in findings(db)
    assert all(r["compute_ns"] > 0 and r["comm_ns"] == 0 for r in breakdown(db))
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX")
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN contextId")
    connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME")
    connection.execute("DROP TABLE TARGET_INFO_SESSION_START_TIME")
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT count(*) FROM launch_config") == [(0,)]
    assert "no wall-clock time" in findings(db)
    # Nothing in it, and something else altogether.
    base(path).close()
    assert "without any CUDA or NVTX event" in merge(folder, path, code=2)
    os.remove(path)
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (a)")
    assert "not an export of Nsight Systems" in merge(folder, path, code=2)


def check_ranks(folder):
    """One process takes the rank of the environment, the launcher nearest to it first; several do not."""
    path, env = path_of(folder), (("SLURM_PROCID", 9), ("RANK", 3), ("WORLD_SIZE", 8))
    made(path, pids=(50,), env=env).close()
    db = merge(folder, path)
    assert rows(db, "SELECT rank, world_size, rank_source FROM process") == [(3, 8, "RANK")]
    made(path, pids=(50,), env=(("RANK", 9), ("WORLD_SIZE", 8))).close()
    db = merge(folder, path)
    assert rows(db, "SELECT rank, world_size FROM process") == [(9, None)]
    assert "rank 9 of 8 cannot be" in findings(db)
    made(path, env=env).close()
    db = merge(folder, path)
    assert rows(db, "SELECT rank FROM process ORDER BY 1") == [(0,), (1,)]
    assert "RANK of the captured environment is not theirs" in findings(db)
    # In the order of NCCL's ranks where they are known, else of the GPUs, of which each process may see but one.
    connection = made(path, pids=(51, 50))
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0")
    connection.commit()
    assert rows(merge(folder, path), "SELECT pid FROM process ORDER BY rank") == [(51,), (50,)]
    connection.execute("DROP TABLE NVTX_EVENTS")
    connection.commit()
    assert rows(merge(folder, path), "SELECT pid FROM process ORDER BY rank") == [(50,), (51,)]
    table(connection, "TARGET_INFO_GPU", ("id", "name TEXT", "smCount", "uuid TEXT"),
          [(4, "GPU", 132, "uuid4"), (5, "GPU", 132, "uuid5")])
    table(connection, "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"), [(4, 0, 51), (5, 0, 50)])
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT pid FROM process ORDER BY rank") == [(51,), (50,)]
    assert rows(db, "SELECT rank, device, uuid, sm_count FROM device ORDER BY 1") == [(0, 0, "uuid4", 132),
                                                                                      (1, 0, "uuid5", 132)]
    paths = []
    for rank in (1, 0):
        paths.append(path_of(folder, f"node_rank{rank}.sqlite"))
        made(paths[-1], pids=(50 + rank,), host=f"node{rank}").close()
    db = merge(folder, *paths)
    assert rows(db, "SELECT rank, pid, rank_source FROM process ORDER BY 1") == [(0, 50, "file name"),
                                                                                 (1, 51, "file name")]
    # And as a folder of them, beside reports that have not been exported.
    with open(path_of(folder, "node2.nsys-rep"), "wb") as file:
        file.write(b"NVIDIA Tegra Profiler Report 2026@2@1\n" + bytes(4096))
    os.remove(path)
    db = merge(folder, folder)
    assert rows(db, "SELECT count(*) FROM rank") == [(2,)]
    assert "nsys export --type sqlite" in findings(db)
    assert "nsys export --type sqlite" in merge(folder, path_of(folder, "node2.nsys-rep"), code=2)
    for odd in (b"", b"of a version to come"):
        with open(path_of(folder, "odd.nsys-rep"), "wb") as file:
            file.write(odd)
        assert "nsys export --type sqlite" in merge(folder, path_of(folder, "odd.nsys-rep"), code=2)
    # What laggard merged is no input, and an input is no output.
    assert "merged by laggard already" in merge(folder, shutil.copy(db, path_of(folder, "m.sqlite")), code=2)
    kept = open(paths[0], "rb").read()
    done = run("merge", paths[1], "-f", "-o", paths[0], code=2)
    assert "not overwritten" in done.stderr and open(paths[0], "rb").read() == kept, done
    for leftover in glob.glob(path_of(folder, "*node*")) + [path_of(folder, "m.sqlite")]:
        os.remove(leftover)


def check_graphs(folder):
    path = path_of(folder)
    connection = base(path, (50,))
    table(connection, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
          ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId"),
          [(1000 * i, 1000 * i + 900, 0, 1, 7, i, global_pid(50), 42) for i in range(1, 6)])
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT DISTINCT s.value, g.graph_id FROM gpu_event g JOIN kernel_name k ON k.name_id = g.name_id"
                    " JOIN string s ON s.id = k.full_id") == [("CUDA graph 42", 42)]
    assert breakdown(db)[0]["busy_ns"] == 5 * 900
    assert "the kernels inside are not recorded" in findings(db)


def check_events(folder):
    """Recordings of events get their call's time; waits say what for."""
    path = path_of(folder)
    connection = made(path, pids=(50,))
    table(connection, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
          ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType", "eventId",
           "eventSyncId"),
          [(960_000, 961_000, 0, 1, 13, 900, global_pid(50), 2, 77, 5),
           (970_000, 999_000, 0, 1, 4294967295, 901, global_pid(50), 4, 4294967295, 0),
           (970_000, 999_000, 0, 1, 7, 902, global_pid(50), 99, 1, 0)])
    table(connection, "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
          ("deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId"),
          [(0, 1, 7, 101, global_pid(50), 77, 5), (0, 1, 7, 99999, global_pid(50), 78, 6)])
    connection.commit()
    db = merge(folder, path)
    got = rows(db, f"SELECT kind, stream, event_id, correlation, raw_start_ns - {EPOCH} FROM gpu_sync ORDER BY 1")
    assert got == [(1, 7, 77, 101, 950_000), (2, 13, 77, 900, 960_000), (5, None, None, 901, 970_000)], got


def check_one_process(folder):
    """A process that drives two GPUs is one rank; what each of them does is a communicator's of its own."""
    path = path_of(folder)
    connection = made(path, payloads=False)
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = correlationId + 1000 * deviceId,"
                       f" globalPid = {global_pid(50)}")
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = correlationId + 1000"
                       f" WHERE globalTid / 16777216 = {global_pid(51)} / 16777216")
    connection.execute(f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = {global_pid(50)} | globalTid % 16777216")
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT rank, count(*) FROM device GROUP BY 1") == [(0, 2)]
    assert rows(db, "SELECT comm_id, count(*) FROM nccl_op GROUP BY 1") == [(1, STEPS), (2, STEPS)]
    assert rows(db, "SELECT count(*) FROM gpu_event WHERE api_id IS NULL OR (kind = 0 AND launch_id IS NULL AND"
                    " stream = 13)") == [(0,)]


def check_wrong_values(folder):
    path = path_of(folder)
    connection = made(path, pids=(50,))
    connection.executemany(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * len(OLD_KERNEL))})",
        [(start, end, 0, 1, 7, 5000 + i, global_pid(50), 1, 2, 1, 1, 1, 1, 1, 1) for i, (start, end) in enumerate((
            ("soon", 5), (None, 5), (b"\0", 5), (0, 0), (5_000_000, 4_000_000), (-(1 << 62), 5), (1 << 62, (1 << 62) + 5),
            (2_000_000, (1 << 63) - 1), (9.5, 10)))])
    # Text of digits and whole reals are numbers, and a negative device or count is nothing to fall over.
    connection.execute('UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET "correlationId" = CAST(correlationId AS TEXT)')
    connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                       f"(30000000.0, 30001000, -5, -1, -7, -1, {global_pid(50)}, 'x', -1, -3, 1, 1, 1, 1, 1)")
    connection.commit()
    db = merge(folder, path)
    assert "4 events without a usable time left out" in findings(db), findings(db)
    reasons = dict(rows(db, "SELECT reason, count(*) FROM quarantine GROUP BY 1"))
    assert sum(reasons.values()) == 5 and reasons["no start time"] == 1, reasons
    want = STEPS * (KERNELS + 1) + 1
    assert rows(db, "SELECT count(*) FROM gpu_event") == [(want,)]
    assert rows(db, "SELECT count(*) FROM gpu_event WHERE api_id IS NOT NULL") == [(want - 1,)]
    assert rows(db, "SELECT status FROM source") == [("damaged",)]


def check_losses(folder):
    path = path_of(folder)
    connection = made(path, pids=(50,))
    table(connection, "DIAGNOSTIC_EVENT", ("timestamp", "text TEXT", "globalPid", "severity"),
          [(5, "Number of CUDA events collected: 12.", global_pid(50), 1),
           (6, "Not all CUDA events might have been collected.", global_pid(50), 2),
           (7, "CUPTI dropped 17 records", global_pid(50), 3)])
    table(connection, "OSRT_API", ("start", "end"), [(1, 2)] * 9)
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT reason, sum(count) FROM loss GROUP BY 1") == [("cupti_dropped", 18)]
    assert "9 calls of the operating system" in findings(db) and "dropped 17" in findings(db)


def check_uncounted_losses(folder):
    """A number in a product's name is no count: how many were lost is not said, and that is."""
    path = path_of(folder)
    connection = made(path, pids=(50,))
    table(connection, "DIAGNOSTIC_EVENT", ("timestamp", "text TEXT", "globalPid", "severity"),
          [(5, "CUDA 12 ring buffer overflow", global_pid(50), 2), (6, "CUPTI dropped 17 records", global_pid(50), 2)])
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT count FROM loss ORDER BY count") == [(1,), (17,)], rows(db, "SELECT * FROM loss")
    assert findings(db).count("counted as one") == 1, findings(db)


def check_hostile(folder):
    """Views, triggers, virtual tables and computed columns in the tables' places do nothing at all."""
    path = path_of(folder)
    connection = made(path, pids=(50,))
    want = rows(merge(folder, path), "SELECT count(*) FROM gpu_event")
    for name in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "OSRT_API"):
        connection.execute(f"CREATE VIEW {name} AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1"
                           " FROM n) SELECT start, start AS \"end\" FROM n")
    connection.execute("CREATE VIRTUAL TABLE DIAGNOSTIC_EVENT USING fts4(text)")
    connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (x INTEGER, start INTEGER AS"
                       " (length(hex(zeroblob(400000000)))), \"end\" INTEGER)")
    connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE (x) VALUES (1)")
    connection.execute("CREATE TABLE \"CUPTI_ACTIVITY_KIND_OVERHEAD\" (start INTEGER PRIMARY KEY) WITHOUT ROWID")
    connection.commit()
    began = time.monotonic()
    db = merge(folder, path)
    assert time.monotonic() - began < 20
    assert rows(db, "SELECT count(*) FROM gpu_event") == want
    assert "CUPTI_ACTIVITY_KIND_OVERHEAD is damaged" in findings(db)
    # A table that was refused is not one that was not recorded.
    for name, what in (("CUPTI_ACTIVITY_KIND_MEMCPY", "a view"), ("OSRT_API", "a view"),
                       ("DIAGNOSTIC_EVENT", "a virtual table")):
        assert findings(db).count(f"{name} is no table but {what}: not read") == 1, (name, findings(db))
    # A long value is damage of its table; the rows on both sides of it are read.
    connection = made(path, pids=(50,))
    connection.execute("UPDATE StringIds SET value = zeroblob(5000000) WHERE id = 1")
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = zeroblob(3000000) WHERE rowid = 7")
    connection.commit()
    db = merge(folder, path)
    assert rows(db, "SELECT count(*) FROM gpu_event") == [(want[0][0] - 1,)]
    assert "table CUPTI_ACTIVITY_KIND_KERNEL is damaged: 39 rows" in findings(db), findings(db)


def check_wal(folder):
    """A database that was left in WAL mode, with and without what belongs beside it."""
    path = path_of(folder)
    connection = made(path, pids=(50,))
    want = rows(merge(folder, path), "SELECT count(*) FROM gpu_event")
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    connection.commit()
    assert os.path.getsize(path + "-wal") > 0
    before = sorted(os.listdir(folder))
    assert rows(merge(folder, path), "SELECT count(*) FROM gpu_event") == want
    assert sorted(os.listdir(folder)) == before
    copy = shutil.copy(path, path_of(folder, "copy.sqlite"))
    open(copy + "-wal", "wb").close()
    assert rows(merge(folder, copy), "SELECT count(*) FROM gpu_event") == want
    connection.close()
    for leftover in (copy, copy + "-wal"):
        os.remove(leftover)


def check_cut(folder):
    """At many lengths: one line and exit 2, or a trace of what is left which says that it is cut off."""
    path, whole = path_of(folder, "cut.sqlite"), path_of(folder)
    made(whole).close()
    data = open(whole, "rb").read()
    n_read, most = 0, 0
    for cut in sorted({*range(0, len(data), len(data) // 40 + 1), 1, 15, 16, 99, 100, 101, 4095, 4096, 4097,
                       len(data) - 1, len(data) - 4096}):
        with open(path, "wb") as file:
            file.write(data[:cut])
        got = merge(folder, path, code=(0, 2))
        if got.endswith(".db"):
            n_read += 1
            most = max(most, rows(got, "SELECT count(*) FROM gpu_event")[0][0])
            assert rows(got, "SELECT status FROM source")[0] == ("damaged",), cut
            assert "cut off or damaged" in findings(got), cut
    assert n_read >= 5 and most == 2 * STEPS * (KERNELS + 1), (n_read, most)
    # A page in the middle that says nothing.
    for page in range(1, len(data) // 4096):
        with open(path, "wb") as file:
            file.write(data[: 4096 * page] + bytes(4096) + data[4096 * (page + 1):])
        merge(folder, path, code=(0, 2))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_payloads, check_groups, check_missing, check_ranks, check_graphs, check_events, check_one_process,
                      check_wrong_values, check_losses, check_uncounted_losses, check_hostile, check_wal, check_cut):
            check(folder)
    assert list(events(0))
    print("nsys_made: ok")


if __name__ == "__main__":
    sys.exit(main())
