#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of real jobs treated as hosts: each recording's clock is shifted by milliseconds, made to drift, and
some operations are dropped; alignment must bring every GPU event back to where it puts it in the untouched
recordings, within the uncertainty that it states for it. Where all ranks ran on one host, the clock as
recorded is the truth as well."""
import bisect
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
DATA = pathlib.Path(os.environ.get("LAGGARD_TEST_DATA", ""))
DLRM = DATA / "kineto" / "dlrm"
FLIGHT = DATA / "flight_recorder" / "gpu_error_1st"
PAIR = DATA / "nsys" / "mfu_2gpu_before.sqlite"
# Added offset (us) and drift of each rank (rank 0 is the reference and stays); each how manieth operation
# over ranks is dropped, 0 = none.
CASES = (
    ((0, 25_000, -38_000, 7), (0, 0, 0, 0), 0),
    ((0, -40_000, 12_345, 39_999), (0, 200e-6, -200e-6, 90e-6), 0),
    ((0, 40_000, -40_000, 123), (0, -200e-6, 150e-6, 200e-6), 3),
    ((0, -5, 31_000, -22_222), (0, 10e-6, -1e-6, 0), 4),
)


class Merged:
    def __init__(self, folder, files, dropped=0):
        out = folder / "run.db"
        done = subprocess.run([LAGGARD, "merge", "-q", "-f", "-o", out, *files], capture_output=True, text=True,
                              check=False)
        assert out.exists(), done.stderr
        db = sqlite3.connect(out)
        self.events, rows = {}, {}
        for rank, start, raw, name in db.execute(
                "SELECT g.rank, g.start_ns, g.raw_start_ns, s.value FROM gpu_event AS g"
                " LEFT JOIN string AS s ON s.id = g.name_id ORDER BY g.rank, g.raw_start_ns, g.id"):
            if not dropped or "nccl" not in (name or ""):  # some of those are not there
                self.events.setdefault(rank, []).append((start, raw))
        for rank, at, stated in db.execute("SELECT device_rank, from_ns, uncertainty_ns FROM clock_map"
                                           " WHERE device_rank IS NOT NULL ORDER BY from_ns"):
            rows.setdefault(rank, []).append((at, stated))
        self.rows = rows
        self.violations = int(db.execute("SELECT value FROM meta WHERE key = 'clock_violations'").fetchone()[0])
        self.basis = {b for (b,) in db.execute("SELECT basis FROM clock_map WHERE device_rank IS NULL")}
        db.close()
        out.unlink()

    def stated(self, rank, raw):
        rows = self.rows[rank]
        return rows[max(bisect.bisect_right(rows, (raw, float("inf"))) - 1, 0)][1]

    def worst(self, rank, wanted):
        """Largest distance of an event from where it should be, and what is stated there."""
        assert len(wanted) == len(self.events[rank]), (rank, len(wanted), len(self.events[rank]))
        found = []
        for (start, raw), want in zip(self.events[rank], wanted):
            stated = self.stated(rank, raw)
            assert stated is not None, (rank, raw)
            assert abs(start - want) <= stated, (rank, start - want, stated)
            found.append((abs(start - want), stated))
        return max(found)


def check(folder, name, files, write, limit_ns, one_host):
    """write(rank, path, offset_us, drift, drop) makes a touched recording."""
    for offsets, drifts, drop in CASES:
        plain, touched = [], []
        for rank in range(files):
            plain.append(folder / f"plain{rank}")
            touched.append(folder / f"touched{rank}")
            write(rank, plain[-1], 0, 0, 0)
            write(rank, touched[-1], offsets[rank], drifts[rank], drop)
        want, got = Merged(folder, plain, drop), Merged(folder, touched, drop)
        assert sorted(got.events) == sorted(want.events) == list(range(files)), sorted(got.events)
        assert got.violations == 0, got.violations
        for rank in got.events:
            far, stated = got.worst(rank, [start for start, _ in want.events[rank]])
            line = f"{name} rank {rank}: shifted by {offsets[rank]} us and {drifts[rank] * 1e6:.0f} ppm" + (
                f", each {drop}th operation dropped" if drop else "")
            if one_host:
                true, stated = got.worst(rank, [raw for _, raw in want.events[rank]])
                line += f", {true} ns from the host's own clock"
            print(f"{line}: within {far} ns of the untouched one, stated {stated} ns")
            # The shift itself is known exactly, so far less than the statement must remain.
            assert far <= limit_ns, (rank, far)
        yield got


def write_kineto(rank, path, offset_us, drift, drop):
    trace = json.loads(sorted(DLRM.iterdir())[rank].read_text(encoding="utf-8"))
    first = min(e["ts"] for e in trace["traceEvents"] if e.get("ph") == "X")
    nccl = [e for e in trace["traceEvents"] if e.get("ph") == "X" and "nccl" in e.get("name", "") and
            e.get("cat") == "kernel"]
    nccl.sort(key=lambda e: e["ts"])
    gone = {id(e) for e in nccl[drop - 1::drop]} if drop else set()
    trace["traceEvents"] = [e for e in trace["traceEvents"] if id(e) not in gone]
    for e in trace["traceEvents"]:
        if "ts" in e:
            e["ts"] += offset_us + drift * (e["ts"] - first)
    path.write_text(json.dumps(trace), encoding="utf-8")


def write_nsys(rank, path, offset_us, drift, drop):
    shutil.copyfile(PAIR, path)
    db = sqlite3.connect(path)
    pids = [p for (p,) in db.execute("SELECT DISTINCT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1")]
    tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    first = db.execute("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
    if drop:
        rows = [r for (r,) in db.execute(
            "SELECT k.rowid FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName"
            " WHERE s.value LIKE '%nccl%' AND k.globalPid = ? ORDER BY k.start", (pids[rank],))]
        db.executemany("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = ?", [(r,) for r in rows[drop - 1::drop]])
    for table in tables:
        columns = {r[1] for r in db.execute(f"PRAGMA table_info({table})")}
        if "globalPid" in columns:
            db.execute(f"DELETE FROM {table} WHERE globalPid <> ?", (pids[rank],))
        elif "globalTid" in columns:
            db.execute(f"DELETE FROM {table} WHERE globalTid / 16777216 <> ?", (pids[rank] // 16777216,))
        for column in {"start", "end", "timestamp"} & columns:
            db.execute(f"UPDATE {table} SET [{column}] = [{column}] + ? + CAST(round(? * ([{column}] - ?)) AS INTEGER)"
                       f" WHERE typeof([{column}]) = 'integer'", (offset_us * 1000, drift, first))
    db.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = value || ? WHERE name = 'Hostname'", (str(rank),))
    db.commit()
    db.close()


def check_flight(folder):
    """A watchdog that looks every now and then when operations ended: no end to build a clock on."""
    merged = Merged(folder, [FLIGHT])
    assert merged.basis == {"reference", "nothing"}, merged.basis
    print("flight recorder: nothing is claimed about clocks")


def main():
    have = [p for p in (DLRM, PAIR, FLIGHT) if p.exists()]
    if not have:
        print(f"skipped: no real traces in {DATA}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if DLRM.exists():
            for merged in check(folder, "dlrm", 4, write_kineto, 5000, True):
                assert merged.basis == {"reference", "collectives"}, merged.basis
        if PAIR.exists():
            # Only exchanges of two join these.
            for merged in check(folder, "nsys", 2, write_nsys, 25000, False):
                assert merged.basis == {"reference", "messages"}, merged.basis
        if FLIGHT.exists():
            check_flight(folder)


main()
