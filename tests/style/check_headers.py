# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone."""
import os
import subprocess
import tempfile

from lib_source import ROOT, Report, sources


def main():
    report = Report("headers")
    generated = os.path.join(os.environ.get("LAGGARD_BUILD", ""), "generated")
    cuda = [f"-isystem{d}" for d in os.environ.get("LAGGARD_CUDA_INCLUDE", "").split(":") if d]
    with tempfile.TemporaryDirectory() as tmp:
        for path, rel in sources(".h"):
            report.n_seen += 1
            unit = os.path.join(tmp, "unit.c")
            with open(unit, "w", encoding="utf-8") as out:
                out.write(f'#include "{rel}"\n#include "{rel}"\n')
            result = subprocess.run(
                ["cc", "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{generated}", f"-I{path.parent}", *cuda,
                 "-fsyntax-only", unit], capture_output=True, text=True)
            if result.returncode:
                report.bad(rel, result.stderr.split("error: ", 1)[-1].split("\n")[0])
    report.end()


main()
