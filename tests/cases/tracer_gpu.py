# SPDX-License-Identifier: Apache-2.0
"""GPU and NCCL records against the simulator's truth: every kernel of an operation is linked to it, times
are the device's to the nanosecond, communicators are the same on all members, and the arguments are
those of the call. With every CUPTI layout since 11.8."""
import json
import os
import subprocess
import sys

import lib_record as r

FUNC = {"ncclAllReduce": 1, "ncclAllGather": 2, "ncclReduceScatter": 3, "ncclSend": 9, "ncclRecv": 10}
SEND, RECV = 9, 10
EVENT_RECORD, STREAM_WAIT = 1, 2


def run(tmp, name, *args, env=None):
    out = tmp(name)
    extra = {"PIPETRAIN_RDV": tmp.path, **(env or {})}
    done = r.record(out, [r.SIMRUN, "-n", "4", "--hosts", "2", "--truth", tmp(name + ".truth"), "--",
                          r.app("pipetrain"), "--pp", "2", "--dp", "2", "--steps", "4", "--fwd-us", "500", *args],
                    env=r.environment(extra))
    r.equal((done.returncode, done.stderr), (0, b""), f"{name}")
    found = {t.of("process")[0]["rank"]: t for t in r.traces(out)}
    r.equal(sorted(found), [0, 1, 2, 3], "ranks")
    for t in found.values():
        r.equal((sum(t.lost), t.clean_exit), (0, 1), f"losses and end of {t.path}")
    return found


def links(trace):
    """op or group id -> kernels, through external ids and correlations."""
    kernels = {}
    for k in trace.of("kernel"):
        kernels.setdefault(k["correlation"], []).append(k)
    out = {}
    for e in trace.of("external"):
        r.equal(e["kind"], 5, "kind of external ids")
        out.setdefault(e["id"], []).extend(kernels.get(e["correlation"], []))
    return out


def comms_of(trace):
    comms = {}
    for c in trace.of("comm"):
        comms.setdefault(c["comm_id"], {}).update({k: v for k, v in c.items() if v is not None})
    return comms


def check_operations(found, truth):
    expected = {}
    for op in truth["operations"]:
        for x in op["ranks"]:
            key = (x["rank"], op["func"], op["seq"], op["peer"], op["bytes"])
            expected.setdefault(key, []).append((x["start_shown_ns"], x["end_shown_ns"]))
    seen = {}
    for rank, trace in found.items():
        linked, comms = links(trace), comms_of(trace)
        for op in trace.of("op"):
            comm = comms[op["comm_id"]]
            r.check(0 <= comm["comm_rank"] < comm["n_ranks"], "own rank in the communicator")
            peer = op["peer"] if op["func"] in (SEND, RECV) else None
            seen.setdefault((comm["hash"], op["func"], op["seq"], op["count"], op["datatype"]), []).append(
                (rank, comm["comm_rank"], peer, comm["n_ranks"]))
            kernels = linked.get(op["group_id"] or op["op_id"], [])
            r.check(kernels, f"rank {rank}: operation {op} has no kernel")
            r.check(all("nccl" in k["name"] for k in kernels), "operations are linked to NCCL's kernels")
            r.check(all(k["stream"] == op["stream"] for k in kernels) or op["group_id"], "stream of the kernels")
        ends = {e["op_id"]: e for e in trace.of("op_end")}
        for op in trace.of("op"):
            r.check(ends[op["op_id"]]["result"] == 0 and ends[op["op_id"]]["leave_ns"] >= op["enter_ns"], "returns")
        ids = {k["correlation"] for ks in linked.values() for k in ks}
        loose = [k for k in trace.of("kernel") if "nccl" in k["name"] and k["correlation"] not in ids]
        r.equal(loose, [], f"NCCL kernels of rank {rank} without an operation")
        # The device's own times, as CUPTI shows them.
        true_times = sorted(t for key, ts in expected.items() if key[0] == rank for t in ts)
        shown = sorted({(k["start_ns"], k["end_ns"]) for ks in linked.values() for k in ks})
        r.equal(shown, sorted(set(true_times)), f"times of rank {rank}")
    for key, members in seen.items():
        if key[1] not in (SEND, RECV):
            r.equal(sorted(m[1] for m in members), list(range(members[0][3])), f"members of {key}")
    sends = {(k[0], k[2], k[3], m[1], m[2]) for k, ms in seen.items() if k[1] == SEND for m in ms}
    recvs = {(k[0], k[2], k[3], m[2], m[1]) for k, ms in seen.items() if k[1] == RECV for m in ms}
    r.check(sends and sends == recvs, "every send meets its receive")


def check_edges(trace):
    syncs = trace.of("sync")
    calls = {a["correlation"]: a for a in trace.of("api")}
    recorded = {s["correlation"] for s in syncs if s["kind"] == EVENT_RECORD}
    waits = [s for s in syncs if s["kind"] == STREAM_WAIT]
    r.check(recorded and waits, "event edges are recorded")
    for s in syncs:
        if s["kind"] == EVENT_RECORD:
            r.equal(s["start_ns"], calls[s["correlation"]]["start_ns"], "an event record's time")
    known = [w for w in waits if w["record_correlation"] is not None]
    r.check(len(known) >= 0.9 * len(waits), f"{len(known)} of {len(waits)} waits know what they wait for")
    r.check(all(w["record_correlation"] in recorded for w in known), "they wait for a recording that is there")


def main():
    r.need_simgpu()
    with r.Folder() as tmp:
        for name, args in (("plain", []), ("grouped", ["--batch-p2p"]), ("allreduce", ["--grad-allreduce"])):
            found = run(tmp, name, *args)
            truth = json.load(open(tmp(name + ".truth", "truth.json")))
            check_operations(found, truth)
            check_edges(found[0])
            p = found[2].of("process")[0]
            r.equal((p["world_size"], p["local_rank"], p["rank_source"], p["host"]), (4, 0, "RANK", "simhost1"), "identity")
            r.equal(len({t.of("process")[0]["run_id"] for t in found.values()}), 1, "one run id")
            groups = found[0].of("group")
            r.equal(bool(groups), name == "grouped", "groups")
            for g in groups:
                ops = [o for o in found[0].of("op") if o["group_id"] == g["group_id"]]
                r.equal(len(ops), g["n_ops"], "operations of a group")
                r.check(g["enter_ns"] <= ops[0]["enter_ns"] <= g["launch_ns"] <= g["leave_ns"], "order in a group")
            devices = found[0].of("device")
            r.check(devices and devices[0]["name"] == "Simulated GPU" and devices[0]["uuid"], "devices")
            r.check(all(c["device"] == 0 for c in comms_of(found[0]).values()), "a communicator's device")
            r.check(all(c.get("nccl_hash") for c in comms_of(found[0]).values()), "NCCL's own hash")
            clocks = found[0].of("clock")
            r.check(len(clocks) >= 2 and all(abs(c["cupti_ns"] - c["realtime_ns"]) <= c["bracket_ns"] for c in clocks),
                    "clock readings")
        counts = None
        for version in ("11.8", "12.0", "12.4", "12.8", "13.0"):
            found = run(tmp, "v" + version, env={"SIMGPU_CUPTI_VERSION": version})
            c = {rank: [t.counts()[k] for k in ("kernel", "memcpy", "memset", "op", "external", "sync")]
                 for rank, t in found.items()}
            counts = counts or c
            r.equal(c, counts, f"records with CUPTI {version}")


main()
