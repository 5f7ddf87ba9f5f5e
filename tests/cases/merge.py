#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laggard merge and info as people use them: directories and archives give the same trace, hostile
archives do no harm, failures leave no file and say one line."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zipfile

from lib_merged import BUILD, LAGGARD, rows

SOURCE = pathlib.Path(os.environ["LAGGARD_SOURCE"])
EVENTS = ("gpu_event", "api_call", "gpu_sync", "nvtx_range", "nccl_op", "nccl_launch", "instance")


def laggard(*args, code=0, cwd=None):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done


def make_run(folder, *options):
    subprocess.run([BUILD / "mktrace", "--out", folder, "--seed", "5", "--pp", "2", "--dp", "2",
                    "--microbatches", "4", "--steps", "3", "--per-host", "2", *map(str, options)],
                   check=True, stdout=subprocess.DEVNULL)
    (folder / "truth.json").unlink(missing_ok=True)
    return folder


def contents(db):
    return {table: rows(db, f"SELECT * FROM {table}") for table in EVENTS}


def check_default_output_and_lines(tmp, run):
    done = laggard("merge", run, cwd=tmp)
    assert done.stdout == "" and done.stderr.count("\n") == 1, done
    assert re.match(r"laggard: run\.db: 4 ranks, [\d,]+ events, clock error \S+ [uµ]s \(collective\), nothing to remark; next: laggard report run\.db\n",
                    done.stderr), done.stderr
    again = laggard("merge", run, code=2, cwd=tmp)
    assert again.stderr.count("\n") == 1 and "exists already" in again.stderr, again.stderr
    assert laggard("merge", "-q", "-f", run, cwd=tmp).stderr == ""
    return tmp / "run.db"


def check_lone_rank_states_no_clock_error(tmp, run):
    """One file of the run: nothing is between ranks, wherever a clock error would stand."""
    (tmp / "lone").mkdir()
    shutil.copy(sorted(run.glob("*.lag"))[0], tmp / "lone")
    for given, world in ((tmp / "lone", 4), (make_run(tmp / "one", "--pp", 1, "--dp", 1), 1)):
        db = tmp / f"world{world}.db"
        done = laggard("merge", given, "-o", db)
        assert "clock error n/a: one rank," in done.stderr and " us (" not in done.stderr, done.stderr
        info = json.loads(laggard("info", db, "--format", "json").stdout)
        assert info["trace"]["clock_uncertainty_ns"] is None, info["trace"]
        for args in (["report", db], ["tui", "--print", "overview", db], ["tui", "--print", "trust", "--height", "30", db]):
            text = subprocess.run([LAGGARD, *args], capture_output=True, text=True, timeout=60, check=False).stdout
            assert text and "clock \u00b1" not in text and "clock error of" not in text, (args, text)
        waits = subprocess.run([LAGGARD, "report", "waits", "-F", "json", db], capture_output=True, text=True,
                               timeout=60, check=False)
        assert json.loads(waits.stdout)["rows"] == [], waits.stdout


def check_same_input_same_bytes(tmp, run, db):
    laggard("merge", run, "-o", tmp / "again.db")
    first, second = (hashlib.sha256(p.read_bytes()).hexdigest() for p in (db, tmp / "again.db"))
    assert first == second, "two merges of one run differ"


def check_archives(tmp, run, db):
    want = contents(db)
    archives = []
    for ending, mode in (("tar", "w"), ("tar.gz", "w:gz"), ("tar.xz", "w:xz")):
        archives.append(tmp / f"pack.{ending}")
        with tarfile.open(archives[-1], mode) as tar:
            tar.add(run, arcname="deep/run")
    archives.append(tmp / "pack.zip")
    with zipfile.ZipFile(archives[-1], "w", zipfile.ZIP_DEFLATED) as pack:
        for file in sorted(run.iterdir()):
            pack.write(file, f"run/{file.name}")
    # What a file is decides its content, not its name.
    (tmp / "pack.tar.gz").rename(tmp / "renamed.bin")
    archives[1] = tmp / "renamed.bin"
    for archive in archives:
        laggard("merge", archive, "-o", tmp / "packed.db", "-f")
        assert contents(tmp / "packed.db") == want, f"{archive.name} gives another trace"
        paths = [path for (path,) in rows(tmp / "packed.db", "SELECT path FROM source")]
        assert all(path.startswith(f"{archive}:") for path in paths), paths
    assert sorted(p.name for p in run.iterdir()) == sorted(
        pathlib.Path(path).name for (path,) in rows(db, "SELECT path FROM source"))


