# SPDX-License-Identifier: Apache-2.0
"""Where there is no CUDA the tracer is not there: no file, no thread, no output, the same libraries'
functions."""
import os
import sys

import lib_record as r

COUNT_THREADS = "import os; print(len(os.listdir('/proc/self/task')))"


def main():
    with r.Folder() as tmp:
        for argv in (["bash", "-c", "echo hello; exit 3"], [sys.executable, "-c", COUNT_THREADS],
                     [r.app("nocuda"), "5"], [r.app("nvtxall")], ["sh", "-c", "true | cat; ls / > /dev/null"]):
            plain = r.run(argv, r.environment(simulated=False))
            out = tmp("run")
            traced = r.record(out, argv, env=r.environment(simulated=False))
            r.equal((traced.returncode, traced.stdout, traced.stderr),
                    (plain.returncode, plain.stdout, plain.stderr), f"{argv[0]} with the tracer")
            r.check(not os.path.exists(out), f"{argv[0]} left a run directory")
        # A directory that was there before stays, and stays empty.
        os.mkdir(tmp("mine"))
        r.equal(r.record(tmp("mine"), ["true"]).returncode, 0, "true")
        r.equal(os.listdir(tmp("mine")), [], "an empty directory")
        # The library alone, without the launcher, is dormant for good.
        env = r.environment({"LD_PRELOAD": r.TRACER, "NVTX_INJECTION64_PATH": r.TRACER})
        done = r.run([r.app("fastexit")], env, cwd=tmp.path)
        r.equal(done.returncode, 0, "a GPU program without LAGGARD_DIR")
        r.equal(sorted(os.listdir(tmp.path)), ["mine"], "files without LAGGARD_DIR")


main()
