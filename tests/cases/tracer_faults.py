# SPDX-License-Identifier: Apache-2.0
"""A CUPTI that is taken, has no driver, drops buffers or loses times; the size cap; a hung kernel; taken
injection variables; selected ranks; a spool. The program never notices, and the trace says it."""
import os
import subprocess
import time

import lib_record as r


def train(tmp, name, *options, env=None, n=2, args=(), expect=0):
    done = r.record(tmp(name), [r.SIMRUN, "-n", str(n), "--", r.app("pipetrain"), "--dp", str(n), "--steps", "4",
                                "--fwd-us", "500", *args], *options,
                    env=r.environment({"PIPETRAIN_RDV": tmp.path, **(env or {})}))
    r.equal(done.returncode, expect, f"{name}: {done.stderr}")
    return r.traces(tmp(name))


def cupti(tmp):
    for mode, words in (("taken", "another tool holds CUPTI"), ("nodriver", "999")):
        for t in train(tmp, mode, env={"SIMGPU_CUPTI": mode}):
            gap = [g for g in t.of("gap") if g["what"] == "CUPTI"]
            r.check(len(gap) == 1 and words in gap[0]["reason"], f"the gap of {mode}: {gap}")
            r.equal((len(t.of("kernel")), t.clean_exit), (0, 1), f"kernels of {mode}")
            r.check(t.of("op") and t.of("range"), f"{mode}: calls and annotations are still recorded")
    whole = train(tmp, "whole")
    n = sum(len(t.of("kernel")) for t in whole)
    # All of them: which buffers hold kernels differs from run to run.
    some = train(tmp, "drop", env={"SIMGPU_DROP": "1"})
    lost = sum(t.lost_reason[5] for t in some)
    r.check(lost > 0, "dropped records are counted")
    r.equal(sum(x["count"] for t in some for x in t.of("loss") if x["reason"] == 5), lost, "and recorded")
    r.check(sum(len(t.of("kernel")) for t in some) < n, "something was really dropped")
    some = train(tmp, "times", env={"SIMGPU_CUPTI_LOST_TIMES": "0.1"})
    bad = sum(t.lost_reason[6] for t in some)
    devices = [sum(len(t.of(k)) for k in ("kernel", "memcpy", "memset") for t in run) for run in (whole, some)]
    r.equal(devices[0] - devices[1], bad, "records without times are counted, not drawn at zero")


def cap(tmp):
    for t in train(tmp, "cap", "--max-size", "1M", args=("--layers", "40", "--steps", "30", "--fwd-us", "50")):
        r.check(os.path.getsize(t.path) <= 1 << 20, "size under the cap")
        r.check(t.lost_reason[3] > 0 and t.clean_exit == 1, "the cap is counted, and the end orderly")
    done = r.run([r.LAGGARD, "record", "-o", tmp("capline"), "--max-size", "1M", "--", r.SIMRUN, "-n", "1", "--",
                  r.app("pipetrain"), "--steps", "30", "--layers", "40", "--fwd-us", "50"],
                 r.environment({"PIPETRAIN_RDV": tmp.path}))
    r.check(b"1 reached --max-size and stopped recording" in done.stderr, f"the last line: {done.stderr}")