def check_hostile_members(tmp, run, db):
    lag = sorted(run.glob("*.lag"))[0].read_bytes()
    evil = tmp / "evil.tar"
    with tarfile.open(evil, "w") as tar:
        for name in ("../../escaped.lag", "/absolute.lag", "a\nb.lag"):
            info = tarfile.TarInfo(name)
            info.size = len(lag)
            tar.addfile(info, io.BytesIO(lag))
        for kind, name in ((tarfile.SYMTYPE, "link.lag"), (tarfile.LNKTYPE, "hard.lag"),
                           (tarfile.FIFOTYPE, "fifo.lag"), (tarfile.DIRTYPE, "dir.lag")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    before = sorted(str(p) for p in tmp.rglob("*"))
    laggard("merge", evil, "-o", tmp / "evil.db")
    after = sorted(str(p) for p in tmp.rglob("*"))
    assert set(after) - set(before) == {str(tmp / "evil.db")}, "unpacked something"
    assert rows(tmp / "evil.db", "SELECT count(*) FROM source WHERE status = 'duplicate'") == [(2,)]
    assert rows(tmp / "evil.db", "SELECT count(*) FROM rank WHERE process_id IS NOT NULL") == [(1,)]
    whole = evil.read_bytes()
    (tmp / "cut.tar").write_bytes(whole[:len(lag) + 2000])
    laggard("merge", tmp / "cut.tar", "-o", tmp / "cut.db")
    assert rows(tmp / "cut.db", "SELECT count(*) FROM source WHERE status = 'refused' AND path LIKE '%cut.tar'"), "cut"
    # A packed trace that breaks off gives what is before the break.
    events = [{"ph": "X", "cat": "kernel", "name": f"k{i}", "ts": 1700000000000000 + i * 10, "dur": 5, "pid": 0,
               "tid": 7, "args": {"device": 0, "stream": 7, "correlation": i}} for i in range(4000)]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    (tmp / "cut.json.gz").write_bytes(packed[:len(packed) * 2 // 3])
    laggard("merge", tmp / "cut.json.gz", "-o", tmp / "cut.db", "-f")
    assert 1000 < rows(tmp / "cut.db", "SELECT count(*) FROM gpu_event")[0][0] < 4000
    assert rows(tmp / "cut.db", "SELECT status FROM source") == [("damaged",)]


def check_bomb(tmp):
    bomb = tmp / "bomb.tar.xz"
    with tarfile.open(bomb, "w:xz", preset=1) as tar:
        info = tarfile.TarInfo("trace.json")
        info.size = 700 << 20

        class Blanks(io.RawIOBase):
            left = info.size

            def read(self, n=-1):
                n = min(n if n >= 0 else self.left, self.left)
                data = (b"[" + b" " * (n - 1)) if self.left == info.size and n else b" " * n
                self.left -= n
                return data

        tar.addfile(info, Blanks())
    assert bomb.stat().st_size < 130_000, bomb.stat().st_size
    done = laggard("merge", bomb, "-o", tmp / "bomb.db", code=2)
    assert "expands to more than" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp / "bomb.db").exists()


def check_failures(tmp, run):
    (tmp / "void").mkdir()
    (tmp / "text.lag").write_text("no trace at all")
    (tmp / "empty.lag").write_bytes(b"")
    for inputs, word in (((tmp / "void",), "no trace files"), ((tmp / "text.lag",), "not a trace"),
                         ((tmp / "empty.lag",), "the file is empty"), ((tmp / "nowhere",), "No such file"),
                         ((run, "--align", "magic"), "alignment method|choose|one of"),
                         ((run, "--rename", tmp / "nowhere"), "No such file")):
        done = laggard("merge", *inputs, "-o", tmp / "fail.db", code=2)
        assert re.search(word, done.stderr) and done.stderr.count("\n") == 1, (inputs, done.stderr)
        assert not list(tmp.glob("fail.db*")), "a failed merge left a file"


def check_from(tmp, run):
    """Every input is read as what the user says; what it then is not is one line."""
    lag = sorted(run.glob("*.lag"))[0]
    laggard("merge", lag, "--from", "lag", "-o", tmp / "from.db")
    assert rows(tmp / "from.db", "SELECT format, status FROM source") == [("lag", "ok")]
    (tmp / "cut.json").write_text('  "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}]')
    said = laggard("merge", "--help").stdout
    for name in ("lag", "lagz", "flight", "optable", "kineto", "nsys"):
        assert re.search(rf"--from(.|\n)*\b{name}\b", said), name
        for bad in (lag, LAGGARD, tmp / "cut.json"):
            if name == "lag" and bad == lag:
                continue
            done = laggard("merge", "--from", name, bad, "-o", tmp / "bad.db", code=2)
            assert done.stderr.count("\n") == 1 and str(bad) in done.stderr, (name, bad, done.stderr)
            assert not (tmp / "bad.db").exists()
    done = laggard("merge", "--from", "parquet", lag, "-o", tmp / "bad.db", code=2)
    assert "must be one of: lag" in done.stderr, done.stderr


def check_damage_is_named(tmp, run):
    hurt = tmp / "hurt"
    hurt.mkdir()
    files = sorted(run.glob("*.lag"))
    data = [file.read_bytes() for file in files]
    (hurt / files[0].name).write_bytes(data[0])
    (hurt / files[1].name).write_bytes(data[1][:8192 + 12000])
    (hurt / files[2].name).write_bytes(b"")
    (hurt / "copy.lag").write_bytes(data[0])
    laggard("merge", hurt, "-o", tmp / "hurt.db")
    found = {kind for (kind,) in rows(tmp / "hurt.db", "SELECT kind FROM finding WHERE severity > 0")}
    assert found >= {"damaged", "empty", "duplicate", "missing_rank"}, found
    assert rows(tmp / "hurt.db", "SELECT count(*) FROM gpu_event WHERE rank = 1")[0][0] > 100


def check_renames(tmp, run):
    (tmp / "rules").write_text("# names\n^ncclDevKernel_([A-Za-z]+) => NCCL \\1\ncutlass.*bf16_256x128 => big GEMM\n")
    laggard("merge", run, "--rename", tmp / "rules", "-o", tmp / "named.db")
    names = {name for (name,) in rows(tmp / "named.db", "SELECT DISTINCT name FROM v_kernels")}
    assert {"NCCL SendRecv", "NCCL AllReduce", "big GEMM"} <= names, names
    full = rows(tmp / "named.db", "SELECT full_name FROM v_kernels WHERE name = 'big GEMM' LIMIT 1")[0][0]
    assert full.startswith("void cutlass::"), full


def check_schema_page(db):
    page = (SOURCE / "man/laggard-schema.5").read_text()
    for name, kind in rows(db, "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"):
        assert rows(db, f"SELECT * FROM {name} LIMIT 3") is not None
        if kind == "view":
            assert f".It Sy {name}\n" in page, f"laggard-schema.5 lacks {name}"
            continue
        section = page.split(f".Ss {name}\n")[1].split(".Ss ")[0]
        for column in (row[1] for row in rows(db, f"PRAGMA table_info({name})")):
            assert f".It Va {column}\n" in section, f"laggard-schema.5 lacks {name}.{column}"


def check_info(tmp, run, db):
    text = laggard("info", db).stdout
    assert "ranks recorded" in text and "communicators" in text, text
    merged = json.loads(laggard("info", "-F", "json", db).stdout)
    raw = json.loads(laggard("info", "--format", "json", run).stdout)
    for key in ("events", "ranks", "communicators", "clock"):
        assert merged[key] == raw[key], key
    assert merged["schema_version"] == 1 and merged["trace"]["ranks_recorded"] == 4
    one = json.loads(laggard("info", "-F", "json", sorted(run.glob("*.lag"))[1]).stdout)
    assert one["trace"]["ranks_recorded"] == 1 and len(one["ranks"]) == 4
    assert "not a trace" in laggard("info", tmp / "text.lag", code=2).stderr
    (tmp / "foreign.db").unlink(missing_ok=True)
    sqlite3.connect(tmp / "foreign.db").execute("CREATE TABLE t (x)").connection.close()
    assert "not a trace merged by laggard" in laggard("info", tmp / "foreign.db", code=2).stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        run = make_run(tmp / "run")
        db = check_default_output_and_lines(tmp, run)
        check_lone_rank_states_no_clock_error(tmp, run)
        check_same_input_same_bytes(tmp, run, db)
        check_archives(tmp, run, db)
        check_hostile_members(tmp, run, db)
        check_failures(tmp, run)
        check_from(tmp, run)
        check_damage_is_named(tmp, run)
        check_renames(tmp, run)
        check_schema_page(db)
        check_info(tmp, run, db)
        check_bomb(tmp)


main()
