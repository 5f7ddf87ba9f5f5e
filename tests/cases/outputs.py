# SPDX-License-Identifier: Apache-2.0
"""Files that commands make: without -f nothing is replaced, also not what appears while the command runs; what
a killed one left is removed by the next and said, and what a living one writes is left alone; a limit on the
size of files is one line with the file's name."""
import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from lib_merged import BUILD, LAGGARD, Tally, call, need


def laggard(*args, code=0, **options):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == code, (args, done.returncode, done.stderr[-2000:])
    return done


def at_work(place, pattern):
    """A file is there, and its maker has come to lock it."""
    for path in place.glob(pattern):
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def stopped(place, pattern, *args, **options):
    """The command, stopped while its unfinished file is there."""
    before = set(place.iterdir())
    for _ in range(50):
        process = subprocess.Popen([LAGGARD, *map(str, args)], stderr=subprocess.PIPE, text=True, **options)
        while process.poll() is None and not list(place.glob(pattern)):
            time.sleep(0.0005)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and at_work(place, pattern):
            return process
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        for made in set(place.iterdir()) - before:
            made.unlink()
    raise AssertionError(f"{args}: never seen at work")


def finish(process):
    process.send_signal(signal.SIGCONT)
    return process.communicate(timeout=120)[1], process.returncode


def commands(run, db):
    return (("merge", "m.db", ("merge", run)), ("pack", "p.tar.zst", ("pack", run)),
            ("export", "e.json", ("export", db)), ("export", "e.json.gz", ("export", db)))


def check_no_replacing(t, place, run, db):
    for _, name, args in commands(run, db):
        out = place / name
        process = stopped(place, name + ".laggard-*", *args, "-o", out)
        out.write_text("precious")
        said, code = finish(process)
        t.check(code == 2 and out.read_text() == "precious" and "meanwhile" in said, f"{name}: {code}, {said}")
        t.check(os.listdir(place) == [name], f"{name}: {os.listdir(place)}")
        out.unlink()
    # Forced, a merge still replaces nothing but traces.
    out = place / "m.db"
    process = stopped(place, "m.db.laggard-*", "merge", "-f", run, "-o", out)
    out.write_text("precious")
    said, code = finish(process)
    t.check(code == 2 and out.read_text() == "precious" and "not overwritten" in said, f"merge -f: {code}, {said}")
    out.unlink()
    # Of several at once, one makes it.
    several = [subprocess.Popen([LAGGARD, "merge", "-q", run, "-o", out], stderr=subprocess.PIPE) for _ in range(3)]
    codes = sorted(p.communicate(timeout=120) and p.returncode for p in several)
    t.check(codes == [0, 2, 2] and os.listdir(place) == ["m.db"], f"several: {codes}, {os.listdir(place)}")
    out.unlink()