def hang(tmp):
    """Kernels behind a hung one, and the hung one itself, are in the file although nothing flushes it."""
    p = subprocess.Popen([r.LAGGARD, "record", "-q", "-o", tmp("hang"), "--", r.SIMRUN, "-n", "2", "--",
                          r.app("pipetrain"), "--dp", "2", "--steps", "50", "--fwd-us", "500"],
                         env=r.environment({"PIPETRAIN_RDV": tmp.path, "SIMGPU_HANG": "gpu:1:12"}),
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(4)
    os.killpg(p.pid, 9)
    p.wait()
    time.sleep(0.2)
    for t in r.traces(tmp("hang")):
        rank = t.of("process")[0]["rank"]
        last_start = max(k["start_ns"] for k in t.of("kernel"))
        running = [k for k in t.of("kernel") if k["end_ns"] is None]
        r.check(running, f"rank {rank}: the kernel that never ends is there")
        finished = {k["correlation"] for k in t.of("kernel") if k["end_ns"] is not None}
        r.check(len(finished) > 100 and last_start, f"rank {rank}: what had finished is there")
        ops = t.of("op")
        r.check(any(o["func"] == 1 or o["func"] == 3 for o in ops), "operations up to the hang")
        r.equal(t.clean_exit, 0, "no orderly end")


def takeover(tmp):
    """A framework's profiler replaces our buffer callbacks: the program goes on, the gap is in the trace."""
    done = r.record(tmp("takeover"), [r.app("takeover"), "6"])
    r.equal((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""), "the program")
    t = r.one(tmp("takeover"))
    r.check(len(t.of("op")) > 40 and t.of("kernel"), "calls are still recorded, and what came before")
    gaps = [g for g in t.of("gap") if "took them over" in g["reason"]]
    r.check(gaps, "the gap")
    silent = sum(g["until_ns"] - g["from_ns"] for g in gaps)
    r.check(2.5e9 < silent < 7e9, f"its length: {silent}")
    for t in train(tmp, "quiet", args=("--steps", "60", "--fwd-us", "3000")):
        r.equal(t.of("gap"), [], "no gap without a reason")


def doors(tmp):
    env = {"CUDA_INJECTION64_PATH": "/opt/other/libtool.so"}
    done = r.run([r.LAGGARD, "record", "-o", tmp("doors"), "--", r.app("fastexit"), "3"], r.environment(env))
    r.equal(done.returncode, 0, "with a taken variable")
    first = done.stderr.decode().splitlines()[0]
    r.check("CUDA_INJECTION64_PATH is taken by /opt/other/libtool.so" in first, f"said at the start: {first}")
    t = r.one(tmp("doors"))
    r.check(any(m["key"] == "conflict" for m in t.of("meta")), "and recorded")
    r.check(t.of("op") and not t.of("kernel"), "the other doors are open")
    # Another preload stays first, ours is appended.
    done = r.record(tmp("pre"), ["sh", "-c", "echo $LD_PRELOAD"], env=r.environment({"LD_PRELOAD": "libm.so.6"}))
    r.equal(done.stdout.decode().strip(), "libm.so.6:" + r.TRACER, "LD_PRELOAD")


def choices(tmp):
    ranks = sorted(t.of("process")[0]["rank"] for t in train(tmp, "ranks", "--ranks", "1,3-", n=4))
    r.equal(ranks, [1, 3], "--ranks")
    for t in train(tmp, "nocupti", "--cupti", "off"):
        r.equal((len(t.of("kernel")), len(t.of("api"))), (0, 0), "--cupti off")
        r.check(t.of("op") and any(g["what"] == "CUPTI" for g in t.of("gap")), "--cupti off says so")
    for t in train(tmp, "nonvtx", "--nvtx", "off"):
        r.check(not t.of("range") and t.of("kernel"), "--nvtx off")
    for t in train(tmp, "nonccl", "--nccl", "off"):
        r.check(not t.of("op") and not t.of("comm") and t.of("kernel"), "--nccl off")


def spool(tmp):
    os.mkdir(tmp("local"))
    whole = train(tmp, "spooled", "--local", tmp("local"))
    r.check(all(t.clean_exit == 1 and t.of("kernel") for t in whole), "spooled traces are whole")
    r.equal(os.listdir(tmp("local")), [], "the spool is empty afterwards")
    # A killed process's trace is collected by the launcher.
    done = r.record(tmp("killed"), [r.app("segv"), "5", "9"], "--local", tmp("local"))
    r.equal(done.returncode, -9, "killed")
    t = r.one(tmp("killed"))
    r.equal((len(t.of("op")), t.clean_exit, os.listdir(tmp("local"))), (5, 0, []), "collected")


def disk(tmp):
    """A directory that cannot be written to, that vanishes, or whose disk is full: the program goes on."""
    plain = r.run([r.app("fastexit"), "3", "6"])
    env = {"LAGGARD_DIR": "/proc/nowhere", "LD_PRELOAD": r.TRACER, "CUDA_INJECTION64_PATH": r.TRACER,
           "LAGGARD_DEBUG": tmp("debug")}
    done = r.run([r.app("fastexit"), "3", "6"], r.environment(env))
    r.equal((done.returncode, done.stdout, done.stderr), (6, plain.stdout, plain.stderr), "an impossible directory")
    r.check("/proc/nowhere" in open(tmp("debug")).read(), "the debug file says why")
    os.mkdir(tmp("gone"))
    done = r.record(tmp("gone"), ["sh", "-c", f"rmdir {tmp('gone')}; exec {r.app('fastexit')} 3 6"])
    r.equal(done.returncode, 6, "a directory that vanished")
    # Containers and changed roots refuse it in different words.
    if os.geteuid() != 0 or r.run(["unshare", "-m", "true"]).returncode != 0:
        print("no right to mount: a full disk is not tested here")
        return
    os.mkdir(tmp("full"))
    script = (f"mount -t tmpfs -o size=350k none {tmp('full')} && {r.LAGGARD} record -o {tmp('full')} -- "
              f"{r.SIMRUN} -n 1 -- {r.app('pipetrain')} --steps 30 --layers 40 --fwd-us 50; "
              f"code=$?; cp {tmp('full')}/*.lag {tmp('kept')}; exit $code")
    os.mkdir(tmp("kept"))
    done = r.run(["unshare", "-m", "sh", "-c", script], r.environment({"PIPETRAIN_RDV": tmp.path}))
    if b"mount" in done.stderr and b"recording" not in done.stderr:
        print("no right to mount: a full disk is not tested here")
        return
    r.equal(done.returncode, 0, f"a full disk: {done.stderr}")
    r.check(b"stopped recording: disk full" in done.stderr, f"the last line: {done.stderr}")
    t = r.one(tmp("kept"))
    r.check(t.lost_reason[2] > 0 and t.of("kernel"), "what fitted is there, the rest is counted")


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        for part in (cupti, takeover, cap, doors, choices, spool, disk, hang):
            part(tmp)


main()
