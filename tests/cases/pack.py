# SPDX-License-Identifier: Apache-2.0
"""pack and unpack: what goes in comes out, the same each time, through files and pipes; and archives that
nobody means well with write nothing outside their folder, overwrite nothing, and end with exit code 2."""
import hashlib
import io
import lzma
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

from lib_merged import BUILD, LAGGARD, Tally, call, need

MKTRACE = BUILD / "mktrace"


def laggard(*args, code=0, **options):
    done = subprocess.run([LAGGARD, *map(str, args)], capture_output=True, timeout=300, **options)
    assert done.returncode == code, (args, done.returncode, done.stderr[-2000:])
    return done


def tree(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()}


def reports(db):
    return [call(LAGGARD, "report", name, "-F", "json", db, codes=(0, 1, 3)).replace(str(db), "")
            for name in ("steps", "kernels", "collectives", "ledger", "clock")]


def check_round_trip(t, tmp, run):
    before = tree(run)
    for name in ("a.tar.zst", "a.zip"):
        done = laggard("pack", run, "-o", tmp / name)
        line = done.stderr.decode()
        t.check(line.count("\n") == 1 and " to 1" in line and "of ranks" in line, f"closing line: {line}")
        again = tmp / ("again" + name[1:])
        laggard("pack", "-q", "-o", again, f"{run}/")
        t.check(again.read_bytes() == (tmp / name).read_bytes(), f"{name}: not the same twice")
        with open(tmp / "piped", "wb") as out:
            subprocess.run([LAGGARD, "pack", "-qo", "-", "-t", name[2:], run], stdout=out, check=True, timeout=300)
        t.check((tmp / "piped").read_bytes() == (tmp / name).read_bytes(), f"{name}: stdout gives other bytes")
        laggard("pack", run, "-o", tmp / name, code=2)
        t.check(again.read_bytes() == (tmp / name).read_bytes(), "overwritten without -f")
        laggard("pack", "-qf", run, "-o", tmp / name)
        out = tmp / ("out" + name)
        laggard("unpack", "-C", out, tmp / name)
        t.check(tree(out / "run") == before, f"{name}: other files came out")
        with open(tmp / name, "rb") as file:
            piped = subprocess.run(["cat"], stdin=file, capture_output=True, check=True).stdout
        laggard("unpack", "-q", "-C", tmp / "from_pipe", "-", input=piped)
        t.check(tree(tmp / "from_pipe/run") == before, f"{name}: other files through a pipe")
        shutil.rmtree(tmp / "from_pipe")
        done = laggard("unpack", "-C", out, tmp / name, code=2)
        t.check(b"exists" in done.stderr and b"left out" in done.stderr, "overwrites without -f")
        victim = next((out / "run").glob("*.lag"))
        victim.write_bytes(b"old")
        laggard("unpack", "-q", "-f", "-C", out, tmp / name)
        t.check(tree(out / "run") == before, "-f does not overwrite")
        kept = tmp / ("kept" + name)
        laggard("unpack", "-qk", "-C", kept, tmp / name)
        t.check(len(list(kept.rglob("*.lagz"))) == 2, "-k does not keep rank files packed")
        t.check(not list(tmp.rglob("*.laggard-*")), "a partial file was left")
        ratio = sum(p.stat().st_size for p in run.iterdir()) / (tmp / name).stat().st_size
        t.check(ratio > 2, f"{name}: only {ratio:.1f} to 1")
        laggard("merge", "-q", "-o", tmp / f"{name}.db", tmp / name)
        laggard("merge", "-q", "-o", tmp / f"{name}.kept.db", kept)
    laggard("merge", "-q", "-o", tmp / "plain.db", run)
    for db in ("a.tar.zst.db", "a.zip.db", "a.tar.zst.kept.db"):
        t.check(reports(tmp / db) == reports(tmp / "plain.db"), f"{db}: packed runs merge to something else")


