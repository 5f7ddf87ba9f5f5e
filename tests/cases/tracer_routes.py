# SPDX-License-Identifier: Apache-2.0
"""Ways to NCCL that interposition does not see (dlsym on a private handle, ctypes) are seen through
NCCL's own annotations; and the answers of NVIDIA's real libraries pass through us unchanged."""
import os
import sys

import lib_record as r

CTYPES = """
import ctypes, os
nccl = ctypes.CDLL('libnccl.so.2')
cuda = ctypes.CDLL('libcudart.so.13')
class Id(ctypes.Structure): _fields_ = [('b', ctypes.c_char * 128)]
uid, comm, stream = Id(), ctypes.c_void_p(), ctypes.c_void_p()
buf = ctypes.c_void_p()
def ok(rc): assert rc == 0, rc
ok(cuda.cudaSetDevice(0)); ok(cuda.cudaMalloc(ctypes.byref(buf), ctypes.c_size_t(4096)))
ok(cuda.cudaStreamCreate(ctypes.byref(stream)))
ok(nccl.ncclGetUniqueId(ctypes.byref(uid)))
ok(nccl.ncclCommInitRank(ctypes.byref(comm), 1, uid, 0))
for i in range(3):
    ok(nccl.ncclAllReduce(buf, buf, ctypes.c_size_t(256), 7, 0, comm, stream))
ok(nccl.ncclGroupStart())
for i in range(2):
    ok(nccl.ncclBroadcast(buf, buf, ctypes.c_size_t(64), 7, 0, comm, stream))
ok(nccl.ncclGroupEnd())
ok(cuda.cudaStreamSynchronize(stream))
print('done')
"""
CALL, NVTX = 1, 2


def simulated(tmp):
    r.need_simgpu()
    done = r.record(tmp("ctypes"), [sys.executable, "-c", CTYPES])
    r.equal((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""), "ctypes")
    t = r.one(tmp("ctypes"))
    ops = t.of("op")
    r.equal([(o["func"], o["seq"], o["sources"]) for o in ops], [(1, 0, NVTX), (1, 1, NVTX), (1, 2, NVTX),
                                                                (4, 3, NVTX), (4, 4, NVTX)], "operations of ctypes")
    r.equal([o["count"] for o in ops], [1024, 1024, 1024, 256, 256], "bytes")
    r.equal({e["op_id"] for e in t.of("op_end")}, {o["op_id"] for o in ops}, "they all end")
    comms = t.of("comm")
    r.check(comms and comms[0]["hash"] and comms[-1]["nccl_hash"], "the communicator is known by NCCL's hash")
    r.equal((comms[0]["n_ranks"], comms[0]["comm_rank"], comms[0]["device"]), (1, 0, 0), "what NCCL says of it")
    r.equal(len(t.of("group")), 1, "the group")
    r.check(all(o["group_id"] == t.of("group")[0]["group_id"] for o in ops[3:]), "operations of the group")


LOADER = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1], mode=int(sys.argv[2]))
lib.pt_small_work(4)
"""


THREADS = """
import ctypes, threading, time
cuda, libc = ctypes.CDLL('libcudart.so.13'), ctypes.CDLL(None)
buf = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(buf), ctypes.c_size_t(4096)) == 0
def work(name):
    libc.prctl(15, name)
    for i in range(4):
        assert cuda.cudaMemset(buf, 0, ctypes.c_size_t(4096)) == 0
        time.sleep(0.3)
threads = [threading.Thread(target=work, args=(n,)) for n in (b'pt_autograd_0', b'loader')]
for t in threads: t.start()
for t in threads: t.join()
"""


def threads(tmp):
    """Threads that only call CUDA have their names, too: backward passes are told by them."""
    done = r.record(tmp("threads"), [sys.executable, "-c", THREADS])
    r.equal((done.returncode, done.stderr), (0, b""), "threads")
    t = r.one(tmp("threads"))
    names = {x["tid"]: x["name"] for x in t.of("thread")}
    callers = {names.get(a["tid"]) for a in t.of("api") if a["name"] == "cudaMemset"}
    r.equal(callers, {"pt_autograd_0", "loader"}, "names of calling threads")


def loaded(tmp):
    """PyTorch's way: Python loads a library privately, which is linked to NCCL."""
    for mode in (os.RTLD_LOCAL | os.RTLD_NOW, os.RTLD_GLOBAL | os.RTLD_LAZY):
        out = tmp(f"loaded{mode}")
        done = r.record(out, [sys.executable, "-c", LOADER, r.app("libptsmall.so"), str(mode)])
        r.equal((done.returncode, done.stderr), (0, b""), "a library loaded at run time")
        t = r.one(out)
        r.equal([(o["func"], o["sources"], o["datatype"]) for o in t.of("op")], [(1, CALL, 7)] * 4, "its operations")
        r.equal(len(t.of("kernel")), 4, "its kernels")
        r.equal([x["name"] for x in t.of("range")], ["work"], "its annotations")


TWO = """
import ctypes, sys
small, fake = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
for n in range(1, 4):
    assert fake.pt_fake_work(n) == n
    small.pt_small_work(n)
"""


def two_copies(tmp):
    """Two libraries, each loaded privately with an NCCL of its own: every call gets to its own."""
    for first in (0, 1):
        libraries = [r.app("libptsmall.so"), r.app("libptfake.so")]
        script = TWO if first else TWO.replace("    assert fake", "    small.pt_small_work(1); assert fake")
        out = tmp(f"two{first}")
        done = r.record(out, [sys.executable, "-c", script, *libraries])
        r.equal((done.returncode, done.stderr), (0, b""), "two NCCLs")
        t = r.one(out)
        by_type = [o["datatype"] for o in t.of("op")]
        r.equal((by_type.count(0), by_type.count(7)), (6, 6 if first else 9), "operations of both")
        r.check({e["result"] for e in t.of("op_end")} == {0}, "none was refused")
        r.check({"key": "nccl_copies", "value": "2"} in t.of("meta"), "both are noticed")


def real(tmp):
    folder = r.need_real("libnccl.so.2")
    env = r.environment({"LD_LIBRARY_PATH": folder}, simulated=False)
    for args in ([], ["dlsym"]):
        argv = [r.app("ncclerrors"), *args]
        plain = r.run(argv, env)
        out = tmp("real" + "".join(args))
        traced = r.record(out, argv, env=env)
        r.check(plain.returncode == 0 and b"ncclAllReduce" in plain.stdout or args, "the program ran")
        r.equal((traced.returncode, traced.stdout), (plain.returncode, plain.stdout), f"answers of the real NCCL {args}")
    t = r.one(tmp("real"))
    r.check(any(m["key"] == "nccl" for m in t.of("meta")), "NCCL's version")
    r.equal((len(t.of("comm")), t.clean_exit), (0, 1), "no communicator came to be")
    # Real CUPTI and real runtime without a driver: the program's own error, unchanged.
    if os.path.exists(os.path.join(folder, "libcudart.so.13")):
        argv = [r.app("fastexit"), "3"]
        plain, traced = r.run(argv, env), r.record(tmp("nodriver"), argv, env=env)
        r.equal((traced.returncode, traced.stdout, traced.stderr), (plain.returncode, plain.stdout, plain.stderr),
                "a GPU program without a GPU")


def main():
    with r.Folder() as tmp:
        simulated(tmp)
        loaded(tmp)
        threads(tmp)
        two_copies(tmp)
        real(tmp)


main()
