#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard merge --append: late ranks added to a trace give what merging all at once gives, old rows stay as they
are, whatever goes wrong leaves the old trace, and adding one rank costs little."""
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from lib_merged import BUILD, LAGGARD, need, rows

DATA = os.environ.get("LAGGARD_TEST_DATA", "")
EVENTS = {"gpu_event": "start_ns", "api_call": "start_ns", "gpu_sync": "start_ns", "nvtx_range": "start_ns",
          "nccl_op": "enter_ns", "nccl_launch": "start_ns"}
IDS = {"name_id": "(SELECT value FROM string WHERE id = t.name_id)",
       "domain_id": "(SELECT value FROM string WHERE id = t.domain_id)",
       "category_id": "(SELECT value FROM string WHERE id = t.category_id)",
       "api_id": "(SELECT raw_start_ns FROM api_call WHERE id = t.api_id)",
       "gpu_event_id": "(SELECT raw_start_ns FROM gpu_event WHERE id = t.gpu_event_id)",
       "launch_id": "(SELECT raw_start_ns FROM nccl_launch WHERE id = t.launch_id)",
       "config_id": "(SELECT grid_x || ' ' || block_x || ' ' || registers FROM launch_config WHERE id = t.config_id)",
       "comm_id": "(SELECT hash FROM communicator WHERE id = t.comm_id)",
       "instance_id": "(SELECT seq || ' ' || func || ' ' || ifnull(src, '') || ' ' || ifnull(dst, '') FROM instance "
                      "WHERE id = t.instance_id)"}
COMMON = ("start_ns", "end_ns", "enter_ns", "leave_ns")


def laggard(*args, code=0):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, (args, done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done


def refused(*args, say):
    done = laggard(*args, code=2)
    assert done.stderr.count("\n") == 1 and say in done.stderr, (args, done.stderr)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_run(folder, *options):
    subprocess.run([BUILD / "mktrace", "--out", folder, "--seed", "5", "--pp", "2", "--dp", "4", "--microbatches", "4",
                    "--steps", "6", *map(str, options)], check=True, stdout=subprocess.DEVNULL)
    (folder / "truth.json").unlink()
    return sorted(folder.glob("*.lag"))


def columns(db, table):
    return [row[1] for row in rows(db, f"PRAGMA table_info({table})")]


def events(db, table):
    """Rows without ids and corrected times."""
    names = [IDS.get(c, f"t.{c}") for c in columns(db, table) if c not in ("id", *COMMON)]
    return sorted(rows(db, f"SELECT {', '.join(names)} FROM {table} AS t"), key=repr)


def corrected(db, table):
    start = EVENTS[table]
    return {(rank, raw, n): at for rank, raw, at, n in rows(
        db, f"SELECT rank, raw_{start}, {start}, row_number() OVER (PARTITION BY rank, raw_{start} ORDER BY id) "
            f"FROM {table} WHERE {start} IS NOT NULL")}


def uncertainty(db):
    """The worst of each rank's device."""
    return dict(rows(db, "SELECT device_rank, max(uncertainty_ns) FROM clock_map WHERE device_rank IS NOT NULL GROUP BY 1"))


def facts(db):
    """What must be equal without regard to ids and clocks."""
    comm = IDS["comm_id"]
    found = {table: events(db, table) for table in EVENTS}
    for name, sql in {
        "instance": f"SELECT {comm}, func, seq, src, dst, bytes, datatype, n_members, n_recorded, n_started, n_finished, "
                    "flags, (SELECT group_concat(rank) FROM (SELECT rank FROM nccl_op WHERE instance_id = t.id "
                    "ORDER BY rank, func)) FROM instance AS t",
        "communicator": "SELECT hash, nccl_hash, n_ranks, (SELECT hash FROM communicator WHERE id = t.parent_id), name, "
                        "description FROM communicator AS t",
        "comm_member": f"SELECT {comm}, comm_rank, rank, recorded FROM comm_member AS t",
        "rank": "SELECT r.rank, r.device, h.name, p.pid, p.world_size, p.clean_exit, p.argv, h.boot_id FROM rank AS r "
                "LEFT JOIN process AS p ON p.id = r.process_id LEFT JOIN host AS h ON h.id = r.host_id",
        "finding": "SELECT severity, kind, rank, seq, count, text FROM finding WHERE kind NOT LIKE 'clock%'",
        "kernel_name": "SELECT s.value, f.value, b.value, n.class FROM kernel_name AS n JOIN string AS s ON s.id = n.name_id "
                       "JOIN string AS f ON f.id = n.full_id JOIN string AS b ON b.id = n.short_id",
        "device": "SELECT * FROM device", "thread": "SELECT * FROM thread",
        "samples": "SELECT p.rank, c.realtime_ns, c.cupti_ns FROM clock_sample AS c JOIN process AS p ON p.id = c.process_id",
        "pyramid_lane": "SELECT rank, device, context, stream, n_events FROM pyramid_lane",
        "meta": "SELECT key, value FROM meta WHERE key IN ('world_size', 'run_id', 'clock_method')",
    }.items():
        found[name] = sorted(rows(db, sql), key=repr)
    return found