def check_inputs(t, tmp, run):
    """Names, repeats, links, and files that are no run."""
    two = tmp / "two"
    (two / "x").mkdir(parents=True)
    (two / "y").mkdir()
    shutil.copytree(run, two / "x/run")
    (two / "y/run").mkdir()
    (two / "y/run/naïve ✓.json").write_text("{}")
    (two / "y/run/odd\udcff.json").write_text("{}")
    (two / "y/run/deep").mkdir()
    (two / "y/run/deep/note.txt").write_text("note")
    (two / "y/run/link.json").symlink_to("deep/note.txt")
    (two / "y/run/loop").symlink_to(".")
    (two / "y/run/nowhere").symlink_to("nothing")
    os.mkfifo(two / "y/run/pipe")
    damaged = two / "x/run/node0.4001.lag"
    data = bytearray(damaged.read_bytes())
    data[9000] ^= 1
    damaged.write_bytes(data)
    done = laggard("pack", two / "x/run", two / "y/run", two / "x/run/node0.4000.lag", "-o", two / "y/run/self.tar.zst")
    said = done.stderr.decode()
    t.check("node0.4001.lag: damaged from byte" in said and "as it is" in said, f"damage unsaid: {said}")
    for word in ("loop: a link to a directory", "nowhere: a link to nowhere", "pipe: no regular file"):
        t.check(word in said, f"not said: {word}: {said}")
    laggard("unpack", "-q", "-C", two / "out", two / "y/run/self.tar.zst")
    names = sorted(tree(two / "out"))
    want = sorted(["run/node0.4000.lag", "run/node0.4001.lag", "run/truth.json", "run-2/naïve ✓.json",
                   "run-2/odd\udcff.json", "run-2/deep/note.txt"])
    t.check(names == want, f"members: {names}")
    t.check((two / "out/run/node0.4001.lag").read_bytes() == bytes(data), "the damaged file changed")
    laggard("pack", tmp / "absent", "-o", two / "no.tar.zst", code=2)
    laggard("pack", two / "y/run/pipe", "-o", two / "no.tar.zst", code=2)
    (two / "empty").mkdir()
    laggard("pack", two / "empty", "-o", two / "no.tar.zst", code=2)
    laggard("pack", run, "-o", two / "no.tar.gz", code=2)
    laggard("pack", run, "-t", "rar", "-o", two / "no.tar.zst", code=2)
    laggard("pack", run, "-o", two / "no.xyz", code=2)
    t.check(not list(two.glob("no*")), "a refused pack left a file")
    laggard("pack", "-q", run, cwd=two)
    t.check((two / "run.tar.zst").exists(), "the default name")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LAGGARD, "pack", "-q", "-o", "-", run], stdout=full, stderr=subprocess.PIPE, timeout=300)
    t.check(done.returncode == 2 and b"No space" in done.stderr, f"a full disk: {done}")


