# SPDX-License-Identifier: Apache-2.0
"""Reads a Chrome trace as strictly as JSON is defined and checks what viewers ask of every one."""
import collections
import gzip
import json
from decimal import Decimal


def _no_constant(text):
    raise ValueError(f"{text} is not JSON")


def _unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key stands twice in {keys}")
    return dict(pairs)


def ns(value):
    """Microseconds as written, to integer nanoseconds."""
    scaled = Decimal(value) * 1000
    if scaled != int(scaled):
        raise ValueError(f"{value} us has more than three decimals")
    return int(scaled)


class Trace:
    def __init__(self, path):
        raw = gzip.open(path).read() if str(path).endswith(".gz") else open(path, "rb").read()
        self.n_bytes = len(raw)
        self.text = raw.decode("utf-8")
        self.doc = json.loads(self.text, parse_constant=_no_constant, parse_float=Decimal,
                              object_pairs_hook=_unique)
        self.events = self.doc["traceEvents"]
        self.slices = [e for e in self.events if e["ph"] == "X"]
        self.process = {e["pid"]: e["args"]["name"] for e in self.events if e["name"] == "process_name"}
        self.thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events
                       if e["name"] == "thread_name"}

    def of(self, cat, pid=None):
        return [e for e in self.slices if e["cat"] == cat and pid in (None, e["pid"])]

    def pid_of_rank(self, rank):
        (pid,) = [p for p, name in self.process.items() if name.split()[:2] == ["rank", str(rank)]]
        return pid

    def check(self):
        """Raises AssertionError with the event in it; returns how many flow pairs there are."""
        phases = [e["ph"] for e in self.events]
        n_meta = phases.count("M")
        assert all(p == "M" for p in phases[:n_meta]), "metadata is not first"
        assert set(phases) <= set("MXsf"), set(phases)
        assert isinstance(self.doc["baseTimeNanoseconds"], int)
        near_top = self.text[: self.text.index("traceEvents")]
        assert f'\n"rank": {self.doc["distributedInfo"]["rank"]}' in near_top
        self._check_tracks()
        return self._check_flows()

    def _check_tracks(self):
        stacks, last, pid_of = collections.defaultdict(list), {}, {}
        for e in self.slices:
            start, dur = ns(e["ts"]), ns(e["dur"])
            track = (e["pid"], e["tid"])
            assert dur >= 0 and isinstance(e["args"], dict), e
            assert track in self.thread and e["pid"] in self.process, e
            assert pid_of.setdefault(e["tid"], e["pid"]) == e["pid"], e
            if track in last:
                before, before_dur = last[track]
                assert before <= start, ("not sorted by start", e)
                # Of two that start together the longer one is first; one of no length may precede it.
                assert before < start or before_dur >= dur or before_dur == 0, ("ties", e)
            last[track] = (start, dur)
            stack = stacks[track]
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or stack[-1] >= start + dur, ("neither behind nor inside", e)
            assert not stack or not self.thread[track].startswith("GPU "), ("nested on a stream", e)
            stack.append(start + dur)

    def _check_flows(self):
        ends = collections.defaultdict(list)
        spans = collections.defaultdict(set)
        for e in self.slices:
            spans[(e["pid"], e["tid"])].add((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
        starts = {track: sorted(s) for track, s in spans.items()}
        for e in self.events:
            if e["ph"] in "sf":
                ends[e["id"]].append(e)
        for flow, pair in ends.items():
            assert [e["ph"] for e in pair] == ["s", "f"], pair
            assert pair[1]["bp"] == "e" and pair[0]["cat"] == pair[1]["cat"], pair
            assert ns(pair[0]["ts"]) <= ns(pair[1]["ts"]), pair
            for e in pair:
                at = ns(e["ts"])
                assert any(a <= at <= b for a, b in self._near(starts[(e["pid"], e["tid"])], at)), e
        return len(ends)

    @staticmethod
    def _near(spans, at):
        import bisect
        i = bisect.bisect_right(spans, (at, float("inf")))
        return spans[max(0, i - 8):i]
