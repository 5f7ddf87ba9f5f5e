# SPDX-License-Identifier: Apache-2.0
"""However short and uneven the calls of a made-up run are, no record of it ends before it began, and each
thread's calls come one after the other."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["LAGGARD_SOURCE"], "tests/tools"))
import decode  # noqa: E402


def main():
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        for launch, jitter in (("1", "0.2"), ("0.1", "10"), ("5", "3")):
            out = pathlib.Path(folder) / f"run{launch}"
            subprocess.run([os.path.join(os.environ["LAGGARD_BUILD"], "mktrace"), "--out", out, "--pp", "2", "--dp", "1",
                            "--microbatches", "2", "--layers", "2", "--steps", "1", "--launch-us", launch,
                            "--launch-jitter", jitter], check=True, capture_output=True)
            for file in out.glob("*.lag"):
                trace = decode.read(str(file))
                assert not trace.damage, trace.damage
                ends = {}
                for _, _, name, f in trace.records:
                    if name == "group":
                        assert f["enter_ns"] <= f["launch_ns"] <= f["leave_ns"], f
                    if name in ("api", "kernel", "sync"):
                        assert f["start_ns"] <= f["end_ns"], (launch, jitter, name, f)
                    if name == "api":
                        assert f["start_ns"] >= ends.get(f["tid"], 0), (launch, jitter, f)
                        ends[f["tid"]] = f["end_ns"]
                        n += 1
    assert n > 100, n
    print(f"1 passed, 0 failed: {n} calls")


main()
