# SPDX-License-Identifier: Apache-2.0
"""Small Nsight Systems exports, made with SQLite: two processes of one node, each on a GPU of its own, which
compute and all-reduce in steps. Parts of the tables can be left out or be wrong on purpose."""
import os
import sqlite3
import struct

EPOCH = 1_780_000_000_000_000_000
COMM_ID = 0x8123456789ABCDEF
KERNELS, STEPS = 3, 10

OLD_KERNEL = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName",
              "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
NAMES = {1: "void gemm<float>(float*, int)", 2: "gemm", 3: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm)",
         4: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5: "cudaLaunchKernel_v7000", 6: "cudaGraphLaunch_v10000",
         7: "ncclAllReduce", 8: "NCCL", 9: "ncclCommInitRankConfig", 10: "ncclGroupStart", 11: "ncclGroupEnd",
         12: "ncclSend", 13: "ncclRecv", 14: "ncclDevKernel_SendRecv(ncclDevComm)", 15: "step"}


def global_pid(pid):
    return 1 << 48 | pid << 24


def payload(schema, *fields):
    body = b"".join(fields)
    return struct.pack("<QQQQ", 7, schema, len(body), 32) + body


def table(db, name, columns, rows):
    typed = [c if " " in c else f'"{c}" INTEGER' for c in columns]
    db.execute(f'CREATE TABLE "{name}" ({", ".join(typed)})')
    db.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)


def events(rank, late_us=0):
    """Kernels and calls of one process: (start, end, correlation, is NCCL, call's start)."""
    correlation = 100
    for step in range(STEPS):
        at = 1_000_000 * (step + 1)
        for k in range(KERNELS):
            correlation += 1
            yield at + 100_000 * k, at + 100_000 * k + 90_000, correlation, False, at - 50_000 + 1000 * k
        correlation += 1
        yield (at + 400_000 + 1000 * late_us * rank, at + 700_000, correlation, True, at - 10_000)


def kernel_rows(pids):
    for rank, pid in enumerate(pids):
        for start, end, correlation, nccl, _ in events(rank, 50):
            yield (start, end, rank, 1, 7 + 6 * nccl, correlation, global_pid(pid), 3 if nccl else 1,
                   4 if nccl else 2, 8, 1, 1, 128, 1, 1)


def api_rows(pids):
    for rank, pid in enumerate(pids):
        for _, _, correlation, _, call in events(rank, 50):
            yield call, call + 5000, global_pid(pid) | pid + 1000, correlation, 5, 0, 0


def nvtx_rows(pids):
    """What NCCL says: communicators at their creation, then each call, around its launch."""
    for rank, pid in enumerate(pids):
        thread = global_pid(pid) | pid + 1000
        yield 1, None, 75, thread, 8, None, 7, None
        yield (1000, 2000, 59, thread, 9, None, 7,
               payload(1, struct.pack("<Qiii4x", COMM_ID, len(pids), rank, rank)))
        for _, _, _, nccl, call in events(rank, 50):
            if nccl:
                yield (call - 2000, call + 8000, 59, thread, 7, None, 7,
                       payload(2, struct.pack("<QQi4x", COMM_ID, 4096, 0)))
        for step in range(STEPS):
            at = 1_000_000 * (step + 1)
            yield at - 60_000, at + 900_000, 59, thread, None, f"step {step}", 0, None


SCHEMA_ENTRIES = [(7, 1, 0, 18, "NCCL communicator ID", None), (7, 1, 1, 5, "No. of ranks", 8),
                  (7, 1, 2, 5, "Rank", 12), (7, 1, 3, 5, "CUDA device", 16),
                  (7, 2, 0, 18, "NCCL communicator ID", None), (7, 2, 1, 22, "Message size [bytes]", 8),
                  (7, 3, 0, 18, "NCCL communicator ID", None), (7, 3, 1, 22, "Message size [bytes]", 8),
                  (7, 3, 2, 5, "Peer rank", 16)]


def base(path, pids=(), host="node0", env=(), strings=True):
    """A report with everything but events."""
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = off")
    table(db, "META_DATA_EXPORT", ("name TEXT", "value TEXT"),
          [("EXPORT_PRODUCT_VERSION", "2022.4.1.21"), ("EXPORT_SCHEMA_VERSION", "2.7.2")])
    table(db, "META_DATA_CAPTURE", ("name TEXT", "value TEXT"),
          [("PROCESS_0:ENVIRONMENT_VARIABLE", f'{k}="{v}"') for k, v in env])
    table(db, "TARGET_INFO_SYSTEM_ENV", ("name TEXT", "value TEXT"), [("Hostname", host)])
    table(db, "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",), [(EPOCH,)])
    if pids:
        table(db, "PROCESSES", ("globalPid", "name TEXT"), [(global_pid(p), f"train{p}") for p in pids])
    if strings:
        table(db, "StringIds", ("id INTEGER NOT NULL PRIMARY KEY", "value TEXT"), NAMES.items())
    return db


def made(path, pids=(50, 51), payloads=True, **more):
    """The whole of it, in the columns of 2022."""
    db = base(path, pids, **more)
    table(db, "CUPTI_ACTIVITY_KIND_KERNEL", OLD_KERNEL, kernel_rows(pids))
    table(db, "CUPTI_ACTIVITY_KIND_RUNTIME",
          ("start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"), api_rows(pids))
    if payloads:
        table(db, "NVTX_EVENTS", ("start", "end", "eventType", "globalTid", "textId", "text TEXT", "domainId",
                                  "binaryData BLOB"), nvtx_rows(pids))
        table(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", ("domainId", "schemaId", "idx", "type", "name TEXT", "offset"),
              SCHEMA_ENTRIES)
    db.commit()
    return db
