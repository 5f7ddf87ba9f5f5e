# SPDX-License-Identifier: Apache-2.0
"""What a training run really did in each step of its pipeline, from the truth that the simulator or
mktrace wrote, in the oracle's terms; and `laggard report bubbles` held against the oracle's ladder."""
import csv
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import oracle  # noqa: E402

LIMIT = 0.01  # of the window
# What is compared: the oracle's name, laggard's column.
COLUMNS = [("ideal", "ideal_ns"), ("measured", "measured_ns")] + [(r, r + "_ns") for r in (*oracle.RUNGS, "residual")]


# --- the simulated stack --------------------------------------------------------------------------

FORWARD_KERNELS, BACKWARD_KERNELS = 8, 12  # of a layer, tests/apps/pt_layer.c
BACKWARD_NAMES = ("_nn_align8", "_nt_align8", "flash_bwd", "layer_norm_grad", "GeluBackward", "SoftMaxBackward")


class SimTruth:
    """Runs of pipetrain with dp 2 and no tensor parallelism; SIMGPU_TRUTH_WORK must be set."""

    def __init__(self, folder, truth, shape, dp, layers):
        self.shape, self.dp, self.layers = shape, dp, layers
        self.folder, self.truth = pathlib.Path(folder), truth
        self.called = {}  # (rank, start of a communication kernel) -> when its host enqueued it
        self.blocks = [[self.blocks_of(s, s * dp + g) for s in range(shape.p)] for g in range(dp)]
        self.n_steps = len(self.blocks[0][0])
        self.messages = [self.messages_of(g) for g in range(dp)]

    def n_kernels(self, stage, block):
        n = (BACKWARD_KERNELS if block.backward else FORWARD_KERNELS) * self.layers[stage] // self.shape.v
        part = block.chunk * self.shape.p + stage
        return n + (part == 0) + (part == self.shape.p * self.shape.v - 1)  # embedding, loss

    def blocks_of(self, stage, rank):
        """Per step {block: its kernels}, from the order in which the program launched them. Copies come
        before a forward: they are not in the window that begins with it."""
        with open(self.folder / f"work.{rank}.csv", encoding="ascii") as f:
            rows = list(csv.DictReader(f))
        for row in rows:
            for column in ("launch", "enqueued_ns", "start_ns", "end_ns"):
                row[column] = int(row[column])
        rows.sort(key=lambda row: row["launch"])
        steps, todo = [], []
        order = oracle.blocks_in_order(self.shape, stage)
        for row in rows:
            if row["kind"] == "comm":
                self.called[rank, row["start_ns"]] = row["enqueued_ns"]
            if row["kind"] != "kernel" or "multi_tensor_apply" in row["name"]:
                continue
            if not todo:
                todo = [block for block in order for _ in range(self.n_kernels(stage, block))]
                steps.append({block: [] for block in order})
            block, todo = todo[0], todo[1:]
            if block.backward != any(name in row["name"] for name in BACKWARD_NAMES):
                raise RuntimeError(f"rank {rank}: {block} cannot hold {row['name']}")
            steps[-1][block].append(row)
        if todo:
            raise RuntimeError(f"rank {rank}: the last step lacks {len(todo)} kernels")
        return steps

    def messages_of(self, replica):
        """{(stage, step, block): (message with its result, when the hosts enqueued its send and receive)},
        k-th send to k-th receive of each flow."""
        members = {}
        for op in self.truth["operations"]:
            for m in op["ranks"]:
                members[op["comm"], m["comm_rank"]] = m["rank"]
        flows = {}
        for op in self.truth["operations"]:
            if op["func"] not in ("ncclSend", "ncclRecv"):
                continue
            m, send = op["ranks"][0], op["func"] == "ncclSend"
            peer = members[op["comm"], op["peer"]]
            src, dst = (m["rank"], peer) if send else (peer, m["rank"])
            if src % self.dp == replica:
                flow = flows.setdefault((src // self.dp, dst // self.dp, op["comm"]), ([], []))
                flow[0 if send else 1].append((m["start_true_ns"], m["end_true_ns"]))
        out, seen = {}, {}
        # Between two stages forwards begin before backwards.
        for (src, dst, _), (sends, recvs) in sorted(flows.items(), key=lambda item: min(item[1][0])):
            backward = seen.get((src, dst), self.shape.v == 1 and src > dst)
            seen[src, dst] = True
            blocks = [b for b in oracle.blocks_in_order(self.shape, src) if b.backward == backward and
                      (oracle.consumer(self.shape, src, b) or (src,))[0] != src]
            if len(sends) != len(recvs) or len(sends) != len(blocks) * self.n_steps:
                raise RuntimeError(f"stage {src} to {dst}: {len(sends)} sends, {len(recvs)} receives")
            for k, (send, recv) in enumerate(zip(sorted(sends), sorted(recvs))):
                both, eager = max(send[0], recv[0]), send[1] <= recv[0]
                out[src, k // len(blocks), blocks[k % len(blocks)]] = \
                    (oracle.Message(recv[1] - both, send[1] - (send[0] if eager else both), eager),
                     self.called[src * self.dp + replica, send[0]], self.called[dst * self.dp + replica, recv[0]])
        return out

    def step(self, replica, i):
        blocks = [stage[i] for stage in self.blocks[replica]]
        begin = min(rows[0]["start_ns"] for stage in blocks for rows in stage.values())
        finish = max(rows[-1]["end_ns"] for stage in blocks for rows in stage.values())
        durations = [{b: sum(r["end_ns"] - r["start_ns"] for r in rows) for b, rows in stage.items()}
                     for stage in blocks]
        messages, called = [{} for _ in blocks], {}
        for (s, k, b), (message, send, recv) in self.messages[replica].items():
            if k == i:
                messages[s][b] = message
                called.update({((s, b), True): send - begin, ((s, b), False): recv - begin})
        ready = [{b: max(0, rows[0]["enqueued_ns"] - begin) for b, rows in stage.items()} for stage in blocks]
        return oracle.Step(durations, messages, ready, finish - begin, [sum(d.values()) for d in durations], called)

    def steps(self):
        return [[self.step(g, i) for i in range(self.n_steps)] for g in range(self.dp)]


# --- mktrace ----------------------------------------------------------------------------------------


class MkTruth:
    """Runs of mktrace with --blocks and no tensor parallelism."""

    def __init__(self, truth):
        self.shape = oracle.Shape(*(truth["shape"][k] for k in ("schedule", "pp", "microbatches", "chunks")))
        self.dp, self.n_steps = truth["shape"]["dp"], truth["shape"]["steps"]
        self.blocks, self.messages = {}, {}
        for rank, step, chunk, mb, kind, start, end, busy, ready in truth["blocks"]:
            self.blocks.setdefault((rank, step), {})[oracle.Block(kind == "B", chunk, mb)] = (start, end, busy, ready)
        for src, _, step, chunk, mb, kind, send0, send1, recv0, recv1 in truth["messages"]:
            both, eager = max(send0, recv0), send1 <= recv0
            self.messages.setdefault((src, step), {})[oracle.Block(kind == "B", chunk, mb)] = \
                oracle.Message(recv1 - both, send1 - (send0 if eager else both), eager)

    def step(self, replica, i):
        ranks = [s * self.dp + replica for s in range(self.shape.p)]
        blocks = [self.blocks[r, i] for r in ranks]
        begin = min(b[0] for stage in blocks for b in stage.values())
        finish = max(b[1] for stage in blocks for b in stage.values())
        durations = [{b: t[2] for b, t in stage.items()} for stage in blocks]
        ready = [{b: max(0, t[3] - begin) for b, t in stage.items()} for stage in blocks]
        return oracle.Step(durations, [self.messages.get((r, i), {}) for r in ranks], ready, finish - begin,
                           [sum(d.values()) for d in durations])

    def steps(self):
        return [[self.step(g, i) for i in range(self.n_steps)] for g in range(self.dp)]


# --- the comparison -------------------------------------------------------------------------------

class Differences:
    """Largest difference per column, over everything compared."""

    def __init__(self):
        self.worst = {}

    def add(self, other):
        for column, value in other.worst.items():
            self.worst[column] = max(self.worst.get(column, 0), value)

    def text(self):
        return ", ".join(f"{c} {100 * v:.2f}" for c, v in self.worst.items())


def compare(report, steps, shape, dp, stragglers=(), lane=oracle.streams):
    """Laggard's rows against the oracle's, each column as a share of the window: per stage of each group
    the median over steps, so that one step in which the machine was busy with other things cannot
    decide. Returns (differences, what is wrong, the oracle's mean share per column)."""
    base = oracle.Medians(shape, steps, stragglers)
    rows = {(row["rank"], row["step"]): row for row in report["rows"]}
    diff, wrong, mean = Differences(), [], {}
    if len(rows) != len(report["rows"]) or len(rows) != shape.p * dp * len(steps[0]):
        wrong.append(f"{len(report['rows'])} rows for {shape.p * dp} ranks and {len(steps[0])} steps")
        return diff, wrong, mean
    first = min(row["step"] for row in report["rows"])
    for g in range(dp):
        ladders = [oracle.ladder(shape, base, g, step, lane) for step in steps[g]]
        for s in range(shape.p):
            mine = [rows[s * dp + g, first + i] for i in range(len(steps[g]))]
            for row in mine:
                total = row["ideal_ns"] + sum(row[r + "_ns"] for r in oracle.RUNGS) + row["residual_ns"]
                if total != row["measured_ns"]:
                    wrong.append(f"the ladder does not add up: {row}")
            for name, column in COLUMNS:
                said = statistics.median(row[column] / row["window_ns"] for row in mine)
                true = statistics.median(lad[s][name] / step.window for lad, step in zip(ladders, steps[g]))
                mean[name] = mean.get(name, 0) + true / (dp * shape.p)
                diff.worst[name] = max(diff.worst.get(name, 0), abs(said - true))
                if abs(said - true) > LIMIT:
                    wrong.append(f"group {g}, stage {s}: {name} {100 * said:.2f}, oracle {100 * true:.2f} points")
    return diff, wrong, mean
