# SPDX-License-Identifier: Apache-2.0
"""Runs programs under `laggard record` on the simulated stack and reads what they left."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

SOURCE = os.environ["LAGGARD_SOURCE"]
BUILD = os.environ["LAGGARD_BUILD"]
LAGGARD = os.environ["LAGGARD"]
APPS = os.path.join(BUILD, "tests/apps")
SIMGPU = os.path.join(BUILD, "simgpu")
SIMRUN = os.path.join(SIMGPU, "simrun")
TRACER = os.path.join(BUILD, "liblaggard-tracer.so")
sys.path.insert(0, os.path.join(SOURCE, "tests/tools"))
import decode  # noqa: E402

NOT_OURS = ("LAGGARD_", "SIMGPU_", "PIPETRAIN_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_", "OMPI_", "PMI")


def app(name):
    return os.path.join(APPS, name)


def environment(extra=None, simulated=True):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(NOT_OURS) and k not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")}
    if simulated:
        env["LD_LIBRARY_PATH"] = SIMGPU
    env.update(extra or {})
    return env


class Folder:
    """A folder of its own for a test, gone afterwards."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="lag-case-")
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, *parts):
        return os.path.join(self.path, *parts)


def run(argv, env=None, timeout=60, **kw):
    return subprocess.run(argv, env=env or environment(), timeout=timeout, capture_output=True, **kw)


def record(out, argv, *options, env=None, timeout=60, **kw):
    return run([LAGGARD, "record", "-q", "-o", out, *options, "--", *argv], env, timeout, **kw)


def files(out):
    return sorted(glob.glob(os.path.join(out, "*.lag")))


def traces(out):
    """All traces of a run; nothing in them may be damaged."""
    found = [decode.read(f) for f in files(out)]
    for t in found:
        equal(t.damage, [], f"damage in {t.path}")
    return found


def one(out):
    found = traces(out)
    equal(len(found), 1, f"files in {out}")
    return found[0]


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def check(condition, text):
    if not condition:
        fail(text)


def equal(got, expected, text):
    if got != expected:
        fail(f"{text}: got {got!r}, expected {expected!r}")


def skip(text):
    print(f"skipped: {text}")
    sys.exit(77)


def sanitized():
    """A sanitizer's runtime must come first in a process: such a tracer cannot be preloaded into bash."""
    with open(TRACER, "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text


if sanitized():
    skip("the tracer is built with a sanitizer")


def need_simgpu():
    if not os.path.exists(SIMRUN):
        skip("the simulated stack is not built")


def need_real(name):
    """A folder with NVIDIA's own library of that name."""
    for folder in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", os.environ.get("CUDA_HOME", "") + "/lib64"):
        if os.path.exists(os.path.join(folder, name)):
            return folder
    skip(f"no real {name} on this machine")
    return None


def kill(pid, sig=signal.SIGKILL):
    os.kill(pid, sig)
