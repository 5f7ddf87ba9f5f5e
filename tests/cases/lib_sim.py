# SPDX-License-Identifier: Apache-2.0
"""A training program on the simulated stack under `laggard record`, merged, beside the simulator's
truth."""
import json
import os

from lib_merged import BUILD, LAGGARD, MergedRun, call, need, quantile  # noqa: F401

SIMRUN = BUILD / "simgpu/simrun"
PIPETRAIN = BUILD / "tests/apps/pipetrain"


class Run(MergedRun):
    def __init__(self, train_args, env=None, ranks=8, hosts=4):
        self.train_args, self.env, self.ranks, self.hosts = train_args, env or {}, ranks, hosts

    def make(self):
        (self.dir / "rdv").mkdir()
        (self.dir / "truth").mkdir()
        environment = {**os.environ, **{k: str(v) for k, v in self.env.items()},
                       "PIPETRAIN_RDV": str(self.dir / "rdv")}
        call(LAGGARD, "record", "-o", self.dir / "run", "--", SIMRUN, "-n", self.ranks, "--hosts", self.hosts,
             "--truth", self.dir / "truth", "--", PIPETRAIN, *self.train_args, env=environment)

    def truth(self):
        return json.loads((self.dir / "truth/truth.json").read_text())