def check_append(t, place, early, late):
    """The trace that ranks are added to is another file meanwhile."""
    out = place / "t.db"
    for _ in range(50):
        shutil.copy(early, out)
        process = subprocess.Popen([LAGGARD, "merge", "-q", "--append", out, late], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(place.glob("t.db.laggard-*")):
            time.sleep(0.0005)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and at_work(place, "t.db.laggard-*"):
            break
        finish(process)
    else:
        raise AssertionError("append: never seen at work")
    (place / "other").write_text("precious")
    (place / "other").rename(out)
    said, code = finish(process)
    t.check(code == 2 and out.read_text() == "precious" and "meanwhile" in said, f"append: {code}, {said}")
    t.check(os.listdir(place) == ["t.db"], f"append: {os.listdir(place)}")
    out.unlink()


def check_leftovers(t, place, run, db):
    for command, name, args in commands(run, db):
        out = place / name
        process = stopped(place, name + ".laggard-*", *args, "-o", out)
        process.kill()
        process.communicate()
        left = list(place.iterdir())
        t.check(len(left) == 1, f"{name}: killed: {left}")
        # One that lives, too: stopped, it keeps what is its own.
        for made in left:
            made.rename(place / "aside")
        living = stopped(place, name + ".laggard-*", *args, "-o", out)
        (place / "aside").rename(left[0])
        done = laggard(*args, "-o", out)
        said = [line for line in done.stderr.splitlines() if "unfinished" in line]
        t.check(len(said) == 1 and "removed 1 unfinished file that a killed " + command in said[0] and str(out) in said[0],
                f"{name}: {done.stderr}")
        t.check(not left[0].exists() and len(list(place.iterdir())) == 2, f"{name}: {list(place.iterdir())}")
        finish(living)
        t.check(os.listdir(place) == [name], f"{name}: at the end {os.listdir(place)}")
        out.unlink()


def check_info(t, place, run):
    where = dict(os.environ, TMPDIR=str(place))
    process = stopped(place, "laggard-info*", "info", run, env=where, stdout=subprocess.DEVNULL)
    process.kill()
    process.communicate()
    t.check(len(list(place.iterdir())) == 1, f"info: killed: {list(place.iterdir())}")
    done = laggard("info", run, env=where)
    t.check("removed 1 unfinished file that a killed info" in done.stderr and not list(place.iterdir()), f"info: {done.stderr}")
    t.check(laggard("info", run, env=where).stderr == "", "info: said again")


def check_unpack(t, place, run, packed):
    data = packed.read_bytes()

    def halfway():
        process = subprocess.Popen([LAGGARD, "unpack", "-q", "-C", place, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(data[:len(data) // 2])
        process.stdin.flush()
        until = time.monotonic() + 60
        while not list(place.rglob(".*.laggard-*")):
            assert time.monotonic() < until, "unpack: never seen at work"
            time.sleep(0.001)
        return process

    process = halfway()
    process.kill()
    process.communicate()
    # Somebody is at work there: it is left alone, and taken once nobody is.
    living = halfway()
    t.check(len(list(place.rglob(".*.laggard-*"))) in (1, 2), "unpack: the living one's file")
    living.kill()
    living.communicate()
    done = laggard("unpack", "-C", place, packed)
    t.check("unfinished file" in done.stderr and not list(place.rglob(".*.laggard-*")),
            f"unpack: {done.stderr}, {list(place.rglob('.*'))}")
    t.check(sorted(p.name for p in (place / "run").iterdir()) == sorted(p.name for p in run.iterdir()), "unpack: files")
    shutil.rmtree(place / "run")


def check_limits(t, place, run, db):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    where = dict(os.environ, TMPDIR=str(place))
    for _, name, args in (*commands(run, db), ("info", "laggard-info", ("info", run))):
        out = () if name == "laggard-info" else ("-o", place / name)
        done = laggard(*args, *out, code=2, preexec_fn=limit, env=where)
        lines = [line for line in done.stderr.splitlines() if " of JSON " not in line]
        t.check(len(lines) == 1 and str(place if "pack" in args else place / name) in lines[0] and "too large" in lines[0].lower(), f"{name}: {done.stderr}")
        t.check(not list(place.iterdir()), f"{name}: {list(place.iterdir())}")
    # The program that is recorded has what it had.
    for action in ("", "trap '' XFSZ; "):
        done = subprocess.run(["sh", "-c", f"{action}exec {LAGGARD} record -q -o {place / 'r'} -- grep SigIgn /proc/self/status"],
                              capture_output=True, text=True, timeout=60, check=False)
        ignored = int(done.stdout.split()[1], 16) >> (signal.SIGXFSZ - 1) & 1
        t.check(ignored == (1 if action else 0), f"record: {done}")
        shutil.rmtree(place / "r", ignore_errors=True)


def check_in_place(t, place, db):
    """What is no file is written to."""
    whole = laggard("export", "-q", db, "-o", "-").stdout
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        t.check(laggard("export", "-q", db, "-o", name).stdout == whole, f"{name}: a pipe")
        with open(place / "to", "w+", encoding="utf-8") as to:
            to.write("before\n")
            to.flush()
            subprocess.run([LAGGARD, "export", "-q", db, "-o", name], stdout=to, check=True, timeout=60)
        t.check((place / "to").read_text() == "before\n" + whole, f"{name}: a file")
        (place / "to").unlink()
    t.check(len(json.loads(whole)) > 1, "no JSON")


def main():
    need(BUILD / "mktrace")
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-outputs-") as folder:
        tmp = pathlib.Path(folder)
        run, place, late = tmp / "run", tmp / "place", tmp / "late"
        place.mkdir()
        call(BUILD / "mktrace", "--out", run, "--pp", "2", "--dp", "2", "--microbatches", "8", "--steps", "20")
        (run / "truth.json").unlink(missing_ok=True)
        laggard("merge", "-q", run, "-o", tmp / "run.db")
        laggard("pack", "-q", run, "-o", tmp / "run.tar.zst")
        check_no_replacing(t, place, run, tmp / "run.db")
        check_leftovers(t, place, run, tmp / "run.db")
        check_info(t, place, run)
        check_unpack(t, place, run, tmp / "run.tar.zst")
        check_limits(t, place, run, tmp / "run.db")
        check_in_place(t, place, tmp / "run.db")
        late.mkdir()
        file = sorted(run.glob("*.lag"))[-1]
        file.rename(late / file.name)
        laggard("merge", "-q", run, "-o", tmp / "early.db")
        check_append(t, place, tmp / "early.db", late)
    t.end()


main()
