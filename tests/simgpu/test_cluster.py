# SPDX-License-Identifier: Apache-2.0
"""The simulated cluster as a whole: sums, eager senders, late ranks, hangs, host clocks, simrun."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SIMRUN = [sys.executable, os.path.join(os.environ["SIMGPU_LIB"], "simrun")]
PROGRAMS = os.environ["SIMGPU_TESTS"]
QUIET = {"SIMGPU_KERNEL_SIGMA": "0", "SIMGPU_GPU_SIGMA": "0", "SIMGPU_LINK_SIGMA": "0",
         "SIMGPU_LAUNCH_JITTER_US": "0"}


def start(n, program, *args, options=(), **env):
    command = SIMRUN + ["-n", str(n)] + list(options)
    for name, value in {**QUIET, **env}.items():
        command += ["--env", "%s=%s" % (name, value)]
    return command + ["--", program] + list(args)


def ranks(n, case, options=(), code=0, **env):
    command = start(n, os.path.join(PROGRAMS, "test_ranks"), case, options=options, **env)
    p = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert p.returncode == code, "%s: exit %d\n%s%s" % (command, p.returncode, p.stdout, p.stderr)
    return p.stdout


def truth_of(n, case, options=(), **env):
    with tempfile.TemporaryDirectory() as folder:
        ranks(n, case, options=["--truth", folder] + list(options), **env)
        with open(os.path.join(folder, "truth.json")) as f:
            return json.load(f)


class Communication(unittest.TestCase):
    def test_sums_are_right_for_every_call_type_and_algorithm(self):
        for n in (2, 4):
            for algo in ("ring", "tree"):
                ranks(n, "sums", SIMGPU_NCCL_ALGO=algo)

    def test_groups_start_at_their_end(self):
        ranks(3, "group")

    def test_one_process_can_drive_several_devices(self):
        ranks(1, "all")

    def test_non_blocking_communicators(self):
        ranks(3, "async")

    def test_small_sends_do_not_wait_for_the_receiver(self):
        us = int(ranks(2, "eager", SIM_TEST_BYTES=1 << 20).split()[1])
        self.assertLess(us, 250000)

    def test_large_sends_do(self):
        us = int(ranks(2, "eager", SIM_TEST_BYTES=256 << 20).split()[1])
        self.assertGreater(us, 390000)

    def test_no_rank_ends_before_the_last_has_started(self):
        t = truth_of(4, "late", options=["--hosts", "2"])
        ops = [o for o in t["operations"] if o["func"] == "ncclAllReduce"]
        self.assertEqual(len(ops), 10)
        for o in ops:
            last = max(r["start_true_ns"] for r in o["ranks"])
            ends = [r["end_true_ns"] for r in o["ranks"]]
            if o["seq"] > 0:  # before the first one a loaded machine may start a process late
                self.assertEqual([r["rank"] for r in o["ranks"]
                                  if r["start_true_ns"] == last], [0])
            self.assertGreater(min(ends), last)
            self.assertGreater(max(ends) - min(ends), 0)  # a ring does not end everywhere at once
            self.assertLess(max(ends) - min(ends), 400000)
            # 4 MiB over the slowest link, 2 (n - 1) / n times, at 25 GB/s, and latencies
            self.assertLess(abs(max(ends) - last - 251658), 130000)

    def test_a_slow_link_slows_the_operation(self):
        def duration(**env):
            ops = truth_of(4, "late", **env)["operations"]
            return min(max(r["end_true_ns"] for r in o["ranks"]) -
                       max(r["start_true_ns"] for r in o["ranks"]) for o in ops)
        self.assertGreater(duration(SIMGPU_SLOW_LINK="1-2:8"), 4 * duration())

    def test_a_hung_rank_hangs_all(self):
        for where in ("gpu", "link"):
            out = ranks(3, "hang", SIMGPU_HANG="%s:1:2" % where)
            self.assertEqual(sorted(out.split("\n"))[1:],
                             ["rank %d busy" % r for r in range(3)], where)
        out = ranks(3, "hang", code=128 + signal.SIGALRM, options=["--no-kill"],
                    SIMGPU_HANG="host:1:2")
        self.assertEqual(sorted(out.split("\n"))[1:], ["rank 0 busy", "rank 2 busy"])
        self.assertEqual(ranks(3, "hang").count("idle"), 3)

    def test_computing_beside_communication_is_slower(self):
        ranks(1, "contend", SIMGPU_CONTENTION="1.5")

    def test_records_show_the_true_times_through_the_clocks(self):
        with tempfile.TemporaryDirectory() as folder:
            out = ranks(4, "report", options=["--truth", folder, "--hosts", "2"],
                        SIMGPU_HOST_OFFSET_MS="40,-40", SIMGPU_HOST_DRIFT_PPM="150,-200",
                        SIMGPU_DEVICE_ERROR_US="30", SIMGPU_DEVICE_STEP_US="20",
                        SIMGPU_DEVICE_STEP_WITHIN_S="0.3")
            with open(os.path.join(folder, "truth.json")) as f:
                truth = json.load(f)
        shown = {}
        for rank, begin, end, _name in map(str.split, out.splitlines()):
            shown.setdefault(int(rank), []).append((int(begin), int(end)))
        self.assertEqual({r: len(v) for r, v in shown.items()}, {r: 20 for r in range(4)})
        for i, o in enumerate(sorted(truth["operations"], key=lambda o: o["seq"])):
            for r in o["ranks"]:
                begin, end = shown[r["rank"]][i]
                self.assertLessEqual(abs(begin - r["start_shown_ns"]), 2)
                self.assertLessEqual(abs(end - r["end_shown_ns"]), 2)
        errors = {(d["before_ns"], d["after_ns"] - d["before_ns"])
                  for d in (r["device_error"] for r in truth["ranks"])}
        self.assertEqual(len(errors), 4)
        self.assertEqual({abs(step) for _, step in errors}, {20000})

    def test_killed_rank(self):
        ranks(2, "late", code=128 + 9, SIMGPU_KILL="1:4:9")


class Hosts(unittest.TestCase):
    def shown(self, **env):
        p = subprocess.run(start(4, os.path.join(PROGRAMS, "test_hosts"),
                                 options=["--hosts", "2"], SIMGPU_LATENESS="real", **env),
                           capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        return {r["rank"]: r for r in map(json.loads, p.stdout.splitlines())}

    def test_hosts_have_clocks_and_names_of_their_own(self):
        h = self.shown(SIMGPU_HOST_OFFSET_MS="35,-12", SIMGPU_HOST_UPTIME_S="100,-3")
        for rank, r in h.items():
            self.assertEqual(r["host"], "simhost%d" % (rank // 2))
            self.assertLess(abs(r["real"] - (35e6 if rank < 2 else -12e6)), 200000)
            self.assertLess(abs(r["mono"] - (100e9 if rank < 2 else -3e9)), 200000)
        self.assertEqual(h[0]["boot"], h[1]["boot"])
        self.assertNotEqual(h[1]["boot"], h[2]["boot"])

    def test_clocks_drift(self):
        h = self.shown(SIMGPU_HOST_DRIFT_PPM="20000,0")
        # timed waits take 60 ms and more: 20000 ppm of that
        self.assertGreater(h[0]["real"], 1000000)
        self.assertGreater(h[0]["mono"], 1000000)
        self.assertLess(abs(h[3]["real"]), 200000)

    def test_the_seed_draws_the_clocks(self):
        a, b, c = (self.shown(SIMGPU_SEED=s, SIMGPU_HOST_OFFSET_SPREAD_MS="40")
                   for s in (5, 5, 6))
        self.assertLess(abs(a[0]["real"] - b[0]["real"]), 200000)
        self.assertGreater(abs(a[0]["real"] - c[0]["real"]), 500000)


class Simrun(unittest.TestCase):
    def run_sh(self, n, script, *options):
        return subprocess.run(SIMRUN + ["-n", str(n)] + list(options) + ["--", "sh", "-c", script],
                              capture_output=True, text=True, timeout=60)

    def test_exit_codes(self):
        self.assertEqual(self.run_sh(3, "exit 0").returncode, 0)
        self.assertEqual(self.run_sh(3, "[ $RANK != 1 ] || exit 7").returncode, 7)
        self.assertEqual(self.run_sh(2, "[ $RANK != 1 ] || kill -SEGV $$").returncode, 139)
        p = subprocess.run(SIMRUN + ["-n", "1", "--", "/does/not/exist"], capture_output=True)
        self.assertEqual(p.returncode, 127)

    def test_a_failure_ends_the_others(self):
        t0 = time.monotonic()
        self.assertEqual(self.run_sh(3, "[ $RANK = 1 ] && exit 5; exec sleep 30").returncode, 5)
        self.assertLess(time.monotonic() - t0, 10)

    def test_environment(self):
        p = self.run_sh(4, "echo $RANK $LOCAL_RANK $WORLD_SIZE $NODE_RANK ${LD_PRELOAD%%:*}",
                        "--hosts", "2", "--rank-env", "3:NODE_RANK=x")
        rows = sorted(line.split() for line in p.stdout.splitlines())
        self.assertEqual([r[:4] for r in rows], [["0", "0", "4", "0"], ["1", "1", "4", "0"],
                                                 ["2", "0", "4", "1"], ["3", "1", "4", "x"]])
        self.assertTrue(all(r[4].endswith("libsimhost.so") for r in rows))

    def test_signals_are_passed_on(self):
        p = subprocess.Popen(SIMRUN + ["-n", "2", "--", "sh", "-c",
                                       "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                             stdout=subprocess.PIPE, text=True)
        self.assertEqual([p.stdout.readline() for _ in range(2)], ["up\n"] * 2)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=20), 9)
        p.stdout.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
