#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real Nsight Systems exports through the program: the answers that are known of them are found, row by row
where nsys' own lists of the rows are at hand; one of them as two nodes whose clocks differ."""
import collections
import csv
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from lib_merged import rows

LAGGARD = os.environ["LAGGARD"]
DATA = os.path.join(os.environ.get("LAGGARD_TEST_DATA", ""), "nsys")

# ns: span, busy, compute, comm, mem.
MFU = [(299848812, 273817787, 253690832, 17172652, 2954303),
       (298661551, 267275916, 256095624, 8229100, 2951192)]


def run(*args, code=0, env=None):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (args, done)
    return done


def report(analysis, db, code=0):
    return json.loads(run("report", analysis, db, "--format", "json", code=code).stdout)


def merged(folder, name, *inputs):
    db = os.path.join(folder, name + ".db")
    run("merge", *inputs, "-o", db, "-f")
    return db


def check_mfu(folder):
    source = os.path.join(DATA, "mfu_2gpu_before.sqlite")
    db = merged(folder, "mfu", source)
    for rank, want in enumerate(MFU):
        (row,) = [r for r in report("breakdown", db)["rows"] if r["rank"] == rank]
        got = tuple(row[c] for c in ("span_ns", "busy_ns", "compute_ns", "comm_ns", "mem_ns"))
        assert got == want, (rank, got, want)
    # By the times as recorded: the device differs from the host's clock by less than what this decides.
    pairs = collections.defaultdict(dict)
    for seq, rank, start in rows(db, "SELECT o.instance_id, o.rank, g.raw_start_ns FROM nccl_op o"
                                     " JOIN nccl_launch l ON l.id = o.launch_id"
                                     " JOIN gpu_event g ON g.id = l.gpu_event_id"):
        pairs[seq][rank] = start
    last = collections.Counter(max(p, key=p.get) for p in pairs.values())
    assert len(pairs) == 33 and all(len(p) == 2 for p in pairs.values()), pairs
    assert last == {0: 11, 1: 22}, last
    # Correlation ids collide between the processes; each event has its own process's call.
    wrong = rows(db, "SELECT count(*) FROM gpu_event g JOIN api_call a ON a.id = g.api_id"
                     " WHERE a.rank != g.rank OR a.correlation != g.correlation")
    assert wrong == [(0,)], wrong
    with sqlite3.connect(source) as connection:
        collisions = connection.execute(
            "SELECT count(*) FROM (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
            " GROUP BY 1 HAVING count(DISTINCT globalTid / 16777216) > 1)").fetchone()[0]
        want = connection.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (SELECT 1 FROM"
            " CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId AND"
            " r.globalTid / 16777216 = k.globalPid / 16777216)").fetchone()[0]
    got = rows(db, "SELECT count(*) FROM gpu_event WHERE kind = 0 AND api_id IS NOT NULL")
    assert collisions > 0 and got == [(want,)], (collisions, got, want)
    assert rows(db, "SELECT count(DISTINCT domain_id) FROM nvtx_range")[0][0] >= 1
    operators = merged(folder, "ops", source)
    run("merge", source, "--cpu-ops", "-f", "-o", operators)
    (n,), (less,) = (rows(d, "SELECT count(*) FROM nvtx_range")[0] for d in (operators, db))
    assert n == 19118 and less == 462, (n, less)
    return db


