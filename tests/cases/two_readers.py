# SPDX-License-Identifier: Apache-2.0
"""The C reader and the one written from the manual page alone find the same in random records of all kinds:
whole, cut anywhere, and with wrong bytes in chunks that carry no checksum yet."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["LAGGARD_SOURCE"], "tests/tools"))
import decode  # noqa: E402

TWIN = os.path.join(os.environ["LAGGARD_BUILD"], "tests/tools/twin_records")
NONE = str(-(1 << 63))


def by_c(path):
    lines = subprocess.run([TWIN, "read", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return lines[:-1], lines[-1] == "damage 1"


def by_python(path):
    trace = decode.read(path, texts=False)
    lines = []
    for producer, tid, name, fields in trace.records:
        if name == "unknown":
            continue
        text = fields.pop("text", "").encode("utf-8", "surrogateescape")
        values = [NONE if v is None else str(v) for v in fields.values()]
        lines.append(" ".join([str(producer), str(tid), name, *values] + ([text.hex()] if text else [])))
    return lines, any("missing" not in d for d in trace.damage)


def main():
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "t.lag"
        n_records = n_hurt = 0
        for seed in range(4):
            path.unlink(missing_ok=True)
            subprocess.run([TWIN, "write", path, str(seed)], check=True)
            whole, damaged = by_c(path)
            assert len(whole) == 1200 and not damaged, (seed, len(whole))
            assert by_python(path) == (whole, False), f"seed {seed}"
            n_records += len(whole)
            data = path.read_bytes()
            for _ in range(4):
                path.write_bytes(data[:draw.randrange(8192 + 64, len(data))])
                assert by_python(path) == by_c(path), f"seed {seed}, cut at {path.stat().st_size}"
            for _ in range(12):
                hurt = bytearray(data)
                start = 8192 + 65536 * draw.randrange((len(data) - 8192) // 65536)
                hurt[start + 48] = 1  # open: no checksum
                hurt[start + 64 + draw.randrange(9000)] ^= 1 << draw.randrange(8)
                path.write_bytes(hurt)
                ours, theirs = by_c(path), by_python(path)
                differ = [pair for pair in zip(ours[0], theirs[0]) if pair[0] != pair[1]]
                assert ours == theirs, f"seed {seed}: {len(ours[0])} and {len(theirs[0])} records: {differ[:1]}"
                n_hurt += ours[0] != whole
        assert n_hurt > 20, n_hurt
    print(f"1 passed, 0 failed: {n_records} records, {n_hurt} hurt files")


main()
