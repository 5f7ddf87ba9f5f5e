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


main()