def to_clock_of(whole, late):
    """The late trace's common clock is its reference host's: from it to the other trace's, by that one's map."""
    name = rows(late, "SELECT name FROM host WHERE id = (SELECT value FROM meta WHERE key = 'clock_reference_host')")[0][0]
    maps = rows(whole, "SELECT m.ref_ns, m.offset_ns, m.drift_ppm FROM clock_map AS m JOIN host AS h ON h.id = m.host_id "
                       f"WHERE m.device_rank IS NULL AND h.name = '{name}'")
    assert len(maps) == 1, maps
    ref, offset, drift = maps[0]
    return lambda at: at + offset + drift * 1e-6 * (at - ref)


def check_same(late, whole, what):
    assert rows(late, "PRAGMA integrity_check") == [("ok",)], what
    a, b = facts(late), facts(whole)
    for name in b:
        assert a[name] == b[name], (what, name, [r for r in a[name] if r not in b[name]][:3],
                                    [r for r in b[name] if r not in a[name]][:3])
    # Two common clocks may differ by what both say that they may be wrong.
    u, v = uncertainty(late), uncertainty(whole)
    convert = to_clock_of(whole, late)
    for table in EVENTS:
        x, y = corrected(late, table), corrected(whole, table)
        assert x.keys() == y.keys(), (what, table)
        for key, at in x.items():
            off = convert(at) - y[key]
            assert abs(off) <= u[key[0]] + v[key[0]], (what, table, key, off, u, v)
    # Who came last is said or left open, and never another one.
    last = f"SELECT {IDS['comm_id']}, func, seq, src, dst, last_rank FROM instance AS t WHERE last_rank IS NOT NULL"
    x, y = ({row[:5]: row[5] for row in rows(db, last)} for db in (late, whole))
    assert all(x[key] == y[key] for key in x.keys() & y.keys()), what
    for view in json.loads(laggard_diff(whole, late))["summary"]["rows"]:
        if view["view"] not in ("waits", "trust", "clock"):
            assert view["removed"] == view["added"] == 0, (what, view)
    for (name,) in rows(late, "SELECT name FROM sqlite_schema WHERE type = 'view'"):
        rows(late, f"SELECT * FROM {name} LIMIT 1")


