#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of .lag files, written from laggard-trace(5) and record.def and from nothing else,
so that the C reader and writer can be checked against it. Prints one JSON object per record, or with
--summary the number of records by kind. As a module: read(path) -> Trace."""
import json
import os
import re
import struct
import sys

NONE = None
NOT_RECORDED = -(1 << 63)
CHUNK, PAGE, FIRST = 65536, 4096, 8192
MAGIC, CHUNK_MAGIC = 0x0A1A476C2067616C, 0x4B4E4843
KINDS = 64
DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schema/record/record.def")


def crc_table():
    table = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
        table.append(c)
    return table


TABLE = crc_table()


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ TABLE[(c ^ b) & 0xFF]
    return c ^ 0xFFFFFFFF


def load_kinds():
    kinds = {}
    fields = None
    for line in open(DEF):
        m = re.match(r"LAG_RECORD\((\w+), (\d+)\)", line)
        if m:
            fields = []
            kinds[int(m.group(2))] = (m.group(1), fields)
        m = re.match(r"LAG_FIELD\(\w+, (\w+), (\w+)\)", line)
        if m and fields is not None:
            fields.append((m.group(1), m.group(2)))
    return kinds


RECORDS = load_kinds()


class Bad(Exception):
    pass


def varint(data, at, end):
    value = shift = 0
    while True:
        if at >= end or shift > 63:
            raise Bad("varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            if value >> 64:
                raise Bad("varint")
            return value, at
        shift += 7


def signed(v):
    v &= (1 << 64) - 1
    return v - (1 << 64) if v >> 63 else v


def unzigzag(v):
    return (v >> 1) ^ -(v & 1)


class Field:
    """State of a COUNT, UINT, INT, OPT, STR or HASH field."""

    def __init__(self, kind):
        self.next = self.before = 0
        self.recorded = kind == "STR"
        self.counts = kind == "COUNT"

    def take(self, number):
        """number: None where the bit is clear."""
        if number == 0:
            self.recorded = not self.recorded
        elif number is not None:
            value = signed(self.next + unzigzag(number))
            self.recorded = value != NOT_RECORDED
            if self.recorded:
                self.next = value
        if not self.recorded:
            return NONE
        value = self.next
        if value == NOT_RECORDED:
            return NONE
        if self.counts:
            step = signed(value - self.before)
            self.before = value
            self.next = signed(value + (step if 0 <= step <= 7 else 1))
        return value


class Kind:
    """What a chunk's earlier records of a kind leave behind."""

    def __init__(self, fields, time):
        self.maps = []
        self.time = time
        self.fields = [Field(kind) for _, kind in fields]


class Chunk:
    """Decodes the records of one chunk."""

    def __init__(self, data, at, end, base):
        self.data, self.at, self.end, self.time = data, at, end, base
        self.kinds = {}

    def varint(self):
        value, self.at = varint(self.data, self.at, self.end)
        return value

    def map_of(self, state, where):
        if where == 3:
            bits = self.varint()
            if bits >> 24:
                raise Bad("map")
        else:
            if where >= len(state.maps):
                raise Bad("map not given")
            bits = state.maps.pop(where)
        state.maps = [bits] + state.maps[:2]
        return bits

    def record(self):
        """One record: (name, fields)."""
        head = self.data[self.at]
        self.at += 1
        number = head & 63
        if number == 0:
            raise Bad("no record")
        name, fields = RECORDS.get(number, ("unknown", []))
        state = self.kinds.setdefault(number, Kind(fields, self.time))
        bits = self.map_of(state, head >> 6)
        out = {}
        time = state.time
        for i, (field, kind) in enumerate(fields):
            v = self.varint() if bits >> i & 1 else None
            if kind == "TIME":
                time = signed(time + unzigzag(v or 0))
                out[field] = time if time != NOT_RECORDED else NONE
                self.time = time
            elif kind == "AFTER":
                if v is not None:
                    time = signed(time + v)
                out[field] = NONE if v is None or time == NOT_RECORDED else time
            else:
                out[field] = state.fields[i].take(v)
        state.time = time
        for i in range(len(fields), 24):
            if bits >> i & 1:
                self.varint()
        if name == "string":
            n = self.varint()
            if n > 32768 or self.at + n > self.end:
                raise Bad("cut string")
            out["text"] = bytes(self.data[self.at:self.at + n]).decode("utf-8", "surrogateescape")
            self.at += n
        return name, out


