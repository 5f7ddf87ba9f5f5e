# SPDX-License-Identifier: Apache-2.0
"""kill -9 at 100 random instants: every file is readable, nothing that was committed is missing, and
every kernel that had finished more than 2 s before is there."""
import json
import os
import random
import shutil
import subprocess
import threading
import time

import lib_record as r

N_KILLS, N_LONG, SEED = 100, 4, 11


def start(tmp, name, fwd_us):
    out = json.loads(r.run([r.LAGGARD, "env", "-o", tmp(name), "-F", "json"]).stdout)
    env = r.environment({**out, "PIPETRAIN_RDV": tmp(name + ".rdv"), "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"})
    os.mkdir(tmp(name + ".rdv"))
    return subprocess.Popen([r.app("pipetrain"), "--steps", "1000000", "--microbatches", "2", "--fwd-us", str(fwd_us)],
                            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check_whole(trace):
    """What hooks wrote is complete up to the last record: numbers have no holes, ends follow starts."""
    ops = [o["op_id"] for o in trace.of("op")]
    r.equal(sorted(ops), list(range(1, len(ops) + 1)), f"operations of {trace.path}")
    ends = {e["op_id"] for e in trace.of("op_end")}
    r.check(len(set(ops) - ends) <= 1, "only the last operation may lack its end")
    depth = 0
    for _, _, name, f in trace.records:
        if name == "range":
            depth += 1
        elif name == "range_end":
            depth -= 1
            r.check(depth >= 0, "a range ends that never began")
    r.check(depth <= 2, f"{depth} ranges are open")


def check_kernels(trace, killed_ns):
    """Steps are synchronised with the host: when one has ended, so have its kernels."""
    steps, per_step = {}, {}
    begun = [x for x in trace.of("range") if x["name"].startswith("step ")]
    for x, y in zip(begun, begun[1:]):
        steps[x["name"]] = (x["start_ns"], y["start_ns"])
    kernels = sorted(k["start_ns"] for k in trace.of("kernel"))
    old = {n: w for n, w in steps.items() if w[1] < killed_ns - 2_000_000_000 and n != "step 0"}
    r.check(len(old) > 20, f"only {len(old)} steps are older than 2 s")
    for name, (a, b) in old.items():
        per_step[name] = sum(1 for k in kernels if a <= k < b)
    r.equal(len(set(per_step.values())), 1, f"kernels of steps: {sorted(set(per_step.values()))}")


class Victim(threading.Thread):
    """Starts the program, kills it after `wait` seconds: by its own thread, however busy the test is."""

    def __init__(self, tmp, name, fwd_us, wait):
        super().__init__()
        self.name, self.wait, self.process = name, wait, start(tmp, name, fwd_us)
        self.start()

    def run(self):
        time.sleep(self.wait)
        self.process.kill()
        self.killed_ns = time.time_ns()
        self.status = self.process.wait()


def main():
    r.need_simgpu()
    rng = random.Random(SEED)
    n_files = 0
    with r.Folder() as tmp:
        plan = [(f"kill{i}", 300, rng.random() * 0.4) for i in range(N_KILLS)]
        plan += [(f"long{i}", 2000, 4 + rng.random()) for i in range(N_LONG)]
        running = []
        while plan or running:
            while plan and len(running) < 3:
                running.append(Victim(tmp, *plan.pop(0)))
            victim = running.pop(0)
            victim.join()
            r.equal(victim.status, -9, "the program was still running")
            for t in r.traces(tmp(victim.name)):
                n_files += 1
                check_whole(t)
                if victim.name.startswith("long"):
                    check_kernels(t, victim.killed_ns)
            shutil.rmtree(tmp(victim.name), ignore_errors=True)
    r.check(n_files > N_KILLS * 0.8, f"only {n_files} files")
    print(f"{n_files} files of {N_KILLS + N_LONG} killed processes")


if __name__ == "__main__":
    main()
