# SPDX-License-Identifier: Apache-2.0
"""Annotations of a program without CUDA, through NVTX's own headers: each kind comes back as it was
given, on 200 threads nothing is lost, and open ranges are there."""
import lib_record as r

PUSH, START, MARK = 1, 2, 3


def kinds(trace):
    ranges, ends = trace.of("range"), trace.of("range_end")
    by_name = {}
    for x in ranges:
        by_name.setdefault((x["domain"], x["name"]), []).append(x)
    r.equal(sorted(by_name), sorted([("", n) for n in ("mark a", "mark w \u20ac", "push a", "push w", "start a",
                                                      "push ex", "mark ex", "left open")] +
                                    [("library", "registered"), ("library", "wide")]), "names")
    ex = by_name[("", "push ex")][0]
    r.equal((ex["kind"], ex["category"], ex["color"], ex["payload"]), (PUSH, "seventh", 0xff336699, 4711), "attributes")
    mark = by_name[("", "mark ex")][0]
    r.equal((mark["kind"], mark["category"], mark["payload"]), (MARK, "8", 5), "an unnamed category")
    r.equal(mark["start_ns"], mark["end_ns"], "a mark is a moment")
    registered = by_name[("library", "registered")]
    r.equal([x["kind"] for x in registered], [PUSH, MARK, START, START], "domain ranges")
    r.equal(registered[0]["category"], "library's seventh", "a domain's category")
    started = [x["id"] for x in registered if x["kind"] == START]
    r.equal([x["id"] for x in ends if x["kind"] == START and x["domain"] == "library"], started, "ends by id")
    pushes = [x for x in ranges if x["kind"] == PUSH]
    pops = [x for x in ends if x["kind"] == PUSH]
    r.equal(len(pushes) - len(pops), 1, "ranges left open")
    r.check(all(x["end_ns"] is None for x in pushes), "a push knows no end")
    r.check(any(t["name"] == "the one thread" for t in trace.of("thread")), "the thread's name")


def signals(tmp, env):
    """What a signal handler annotates while its thread is recording is lost, and counted as such."""
    done = r.record(tmp("s"), [r.app("nvtxall"), "signals"], "--nvtx", "always", env=env)
    r.equal(done.returncode, 0, "signals")
    program, handler = map(int, done.stdout.split())
    trace = r.one(tmp("s"))
    names = [x["name"] for x in trace.of("range")]
    lost = trace.lost_reason[9]
    r.equal(names.count("from the program"), program, "marks of the program")
    r.equal(names.count("from the handler") + lost, handler, "marks of the handler")
    r.check(lost < handler, "not all of them are lost")


def main():
    with r.Folder() as tmp:
        env = r.environment(simulated=False)
        r.equal(r.record(tmp("a"), [r.app("nvtxall")], "--nvtx", "always", env=env).returncode, 0, "nvtxall")
        trace = r.one(tmp("a"))
        kinds(trace)
        r.equal(trace.clean_exit, 1, "an orderly end")
        r.equal(r.record(tmp("b"), [r.app("nvtxall"), "200", "200"], "--nvtx", "always", env=env).returncode, 0,
                "200 threads")
        trace = r.one(tmp("b"))
        lost = sum(trace.lost)
        counts = trace.counts()
        r.equal((counts["range"], counts["range_end"], lost), (80000, 80000, 0), "annotations of 200 threads")
        r.equal(trace.written[20], 80000, "the counter of ranges")
        signals(tmp, env)
        # Each thread's ranges nest: replay the stack of every thread.
        depth = {}
        for _, _, name, f in trace.records:
            if name == "range":
                depth[f["tid"]] = depth.get(f["tid"], 0) + 1
                r.equal(f["name"], ("outer", "inner")[depth[f["tid"]] - 1], "nesting")
            elif name == "range_end":
                depth[f["tid"]] -= 1
        r.check(set(depth.values()) == {0}, "every range ends")


main()
