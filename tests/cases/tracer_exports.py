# SPDX-License-Identifier: Apache-2.0
"""The library gives away exactly the symbols of hooks.def, and needs nothing but libc."""
import re
import subprocess

import lib_record as r


def main():
    text = open(f"{r.SOURCE}/tracer/hooks.def").read()
    expected = set(re.findall(r"^LAG_(?:HOOK|DOOR)\((\w+)\)", text, re.M))
    nm = subprocess.run(["nm", "-D", "--defined-only", r.TRACER], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in nm.splitlines()}
    r.equal(exported, expected, "exported symbols")
    dyn = subprocess.run(["readelf", "-d", r.TRACER], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dyn)
    r.check(set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                            "ld-linux-aarch64.so.1"}, f"needed libraries: {needed}")
    undefined = subprocess.run(["nm", "-D", "--undefined-only", r.TRACER], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in undefined.stdout.splitlines()}
    # Hooks run where a lock or the allocator may be held: what they cannot call, they cannot get wrong.
    for banned in ("malloc", "calloc", "realloc", "free", "printf", "pthread_mutex_lock", "exit", "abort"):
        r.check(banned not in names, f"the tracer uses {banned}")


main()
