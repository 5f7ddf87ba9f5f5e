# SPDX-License-Identifier: Apache-2.0
"""laggard tui of a trace with more events than it may read: rows from the level of detail, events of the window
once they are few, and one line from whatever needs all of them."""
import pathlib
import re
import sqlite3
import subprocess
import tempfile

from lib_merged import BUILD, LAGGARD, Tally, call

FILL = {"█": 1.0, "▉": 7 / 8, "▊": 6 / 8, "▋": 5 / 8, "▌": 4 / 8, "▍": 3 / 8, "▎": 2 / 8, "▏": 1 / 8}


def tui(db, view, *options):
    return subprocess.run([LAGGARD, "tui", "--print", view, "--width", "200", *options, db], capture_output=True,
                          text=True, check=False, timeout=120)


def rank_row(text, rank):
    return next(line for line in text.splitlines() if re.search(rf"\brank {rank}\b", line))


def covered(db, rank, t0, t1):
    """Union of what runs on a rank's GPU."""
    total, until = 0, t0
    for start, end in db.execute("SELECT start_ns, end_ns FROM gpu_event WHERE rank = ? ORDER BY start_ns", (rank,)):
        start, end = max(start, until), min(end, t1)
        total += max(end - start, 0)
        until = max(until, end)
    return total


def shares(tally, work):
    """What rows show of the whole run is what the events say, and what the file says of each lane."""
    text = tui(work / "run.db", "timeline", "--max-events", "1").stdout
    with sqlite3.connect(work / "run.db") as db:
        first, last = db.execute("SELECT min(first_ns), max(last_ns) FROM pyramid_lane").fetchone()
        for rank in range(4):
            chart = rank_row(text, rank)[17:]
            shown = sum(FILL.get(c, 1.0 if c in "▓▚▒" else 0) for c in chart) / 183
            want = covered(db, rank, first, last) / (last - first)
            tally.check(abs(shown - want) < 0.03, f"rank {rank}: {shown:.3f} shown, {want:.3f} covered")
            n, = db.execute("SELECT count(*) FROM gpu_event WHERE rank = ?", (rank,)).fetchone()
            lanes = db.execute("SELECT device IS NULL, n_events FROM pyramid_lane WHERE rank = ?", (rank,)).fetchall()
            tally.check(sum(k for whole, k in lanes if whole) == n and sum(k for _, k in lanes) == 2 * n,
                        f"rank {rank}: {lanes} of {n} events")


def events(tally, work):
    """A window with few events shows them: opened rank, a kernel under the cursor, exact streams."""
    zoomed = "Enter " + "+ " * 10 + "Right " * 60
    text = tui(work / "run.db", "timeline", "--max-events", "1", "--keys", zoomed).stdout
    found = re.search(r"^ *(\S.*\S) · rank 0 stream (\d+)", text.splitlines()[-1]) or \
        re.search(r"^ *(\S.*\S) · rank 0 stream (\d+)", text.splitlines()[-2])
    tally.check(found, f"no event under the cursor:\n{text}")
    with sqlite3.connect(work / "run.db") as db:
        known = {name for name, in db.execute("SELECT value FROM string")}
    tally.check(found and found[1] in known, f"{found and found[1]} is no name of the trace")
    tally.check("stream" in text and "events not read" in text.splitlines()[0], text)


def refusals(tally, work):
    for view in ("overview", "pipeline", "stragglers", "collectives", "kernels"):
        done = tui(work / "run.db", view, "--max-events", "1")
        tally.check(done.returncode == 2 and done.stderr.count("\n") == 1 and "--all" in done.stderr and not done.stdout,
                    f"{view}: {done.returncode}: {done.stderr!r}")
    for keys, what in (("n", "late arrivals"), ("b", "bubbles"), ("/ a Enter", "a name"), ("3", "pipeline")):
        text = tui(work / "run.db", "timeline", "--max-events", "1", "--height", "30", "--keys", keys).stdout
        tally.check(f"{what} needs all events" in text, f"{keys}: {text[-200:]}")
    trust = tui(work / "run.db", "trust", "--max-events", "1").stdout
    tally.check("not read" in trust and "layout  " not in trust, f"trust: {trust}")
    for view in ("overview", "timeline"):
        whole, some = (tui(work / "run.db", view, *o) for o in ((), ("--all", "--max-events", "1")))
        tally.check(whole.stdout == some.stdout and whole.returncode == 0, f"--all: {view}")
    done = tui(work / "without.db", "timeline", "--max-events", "1")
    tally.check(done.returncode == 0 and "no level of detail" in done.stderr and
                done.stdout.splitlines()[1:] == tui(work / "run.db", "timeline").stdout.splitlines()[1:],
                f"without a pyramid: {done.stderr}")


def damaged(tally, work):
    """A blob that no merge wrote: one line where it is drawn, or refused."""
    for change in ("UPDATE pyramid SET buckets = x'03'", "UPDATE pyramid SET buckets = x'02ffffffffffffffff7f'",
                   "UPDATE pyramid SET buckets = 7", "UPDATE pyramid_lane SET shift = 60",
                   "UPDATE pyramid_lane SET last_ns = 9223372036854775807", "DELETE FROM pyramid"):
        (work / "bad.db").write_bytes((work / "run.db").read_bytes())
        with sqlite3.connect(work / "bad.db") as db:
            db.execute(change)
        db.close()
        done = tui(work / "bad.db", "timeline", "--max-events", "1", "--height", "30")
        said = done.returncode == 2 and done.stderr.count("\n") == 1
        tally.check(said or (done.returncode == 0 and ("is damaged" in done.stdout or "DELETE" in change)),
                    f"{change}: {done.returncode}: {done.stderr!r}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-large-") as folder:
        work = pathlib.Path(folder)
        call(BUILD / "mktrace", "--out", work / "run", "--seed", "5", "--pp", "2", "--dp", "2", "--microbatches", "4",
             "--per-host", "2", "--steps", "12")
        call(LAGGARD, "merge", "-q", "-o", work / "run.db", work / "run")
        call(LAGGARD, "merge", "-q", "--no-pyramid", "-o", work / "without.db", work / "run")
        for check in (shares, events, refusals, damaged):
            check(tally, work)
    tally.end()


main()
