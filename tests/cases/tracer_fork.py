# SPDX-License-Identifier: Apache-2.0
"""Children of a recorded process: forked, vforked and cloned ones are silent and unharmed; one that
execs and works on the GPU itself writes its own file. _exit is an orderly end."""
import lib_record as r


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        plain = r.run([r.app("forks")])
        done = r.record(tmp("a"), [r.app("forks")])
        r.equal((done.returncode, done.stdout, done.stderr), (0, plain.stdout, plain.stderr), "forks")
        trace = r.one(tmp("a"))
        names = [x["name"] for x in trace.of("range")]
        r.check("in the child" not in names, "a child wrote into its parent's trace")
        r.check("after the children" in names, "the parent goes on recording")
        r.equal(trace.clean_exit, 1, "the parent's end")
        done = r.record(tmp("b"), [r.app("forks"), r.app("fastexit"), "4"])
        r.equal(done.returncode, 0, "forks with exec")
        two = r.traces(tmp("b"))
        r.equal(sorted(len(t.of("kernel")) for t in two), [3, 4], "kernels of parent and exec'd child")
        r.equal([t.clean_exit for t in two], [1, 1], "both ended in order, one by _exit")
        r.check(len({t.pid for t in two}) == 2, "a file for each process")
        r.equal(r.record(tmp("c"), [r.app("forks"), "early"]).returncode, 0, "children that work")
        three = r.traces(tmp("c"))
        r.equal(sorted(len(t.of("kernel")) for t in three), [1, 2, 3], "a file for each child, none for the parent")
        # A recorded process that becomes another program: the old file stays as it was.
        done = r.record(tmp("d"), ["sh", "-c", f"exec {r.app('fastexit')} 2"])
        r.equal((done.returncode, len(r.one(tmp("d")).of("kernel"))), (0, 2), "exec")


main()
