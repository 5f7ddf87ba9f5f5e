#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard report on merged traces made here with Python's own SQLite: every analysis in every format,
the JSON contract, choices of steps and ranks, exit codes, and files that no merge would write."""
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

LAGGARD = os.environ["LAGGARD"]
SOURCE = os.environ["LAGGARD_SOURCE"]
SCHEMA = open(os.path.join(SOURCE, "schema/sql/schema.sql"), encoding="utf-8").read()
NAMES = re.findall(r"(?m)^LAG_ANALYSIS\((\w+),", open(os.path.join(SOURCE, "viz/analysis/analyses.def"),
                                                encoding="utf-8").read())
T0 = 1_700_000_000_000_000_000
HOSTILE = "evil\x1b[31m\n\"name\",|x|\u202e"


def empty(path):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    db.execute("PRAGMA application_id=%d" % 0x4C616747)
    db.execute("PRAGMA user_version=2")
    return db


class Maker:
    """Two ranks on one host, three steps of 1000 us: compute, a copy, an all-reduce."""

    def __init__(self, path, missing=False):
        self.db = empty(path)
        self.strings = {}
        self.n = dict(gpu=0, api=0, launch=0, op=0)
        run = self.db.execute
        run("INSERT INTO host VALUES (1, 'node0', NULL)")
        for rank in range(3 if missing else 2):
            recorded = rank < 2
            if recorded:
                run("INSERT INTO source VALUES (?, ?, 'lag', 'ok', '', 10, 0)", (rank + 1, f"{rank}.lag"))
                run("INSERT INTO process (id, source_id, host_id, rank, world_size, clean_exit) "
                    "VALUES (?, ?, 1, ?, ?, 1)", (rank + 1, rank + 1, rank, 3 if missing else 2))
            run("INSERT INTO rank VALUES (?, ?, ?, ?)",
                (rank, rank + 1 if recorded else None, 1 if recorded else None, rank))
            run("INSERT INTO comm_member VALUES (1, ?, ?, ?)", (rank, rank, int(recorded)))
        run("INSERT INTO communicator VALUES (1, 7, NULL, ?, NULL, 'world', '')", (3 if missing else 2,))
        run("INSERT INTO clock_map VALUES (1, NULL, 0, 0, 0, 0.0, 1000, -5000, 5000, 'collective', 9, NULL, 'reference')")
        for step in range(3):
            for rank in range(2):
                self.step(rank, step)
            self.instance(step, missing)
        self.db.commit()

    def text(self, value):
        if value not in self.strings:
            self.strings[value] = len(self.strings) + 1
            self.db.execute("INSERT INTO string VALUES (?, ?)", (self.strings[value], value))
        return self.strings[value]

    def gpu(self, rank, kind, name, start, end, launch=None):
        self.n["gpu"] += 1
        self.n["api"] += 1
        name_id = self.text(name)
        if kind == 0:
            self.db.execute("INSERT OR IGNORE INTO kernel_name VALUES (?, ?, ?, ?)",
                            (name_id, name_id, name_id, 0 if launch is None else 1))
        self.db.execute("INSERT INTO api_call VALUES (?, ?, 1, 2, ?, ?, ?, 0, 0, ?, 0)",
                        (self.n["api"], rank, self.text("cudaLaunchKernel"), start - 900, start - 800,
                         self.n["api"]))
        self.db.execute("INSERT INTO gpu_event (id, rank, kind, device, context, stream, start_ns, end_ns, "
                        "raw_start_ns, raw_end_ns, name_id, correlation, api_id, bytes, launch_id, flags) "
                        "VALUES (?, ?, ?, 0, 1, 7, ?, ?, ?, ?, ?, ?, ?, NULL, ?, 0)",
                        (self.n["gpu"], rank, kind, start, end, start, end, name_id, self.n["api"],
                         self.n["api"], launch))

    def step(self, rank, step):
        at = T0 + step * 1_000_000
        self.db.execute("INSERT INTO nvtx_range VALUES (NULL, ?, 1, 1, 0, 0, ?, ?, ?, 0, 0, 0, NULL, NULL, 0)",
                        (rank, self.text(f"step {step}"), at, at + 990_000))
        self.gpu(rank, 0, HOSTILE if step == 2 else "gemm", at + 1_000, at + 601_000 + rank * 100_000)
        self.gpu(rank, 1, "copy HtoD", at + 701_000, at + 711_000)
        self.n["launch"] += 1
        start = at + 711_000
        self.db.execute("INSERT INTO nccl_launch VALUES (?, ?, 1, NULL, 1, 7, ?, ?, ?, ?, NULL)",
                        (self.n["launch"], rank, start, at + 900_000, start, at + 900_000))
        self.gpu(rank, 0, "ncclDevKernel_AllReduce", start, at + 900_000, self.n["launch"])
        self.db.execute("INSERT INTO nccl_op VALUES (NULL, ?, 1, 1, ?, NULL, 1000, 7, 0, 4000, 1, ?, ?, 0, 0, "
                        "NULL, ?, ?, 1, 0)", (rank, step, start - 800, start - 700, self.n["launch"], step + 1))

    def instance(self, step, missing):
        at = T0 + step * 1_000_000
        self.db.execute("INSERT INTO instance VALUES (?, 1, 1, ?, NULL, NULL, 4000, 7, ?, 2, 2, 2, ?, ?, ?, ?, "
                        "NULL, 0, 0)", (step + 1, step, 3 if missing else 2, at + 711_000, at + 711_000,
                                        at + 900_000, at + 900_000))


def report(*args, code=0, out=None):
    done = subprocess.run([LAGGARD, "report", *args], capture_output=True, check=False, timeout=60)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    assert (not done.stderr) == (code != 2), (args, done.stderr)
    if code == 2:
        assert not done.stdout and done.stderr.count(b"\n") == 1, (args, done.stdout, done.stderr)
        if out:
            assert out in done.stderr.decode(), (args, done.stderr)
    return done.stdout


def check_document(doc, name):
    assert doc["schema_version"] == 1 and doc["analysis"].replace("-", "_") == name, doc
    for key in ("trace", "trust", "columns", "rows"):
        assert key in doc, (name, key)
    columns = {c["name"]: c for c in doc["columns"]}
    assert len(columns) == len(doc["columns"]), name
    for column in doc["columns"]:
        assert (column["unit"] == "ns") == column["name"].endswith("_ns"), (name, column)
        assert column["unit"] != "share" or column["of"], (name, column)
    for row in doc["rows"]:
        assert list(row) == list(columns), (name, row)
        for key, value in row.items():
            if value is not None and columns[key]["unit"] in ("ns", "count", "id", "bytes"):
                assert isinstance(value, int), (name, key, value)


def printable(name):
    """CSV may be shown in a terminal: what commands one is written as its bytes."""
    return re.sub("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]",
                  lambda m: "".join(f"\\x{byte:02x}" for byte in m[0].encode()), name)


def check_formats(path):
    codes = {"summary": 1, "stragglers": 1}  # rank 1 computes longer
    for name in NAMES:
        doc = json.loads(report(name, path, "--format", "json", code=codes.get(name, 0)))
        check_document(doc, name)
        rows = list(csv.DictReader(io.StringIO(report(name, path, "-F", "csv", code=codes.get(name, 0)).decode(), newline="")))
        assert len(rows) == len(doc["rows"]), name
        for got, want in zip(rows, doc["rows"]):
            for key, value in want.items():
                if value is None or isinstance(value, (int, str)):
                    assert got[key] == ("" if value is None else printable(str(value))), (name, key, got, want)
        for kind in ("text", "md"):
            shown = report(name, path, "-F", kind, code=codes.get(name, 0))
            assert shown and b"\x1b" not in shown and "\u202e".encode() not in shown, (name, kind)
        md = report(name, path, "-F", "md", code=codes.get(name, 0)).decode().splitlines()
        n_bars = {len(re.findall(r"(?<!\\)\|", line)) for line in md if line.startswith("|")}
        assert len(n_bars) == 1, (name, md)


def rows_of(*args, code=0):
    return json.loads(report(*args, "-F", "json", code=code))["rows"]


def check_numbers(path):
    ledger = rows_of("ledger", path)
    assert [r["steps"] for r in ledger] == [3, 3], ledger
    for row in ledger:
        parts = [v for k, v in row.items() if k.endswith("_ns") and k not in ("time_ns", "unsplit_ns")]
        assert sum(v or 0 for v in parts) == row["time_ns"], row
        assert row["bubble_ns"] is None, row
        assert row["compute_ns"] == 3 * (600_000 + row["rank"] * 100_000), row
    assert [r["compute_ns"] for r in rows_of("ledger", path, "-s", "1", "-r", "1")] == [700_000]
    assert [r["step"] for r in rows_of("steps", path, "--steps", "1-")] == [1, 2]
    one = rows_of("breakdown", path, "-r", "0")
    assert len(one) == 1 and one[0]["n_gpu_events"] == 9 and one[0]["mem_ns"] == 30_000, one
    assert one[0]["span_ns"] == 2_899_000 and one[0]["comm_ns"] == 3 * 189_000, one
    coll = rows_of("collectives", path)
    assert len(coll) == 1 and coll[0]["transfer_ns"] == 189_000 and coll[0]["busbw_n"] == 3, coll
    assert abs(coll[0]["busbw_gbps"] - 4000 / 189_000) < 1e-9, coll
    kernels = {r["name"]: r for r in rows_of("kernels", path)}
    assert kernels["gemm"]["count"] == 4 and HOSTILE in kernels, kernels
    clock = rows_of("clock", path)
    assert clock[0]["uncertainty_ns"] == 1000 and clock[0]["bound_ns"] == 10_000, clock
    shares = sum(r["share"] for r in rows_of("summary", path, code=1) if r["section"] == "time")
    assert abs(shares - 1) < 1e-9, shares


def check_refusals(folder, path):
    report(code=2)
    report("kernles", path, code=2, out="no analysis 'kernles'")
    report("kernels", code=2, out="which file")
    report(path, "--format", "yaml", code=2)
    report(path, "--steps", "3-x", code=2, out="3-x")
    report(path, "--ranks", "7-3", code=2, out="7-3")
    report("ledger", path, "--ranks", "77", code=2, out="ranks are 0 to 1")
    report("ledger", path, "--steps", "77", code=2, out="steps are 0 to 2")
    report(path, "--layout", "pp=3", code=2, out="layout")
    report(os.path.join(folder, "nowhere.db"), code=2, out="nowhere.db")
    other = os.path.join(folder, "other.db")
    sqlite3.connect(other).executescript("CREATE TABLE t (a)")
    report(other, code=2, out="other.db")
    for text in (b"", b"SQLite format 3\0" + b"\xff" * 500, os.urandom(4096)):
        with open(other, "wb") as f:
            f.write(text)
        report(other, code=2, out="other.db")


HOSTILE_SQL = [
    "UPDATE gpu_event SET rank = 77",
    "UPDATE gpu_event SET end_ns = start_ns - 5 WHERE id % 2",
    "UPDATE gpu_event SET start_ns = -9223372036854775808",
    "UPDATE gpu_event SET end_ns = 9223372036854775807",
    "UPDATE gpu_event SET end_ns = NULL",
    "UPDATE gpu_event SET launch_id = 999999999999, api_id = -1, config_id = 55, name_id = 12345",
    "UPDATE gpu_event SET launch_id = 1",
    "UPDATE nccl_op SET launch_id = 1",
    "UPDATE nccl_op SET comm_id = 9, instance_id = 77",
    "UPDATE nccl_op SET peer = 4000000000, func = 250, datatype = -3",
    "UPDATE instance SET first_start_ns = 5, last_start_ns = 3",
    "UPDATE instance SET last_rank = 99, src = 7, dst = 8",
    "UPDATE instance SET n_members = -1, bytes = -9223372036854775807",
    "UPDATE comm_member SET comm_rank = 5000000 + comm_rank",
    "UPDATE communicator SET n_ranks = 2147483647",
    "UPDATE comm_member SET rank = NULL",
    "UPDATE rank SET host_id = 40",
    "UPDATE clock_map SET host_id = 40",
    "UPDATE clock_map SET bound_lo_ns = -9223372036854775807, bound_hi_ns = 9223372036854775807",
    "UPDATE clock_map SET bound_lo_ns = 9000000000000000000, bound_hi_ns = -9000000000000000000",
    "UPDATE clock_map SET from_ns = -9223372036854775807, offset_ns = 9223372036854775807, own_ns = -5",
    "INSERT INTO loss (process_id, kind, reason, count) SELECT id, 'kernel', 'full', 9223372036854775807 FROM process",
    "UPDATE gpu_event SET start_ns = -9223372036854775808 WHERE id % 2",
    "UPDATE nvtx_range SET end_ns = NULL",
    "UPDATE nvtx_range SET start_ns = start_ns + 5000000000",
    "UPDATE nccl_launch SET start_ns = NULL",
    "UPDATE nccl_launch SET comm_id = 3",
    "UPDATE string SET value = x'00ff'",
    "DELETE FROM string", "DELETE FROM rank", "DELETE FROM host", "DELETE FROM process",
    "DELETE FROM comm_member", "DELETE FROM communicator", "DELETE FROM nccl_launch",
    "DELETE FROM gpu_event", "DELETE FROM kernel_name", "DELETE FROM api_call", "DELETE FROM instance",
    "UPDATE string SET id = id + 5000000000000",
    "UPDATE api_call SET id = id + 9000000000000000000",
]


def check_step_by(path):
    """An annotation that is nowhere is said to be, and steps are found as without it."""
    (row,) = [r for r in rows_of("trust", path, "--step-by", "nosuchname", code=1) if r["kind"] == "step_by"]
    assert 'no annotation begins with "nosuchname"' in row["text"], row
    assert b'no annotation begins with "nosuchname"' in report("steps", path, "--step-by", "nosuchname")
    assert not [r for r in rows_of("trust", path, "--step-by", "step") if r["kind"] == "step_by"]


def check_hostile(folder):
    whole, path = os.path.join(folder, "two.db"), os.path.join(folder, "hostile.db")
    for sql in HOSTILE_SQL:
        if os.path.exists(path):
            os.remove(path)
        maker = Maker(path)
        maker.db.execute(sql)
        maker.db.commit()
        maker.db.close()
        for name in NAMES:
            done = subprocess.run([LAGGARD, "report", name, path, "-F", "json"], capture_output=True,
                                  check=False, timeout=60)
            assert done.returncode in (0, 1, 2, 3), (sql, name, done.returncode, done.stderr)
            if done.returncode != 2:
                check_document(json.loads(done.stdout), name)
            else:
                assert done.stderr.count(b"\n") == 1, (sql, name, done.stderr)
        for command in (("diff", "-d", whole, path), ("diff", "-d", path, whole), ("export", "-q", "-o", "-", path)):
            done = subprocess.run([LAGGARD, *command], capture_output=True, check=False, timeout=60)
            assert done.returncode in (0, 1, 2, 3), (sql, command, done.returncode, done.stderr)
            assert done.returncode != 2 or done.stderr.count(b"\n") == 1, (sql, command, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "two.db")
        Maker(path).db.close()
        check_formats(path)
        check_numbers(path)
        check_refusals(folder, path)
        check_step_by(path)
        missing = os.path.join(folder, "missing.db")
        Maker(missing, missing=True).db.close()
        doc = json.loads(report(missing, "-F", "json", code=1))
        assert doc["trust"]["missing_ranks"] == [2] and doc["trust"]["outcome"] == "finding", doc["trust"]
        # Who is slow comes from the peers on record; what it costs needs every rank.
        (slow,) = [r for r in rows_of("stragglers", missing, code=1) if r["verdict"] != "withheld"]
        assert slow["rank"] == 1 and abs(slow["compute_ratio"] - 7 / 6) < 1e-3, slow
        assert slow["step_cost_ns"] is None and slow["waiting_caused_ns"] is None, slow
        assert rows_of("trust", missing, code=1)[0]["kind"] == "missing_rank"
        assert rows_of("waits", missing) == []
        check_hostile(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
