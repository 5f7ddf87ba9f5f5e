#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipeline schedules and their bubbles, event by event, written from the papers' rules (GPipe; 1F1B of
PipeDream and Megatron; interleaved 1F1B in Megatron's order) and from nothing of laggard's, so that what
laggard says can be checked against it. As a module: simulate() and ladder(). As a program: --self-test,
or one schedule with equal stages:

    oracle.py --schedule 1f1b --stages 4 --microbatches 8 --forward 8 --backward 16 --transfer 0.1
"""
import argparse
import heapq
import random
import statistics
import sys
from collections import namedtuple

GPIPE, ONE_F_ONE_B, INTERLEAVED = "gpipe", "1f1b", "interleaved"

# One microbatch through one chunk of a stage's layers, in one direction.
Block = namedtuple("Block", "backward chunk mb")

# order, stages, microbatches, chunks of the model per stage.
Shape = namedtuple("Shape", "order p m v")

# What one stage did: times from the window's begin. bubble = window - busy = warm_up + steady + cool_down.
StageTimes = namedtuple("StageTimes", "busy bubble warm_up steady cool_down")


def blocks_in_order(shape, stage):
    """The order in which a stage executes its blocks."""
    p, m, v = shape.p, shape.m, shape.v
    total = m * v

    def nth(k, backward):
        # Rounds of p microbatches; in a round chunk after chunk, backwards from the last chunk.
        chunk = (k % (p * v)) // p
        return Block(backward, v - 1 - chunk if backward else chunk, k // (p * v) * p + k % p)

    if shape.order == GPIPE:
        warm = total
    elif shape.order == ONE_F_ONE_B:
        warm = min(p - stage - 1, total)
    else:
        if m % p:
            raise ValueError("interleaved 1F1B needs a multiple of the stages as microbatches")
        warm = min((p - stage - 1) * 2 + (v - 1) * p, total)
    if shape.order != INTERLEAVED:
        forwards = [Block(False, 0, k) for k in range(m)]
        backwards = [Block(True, 0, k) for k in range(m)]
    else:
        forwards = [nth(k, False) for k in range(total)]
        backwards = [nth(k, True) for k in range(total)]
    order = forwards[:warm]
    for i in range(total - warm):
        order += [forwards[warm + i], backwards[i]]
    return order + backwards[total - warm:]


def consumer(shape, stage, block):
    """(stage, block) that needs the result of this one, or None. Part c x p + s of the model is chunk c
    of stage s; the last part's forward feeds its own backward."""
    part = block.chunk * shape.p + stage
    if block.backward:
        return None if part == 0 else ((part - 1) % shape.p, Block(True, (part - 1) // shape.p, block.mb))
    if part == shape.p * shape.v - 1:
        return stage, Block(True, block.chunk, block.mb)
    return (part + 1) % shape.p, Block(False, (part + 1) // shape.p, block.mb)


class Timeline:
    """Start and end of every block, and what follows from them."""

    def __init__(self, shape, start, end):
        self.start, self.end = start, end
        self.begin = min(t for s in start for t in s.values())
        self.finish = max(t for s in end for t in s.values())
        self.window = self.finish - self.begin
        self.stages = [self.of_stage(s) for s in range(shape.p)]

    def of_stage(self, stage):
        start, end = self.start[stage], self.end[stage]
        busy = sum(end[b] - start[b] for b in start)
        warm_up = min(t for b, t in start.items() if not b.backward) - self.begin
        cool_down = self.finish - max(t for b, t in end.items() if b.backward)
        bubble = self.window - busy
        return StageTimes(busy, bubble, warm_up, bubble - warm_up - cool_down, cool_down)


# What a message takes. It moves when its send and its receive have both started. Then the receive ends
# after `recv`; the send ends after `send`, or, when it is eager, that long after its own start.
Message = namedtuple("Message", "recv send eager")


def streams(stage, sends, backward):
    """Sends and receives of either direction beside each other."""
    return stage, sends, backward


def communicators(stage, sends, backward):
    """One communicator for forwards and one for backwards over all stages: what uses the same one
    follows each other, whatever its stream."""
    del sends
    return stage, backward


# One kernel: its messages as (key, whether it sends), in which key = (stage, block) names the message by
# what it carries, and the (stage, block) that must have ended before it starts, or None. Several messages
# in one kernel end together.
Op = namedtuple("Op", "parts after")


def batched(stage, sends, backward):
    """One kernel for each send and the receive that follows it, all of a stage in one lane. It starts
    when the block before it has ended."""
    del sends, backward
    return stage


def ops_in_order(shape, orders, lane):
    """{lane: its operations}, in the order of the program, which receives before a block and sends after
    it."""
    source = {consumer(shape, s, b): (s, b) for s in range(shape.p) for b in orders[s]}
    lanes = {}
    for s, order in enumerate(orders):
        def comes(b):
            return [(source[s, b], False)] if source.get((s, b), (s,))[0] != s else []

        def goes(b):
            return [((s, b), True)] if (consumer(shape, s, b) or (s,))[0] != s else []
        if lane is batched:
            ops = [Op(comes(order[0]), None)]
            ops += [Op(goes(b) + comes(then), (s, b)) for b, then in zip(order, order[1:])]
            ops.append(Op(goes(order[-1]), (s, order[-1])))
            lanes[lane(s, None, None)] = [op for op in ops if op.parts]
            continue
        for b in order:
            if comes(b):
                lanes.setdefault(lane(s, False, b.backward), []).append(Op(comes(b), None))
            if goes(b):
                lanes.setdefault(lane(s, True, b.backward), []).append(Op(goes(b), (s, b)))
    return lanes


class Network:
    """Executes sends and receives: those of a lane one after the other."""

    def __init__(self, shape, orders, message, lane, at, ready):
        self.shape, self.message, self.at, self.ready = shape, message, at, ready
        self.queues = ops_in_order(shape, orders, lane)
        self.produced = {None}
        self.running = {name: None for name in self.queues}  # parts that have not ended
        self.started = {}  # part -> its lane

    def begin(self, now):
        for name in self.queues:
            self.try_start(now, name)

    def done(self, now, stage, block):
        self.produced.add((stage, block))
        for name, queue in self.queues.items():
            if queue and queue[0].after == (stage, block):
                self.try_start(now, name)

    def try_start(self, now, name):
        queue = self.queues[name]
        if self.running[name] is not None or not queue or queue[0].after not in self.produced:
            return
        called = max(self.ready(*part) for part in queue[0].parts) if self.ready else now
        if called > now:
            self.at(called, "called", name)
            return
        self.running[name] = len(queue[0].parts)
        for key, sends in queue[0].parts:
            self.started[key, sends] = name
            what, other = self.message(*key), self.started.get((key, not sends))
            if sends and what.eager:
                self.at(now + what.send, "part ends", name)
            if other is None:
                continue
            if not what.eager:
                self.at(now + what.send, "part ends", name if sends else other)
            self.at(now + what.recv, "part ends", other if sends else name)

    def part_ends(self, now, name):
        """The blocks that may go on, when that was the last part."""
        self.running[name] -= 1
        if self.running[name]:
            return []
        self.running[name] = None
        op = self.queues[name].pop(0)
        self.try_start(now, name)
        return [consumer(self.shape, *key) for key, sends in op.parts if not sends]


def simulate(shape, duration, message=None, ready=None, lane=streams, message_ready=None):
    """Runs one step. duration(stage, block); message(stage, block) with that block's result, beside the
    compute of both ends, without it arriving at once; ready(stage, block): no block starts before;
    message_ready((stage, block), sends): nor its send or receive. All in one unit. Stages compute one block at a time, in the schedule's order, as soon as its input is
    there."""
    orders = [blocks_in_order(shape, s) for s in range(shape.p)]
    position = [0] * shape.p
    free_at = [0] * shape.p          # when the stage has finished what it did
    arrived = [{} for _ in orders]   # inputs
    running = [False] * shape.p
    start, end = [{} for _ in orders], [{} for _ in orders]
    events, n_events = [], 0

    def at(time, what, *args):
        nonlocal n_events
        heapq.heappush(events, (time, n_events, what, args))
        n_events += 1

    def try_start(stage):
        if running[stage] or position[stage] == len(orders[stage]):
            return
        block = orders[stage][position[stage]]
        first_of_model = not block.backward and block.chunk == 0 and stage == 0
        if not first_of_model and block not in arrived[stage]:
            return
        begin = max(free_at[stage], arrived[stage].get(block, 0), ready(stage, block) if ready else 0)
        running[stage] = True
        position[stage] += 1
        start[stage][block] = begin
        at(begin + duration(stage, block), "done", stage, block)

    network = Network(shape, orders, message, lane, at, message_ready) if message else None
    if network:
        network.begin(0)
    for s in range(shape.p):
        try_start(s)
    while events:
        now, _, what, args = heapq.heappop(events)
        if what == "called":
            network.try_start(now, *args)
            continue
        if what == "part ends":
            for stage, block in network.part_ends(now, *args):
                arrived[stage][block] = now
                try_start(stage)
            continue
        stage, block = args
        end[stage][block] = free_at[stage] = now
        running[stage] = False
        target = consumer(shape, stage, block)
        if target and (target[0] == stage or not network):
            arrived[target[0]][target[1]] = now
            try_start(target[0])
        if network:
            network.done(now, stage, block)
        try_start(stage)
    if any(position[s] != len(orders[s]) for s in range(shape.p)):
        raise RuntimeError("the schedule waits for itself")
    return Timeline(shape, start, end)


# --- the ladder -----------------------------------------------------------------------------------

RUNGS = ("imbalance", "slow_ranks", "variation", "send_recv", "host")

# What really happened in one step of one pipeline: per stage {block: duration}, {block: Message with its
# result}, {block: earliest start by the host, from the window's begin}; the window and the time that
# each stage worked in it; {((stage, block), sends): earliest start of sends and receives by the host}.
Step = namedtuple("Step", "durations messages ready window busy message_ready", defaults=({},))


class Medians:
    """Medians of forwards and backwards per chunk: of each rank, and of each stage over its ranks
    (replicas of the pipeline) that are not stragglers. `runs[replica][step]`; stragglers: {(replica,
    stage)}."""

    def __init__(self, shape, runs, stragglers=()):
        self.shape, self.of_rank, self.of_stage = shape, {}, {}
        for s in range(shape.p):
            pool = {}
            good = [g for g in range(len(runs)) if (g, s) not in stragglers] or range(len(runs))
            for g, steps in enumerate(runs):
                own = {}
                for step in steps:
                    for block, ns in step.durations[s].items():
                        own.setdefault((block.backward, block.chunk), []).append(ns)
                for kind, values in own.items():
                    self.of_rank[g, s, kind] = statistics.median(values)
                    if g in good:
                        pool.setdefault(kind, []).extend(values)
            for kind, values in pool.items():
                self.of_stage[s, kind] = statistics.median(values)

    def balanced(self, backward):
        values = [ns for (_, (back, _)), ns in self.of_stage.items() if back == backward]
        return sum(values) / len(values)


def ladder(shape, medians, replica, step, lane=streams):
    """Per stage {rung: ns of bubble}: "ideal", the increments of RUNGS in that order, "residual", and
    "measured", their sum. Messages, and what waits in their lanes, belong to send_recv and host alone."""

    def of_rank(s, b):
        return medians.of_rank[replica, s, (b.backward, b.chunk)]

    def of_stage(s, b):
        return medians.of_stage[s, (b.backward, b.chunk)]

    def real(s, b):
        return step.durations[s][b]

    def message(s, b):
        return step.messages[s][b]

    def ready(s, b):
        return step.ready[s].get(b, 0)

    replays = [simulate(shape, lambda s, b: medians.balanced(b.backward)),
               simulate(shape, of_stage),
               simulate(shape, of_rank),
               simulate(shape, real),
               simulate(shape, real, message, None, lane),
               simulate(shape, real, message, ready, lane,
                        lambda key, sends: step.message_ready.get((key, sends), 0))]
    out = []
    for s in range(shape.p):
        bubbles = [r.stages[s].bubble for r in replays]
        row = {"ideal": bubbles[0]}
        for i, name in enumerate(RUNGS):
            row[name] = bubbles[i + 1] - bubbles[i]
        row["measured"] = step.window - step.busy[s]
        row["residual"] = row["measured"] - bubbles[-1]
        row["ideal_share"] = bubbles[0] / replays[0].window
        out.append(row)
    return out


# --- self-test ------------------------------------------------------------------------------------

def near(a, b, what):
    if abs(a - b) > 1e-9 * max(1, abs(a), abs(b)):
        raise AssertionError(f"{what}: {a} is not {b}")


def uniform(shape, f, b, **more):
    """Stages of equal work; f and b are a stage's, over all its chunks."""
    return simulate(shape, lambda _, block: (b if block.backward else f) / shape.v, **more)


def check_closed_forms():
    n = 0
    for order in (GPIPE, ONE_F_ONE_B, INTERLEAVED):
        for p in range(1, 7):
            for rounds in (1, 2, 3, 5):
                for v in (2, 3, 4) if order == INTERLEAVED else (1,):
                    m = rounds * p if order == INTERLEAVED else p - 1 + rounds
                    shape, f, b = Shape(order, p, m, v), 3.0, 7.0
                    if order == INTERLEAVED and p == 1:
                        continue
                    t = uniform(shape, f, b)
                    bubble = (p - 1) * (f + b) / v
                    for s, st in enumerate(t.stages):
                        where = f"{shape}, stage {s}"
                        near(st.busy, m * (f + b), f"{where}: busy")
                        near(st.bubble, bubble, f"{where}: bubble")
                        near(st.bubble / t.window, (p - 1) / (v * m + p - 1), f"{where}: share")
                        near(st.bubble / st.busy, (p - 1) / (v * m), f"{where}: overhead")
                        near(st.warm_up, s * f / v, f"{where}: warm-up")
                        near(st.cool_down, s * b / v, f"{where}: cool-down")
                        near(st.steady, (p - 1 - s) * (f + b) / v, f"{where}: between")
                        n += 1
    return n


def check_orders():
    """Small cases as the papers draw them."""
    def text(shape, stage):
        return " ".join("FB"[b.backward] + str(b.mb) + ("abc"[b.chunk] if shape.v > 1 else "")
                        for b in blocks_in_order(shape, stage))
    cases = {
        (Shape(GPIPE, 2, 3, 1), 0): "F0 F1 F2 B0 B1 B2",
        (Shape(ONE_F_ONE_B, 4, 4, 1), 0): "F0 F1 F2 F3 B0 B1 B2 B3",
        (Shape(ONE_F_ONE_B, 4, 5, 1), 2): "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
        (Shape(ONE_F_ONE_B, 4, 3, 1), 3): "F0 B0 F1 B1 F2 B2",
        (Shape(ONE_F_ONE_B, 4, 2, 1), 0): "F0 F1 B0 B1",
        (Shape(INTERLEAVED, 2, 4, 2), 0):
            "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a",
        (Shape(INTERLEAVED, 2, 4, 2), 1):
            "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a",
    }
    for (shape, stage), want in cases.items():
        got = text(shape, stage)
        if got != want:
            raise AssertionError(f"{shape}, stage {stage}: {got}, not {want}")
    return len(cases)


def longest_path(shape, duration, message, ready, lane, message_ready):
    """The same rules as equations, relaxed until nothing changes."""
    orders = [blocks_in_order(shape, s) for s in range(shape.p)]
    lanes = ops_in_order(shape, orders, lane)
    end = {(s, b): 0 for s in range(shape.p) for b in orders[s]}
    arrival, start = {}, {}  # of inputs; of parts
    changed = True
    while changed:
        changed = False
        for ops in lanes.values():
            before = 0
            for op in ops:
                begin = max(before, end[op.after] if op.after else 0, *(message_ready(*part) for part in op.parts))
                ends = []
                for key, sends in op.parts:
                    changed |= start.get((key, sends)) != begin
                    start[key, sends] = begin
                    both, what = max(begin, start.get((key, not sends), 0)), message(*key)
                    if sends:
                        ends.append((begin if what.eager else both) + what.send)
                    else:
                        ends.append(both + what.recv)
                before = max(ends)
                arrival.update({consumer(shape, *key): before for key, sends in op.parts if not sends})
        for s, order in enumerate(orders):
            before = 0
            for b in order:
                last = shape.p * shape.v - 1
                own = end[s, b._replace(backward=False)] if b.backward and b.chunk * shape.p + s == last else 0
                now = max(before, own, arrival.get((s, b), 0), ready(s, b)) + duration(s, b)
                changed |= now != end[s, b]
                end[s, b] = before = now
    return end


def check_random():
    n = 0
    for seed in range(120):
        rng = random.Random(seed)
        p = rng.randint(2, 5)
        order = rng.choice((GPIPE, ONE_F_ONE_B, INTERLEAVED))
        v = rng.randint(2, 3) if order == INTERLEAVED else 1
        shape = Shape(order, p, rng.randint(1, 3) * p, v)
        lane = streams if order == INTERLEAVED else rng.choice((streams, communicators, batched))

        def message():
            recv = rng.randint(0, 20)
            return Message(recv, recv - rng.randint(0, min(2, recv)), rng.random() < 0.3)
        table = {(s, b): (rng.randint(1, 50), message(), rng.randint(0, 300))
                 for s in range(p) for b in blocks_in_order(shape, s)}
        fns = [lambda s, b, i=i: table[s, b][i] for i in range(3)]
        called = {(key, sends): rng.choice((0, rng.randint(0, 300))) for key in table for sends in (False, True)}
        fns += [lane, lambda key, sends: called[key, sends]]
        t = simulate(shape, *fns)
        for (s, b), want in longest_path(shape, *fns).items():
            near(t.end[s][b], want, f"seed {seed}, {shape}, stage {s}, {b}")
        n += 1
    return n


def check_known_cases():
    def taking(t):
        return lambda s, block: Message(t, t, False)
    # GPipe of unequal stages: through the pipeline once, then the slowest stage's pace, each way.
    f, b = (3, 5, 4, 2), (7, 6, 9, 8)
    t = simulate(Shape(GPIPE, 4, 6, 1), lambda s, block: (b if block.backward else f)[s])
    near(t.window, sum(f) + sum(b) + 5 * (max(f) + max(b)), "unequal stages")
    # Transfers shorter than a forward are paid once a hop, each way.
    t = uniform(Shape(GPIPE, 4, 6, 1), 3, 7, message=taking(2))
    near(t.window, 9 * (3 + 7) + 3 * 2 * 2, "GPipe with transfers")
    # Longer ones set the pace.
    t = uniform(Shape(GPIPE, 2, 4, 1), 3, 7, message=taking(10))
    near(t.window, 3 + 4 * 10 + 3 + 7 + 4 * 10 + 7, "transfers longer than work")
    # A stage between two that receives only when it has sent pays two transfers a microbatch.
    t = uniform(Shape(GPIPE, 3, 6, 1), 3, 7, message=taking(2), lane=communicators)
    near(t.window, 8 * (3 + 7) + 2 * 2 * 2 + 2 * 5 * 2 * 2, "one communicator a direction")
    # A receive that comes only after the block before it is paid every time, each way.
    t = uniform(Shape(GPIPE, 2, 4, 1), 3, 7, message=taking(2), lane=batched)
    near(t.window, 5 * (3 + 7) + 2 * 4 * 2, "one kernel for both")
    # 1F1B on two stages: of two microbatches one crosses, each way, while nobody has work.
    for m in (4, 8):
        t = uniform(Shape(ONE_F_ONE_B, 2, m, 1), 3, 7, message=taking(1))
        near(t.window, (m + 1) * 10 + m, "1F1B with transfers")
    near(t.stages[1].warm_up, 4, "warm-up with a transfer")
    # A host that comes late with one block delays what follows it.
    late = Block(False, 0, 2)
    t = uniform(Shape(GPIPE, 1, 4, 1), 3, 7, ready=lambda s, block: 20 if block == late else 0)
    near(t.stages[0].bubble, 20 - 6, "late host")
    return 9


def steps_of(shape, rng, factors, sigma, hop):
    """One step per call, as it would have been measured."""
    durations = [{b: (16e6 if b.backward else 8e6) / shape.v * factors[s] * rng.gauss(1, sigma)
                  for b in blocks_in_order(shape, s)} for s in range(shape.p)]
    messages = [{b: Message(hop, hop, False) for b in blocks_in_order(shape, s)} for s in range(shape.p)]
    ready = [{} for _ in range(shape.p)]
    t = simulate(shape, lambda s, b: durations[s][b], lambda s, b: messages[s][b])
    return Step(durations, messages, ready, t.window, [st.busy for st in t.stages])


def check_ladder():
    n = 0
    for shape in (Shape(GPIPE, 4, 8, 1), Shape(ONE_F_ONE_B, 4, 8, 1), Shape(INTERLEAVED, 2, 4, 2)):
        rng = random.Random(7)
        ideal = (shape.p - 1) / (shape.v * shape.m + shape.p - 1)
        light, heavy = [1] * shape.p, [1] * (shape.p - 1) + [1.3]
        cases = {  # stages' factors in each of two replicas, noise, transfer, stragglers, rung that shows
            "nothing": (light, light, 0, 0, (), None),
            "imbalance": (heavy, heavy, 0, 0, (), "imbalance"),
            "slow_ranks": (light, heavy, 0, 0, {(1, shape.p - 1)}, "slow_ranks"),
            "variation": (light, light, 0.1, 0, (), "variation"),
            "send_recv": (light, light, 0, 2e6, (), "send_recv"),
        }
        for name, (a, b, sigma, hop, stragglers, shows) in cases.items():
            runs = [[steps_of(shape, rng, fs, sigma, hop) for _ in range(3)] for fs in (a, b)]
            medians = Medians(shape, runs, stragglers)
            rows = ladder(shape, medians, 1, runs[1][0])
            for row in rows:
                near(row["ideal"] + sum(row[r] for r in RUNGS) + row["residual"], row["measured"],
                     f"{shape}, {name}: sum")
                near(row["residual"] / 1e6, 0, f"{shape}, {name}: residual")
                if sigma == 0:
                    near(row["ideal_share"], ideal, f"{shape}, {name}: ideal")
            for rung in RUNGS:
                size = max(abs(row[rung]) for row in rows) / runs[1][0].window
                if (size > 0.01) != (rung == shows) and not (sigma and rung != shows and size < 0.05):
                    raise AssertionError(f"{shape}, {name}: rung {rung} is {size:.4f} of the window")
            n += 1
    return n


def self_test():
    counts = [check() for check in (check_closed_forms, check_orders, check_random, check_known_cases,
                                    check_ladder)]
    print(f"{sum(counts)} cases: closed forms {counts[0]}, orders {counts[1]}, against equations {counts[2]}, "
          f"known {counts[3]}, ladders {counts[4]}")


def main():
    parser = argparse.ArgumentParser(description="Bubbles of a pipeline schedule with equal stages.")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--schedule", choices=(GPIPE, ONE_F_ONE_B, INTERLEAVED), default=ONE_F_ONE_B)
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--forward", type=float, default=1, help="of a stage, all its chunks, and a microbatch")
    parser.add_argument("--backward", type=float, default=2)
    parser.add_argument("--transfer", type=float, default=0)
    a = parser.parse_args()
    if a.self_test:
        self_test()
        return
    shape = Shape(a.schedule, a.stages, a.microbatches, a.chunks)
    t = uniform(shape, a.forward, a.backward, message=lambda s, b: Message(a.transfer, a.transfer, False))
    print(f"window {t.window:g}")
    for s, st in enumerate(t.stages):
        order = " ".join("FB"[b.backward] + str(b.mb) for b in blocks_in_order(shape, s))
        print(f"stage {s}: busy {st.busy:g}, bubble {st.bubble:g} ({100 * st.bubble / t.window:.2f} %): warm-up "
              f"{st.warm_up:g}, steady {st.steady:g}, cool-down {st.cool_down:g}\n  {order}")


if __name__ == "__main__":
    sys.exit(main())
