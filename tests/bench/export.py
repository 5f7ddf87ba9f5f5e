# SPDX-License-Identifier: Apache-2.0
"""The Chrome exporter beside snprintf and zlib, on the same events of a made run."""
import pathlib
import tempfile

from lib_bench import BUILD, LAGGARD, heading, program, timed


def main():
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        work = pathlib.Path(folder)
        heading()
        timed(BUILD / "mktrace", "--out", work / "run", "--pp", "4", "--dp", "2", "--microbatches", "8",
              "--layers", "8", "--steps", "20")
        timed(LAGGARD, "merge", "-q", "-o", work / "run.db", work / "run")
        program("bench_export", True, work / "run.db", work)
    print("1 passed, 0 failed")


main()
