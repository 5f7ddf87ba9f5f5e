# SPDX-License-Identifier: Apache-2.0
"""What the style checks share: the project's files, and C without comments and strings."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("LAGGARD_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
TOPS = ("cli", "tracer", "merge", "viz", "schema", "tests")


def sources(*suffixes):
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path, path.relative_to(ROOT).as_posix()


def blank(text):
    """C text with comments and literals blanked out, same line numbers."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def hide(match):
        token = match[0]
        if token[0] in "\"'":
            return token[0] * 2
        return "\n" * token.count("\n") or " "

    return pattern.sub(hide, text)


def functions(text):
    """(name, first line, lines, body) of each function whose braces stand in column 0."""
    lines = blank(text).split("\n")
    name, start = "", None
    for i, line in enumerate(lines, 1):
        if start is None:
            if line.startswith("{"):
                start = i
            elif re.match(r"[A-Za-z_].*\w\(", line) and not line.startswith(("#", "typedef")):
                name = re.match(r".*?(\w+)\(", line)[1]
        elif line.startswith("}"):
            if not line.startswith("};"):
                yield name, start, i - start - 1, "\n".join(lines[start : i - 1])
            start = None


class Report:
    """Collects complaints; ends the program with 1 when there are any."""

    def __init__(self, what):
        self.what, self.n_bad, self.n_seen = what, 0, 0

    def bad(self, where, text):
        self.n_bad += 1
        print(f"{where}: {text}")

    def end(self):
        print(f"{self.what}: {self.n_seen} looked at, {self.n_bad} complaints")
        sys.exit(1 if self.n_bad or not self.n_seen else 0)
