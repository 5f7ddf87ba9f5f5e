# SPDX-License-Identifier: Apache-2.0
"""The training program on the simulated stack: every schedule and way of communicating ends well with
the right sums, leaves nothing in its rendezvous folder, prints one line; a wrong sum and wrong
arguments end with their own codes."""
import os
import re

from lib_record import SIMRUN, Folder, app, check, environment, equal, need_simgpu, run

SHORT = "--steps 2 --fwd-us 100 --optimizer-us 50"
GOOD = (
    (1, ""),
    (4, "--pp 2 --dp 2"),
    (4, "--pp 4 --schedule gpipe --microbatches 3"),
    (4, "--pp 2 --dp 2 --schedule interleaved --chunks 2 --layers 4"),
    (4, "--pp 4 --schedule interleaved --chunks 3 --layers 3 --microbatches 8"),
    (4, "--pp 2 --tp 2 --layers 1,3"),
    (4, "--dp 4 --grad-allreduce --buckets 3 --no-nvtx"),
    (4, "--pp 4 --batch-p2p --act-bytes 16M"),
    (4, "--pp 4 --pp-comm pair --act-bytes 16M"),
    (4, "--pp 4 --pp-comm group"),
    (2, "--pp 2 --copies 0 --embed-us 0 --loss-us 0 --host-us 50 --work-jitter 0.2 --seed 9 --nvtx-domain train"),
)
BAD = ("--pp 3", "--chunks 2", "--layers 1,2,3", "--schedule interleaved --microbatches 3 --pp 2 --chunks 2",
       "--act-bytes 0", "--fwd-us much", "extra")


def train(folder, ranks, args, **more):
    rdv = folder("rdv")
    os.makedirs(rdv, exist_ok=True)
    done = run([SIMRUN, "-n", str(ranks), "--", app("pipetrain"), *args.split()],
               environment({"PIPETRAIN_RDV": rdv, **more}))
    equal(os.listdir(rdv), [], f"{args}: left in the rendezvous folder")
    return done


def main():
    need_simgpu()
    with Folder() as folder:
        for ranks, args in GOOD:
            done = train(folder, ranks, f"{SHORT} {args}")
            equal(done.returncode, 0, f"{args}: {done.stderr.decode()}")
            line = done.stdout.decode()
            check(re.fullmatch(r"rank 0: 2 steps, mean [0-9.]+ ms: [0-9.]+ [0-9.]+\n", line), f"{args}: said {line!r}")
        done = train(folder, 4, f"{SHORT} --dp 4 -v")
        equal(len(done.stdout.splitlines()), 4, "lines with -v")
        for args in BAD:
            equal(train(folder, 2, args).returncode, 2, args)
        done = train(folder, 1, SHORT, LD_PRELOAD=app("libwrongnccl.so"))
        equal(done.returncode, 3, "exit code after a wrong sum")
        check(b"gradient norm of step 0: got 0, expected 1" in done.stderr, f"said {done.stderr!r}")


main()
