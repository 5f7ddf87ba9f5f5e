# SPDX-License-Identifier: Apache-2.0
"""A merged trace's clock map, and what has to hold of it over many runs whose truth is known."""
from lib_sim import quantile


class Map:
    """The merged trace's clock map; `query` runs SQL on it."""

    def __init__(self, query):
        rows = query("SELECT host_id, device_rank, from_ns, ref_ns, offset_ns, drift_ppm, uncertainty_ns,"
                     " bound_lo_ns, bound_hi_ns FROM clock_map ORDER BY from_ns")
        self.hosts = [r for r in rows if r[1] is None]
        self.devices = [r for r in rows if r[1] is not None]
        self.reference = int(query("SELECT value FROM meta WHERE key = 'clock_reference_host'")[0][0])
        self.host_of_rank = dict(query("SELECT rank, host_id FROM rank"))

    @staticmethod
    def at(rows, raw):
        before = [r for r in rows if r[2] <= raw]
        return before[-1] if before else rows[0]

    def correction(self, rank, raw):
        """(ns to add, stated uncertainty or None) of a device's raw time."""
        segment = self.at([r for r in self.hosts if r[0] == self.host_of_rank[rank]], raw)
        device = self.at([r for r in self.devices if r[1] == rank], raw)
        return segment[4] + segment[5] * 1e-6 * (raw - segment[3]) + device[4], device[6]

    def segments(self):
        """(host, raw moment, lowest and highest correction that causality allows there; None: any)"""
        return [(r[0], r[3], r[7], r[8]) for r in self.hosts]


class Score:
    """(device, moment) samples and bounds over many runs."""

    def __init__(self):
        self.samples, self.outside = [], 0

    def run(self, clock, errors, needed):
        """errors: (true error, stated) each; needed: host -> its true correction at a segment's moment."""
        self.samples += errors
        for host, raw, lo, hi in clock.segments():
            if lo is not None and not lo - 1 <= needed(host, raw) <= hi + 1:
                print(f"host {host}: needs {needed(host, raw)}, bound is [{lo}, {hi}]")
                self.outside += 1

    def verdict(self):
        """Prints the figures; the list of what does not hold."""
        known = [(e, s) for e, s in self.samples if s is not None]
        unknown = len(self.samples) - len(known)
        covered = sum(e <= s for e, s in known) / max(len(known), 1)
        p95 = quantile([e for e, _ in self.samples], 0.95)
        stated = quantile([s for _, s in known] or [0], 0.5)
        print(f"{len(self.samples)} samples, {unknown} without a statement; within the stated uncertainty"
              f" {covered:.2%}; 95th percentile of the error {p95 / 1e3:.1f} us; median stated"
              f" {stated / 1e3:.1f} us ({stated / p95:.2f} times); outside the bound {self.outside}")
        return [text for text, bad in (
            ("coverage below 99 %", covered < 0.99), ("stated more than 3 times the error", stated > 3 * p95),
            ("error above 40 us", p95 > 40e3), ("outside the bound", self.outside > 0),
            ("no statement", unknown > 0)) if bad]