class Trace:
    def __init__(self, path, texts=True):
        self.path, self.texts = path, texts
        self.records = []  # (producer, tid, name, fields); with texts, STR fields are texts
        self.damage = []
        self.data = data = open(path, "rb").read()
        if len(data) < FIRST:
            raise Bad("%s: shorter than its header" % path)
        head = struct.unpack_from("<QIIIIQQq16s64s", data, 0)
        if head[0] != MAGIC:
            raise Bad("%s: no trace" % path)
        if head[1] != 2:
            raise Bad("%s: version %d" % (path, head[1]))
        raw = bytearray(data[:struct.calcsize("<QIIIIQQq16s64s")])
        raw[20:24] = b"\0\0\0\0"
        if crc32c(raw) != head[4]:
            raise Bad("%s: header checksum" % path)
        self.version, self.pid, self.start_ns = head[1], head[5], head[7]
        self.host = head[9].split(b"\0")[0].decode()
        words = struct.unpack_from("<%dQ" % (KINDS + 32 + KINDS + 3), data, PAGE)
        self.lost = words[:KINDS]
        self.lost_reason = words[KINDS:KINDS + 32]
        self.written = words[KINDS + 32:KINDS + 32 + KINDS]
        self.hook_ns, self.thread_ns, self.clean_exit = words[-3:]
        chunks = []
        for at in range(FIRST, len(data), CHUNK):
            if at + 64 > len(data):
                break
            h = struct.unpack_from("<IIIIQqQIIIIQ", data, at)
            if h[9] == 0 and h[8] == 0 and h[0] in (0, CHUNK_MAGIC):
                continue
            if (h[0] != CHUNK_MAGIC or h[1] != (at - FIRST) // CHUNK or h[8] > CHUNK - 64
                    or h[9] not in (1, 2)):
                self.damage.append("chunk header at %#x" % at)
                continue
            chunks.append((h[2], h[3], at, h))
        chunks.sort()
        strings = {}
        expected = {}
        for producer, seq, at, h in chunks:
            if seq != expected.get(producer, 0):
                self.damage.append("producer %d: chunk %d is missing" % (producer, seq - 1))
            expected[producer] = seq + 1
            self.chunk(producer, at, h, strings.setdefault(producer, {0: ""}))

    def chunk(self, producer, at, h, strings):
        data, pos = self.data, at + 64
        end, n = pos + h[8], 0
        if end > len(data):
            self.damage.append("chunk at %#x is cut" % at)
            end = len(data)
        elif h[9] == 2 and crc32c(data[at:at + 48] + data[pos:end]) != h[10]:
            self.damage.append("chunk checksum at %#x" % at)
            return
        chunk = Chunk(data, pos, end, h[5])
        while chunk.at < end:
            pos = chunk.at
            try:
                name, fields = chunk.record()
            except Bad as e:
                self.damage.append("record at %#x: %s" % (pos, e))
                return
            n += 1
            if name == "string":
                strings[fields["id"]] = fields["text"]
                self.records.append((producer, h[4], name, fields))
                continue
            for field, kind in RECORDS_BY_NAME.get(name, ()):
                if kind == "STR" and self.texts:
                    if fields[field] not in strings:
                        self.damage.append("record at %#x: no string %s" % (pos, fields[field]))
                    fields[field] = strings.get(fields[field], "?")
            self.records.append((producer, h[4], name, fields))
        if h[9] == 2 and n != h[7]:
            self.damage.append("chunk at %#x: %d records, header says %d" % (at, n, h[7]))

    def of(self, name):
        return [f for _, _, k, f in self.records if k == name]

    def counts(self):
        out = {}
        for _, _, name, _ in self.records:
            out[name] = out.get(name, 0) + 1
        return out


RECORDS_BY_NAME = {name: fields for name, fields in RECORDS.values()}


def read(path, texts=True):
    return Trace(path, texts)


def main():
    args = [a for a in sys.argv[1:] if a != "--summary"]
    for path in args:
        trace = read(path)
        if "--summary" in sys.argv:
            print(json.dumps({"file": path, "host": trace.host, "pid": trace.pid,
                              "clean_exit": trace.clean_exit, "counts": trace.counts(),
                              "lost": sum(trace.lost), "damage": trace.damage}))
            continue
        for producer, tid, name, fields in trace.records:
            print(json.dumps({"producer": producer, "tid": tid, "record": name, **fields}))
        for text in trace.damage:
            print(json.dumps({"damage": text}))


if __name__ == "__main__":
    main()
