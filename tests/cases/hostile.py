#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Use that nobody means well with: standard streams closed, signals at the worst moment, outputs without a
name, folders that may not be read, names that command terminals. One line, the right exit code, no litter."""
import json
import os
import pathlib
import pty
import resource
import select
import signal
import sqlite3
import subprocess
import tarfile
import tempfile
import time

LAGGARD = os.environ["LAGGARD"]
BUILD = pathlib.Path(os.environ["LAGGARD_BUILD"])


def laggard(*args, code=0, **options):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == code, (args, done.returncode, done.stdout[:500], done.stderr)
    return done


def one_line(done, word):
    assert word in done.stderr and done.stderr.count("\n") == 1, done.stderr


def check_command_line(tmp, run, db):
    one_line(laggard("help", "nonsense", code=2), "no command 'nonsense'")
    evil = "\x1b[31mred\n\x07%s%n\u202e"
    for command in (("report", evil), ("info", evil), ("merge", evil), ("tui", evil), ("report", evil, db), (evil,),
                    ("export", "-t", evil, db), ("report", "--" + evil, db), ("tui", "-v", evil, db)):
        done = laggard(*command, code=2, cwd=tmp)
        assert all(c.isprintable() or c == "\n" for c in done.stderr), done.stderr
        one_line(done, "\\x1b[31mred\\x0a\\x07%s%n")
    before = sorted(tmp.iterdir())
    for command in (("merge", run), ("merge", "-f", run), ("export", "-q", db), ("export", "-fq", db)):
        one_line(laggard(*command, "-o", "", code=2, cwd=tmp), "no name")
    one_line(laggard("merge", run, "-o", "x.db", "--rename", tmp, code=2, cwd=tmp), "s a directory")
    for memory in ("99999999T", "8000001T", "1023K", "many"):
        one_line(laggard("merge", run, "--memory", memory, code=2, cwd=tmp), f"{memory}: a size of 1M to 8000000T")
    assert sorted(tmp.iterdir()) == before, "a refused command left a file"


def check_outputs(tmp, run, db):
    """Nothing is lost by a slip: no device, pipe or link is replaced, no recording, no input."""
    os.mkfifo(tmp / "pipe")
    (tmp / "to_pipe").symlink_to(tmp / "pipe")
    (tmp / "nowhere").symlink_to(tmp / "nothing")
    notes = tmp / "notes.txt"
    notes.write_text("precious")
    recording = sorted(run.iterdir())[0]
    before = recording.read_bytes()
    for output, word in ((tmp / "pipe", "no regular file"), (tmp / "to_pipe", "no regular file"),
                         (tmp / "nowhere", "nowhere"), (notes, "not overwritten"), (recording, "not overwritten"),
                         (run, "is a directory")):
        one_line(laggard("merge", run, "-fo", output, code=2), word)
    for command in ("info", "report", "export", "merge"):
        one_line(laggard(command, tmp / "pipe", code=2), "regular file")
    assert (tmp / "pipe").is_fifo() and (tmp / "to_pipe").is_symlink() and notes.read_text() == "precious"
    assert recording.read_bytes() == before
    (tmp / "real.db").write_bytes(db.read_bytes())
    (tmp / "link.db").symlink_to("real.db")
    laggard("merge", "-q", run, "-fo", tmp / "link.db")
    assert (tmp / "link.db").is_symlink() and laggard("report", "ranks", tmp / "real.db").stdout
    one_line(laggard("export", "-qfo", tmp / "link.db", tmp / "real.db", code=2), "the trace itself")
    (tmp / "old.json").write_text("{}")
    (tmp / "link.json").symlink_to("old.json")
    laggard("export", "-qfo", tmp / "link.json", db)
    assert (tmp / "link.json").is_symlink() and len(json.loads((tmp / "old.json").read_text())) > 1
    for name in ("pipe", "to_pipe", "nowhere", "notes.txt", "real.db", "link.db", "old.json", "link.json"):
        (tmp / name).unlink()


def check_unwritable(tmp, run, db):
    """A file that cannot be made or written is named with its folder."""
    archive = tmp / "one.tar.zst"
    laggard("pack", "-q", "-o", archive, run)
    done = laggard("unpack", "-q", "-C", "/proc", archive, code=2)  # where also root makes nothing
    one_line(done, "cannot make a directory for '/proc/run/")
    flat = tmp / "flat.tar"
    with tarfile.open(flat, "w") as tar:
        tar.add(db, "one.db")
    one_line(laggard("unpack", "-q", "-C", "/proc", flat, code=2), "cannot make '/proc/one.db'")
    for path, name in ((archive, "small/run/"), (flat, "small/one.db: ")):
        one_line(laggard("unpack", "-q", "-C", "small", path, code=2, cwd=tmp,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))), name)
    for path in (archive, flat):
        path.unlink()


def check_closed_streams(tmp, db):
    def close_all():
        for fd in range(3):
            os.close(fd)

    for command in (("export", "-o", "closed.json", db), ("export", "-o", "closed.json.gz", db),
                    ("merge", "-f", "-o", "closed.db", tmp / "run")):
        subprocess.run([LAGGARD, *map(str, command)], preexec_fn=close_all, cwd=tmp, check=True, timeout=120)
    json.loads((tmp / "closed.json").read_text())
    assert laggard("report", "ranks", tmp / "closed.db").stdout == laggard("report", "ranks", db).stdout
    for command in (("report", db), ("info", db), ("tui", "-p", "overview", db), ("--help",)):
        done = subprocess.run([LAGGARD, *map(str, command)], preexec_fn=close_all, timeout=120)
        assert done.returncode == 2, (command, done.returncode)


def check_signals(tmp, run, db):
    def pending(number, action):
        def before():
            signal.signal(number, action)
            signal.pthread_sigmask(signal.SIG_BLOCK, [number])
            os.kill(os.getpid(), number)
        return before

    where = dict(os.environ, TMPDIR=str(tmp))
    before = sorted(tmp.iterdir())
    for command in (("export", "-q", "-o", tmp / "cut.json", db), ("export", "-q", "-o", tmp / "cut.json.gz", db),
                    ("merge", "-o", tmp / "cut.db", run), ("info", run)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            laggard(*command, code=-number, preexec_fn=pending(number, signal.SIG_DFL), env=where)
            assert sorted(tmp.iterdir()) == before, (command, sorted(tmp.iterdir()))
    # nohup: what is ignored ends nothing.
    laggard("export", "-q", "-o", tmp / "kept.json", db, preexec_fn=pending(signal.SIGHUP, signal.SIG_IGN))
    laggard("merge", "-o", tmp / "kept.db", run, preexec_fn=pending(signal.SIGHUP, signal.SIG_IGN))
    json.loads((tmp / "kept.json").read_text())


def check_broken_pipe(db):
    for command in (("report", "-F", "json", "kernels", db), ("export", "-q", "-o", "-", db)):
        process = subprocess.Popen([LAGGARD, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == -signal.SIGPIPE, process.returncode
    with open("/dev/full", "w") as full:
        for command in (("report", db), ("info", db), ("tui", "-p", "trust", db), ("export", "-q", "-o", "-", db)):
            done = subprocess.run([LAGGARD, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 2, (command, done)
            one_line(done, "cannot write")


def check_prepared_trace(tmp, db):
    """Views that never end stand where tables were."""
    for table in ("gpu_event", "rank", "finding"):
        prepared = tmp / "prepared.db"
        prepared.write_bytes(db.read_bytes())
        connection = sqlite3.connect(prepared)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {table} AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
                           f"SELECT {', '.join('n AS ' + name for name in columns)} FROM r")
        connection.commit()
        connection.close()
        for command in ("report", "info", "export"):
            one_line(laggard(command, prepared, code=2, cwd=tmp), "no such table")


def check_terminal_bytes(db):
    """Bytes that are no UTF-8 (another encoding, an old mouse protocol) do not make the screens deaf."""
    for noise in (b"\xff\xfe\x80", b"\x1b[M\xff\xff\xff", b"\xe9t\xe9", b"\xf0\x9f", b"\x00", "é€😀".encode()):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(LAGGARD, [LAGGARD, "tui", str(db)], dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
        shown = b""
        while b"\x1b[?1049h" not in shown:
            shown += os.read(terminal, 65536)
        os.write(terminal, noise)
        left = time.monotonic() + 30
        while time.monotonic() < left:
            ready, _, _ = select.select([terminal], [], [], 0.3)
            try:
                if ready and not os.read(terminal, 65536):
                    break
                if not ready:
                    os.write(terminal, b"Q")
            except OSError:
                break
        else:
            os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == 0, f"deaf after {noise}"
        os.close(terminal)


def check_folders(tmp, run):
    """One folder that may not be read does not hide the rest."""
    tree = tmp / "tree"
    (tree / "locked").mkdir(parents=True)
    for file in run.iterdir():
        (tree / file.name).write_bytes(file.read_bytes())
        (tree / file.name).chmod(0o644)
    (tree / "loop").symlink_to(tree)
    (tree / "gone.lag").symlink_to("nowhere")
    (tree / "dir.lag").mkdir()
    os.mkfifo(tree / "fifo.lag")
    (tree / "locked").chmod(0)
    options = {}
    if os.geteuid() == 0:
        for folder in (tmp, tree):
            folder.chmod(0o755)
        options = {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        subprocess.run([LAGGARD, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                       **options)
    except (OSError, subprocess.CalledProcessError):  # such as in a home folder that only root may enter
        print("skipped: another user cannot run the program here")
        return
    shown = json.loads(laggard("info", "-F", "json", tree, env=dict(os.environ, TMPDIR="/tmp"), **options).stdout)
    assert len([r for r in shown["ranks"] if r["pid"] is not None]) == 4, shown["ranks"]
    assert any("locked" in f["text"] and "Permission denied" in f["text"] for f in shown["findings"]), \
        shown["findings"]


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        run, db = tmp / "run", tmp / "run.db"
        subprocess.run([BUILD / "mktrace", "--out", run, "--seed", "5", "--pp", "2", "--dp", "2", "--microbatches",
                        "4", "--steps", "3", "--per-host", "2"], check=True, stdout=subprocess.DEVNULL)
        (run / "truth.json").unlink(missing_ok=True)
        laggard("merge", "-q", "-o", db, run)
        check_command_line(tmp, run, db)
        check_outputs(tmp, run, db)
        check_unwritable(tmp, run, db)
        check_closed_streams(tmp, db)
        check_signals(tmp, run, db)
        check_broken_pipe(db)
        check_prepared_trace(tmp, db)
        check_terminal_bytes(db)
        check_folders(tmp, run)


if __name__ == "__main__":
    main()
