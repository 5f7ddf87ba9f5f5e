#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A signal ends every command that makes files at once, with its own exit code, one line and nothing half made:
also one that waits for a pipe that nobody fills, empties or opens, or calculates."""
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

from lib_merged import BUILD, LAGGARD, Tally, call, need

MKTRACE = BUILD / "mktrace"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)


def is_asleep(pid):
    """For some time: a look that finds it so may have come between two reads."""
    for _ in range(10):
        if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(0.01)
    return True


def wait_for(what, process):
    until = time.monotonic() + 60
    while not what() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


def check_ends(t, name, process, number, folder, before):
    begin = time.monotonic()
    process.send_signal(number)
    text = process.stderr.read()
    code = process.wait(60)
    took = time.monotonic() - begin
    t.check(code == -number, f"{name}: {code} after {number}")
    t.check(text.count("\n") == 1 and "interrupted" in text, f"{name}: said {text!r}")
    t.check(took < 10, f"{name}: {took:.1f} s until the end")
    left = sorted(folder.rglob("*"))
    t.check(left == before, f"{name}: left {set(left) - set(before)}")


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start(*args, **options):
    return subprocess.Popen([LAGGARD, *map(str, args)], stderr=subprocess.PIPE, text=True,
                            preexec_fn=no_core, **options)


def check_blocked(t, tmp, run, db):
    os.mkfifo(tmp / "pipe")
    os.environ["TMPDIR"] = str(tmp)
    commands = (("unpack", "-C", tmp / "u", tmp / "pipe"), ("pack", "-f", run, "-o", tmp / "pipe"),
                ("export", "-qf", "-o", tmp / "pipe", db))
    before = sorted(tmp.rglob("*"))
    for which, command in enumerate(commands):
        with start(*command) as process:
            wait_for(lambda p=process: is_asleep(p.pid), process)
            check_ends(t, " ".join(map(str, command)), process, SIGNALS[which % len(SIGNALS)], tmp, before)


def check_pipes(t, tmp, run, db):
    """Nobody reads what is written, nobody writes what is read."""
    before = sorted(tmp.rglob("*"))
    for command in (("pack", "-qo", "-", run), ("export", "-qo", "-", db)):
        with start(*command, stdout=subprocess.PIPE) as process:
            wait_for(lambda p=process: is_asleep(p.pid), process)
            check_ends(t, command[0], process, signal.SIGTERM, tmp, before)
    call(LAGGARD, "pack", "-q", "-o", tmp / "a.tar.zst", run)
    archive = (tmp / "a.tar.zst").read_bytes()
    (tmp / "a.tar.zst").unlink()
    for share in (0, 0.3, 0.9):
        for number in SIGNALS[:2]:
            with start("unpack", "-qC", tmp / "u", "-", stdin=subprocess.PIPE) as process:
                os.write(process.stdin.fileno(), archive[:min(int(share * len(archive)), 60000)])
                wait_for(lambda p=process: is_asleep(p.pid), process)
                kept = [p for p in sorted((tmp / "u").rglob("*")) if ".laggard-" not in p.name]
                check_ends(t, f"unpack of {share}", process, number, tmp,
                           sorted(before + ([tmp / "u"] if kept else []) + kept))
            for path in kept:
                path.unlink()
            if kept:
                (tmp / "u").rmdir()


def check_work(t, tmp, run, db):
    """Wherever in it the command is."""
    before = sorted(tmp.rglob("*"))
    for command in (("export", "-qo", tmp / "o.json.gz", db), ("pack", "-qo", tmp / "o.zip", run), ("info", run)):
        begin = time.monotonic()
        call(LAGGARD, *command)
        took = time.monotonic() - begin
        for path in set(tmp.rglob("*")) - set(before):
            path.unlink()
        for which, number in enumerate(SIGNALS):
            with start(*command, stdout=subprocess.DEVNULL) as process:
                time.sleep(took * (which + 0.5) / len(SIGNALS))
                if process.poll() is None and list(tmp.rglob("*")) != before:
                    process.send_signal(number)
                text = process.stderr.read()
                process.wait(60)
            t.check(process.returncode in (0, -number), f"{command[0]}: {process.returncode}")
            left = [p for p in sorted(tmp.rglob("*")) if p not in before]
            whole = process.returncode == 0 or "its result is complete" in text
            t.check(len(left) < 2 if whole else not left, f"{command[0]}: left {left}, said {text!r}")
            for path in left:
                path.unlink()


def main():
    need(MKTRACE)
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-signals-") as folder:
        tmp, run, db = pathlib.Path(folder, "work"), pathlib.Path(folder, "run"), pathlib.Path(folder, "run.db")
        tmp.mkdir()
        call(MKTRACE, "--out", run, "--steps", "20", "--dp", "2")
        (run / "truth.json").unlink()
        call(LAGGARD, "merge", "-q", "-o", db, run)
        check_blocked(t, tmp, run, db)
        check_pipes(t, tmp, run, db)
        check_work(t, tmp, run, db)
    t.end()


if __name__ == "__main__":
    sys.exit(main())
