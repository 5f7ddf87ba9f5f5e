# SPDX-License-Identifier: Apache-2.0
"""Communicators however they come to be: the same identity on every member, different ones for different
communicators, parents, sizes, own ranks and ends; and the arguments of every operation."""
import os

import lib_record as r

N = 4
FINALIZED, DESTROYED, ABORTED = 1, 2, 3
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, GATHER, SCATTER, SEND, RECV = range(1, 11)
# func, count, datatype, reduction, root: as nccllife calls them.
CALLS = [(ALL_REDUCE, 256, 7, 2, None), (REDUCE, 100, 8, 0, 1), (BROADCAST, 101, 0, None, 2),
         (BROADCAST, 102, 1, None, 3), (ALL_GATHER, 64, 9, None, None), (REDUCE_SCATTER, 64, 6, 1, None),
         (ALL_TO_ALL, 64, 2, None, None), (GATHER, 64, 4, None, 0), (SCATTER, 64, 5, None, 0)]


def latest(trace):
    comms = {}
    for c in trace.of("comm"):
        comms.setdefault(c["comm_id"], {}).update({k: v for k, v in c.items() if v not in (None, "")})
    return comms


def check_identity(found):
    members = {}
    for rank, t in found.items():
        comms = latest(t)
        r.equal(len(comms), {0: 6, 1: 6, 2: 6, 3: 4}[rank], f"communicators of rank {rank}")
        for c in comms.values():
            members.setdefault(c["hash"], []).append((rank, c["comm_rank"], c["n_ranks"], c.get("nccl_hash")))
            if "parent" in c:
                r.check(c["parent"] in comms, "the parent is known")
    # world, grouped; odd x 2, half x 2; some, fewer.
    r.equal(sorted(len(m) for m in members.values()), [2, 2, 2, 2, 3, 3, 4, 4], "members of communicators")
    for who in members.values():
        r.equal(sorted(x[1] for x in who), list(range(len(who))), "own ranks")
        r.check(all(x[2] == len(who) for x in who), "sizes")
        r.equal(len({x[3] for x in who if x[3]}) <= 1, True, "NCCL's hash is the same, too")
    groups = sorted(tuple(sorted(x[0] for x in who)) for who in members.values())
    r.equal(groups, [(0, 1), (0, 1, 2), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3), (0, 2), (1, 3), (2, 3)], "who is in what")


def check_operations(trace, rank):
    by_comm = {}
    for op in trace.of("op"):
        by_comm.setdefault(op["comm_id"], []).append(op)
    r.equal(len(by_comm), 2, "communicators with operations")
    for ops in by_comm.values():
        coll = [o for o in ops if o["func"] not in (SEND, RECV)]
        r.equal([(o["func"], o["count"], o["datatype"], o["redop"], o["peer"]) for o in coll], CALLS, "arguments")
        r.equal([o["seq"] for o in coll], list(range(len(CALLS))), "sequence numbers")
        p2p = [o for o in ops if o["func"] in (SEND, RECV)]
        r.equal([(o["func"], o["count"], o["peer"], o["seq"]) for o in p2p],
                [(SEND, 10, (rank + 1) % N, 0), (RECV, 10, (rank - 1) % N, 0),
                 (SEND, 20, (rank + 1) % N, 1), (RECV, 20, (rank - 1) % N, 1)], "sends and receives")
        r.equal(len({o["group_id"] for o in p2p}), 1, "nested groups are one")
        r.check(all(o["group_id"] is None for o in coll), "the others are in no group")
    r.equal([g["n_ops"] for g in trace.of("group")], [4, 4], "operations of groups")


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        os.mkdir(tmp("ids"))
        done = r.record(tmp("run"), [r.SIMRUN, "-n", str(N), "--", r.app("nccllife"), tmp("ids")])
        r.equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "nccllife")
        found = {t.of("process")[0]["rank"]: t for t in r.traces(tmp("run"))}
        r.equal(sorted(found), list(range(N)), "ranks")
        check_identity(found)
        for rank, t in found.items():
            check_operations(t, rank)
            states = [e["state"] for e in t.of("comm_event")]
            r.equal(states.count(ABORTED), 1, "aborted")
            r.equal(states.count(FINALIZED), 1, "finalized")
            r.equal(states.count(DESTROYED), {0: 5, 1: 5, 2: 5, 3: 3}[rank], "destroyed")
            r.equal((sum(t.lost), t.clean_exit), (0, 1), "losses and end")


main()
