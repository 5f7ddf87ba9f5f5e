# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the layers of the architecture, and the one place of each foreign library."""
import re

from lib_source import Report, blank, sources

# Longest matching prefix decides what a file may include of ours.
ALLOWED = {
    "schema/base": ("schema/base",),
    "schema/record": ("schema/base", "schema/record"),
    "schema/trace": ("schema/base", "schema/record", "schema/trace"),
    "schema/db": ("schema/base", "schema/record", "schema/db", "schema/sql"),
    "schema": ("schema/env.h",),
    "tracer": ("tracer", "schema/base", "schema/record", "schema/trace", "schema/env.h", "schema/libs.def",
               "schema/launchers.def"),
    "merge": ("merge", "schema"),
    "viz/model": ("viz/model", "schema"),
    "viz/analysis": ("viz/analysis", "viz/model", "schema"),
    "viz/render": ("viz/render", "viz/model", "viz/analysis/analysis.h", "schema"),
    "viz/plot": ("viz/plot", "viz/model", "viz/analysis/analysis.h", "schema"),
    "viz/export": ("viz/export", "viz/model", "schema"),
    "viz/tui": ("viz/tui", "viz/model", "viz/analysis/analysis.h", "schema"),
    "cli": ("cli", "merge", "viz", "schema"),
    "tests": ("tests", "cli", "tracer", "merge", "viz", "schema"),
}
TOPS = ("schema", "tracer", "merge", "viz", "cli", "tests")
# Foreign header (pattern) -> the only places.
FOREIGN = (
    (r"sqlite3\.h", ("schema/db/", "tests/bench/")),
    (r"archive(_entry)?\.h", ("merge/archive.c", "merge/members.c", "merge/pack.c", "merge/unpack.c")),
    (r"isa-l(/.*)?\.h", ("merge/gzip.c", "viz/export/export_gzip.c", "tests/bench/")),
    (r"zlib\.h", ("merge/gzip.c", "viz/export/export_gzip.c", "tests/")),
    (r"(ncursesw?/)?n?curses\.h", ("viz/tui/term.c", "viz/tui/term_ending.c")),
    (r"cairo.*\.h", ("viz/plot/",)),
    (r"mpi\.h", ("merge/mpi_",)),
    (r"(cuda|cuda_runtime.*|driver_types|cupti.*)\.h", ("tracer/cupti", "tests/")),
    (r"nccl\.h", ("tracer/nccl", "tests/")),
    (r"nvtx3/.*", ("tracer/nvtx", "tests/")),
    (r"cmocka\.h", ("tests/",)),
)


def rule_for(rel):
    best = max((p for p in ALLOWED if rel.startswith(p + "/")), key=len)
    return ALLOWED[best]


def allowed(target, rules):
    return any(target == r or target.startswith(r + "/") for r in rules)


def main():
    report = Report("includes")
    for path, rel in sources(".c", ".h", ".def"):
        report.n_seen += 1
        text = path.read_text(errors="replace")
        for n, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if not match:
                continue
            target = match[2]
            if ".." in target.split("/"):
                report.bad(f"{rel}:{n}", f"include from the repository's root, not {target}")
            first = target.split("/")[0]
            if first in TOPS and not allowed(target, rule_for(rel)):
                report.bad(f"{rel}:{n}", f"this folder must not include {target}")
            in_tests = rel.startswith("tests/")
            if match[1] == '"' and first not in TOPS and not in_tests:
                report.bad(f"{rel}:{n}", f'"{target}" does not start at the repository\'s root')
            for pattern, places in FOREIGN:
                if re.fullmatch(pattern, target) and not rel.startswith(places):
                    report.bad(f"{rel}:{n}", f"{target} is only for {', '.join(places)}")
        code = blank(text)
        if not rel.startswith(("cli/", "tests/", "tracer/")):
            for match in re.finditer(r"\b(exit|abort|perror|_exit|printf|puts)\s*\(", code):
                line = code.count("\n", 0, match.start()) + 1
                report.bad(f"{rel}:{line}", f"{match[1]}() below cli: only cli prints and ends the program")
    report.end()


main()