def laggard_diff(a, b):
    done = subprocess.run([LAGGARD, "diff", a, b, "--format", "json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def check_old_rows_stay(before, after, ranks):
    for table in EVENTS:
        names = ", ".join(c for c in columns(before, table) if c != "instance_id")
        sql = f"SELECT {names} FROM {table} WHERE rank IN ({ranks}) ORDER BY id"
        assert rows(before, sql) == rows(after, sql), table
    sql = "SELECT * FROM clock_map WHERE host_id <= {} ORDER BY rowid"
    n = rows(before, "SELECT max(host_id) FROM clock_map")[0][0]
    assert set(rows(before, sql.format(n))) <= set(rows(after, sql.format(n)))


def check_late(tmp, name, groups, *options):
    """groups: indices of files, merged one after the other."""
    files = make_run(tmp / name, *options)
    whole, late, before = (tmp / f"{name}.{ending}.db" for ending in ("whole", "late", "before"))
    laggard("merge", "-q", "-o", whole, tmp / name)
    for i, group in enumerate(groups):
        paths = [files[k] for k in group]
        if i == 0:
            laggard("merge", "-q", "-o", late, *paths)
            continue
        shutil.copy(late, before)
        done = laggard("merge", "--append", late, *paths)
        assert f"{len(group)} of them added" in done.stderr, done.stderr
        check_old_rows_stay(before, late, ",".join(str(r) for (r,) in rows(before, "SELECT rank FROM rank WHERE process_id > 0")))
    check_same(late, whole, name)
    assert not list(tmp.glob(f"{name}.late.db.*"))
    return files, late


def check_refusals(tmp, files, late):
    kept = digest(late)
    refused("merge", "--append", late, files[7], say="rank 7 is in ")
    refused("merge", "--append", late, files[0].parent, say="is in ")
    refused("merge", "--append", late, late, say="is a merged trace")
    refused("merge", "--append", late, "-o", tmp / "x.db", files[7], say="--append")
    refused("merge", "--append", late, "-a", "none", files[7], say="--append")
    refused("merge", "--append", late, "--repair-order", files[7], say="--append")
    refused("merge", "--append", tmp / "none.db", files[7], say="none.db")
    refused("merge", "--append", files[0], files[7], say="not a merged trace")
    junk = tmp / "junk.lag"
    junk.write_bytes(b"junk")
    refused("merge", "--append", late, junk, say="junk.lag")
    other = make_run(tmp / "other", "--dp", "2")
    refused("merge", "--append", late, other[3], say="of a job of 4 ranks")
    part = tmp / "part.db"
    laggard("merge", "-q", "-o", part, *files[:7])

    def changed(name, *statements):
        path = tmp / name
        shutil.copy(part, path)
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return path

    refused("merge", "--append", changed("version.db", "PRAGMA user_version = 3"), files[7],
            say="version.db: made by a newer laggard (schema version 3; this one reads 2): use that one")
    refused("merge", "--append", changed("older.db", "PRAGMA user_version = 1"), files[7], say="merge again")
    refused("merge", "--append", changed("columns.db", "ALTER TABLE finding ADD COLUMN x"), files[7], say="merge again")
    refused("merge", "--append", changed("repaired.db", "UPDATE meta SET value = 'collective, order repaired' WHERE key = 'clock_method'"),
            files[7], say="was repaired")
    refused("merge", "--append", changed("holes.db", "DELETE FROM instance WHERE id = 5"), files[7], say="table instance")
    refused("merge", "--append", changed("member.db", "UPDATE nccl_op SET comm_id = 1000000"), files[7], say="table nccl_op")
    refused("merge", "--append", changed("run.db", "UPDATE meta SET value = 'y' WHERE key = 'run_id'",
                                         "UPDATE process SET first_ns = first_ns - 1000000000000, last_ns = last_ns - 1000000000000"),
            files[7], say="of run mktrace")
    assert digest(late) == kept and not list(tmp.glob("*.db.??????"))


def whole(db):
    return rows(db, "PRAGMA integrity_check") == [("ok",)] and \
        rows(db, "SELECT count(*) FROM rank WHERE process_id IS NOT NULL") == [(8,)]


def check_interrupted(tmp, files):
    before, part, n_cut = tmp / "before.db", tmp / "big.db", 0
    laggard("merge", "-q", "-o", before, *files[:7])
    kept = digest(before)
    for number in (signal.SIGKILL, signal.SIGINT):
        for delay in (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4):
            shutil.copy(before, part)
            with subprocess.Popen([LAGGARD, "merge", "--append", part, files[7]], stderr=subprocess.PIPE,
                                  text=True) as one:
                until = time.monotonic() + 20
                while one.poll() is None and not list(tmp.glob("big.db.*")) and time.monotonic() < until:
                    time.sleep(0.0005)
                time.sleep(delay)
                one.send_signal(number)
                _, said = one.communicate()
            if one.returncode == 0:
                break
            assert one.returncode == -number, (one.returncode, said)
            # It may come between the new name and the end: then all is there.
            added = digest(part) != kept
            n_cut += not added
            assert not added or whole(part), (number, delay)
            if number == signal.SIGINT:
                assert said.count("\n") == 1 and "interrupted" in said, said
                assert ("its result is complete" in said) == added, (said, added, delay)
                assert not list(tmp.glob("big.db.*")), delay
            for path in tmp.glob("big.db.*"):
                path.unlink()
    assert n_cut, "nothing was cut off half way"
    # And it can still be done.
    shutil.copy(before, part)
    laggard("merge", "-q", "--append", part, files[7])
    assert whole(part)


def cpu_of(*args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    laggard(*args)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def check_cost(tmp):
    files = make_run(tmp / "cost", "--steps", "60", "--per-host", "2")
    laggard("merge", "-q", "-o", tmp / "cost.db", *files[:7])
    one = cpu_of("merge", "-q", "--append", tmp / "cost.db", files[7])
    whole = cpu_of("merge", "-q", "-o", tmp / "cost.all.db", *files)
    print(f"one of 8 ranks: {one:.2f} s of CPU to add, {whole:.2f} s to merge all")
    assert one < 0.7 * whole, (one, whole)
    check_interrupted(tmp, files)


def check_real(tmp):
    dlrm = sorted(pathlib.Path(DATA).glob("kineto/dlrm/*rank*")) or sorted(pathlib.Path(DATA).glob("kineto/dlrm/*.json*"))
    if not DATA or len(dlrm) < 4:
        print("skipped: no LAGGARD_TEST_DATA with kineto/dlrm")
        return
    laggard("merge", "-q", "-o", tmp / "dlrm.whole.db", *dlrm)
    laggard("merge", "-q", "-o", tmp / "dlrm.db", *dlrm[:3])
    laggard("merge", "-q", "--append", tmp / "dlrm.db", dlrm[3])
    a, b = facts(tmp / "dlrm.db"), facts(tmp / "dlrm.whole.db")
    for name in ("gpu_event", "nccl_op", "instance", "comm_member", "rank"):
        assert a[name] == b[name], ("dlrm", name, [r for r in a[name] if r not in b[name]][:3],
                                    [r for r in b[name] if r not in a[name]][:3])


def main():
    need(BUILD / "mktrace")
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="laggard-append-"))
    try:
        files, late = check_late(tmp, "two", [range(6), (6, 7)], "--per-host", 2)
        check_late(tmp, "twice", [(0, 1, 2, 4, 6, 7), (3,), (5,)], "--per-host", 2)
        check_late(tmp, "newhosts", [range(1, 7), (7,), (0,)], "--per-host", 1)
        check_late(tmp, "onehost", [(0, 3), (1, 2, 4, 5), (6, 7)], "--per-host", 8)
        check_late(tmp, "first", [(4, 5, 6, 7), (0, 1, 2, 3)], "--per-host", 4)
        check_refusals(tmp, files, late)
        check_cost(tmp)
        check_real(tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


main()
sys.exit(0)
