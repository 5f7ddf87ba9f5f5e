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


def decode(data, at, end, last_time):
    """One record at data[at:end]: (name, fields, next offset, time base)."""
    kind = data[at]
    n, at = varint(data, at + 1, end)
    stop = at + n
    if stop > end:
        raise Bad("cut record")
    if kind not in RECORDS:
        if kind == 0 or kind >= KINDS:
            raise Bad("no record")
        return "unknown", {}, stop, last_time
    name, fields = RECORDS[kind]
    out = {}
    for field, kind in fields:
        if at >= stop:
            out[field] = 0 if kind == "STR" else NONE
            continue
        if kind == "HASH":
            if stop - at < 8:
                raise Bad("hash")
            out[field] = struct.unpack_from("<q", data, at)[0]
            at += 8
            continue
        v, at = varint(data, at, stop)
        if kind == "TIME":
            last_time = signed(last_time + unzigzag(v))
            out[field] = last_time
        elif kind == "AFTER":
            out[field] = NONE if v == 0 else signed(last_time + unzigzag(v - 1))
        elif kind == "INT":
            out[field] = unzigzag(v)
        elif kind == "OPT":
            out[field] = NONE if v == 0 else signed(v - 1)
        else:
            out[field] = v
    if name == "string":
        out["text"] = bytes(data[at:stop]).decode("utf-8", "replace")
    elif at != stop and name in RECORDS:
        pass  # fields newer than this reader
    return name, out, stop, last_time


class Trace:
    def __init__(self, path):
        self.path = path
        self.records = []  # (producer, tid, name, fields); STR fields are texts
        self.damage = []
        self.data = data = open(path, "rb").read()
        if len(data) < FIRST:
            raise Bad("%s: shorter than its header" % path)
        head = struct.unpack_from("<QIIIIQQq16s64s", data, 0)
        if head[0] != MAGIC:
            raise Bad("%s: no trace" % path)
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
            h = struct.unpack_from("<IIIIQqIIIIQQ", data, at)
            if h[7] == 0:
                continue
            if h[0] != CHUNK_MAGIC or h[1] != (at - FIRST) // CHUNK or h[6] > CHUNK - 64:
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
        end, time, n = pos + h[6], h[5], 0
        if end > len(data):
            self.damage.append("chunk at %#x is cut" % at)
            end = len(data)
        if h[7] == 2 and crc32c(data[pos:end]) != h[8]:
            self.damage.append("chunk checksum at %#x" % at)
            return
        while pos < end:
            try:
                name, fields, pos, time = decode(data, pos, end, time)
            except Bad as e:
                self.damage.append("record at %#x: %s" % (pos, e))
                return
            n += 1
            if name == "string":
                strings[fields["id"]] = fields["text"]
                self.records.append((producer, h[4], name, fields))
                continue
            for field, kind in RECORDS_BY_NAME.get(name, ()):
                if kind == "STR":
                    if fields[field] not in strings:
                        self.damage.append("record at %#x: no string %d" % (pos, fields[field]))
                    fields[field] = strings.get(fields[field], "?")
            self.records.append((producer, h[4], name, fields))
        if h[7] == 2 and n != h[9]:
            self.damage.append("chunk at %#x: %d records, header says %d" % (at, n, h[9]))

    def of(self, name):
        return [f for _, _, k, f in self.records if k == name]

    def counts(self):
        out = {}
        for _, _, name, _ in self.records:
            out[name] = out.get(name, 0) + 1
        return out


RECORDS_BY_NAME = {name: fields for name, fields in RECORDS.values()}


def read(path):
    return Trace(path)


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