def check_limit(t, tmp, run):
    """A limit on the size of files is a full disk: exit code 2, one line, and nothing half-made."""
    def limited(size):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}

    place = tmp / "limit"
    place.mkdir()
    for name in ("a.tar.zst", "a.zip"):
        packed = (tmp / name).stat().st_size
        for size in (0, 1000, packed // 2, packed - 1):
            # What was there stays.
            for before in (None, b"before"):
                if before:
                    (place / name).write_bytes(before)
                done = laggard("pack", "-qf", run, "-o", place / name, code=2, **limited(size))
                t.check(done.stderr.count(b"\n") == 1 and b"File too large" in done.stderr, f"{name}, {size}: {done.stderr}")
                left = {p.name: p.read_bytes() for p in place.iterdir()}
                t.check(left == ({name: before} if before else {}), f"{name}, {size}: {sorted(left)}")
            (place / name).unlink()
        laggard("pack", "-q", run, "-o", place / name, **limited(packed))
        t.check((place / name).read_bytes() == (tmp / name).read_bytes(), f"{name}: a limit that is just met")
        (place / name).unlink()
    whole = tree(run)
    sizes = sorted(p.stat().st_size for p in run.iterdir())
    for archive in ("a.tar.zst", "a.zip"):
        for options in ((), ("-k",)):
            for size in (0, sizes[0] - 1, sizes[-1] // 20):
                out = tmp / "limit_out"
                done = laggard("unpack", "-q", *options, "-C", out, tmp / archive, code=2, **limited(size))
                said = b"File too large" in done.stderr or b"a limit on the size of files" in done.stderr
                t.check(done.stderr.count(b"\n") == 1 and said,
                        f"unpack {archive} {options} {size}: {done.stderr}")
                found = tree(out) if out.exists() else {}
                t.check(all(n.endswith(".lagz") or whole[n[4:]] == digest for n, digest in found.items()),
                        f"unpack {archive} {options} {size}: a file in part: {sorted(found)}")
                shutil.rmtree(out, ignore_errors=True)


def tar_of(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                tar.addfile(info)


def unpack_evil(t, tmp, archive, expected, words, code=2, options=()):
    """expected: the only files that may appear."""
    target = tmp / "evil/target"
    shutil.rmtree(tmp / "evil", ignore_errors=True)
    target.mkdir(parents=True)
    outside = tmp / "evil/outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    done = laggard("unpack", "-C", target, *options, archive, code=code)
    said = done.stderr.decode()
    t.check(all(c.isprintable() or c == "\n" for c in said), f"{archive}: control characters are printed")
    for word in words:
        t.check(word in said, f"{archive}: not said: {word!r} in {said[:500]}")
    t.check(set(tree(target)) == set(expected), f"{archive}: {sorted(tree(target))}")
    t.check(not [p for p in target.rglob("*") if p.is_symlink()], f"{archive}: made a link")
    t.check(tree(outside) == {"precious": hashlib.sha256(b"precious").hexdigest()}, f"{archive}: wrote outside")
    t.check(sorted(os.listdir(tmp / "evil")) == ["outside", "target"], f"{archive}: wrote beside")
    return said


def check_hostile_names(t, tmp):
    file, link, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    archive = tmp / "evil.tar"
    tar_of(archive, [
        ("ok.txt", file, b"ok"), ("../up.txt", file, b"x"), ("a/../../up.txt", file, b"x"),
        (str(tmp / "evil/outside/precious"), file, b"x"), ("a/./b//c.txt", file, b"fine"), ("..", file, b"x"),
        ("out", link, "../outside"), ("out/precious", file, b"x"), ("abs", link, str(tmp / "evil/outside")),
        ("hard", hard, "../outside/precious"), ("hard2", hard, "ok.txt"), ("ok.txt", link, "../outside/precious"),
        ("dev", tarfile.CHRTYPE, ""), ("pipe", tarfile.FIFOTYPE, ""), ("esc\x1b[31m\n.txt", file, b"x"),
        ("x" * 300, file, b"x"), ("d/" * 40 + "deep", file, b"x"), ("y/" * 700 + "long", file, b"x"),
        ("\u202egnp.txt", file, b"bidi"), ("naïve ✓.txt", file, b"u"), ("last.txt", file, b"last"),
    ])
    said = unpack_evil(t, tmp, archive,
                       ["ok.txt", "a/b/c.txt", "out/precious", "\u202egnp.txt", "naïve ✓.txt", "last.txt"],
                       ["leads out", "absolute", "symbolic link", "hard link", "device", "pipe", "control characters",
                        "too long", "nested too deeply"])
    t.check(said.count("left out") == 16, f"{said.count('left out')} members are said to be left out:\n{said}")
    with zipfile.ZipFile(tmp / "evil.zip", "w") as z:
        z.writestr("ok.txt", "ok")
        z.writestr("../up.txt", "x")
        z.writestr("/abs.txt", "x")
        info = zipfile.ZipInfo("link")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        z.writestr(info, "../outside/precious")
    unpack_evil(t, tmp, tmp / "evil.zip", ["ok.txt"], ["leads out", "symbolic link"])
    # Twice the same name: the first stays; a file where a folder should be.
    tar_of(archive, [("a", file, b"first"), ("a", file, b"second"), ("a/b", file, b"x"), ("c/d", file, b"d"), ("c", file, b"x")])
    unpack_evil(t, tmp, archive, ["a", "c/d"], ["exists", "no directory", "no file is there"])
    t.check((tmp / "evil/target/a").read_bytes() == b"first", "a repeated name overwrites")


def check_links_in_the_way(t, tmp):
    """Links that lie in the target already are neither followed nor replaced."""
    archive = tmp / "way.tar"
    tar_of(archive, [("sub/precious", tarfile.REGTYPE, b"x"), ("file", tarfile.REGTYPE, b"x"), ("ok", tarfile.REGTYPE, b"ok")])
    for force in ((), ("-f",)):
        target, outside = tmp / "way", tmp / "way_outside"
        for folder in (target, outside):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        (outside / "precious").write_text("precious")
        (target / "sub").symlink_to(outside)
        (target / "file").symlink_to(outside / "precious")
        laggard("unpack", *force, "-C", target, archive, code=2)
        t.check((outside / "precious").read_text() == "precious" and (target / "file").is_symlink(), "a link was followed")
        t.check((target / "ok").read_text() == "ok", "the rest is missing")


def check_bombs(t, tmp):
    ten_gb = 10 << 30
    # deflate reaches 1000 to 1: this crosses the limit. xz streams may follow each other.
    with zipfile.ZipFile(tmp / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        with z.open("zeros.json", "w", force_zip64=True) as out:
            block = bytes(1 << 20)
            for _ in range(400):
                out.write(block)
    unpack_evil(t, tmp, tmp / "bomb.zip", [], ["times its size"])
    info = tarfile.TarInfo("zeros.json")
    info.size = ten_gb
    block = lzma.compress(bytes(64 << 20), preset=0)
    with open(tmp / "bomb.tar.xz", "wb") as out:
        out.write(lzma.compress(info.tobuf(tarfile.GNU_FORMAT), preset=0))
        for _ in range(ten_gb >> 26):
            out.write(block)
        out.write(lzma.compress(bytes(1024), preset=0))
    unpack_evil(t, tmp, tmp / "bomb.tar.xz", [], ["times its size"])
    # GNU sparse: a header that says ten gigabytes of hole.
    sparse = tarfile.TarInfo("hole.json")
    sparse.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    head[124:136] = b"00000000000\0"
    for i in range(386, 482):
        head[i] = 0
    head[386:410] = b"120000000000" + b"000000000000"
    head[482] = 0
    head[483:495] = b"120000000000"
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    (tmp / "sparse.tar").write_bytes(bytes(head) + bytes(1024))
    unpack_evil(t, tmp, tmp / "sparse.tar", [], [])
    template = bytearray(tarfile.TarInfo("f").tobuf(tarfile.USTAR_FORMAT)[:512])
    template[148:156] = b" " * 8
    template[0] = 0
    total = sum(template)
    with open(tmp / "many.tar", "wb") as out:
        for i in range(100000):
            name = b"f%d" % i
            template[0:len(name)] = name
            template[148:156] = b"%06o\0 " % (total + sum(name))
            out.write(template)
        out.write(bytes(1024))
    said = unpack_evil(t, tmp, tmp / "many.tar", [f"f{i}" for i in range(100)], ["--max-members"], options=("--max-members", "100"))
    t.check(said.count("\n") <= 3, said)
    # In memory where that is possible: making so many files takes some disks a minute.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as many:
        laggard("unpack", "-q", "-C", many, tmp / "many.tar")
        t.check(len(os.listdir(many)) == 100000, "100,000 members")
    tar_of(tmp / "big.tar", [("a", tarfile.REGTYPE, bytes(600)), ("b", tarfile.REGTYPE, bytes(600))])
    unpack_evil(t, tmp, tmp / "big.tar", ["a"], ["--max-bytes"], options=("--max-bytes", "1000"))
    unpack_evil(t, tmp, tmp / "big.tar", ["a", "b"], [], code=0, options=("--max-bytes", "1200"))
    laggard("unpack", "--max-ratio", "0", tmp / "big.tar", code=2)
    # An archive in an archive is a file like others.
    with tarfile.open(tmp / "nested.tar.gz", "w:gz") as tar:
        tar.add(tmp / "big.tar", arcname="in/big.tar")
    unpack_evil(t, tmp, tmp / "nested.tar.gz", ["in/big.tar"], [], code=0)


def check_damage(t, tmp, run):
    packed = (tmp / "a.tar.zst").read_bytes()
    names = {"run/node0.4000.lag", "run/node0.4001.lag", "run/truth.json"}
    whole = tree(run)
    rng = random.Random(7)
    for i in range(40):
        data = bytearray(packed)
        if i < 20:
            data = data[:len(data) * i // 20]
        else:
            for _ in range(3):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp / "cut.tar.zst").write_bytes(data)
        out = tmp / "cut"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([LAGGARD, "unpack", "-C", out, tmp / "cut.tar.zst"], capture_output=True, timeout=300)
        t.check(done.returncode == 2 and done.stderr, f"damage {i}: {done}")
        found = tree(out) if out.exists() else {}
        t.check(set(found) <= names, f"damage {i}: {set(found)}")
        said = done.stderr.decode()
        for name, digest in found.items():
            t.check(whole[name[4:]] == digest or f"{name}z: " in said, f"damage {i}: {name} differs and is not said to")
        t.check(not list(out.rglob("*.laggard-*")) if out.exists() else True, f"damage {i}: a partial file")
    # What is whole before a cut is there.
    plain = subprocess.run(["tar", "-C", run.parent, "-cf", "-", "run/node0.4000.lag", "run/node0.4001.lag"],
                           capture_output=True, check=True).stdout
    (tmp / "cut.tar").write_bytes(plain[:len(plain) - 30000])
    shutil.rmtree(tmp / "cut", ignore_errors=True)
    done = laggard("unpack", "-C", tmp / "cut", tmp / "cut.tar", code=2)
    t.check(tree(tmp / "cut").get("run/node0.4000.lag") == whole["node0.4000.lag"], "the whole file is missing")
    t.check((tmp / "cut/run/node0.4001.lag").exists() and b"damaged inside" in done.stderr,
            f"the cut recording: {done.stderr}")
    laggard("merge", "-q", "-o", tmp / "cut.db", tmp / "cut")
    for content in (b"", b"not an archive", os.urandom(5000)):
        (tmp / "no.zip").write_bytes(content)
        done = laggard("unpack", "-C", tmp / "no", tmp / "no.zip", code=2)
        t.check(done.stderr.count(b"\n") == 1 and not (tmp / "no").exists(), f"{content[:8]}: {done.stderr}")
    (tmp / "no.zip").write_bytes(b"PK\3\4" + bytes(100))
    done = laggard("unpack", "-C", tmp / "no", tmp / "no.zip", code=2)
    t.check(b"null" not in done.stderr and not (tmp / "no").exists(), f"an empty zip: {done.stderr}")
    # Cut between two members: nothing is missing but the end.
    plain = subprocess.run(["tar", "-C", run.parent, "-b1", "-cf", "-", "run/truth.json"], capture_output=True, check=True).stdout
    (tmp / "cut.tar").write_bytes(plain[:-1024])
    done = laggard("unpack", "-f", "-C", tmp / "cut", tmp / "cut.tar", code=2)
    t.check(b"cut off after member 1" in done.stderr and tree(tmp / "cut")["run/truth.json"] == whole["truth.json"],
            f"no end: {done.stderr}")
    laggard("unpack", tmp / "absent", code=2)
    laggard("unpack", tmp, code=2)


def check_hostile_rank_file(t, tmp):
    """A packed rank file that says it was enormous is refused before it is made."""
    corpus = pathlib.Path(os.environ["LAGGARD_SOURCE"]) / "tests/fuzz/corpus/lagz/whole"
    data = bytearray(corpus.read_bytes())
    crc = lambda b: zlib_crc32c(b)
    data[20:24] = (0x7FFFFFFF).to_bytes(4, "little")
    data[16:20] = bytes(4)
    size = int.from_bytes(data[12:16], "little")
    data[16:20] = crc(bytes(data[:size])).to_bytes(4, "little")
    tar_of(tmp / "rank.tar", [("a.lagz", tarfile.REGTYPE, bytes(data)), ("b", tarfile.REGTYPE, b"b")])
    unpack_evil(t, tmp, tmp / "rank.tar", [], ["raises it"])


def zlib_crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c ^= b
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def main():
    need(MKTRACE)
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-pack-") as folder:
        tmp = pathlib.Path(folder)
        run = tmp / "run"
        call(MKTRACE, "--out", run, "--pp", "2", "--dp", "1", "--microbatches", "4", "--layers", "4", "--steps", "12")
        check_round_trip(t, tmp, run)
        check_limit(t, tmp, run)
        check_inputs(t, tmp, run)
        check_hostile_names(t, tmp)
        check_links_in_the_way(t, tmp)
        check_bombs(t, tmp)
        check_damage(t, tmp, run)
        check_hostile_rank_file(t, tmp)
    t.end()


main()
