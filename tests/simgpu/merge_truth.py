#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""merge_truth.py FOLDER: join truth.<rank>.json of all ranks into FOLDER/truth.json.

Per rank: the clock maps and what was injected. Per communicator and sequence number: function,
bytes, and [world rank, true start, true end, and both as that rank's CUPTI would show them].
"""
import glob
import json
import os
import re
import sys


def reported(rank, t):
    """What a device record of this rank shows for true time t."""
    c, d = rank["clock"], rank["device_error"]
    step = d["step_at_true_ns"]
    t += d["before_ns"] if step is None or t < step else d["after_ns"]
    since = t - c["mono0_ns"]
    return c["real0_ns"] + c["real_offset_ns"] + since + round(since * c["drift_ppm"] * 1e-6)


def merge(folder):
    ranks, comms = [], {}
    for path in sorted(glob.glob(os.path.join(folder, "truth.*.json"))):
        if not re.fullmatch(r"truth\.\d+(\.\d+)?\.json", os.path.basename(path)):
            continue
        with open(path) as f:
            one = json.load(f)
        for row in one.pop("comms"):
            o = dict(zip(one["comm_columns"], row))
            key = (o["comm"], o["func"], o["seq"], o["peer"] if o["peer"] >= 0 else -1,
                   o["comm_rank"] if o["func"] in ("ncclSend", "ncclRecv") else -1)
            op = comms.setdefault(key, {"comm": o["comm"], "func": o["func"], "seq": o["seq"],
                                        "peer": o["peer"], "bytes": o["bytes"],
                                        "nranks": o["nranks"], "ranks": []})
            op["ranks"].append({"rank": one["rank"], "comm_rank": o["comm_rank"],
                                "start_true_ns": o["start_true_ns"],
                                "end_true_ns": o["end_true_ns"],
                                "start_shown_ns": reported(one, o["start_true_ns"]),
                                "end_shown_ns": reported(one, o["end_true_ns"])})
        one.pop("comm_columns")
        ranks.append(one)
    return {"ranks": ranks, "operations": list(comms.values())}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = os.path.join(sys.argv[1], "truth.json")
    with open(out + ".tmp", "w") as f:
        json.dump(merge(sys.argv[1]), f, indent=0)
    os.replace(out + ".tmp", out)


if __name__ == "__main__":
    main()
