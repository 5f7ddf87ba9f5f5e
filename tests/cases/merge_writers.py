# SPDX-License-Identifier: Apache-2.0
"""laggard merge --writer: pages built by hand and SQLite's own inserts give the same trace, row for row
and query plan for query plan; a full disk ends either with one line and nothing left."""
import os
import pathlib
import resource
import sqlite3
import subprocess
import tempfile

from lib_merged import BUILD, LAGGARD, Tally, call

DATA = pathlib.Path(os.environ["LAGGARD_TEST_DATA"])
INDEXED = ("SELECT * FROM gpu_event WHERE rank = 1 AND start_ns > 5", "SELECT * FROM nccl_op WHERE instance_id = 7",
           "SELECT rank, enter_ns FROM nccl_op ORDER BY rank, enter_ns", "SELECT * FROM api_call ORDER BY rank, start_ns",
           "SELECT count(*) FROM nvtx_range WHERE rank = 0", "SELECT * FROM gpu_event WHERE id = 9")


def opened(path):
    return sqlite3.connect(f"file:{path}?immutable=1", uri=True)


def compare(tally, pages, sql, what):
    with opened(pages) as a, opened(sql) as b:
        tally.check(a.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{what}: integrity_check")
        tally.check(a.execute("PRAGMA freelist_count").fetchone() == (0,), f"{what}: pages that nothing uses")
        schemas = [c.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
                   for c in (a, b)]
        tally.check(schemas[0] == schemas[1], f"{what}: schemas differ")
        for pragma in ("application_id", "user_version", "page_size", "encoding"):
            values = [c.execute(f"PRAGMA {pragma}").fetchone() for c in (a, b)]
            tally.check(values[0] == values[1], f"{what}: {pragma}: {values}")
        for (table,) in a.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            order = " ORDER BY rowid" if "WITHOUT ROWID" not in a.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0] else ""
            rows = [c.execute(f"SELECT * FROM {table}{order}").fetchall() for c in (a, b)]
            differ = sum(x != y for x, y in zip(*rows)) + abs(len(rows[0]) - len(rows[1]))
            tally.check(differ == 0, f"{what}: {table}: {differ} rows differ")
        for query in INDEXED:
            plans = [c.execute("EXPLAIN QUERY PLAN " + query).fetchall() for c in (a, b)]
            tally.check(plans[0] == plans[1], f"{what}: {query}: {plans}")
            rows = [c.execute(query).fetchall() for c in (a, b)]
            tally.check(rows[0] == rows[1], f"{what}: {query}: rows differ")


def both(tally, work, run, *options):
    for writer in ("pages", "sql"):
        call(LAGGARD, "merge", "-q", "--writer", writer, *options, "-o", work / f"{writer}.db", run, "-f")
    compare(tally, work / "pages.db", work / "sql.db", f"{run.name} {' '.join(options)}")


def fails_cleanly(tally, work, run, writer, limit):
    folder = work / "full"
    folder.mkdir(exist_ok=True)
    done = subprocess.run([LAGGARD, "merge", "-q", "--writer", writer, "-o", folder / "out.db", run],
                          capture_output=True, text=True, check=False, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    left = sorted(p.name for p in folder.iterdir())
    tally.check(done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout,
                f"{writer}, {limit} bytes: {done.returncode}: {done.stderr!r}")
    tally.check(not left, f"{writer}, {limit} bytes: left {left}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-writers-") as folder:
        work = pathlib.Path(folder)
        # A few pages a table, and tables of one page or none.
        for name, steps in (("long", 25), ("short", 1)):
            call(BUILD / "mktrace", "--out", work / name, "--seed", "3", "--pp", "2", "--dp", "2", "--microbatches", "4",
                 "--per-host", "2", "--steps", str(steps))
            both(tally, work, work / name)
        both(tally, work, work / "long", "--align", "none")
        for real in ("kineto/dlrm", "nsys/cloverleaf.sqlite"):
            if (DATA / real).exists():
                both(tally, work, DATA / real)
            else:
                print(f"skipped: no {real} here")
        for writer in ("pages", "sql"):
            call(LAGGARD, "merge", "-q", "-f", "--writer", writer, "-o", work / "whole.db", work / "long")
            size = os.path.getsize(work / "whole.db")
            for share in (0, 0.02, 0.5, 0.98):
                fails_cleanly(tally, work, work / "long", writer, int(size * share) // 512 * 512)
        done = subprocess.run([LAGGARD, "merge", "--writer", "stone", "-o", work / "x.db", work / "long"],
                              capture_output=True, text=True, check=False)
        tally.check(done.returncode == 2 and "stone" in done.stderr, f"unknown writer: {done}")
    tally.end()


main()
