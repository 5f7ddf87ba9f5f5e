# SPDX-License-Identifier: Apache-2.0
"""With -q a recorded program cannot be told from an unrecorded one: exit code, signals, both outputs.
Without -q standard error has two lines more."""
import os
import signal
import subprocess
import sys
import time

import lib_record as r

SLEEPER = r"""
import os, signal, sys, time
def on(sig, frame):
    os.write(1, b'got %d\n' % sig)
    sys.exit(sig + 40)
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(s, on)
os.write(1, b'ready\n')
time.sleep(30)
"""


def same(tmp, argv):
    plain = r.run(argv)
    quiet = r.record(tmp("q"), argv)
    r.equal((quiet.returncode, quiet.stdout, quiet.stderr), (plain.returncode, plain.stdout, plain.stderr),
            f"{argv} with -q")
    loud = r.run([r.LAGGARD, "record", "-o", tmp("l"), *argv])
    r.equal((loud.returncode, loud.stdout), (plain.returncode, plain.stdout), f"{argv} without -q")
    lines = loud.stderr.decode().splitlines()
    ours = [x for x in lines if x.startswith("laggard: ")]
    r.equal(len(ours), 2, f"our lines for {argv}: {lines}")
    r.equal([x for x in lines if x not in ours], plain.stderr.decode().splitlines(), f"other lines of {argv}")
    return ours


def signals(tmp):
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        p = subprocess.Popen([r.LAGGARD, "record", "-q", "-o", tmp("s"), "--", sys.executable, "-c", SLEEPER],
                             env=r.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        r.equal(p.stdout.readline(), b"ready\n", "the sleeper")
        p.send_signal(sig)
        out, err = p.communicate(timeout=20)
        r.equal((p.returncode, out, err), (sig + 40, b"got %d\n" % sig, b""), f"signal {sig} passed on")
    # A terminal sends to the whole group: the program must not get it twice, nor laggard die of it.
    p = subprocess.Popen([r.LAGGARD, "record", "-q", "-o", tmp("s"), "--", "sleep", "30"], env=r.environment(),
                         start_new_session=True)
    time.sleep(0.3)
    os.killpg(p.pid, signal.SIGTERM)
    r.equal(p.wait(timeout=20), -signal.SIGTERM, "a group that is terminated")


SIGNALS = """
import signal
print([s.name for s in signal.Signals if signal.getsignal(s) is signal.SIG_IGN], signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def inherited(tmp):
    """Ignored and blocked signals are the program's as they were ours."""
    def prepare():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGWINCH])

    argv = [sys.executable, "-c", SIGNALS]
    plain = subprocess.run(argv, env=r.environment(), preexec_fn=prepare, capture_output=True, timeout=60)
    traced = subprocess.run([r.LAGGARD, "record", "-q", "-o", tmp("i"), "--", *argv], env=r.environment(),
                            preexec_fn=prepare, capture_output=True, timeout=60)
    r.equal((traced.returncode, traced.stdout, traced.stderr), (plain.returncode, plain.stdout, plain.stderr),
            "inherited signals")
    r.check(b"SIGCHLD" in plain.stdout and b"SIGUSR1" in plain.stdout, "they were set at all")


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        same(tmp, [r.app("nocuda")])
        same(tmp, [r.app("nocuda"), "77"])
        ours = same(tmp, [r.app("fastexit"), "5", "9"])
        r.check("1 process: 5 kernels" in ours[1] and "5 NCCL operations" in ours[1], f"the receipt: {ours[1]}")
        for sig in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGKILL):
            ours = same(tmp, [r.app("segv"), "3", str(int(sig))])
            r.check("1 ended without exit handlers" in ours[1], f"the receipt after {sig}: {ours[1]}")
        same(tmp, ["sh", "-c", "echo out; echo err >&2; exit 300"])
        same(tmp, ["sh", "-c", "cat; exit 4"])
        signals(tmp)
        inherited(tmp)
        for argv, code in ((["/nonexistent/program"], 127), ([tmp.path], 126)):
            done = r.record(tmp("x"), argv)
            r.equal(done.returncode, code, f"exit code of {argv}")
            r.equal(len(done.stderr.decode().splitlines()), 1, f"one line for {argv}")
            r.check(not os.path.exists(tmp("x")), "no directory for a program that did not start")
        for options in (["--max-size", "x"], ["--ranks", "1-x"], ["--cupti", "maybe"], ["--no-such"]):
            done = r.record(tmp("x"), ["true"], *options)
            r.equal((done.returncode, done.stdout), (125, b""), f"record {options}")
            r.check(done.stderr, f"a message about {options}")
        r.equal(r.record("/proc/laggard", ["true"]).returncode, 125, "a directory that cannot be made")


main()