def table(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pairs_of(listed):
    """nsys' lists have a row for each beginning and one for each end."""
    for at, row in enumerate(listed):
        if row["Event Type"] == "Enter":
            yield row, int(row["Timestamp (ns)"]), int(float(row["_matching_timestamp"])), at


def check_cloverleaf(folder):
    db = merged(folder, "clover", os.path.join(DATA, "cloverleaf.sqlite"))
    with sqlite3.connect(os.path.join(DATA, "cloverleaf.sqlite")) as connection:
        base = connection.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0]
        detail = connection.execute(
            'SELECT start, "end", deviceId, contextId, streamId, correlationId, gridX, gridY, gridZ, blockX,'
            " blockY, blockZ, registersPerThread FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
        copies = connection.execute(
            'SELECT start, "end", deviceId, contextId, streamId, correlationId, bytes, copyKind'
            " FROM CUPTI_ACTIVITY_KIND_MEMCPY").fetchall()
    got = rows(db, f"SELECT g.raw_start_ns - {base}, g.raw_end_ns - {base}, g.device, g.context, g.stream,"
                   " g.correlation, c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z, c.registers"
                   " FROM gpu_event g JOIN launch_config c ON c.id = g.config_id WHERE g.kind = 0")
    assert len(got) == 1312 and sorted(got) == sorted(detail)
    got = rows(db, f"SELECT raw_start_ns - {base}, raw_end_ns - {base}, device, context, stream, correlation,"
                   " bytes, copy_kind FROM gpu_event WHERE kind = 1")
    assert len(got) == 279 and sorted(got) == sorted(copies)
    # Against what nsys itself lists of the same report.
    got = rows(db, f"SELECT g.raw_start_ns - {base}, g.raw_end_ns - {base}, g.stream, g.kind, g.bytes,"
                   " (SELECT value FROM string s WHERE s.id = k.short_id) FROM gpu_event g"
                   " LEFT JOIN kernel_name k ON k.name_id = g.name_id")
    mine = sorted((start, end, stream, "kernel" if kind == 0 else "copy", bytes_,
                   name.split("::")[-1] if kind == 0 else None) for start, end, stream, kind, bytes_, name in got)
    theirs = sorted((start, end, int(row["streamId"]), "kernel" if row["type"] == "kernel" else "copy",
                     int(float(row["bytes"])) if row["bytes"] else None,
                     row["Name"] if row["type"] == "kernel" else None)
                    for row, start, end, _ in pairs_of(table("cloverleaf_gpu_trace.csv")))
    assert len(mine) == 1591 and mine == theirs, [p for p in zip(mine, theirs) if p[0] != p[1]][:3]
    got = rows(db, f"SELECT a.raw_start_ns - {base}, a.raw_end_ns - {base}, a.tid, s.value FROM api_call a"
                   " JOIN string s ON s.id = a.name_id")
    theirs = sorted((start, end, int(row["Thread"]), re.sub(r"_v\d{4,}$", "", row["Name"]))
                    for row, start, end, _ in pairs_of(table("cloverleaf-cuda_api_trace.csv")))
    assert len(got) == 3048 and sorted(got) == theirs
    (row,) = report("breakdown", db)["rows"]
    assert (row["busy_ns"], row["span_ns"]) == (303795463, 342407810), row
    (name,) = rows(db, "SELECT name FROM device")[0]
    assert name == "NVIDIA A100-SXM4-80GB", name
    assert rows(db, "SELECT rank, rank_source FROM process") == [(0, "PALS_RANKID")]


def check_small(folder):
    db = merged(folder, "mock", os.path.join(DATA, "mock.sqlite"))
    assert rows(db, "SELECT kind, count(*) FROM gpu_event GROUP BY 1") == [(0, 2), (1, 1)]
    db = merged(folder, "healthy", os.path.join(DATA, "healthy_1pct.sqlite"))
    (row,) = report("breakdown", db)["rows"]
    assert (row["n_gpu_events"], row["busy_ns"], row["span_ns"]) == (400, 400000000, 403990000), row
    assert rows(db, "SELECT count(*) FROM gpu_event WHERE api_id IS NULL") == [(0,)]
    assert any("no wall-clock time" in note for (note,) in rows(db, "SELECT text FROM finding"))


def check_containers(folder):
    """The same inside gzip and an archive, and with files beside it that an open database would have."""
    source = os.path.join(DATA, "mfu_2gpu_before.sqlite")
    packed = os.path.join(folder, "report.sqlite.gz")
    with open(source, "rb") as plain, gzip.open(packed, "wb", 1) as out:
        shutil.copyfileobj(plain, out)
    scratch = os.path.join(folder, "scratch")
    os.mkdir(scratch)
    db = os.path.join(folder, "packed.db")
    run("merge", packed, "-o", db, env={"TMPDIR": scratch})
    assert not os.listdir(scratch)
    assert tuple(report("breakdown", db)["rows"][0][c] for c in ("span_ns", "busy_ns")) == MFU[0][:2]
    done = run("merge", packed, "-o", db, "-f", code=2, env={"TMPDIR": "/nowhere"})
    assert len(done.stderr.splitlines()) == 1 and "/nowhere" in done.stderr, done
    copy = os.path.join(folder, "beside.sqlite")
    shutil.copy(source, copy)
    for ending, content in (("-wal", b""), ("-journal", b"\xd9\xd5\x05\xf9 \xa1c\xd7" + b"x" * 600), ("-shm", b"x")):
        with open(copy + ending, "wb") as file:
            file.write(content)
    db = merged(folder, "beside", copy)
    assert tuple(report("breakdown", db)["rows"][0][c] for c in ("span_ns", "busy_ns")) == MFU[0][:2]


def as_node(source, path, name, shift_ns, function):
    """A copy of a report as it would come from another node, in which NCCL's kernels are `function`."""
    shutil.copy(source, path)
    os.chmod(path, 0o644)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = ? WHERE name = 'Hostname'", (name,))
        connection.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", (shift_ns,))
        connection.execute("UPDATE StringIds SET value = replace(value, 'ncclDevKernel_SendRecv', ?)",
                           (f"ncclDevKernel_{function}",))


def check_two_nodes(folder):
    """One job on two nodes, the second's clock 3 ms ahead. All-reduces end together and tell; exchanges
    between unknown peers do not, and then nothing is claimed."""
    source, ahead = os.path.join(DATA, "mfu_2gpu_before.sqlite"), 3_000_000
    paths = [os.path.join(folder, f"node{i}.sqlite") for i in (0, 1)]
    for function in ("AllReduce_Sum_bf16_RING_LL", "SendRecv"):
        as_node(source, paths[0], "node0", 0, function)
        as_node(source, paths[1], "node1", ahead, function)
        db = merged(folder, "nodes", *paths)
        assert rows(db, "SELECT count(*) FROM host") == [(2,)]
        assert rows(db, "SELECT rank FROM rank ORDER BY 1") == [(0,), (1,), (2,), (3,)]
        clock = {row["host"]: row for row in report("clock", db)["rows"] if row["device"] is None}
        one, other = clock["node0"], clock["node1"]
        if function == "SendRecv":
            assert other["uncertainty_ns"] is None, clock
        else:
            error = abs(abs(other["offset_ns"] - one["offset_ns"]) - ahead)
            assert error <= other["uncertainty_ns"] < 500_000, clock
        breakdown = {row["rank"]: row for row in report("breakdown", db)["rows"]}
        for rank in range(4):
            assert breakdown[rank]["compute_ns"] == MFU[rank % 2][2], (rank, breakdown)
            assert breakdown[rank]["comm_ns"] == MFU[rank % 2][3], (rank, breakdown)


def main():
    with tempfile.TemporaryDirectory() as folder:
        if not os.path.isdir(DATA):
            print("skipped: no real traces in LAGGARD_TEST_DATA")
            return 77
        check_mfu(folder)
        check_cloverleaf(folder)
        check_small(folder)
        check_containers(folder)
        check_two_nodes(folder)
    print("nsys: ok")


if __name__ == "__main__":
    sys.exit(main())
