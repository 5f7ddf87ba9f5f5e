# SPDX-License-Identifier: Apache-2.0
"""No member of an archive vanishes without a word: whatever block of a tar file is damaged, missing or
twice there, either every member comes out or the exit code is 2; and merge remarks it."""
import io
import json
import pathlib
import random
import shutil
import subprocess
import tarfile
import tempfile

from lib_merged import BUILD, LAGGARD, Tally, call, need

BLOCK = 512


def tar_of(members, form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if form == tarfile.PAX_FORMAT:
                info.mtime = 1.5
            tar.addfile(info, io.BytesIO(content))
        end = tar.offset
    return out.getvalue()[:end + 2 * BLOCK], end


def unpack(tmp, data, piped=False):
    out = tmp / "out"
    shutil.rmtree(out, ignore_errors=True)
    (tmp / "in").write_bytes(data)
    done = subprocess.run([LAGGARD, "unpack", "-q", "-C", out, "-" if piped else tmp / "in"], capture_output=True,
                          input=data if piped else None, timeout=60, check=False)
    found = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} if out.exists() else set()
    return done, found


def check_blocks(t, tmp):
    rng = random.Random(3)
    members = {f"d/{name}.json": rng.randbytes(700) for name in "abc"}
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        whole, end = tar_of(members, form)
        for piped in (False, True):
            done, found = unpack(tmp, whole, piped)
            t.check(done.returncode == 0 and found == set(members), f"whole: {done}, {found}")
        for at in range(0, end, BLOCK):
            flipped = bytearray(whole)
            flipped[at + rng.randrange(BLOCK)] ^= 1 << rng.randrange(8)
            for how, data in (("flipped", flipped), ("without", whole[:at] + whole[at + BLOCK:]),
                              ("zeroed", whole[:at] + bytes(BLOCK) + whole[at + BLOCK:]),
                              ("twice", whole[:at + BLOCK] + whole[at:])):
                done, found = unpack(tmp, bytes(data), how == "flipped")
                t.check(done.returncode == 2 or (done.returncode == 0 and found == set(members)),
                        f"{form} {how} at {at}: {done}, {sorted(found)}")


def check_said(t, tmp, run):
    """The place, once, and members behind it are there; as merge has it, too."""
    files = sorted(run.glob("*.lag"))
    members = {p.name: p.read_bytes() for p in files}
    whole, _ = tar_of(members, tarfile.USTAR_FORMAT)
    second = BLOCK + (len(members[files[0].name]) + BLOCK - 1) // BLOCK * BLOCK
    for how in ("flipped", "zeroed"):
        data = bytearray(whole)
        data[second:second + BLOCK] = bytes(BLOCK) if how == "zeroed" else bytes([data[second] ^ 1]) + data[second + 1:second + BLOCK]
        want = f"damaged after member 1 (byte {second})"
        (tmp / "hole.tar").write_bytes(data)
        done, found = unpack(tmp, bytes(data))
        said = done.stderr.decode()
        t.check(done.returncode == 2 and said.count("\n") == 1 and want in said, f"{how}: {done}")
        t.check(found == {p.name for p in files if p != files[1]}, f"{how}: {found}")
        call(LAGGARD, "merge", "-q", "-f", "-o", tmp / "hole.db", tmp / "hole.tar")
        info = json.loads(call(LAGGARD, "info", "-F", "json", tmp / "hole.db"))
        t.check(any(f["kind"] == "refused" and want in f["text"] for f in info["findings"]), f"{how}: {info['findings']}")
        t.check(len([r for r in info["ranks"] if r["pid"] is not None]) == len(files) - 1, f"{how}: {info['ranks']}")


def check_several(t, tmp, run):
    """Archives that follow each other in one file are read to the last."""
    files = sorted(run.glob("*.lag"))
    both = b""
    for file in files:
        call(LAGGARD, "pack", "-qf", "-o", tmp / "one.tar.zst", file)
        both += (tmp / "one.tar.zst").read_bytes()
    done, found = unpack(tmp, both)
    t.check(done.returncode == 0 and found == {p.name for p in files}, f"several: {done}, {found}")
    (tmp / "several.tar.zst").write_bytes(both)
    call(LAGGARD, "merge", "-q", "-o", tmp / "several.db", tmp / "several.tar.zst")
    info = json.loads(call(LAGGARD, "info", "-F", "json", tmp / "several.db"))
    t.check(len(info["ranks"]) == len(files) and not [f for f in info["findings"] if f["kind"] == "missing_rank"],
            f"several: {info['findings']}")


def main():
    need(BUILD / "mktrace")
    t = Tally()
    with tempfile.TemporaryDirectory(prefix="laggard-archive-") as folder:
        tmp = pathlib.Path(folder)
        run = tmp / "run"
        call(BUILD / "mktrace", "--out", run, "--pp", "3", "--dp", "1", "--microbatches", "4", "--steps", "3")
        check_blocks(t, tmp)
        check_said(t, tmp, run)
        check_several(t, tmp, run)
    t.end()


main()
