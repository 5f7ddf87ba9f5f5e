# SPDX-License-Identifier: Apache-2.0
"""Synthetic runs through the whole program: mktrace, laggard merge, laggard report."""
import json

from lib_merged import BUILD, LAGGARD, MergedRun, Tally, call  # noqa: F401

MKTRACE = BUILD / "mktrace"


class Run(MergedRun):
    def __init__(self, *options):
        self.options = options

    def make(self):
        call(MKTRACE, "--out", self.dir / "run", *self.options)

    def truth(self):
        return json.loads((self.dir / "run/truth.json").read_text())
