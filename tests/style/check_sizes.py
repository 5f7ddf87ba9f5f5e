# SPDX-License-Identifier: Apache-2.0
"""Nothing grows beyond what one reads in one go: functions, files, headers, complexity."""
import re

from lib_source import Report, functions, sources

FUNCTION_LINES, FILE_LINES, HEADER_LINES, COMPLEXITY = 100, 800, 250, 25
BRANCH = re.compile(r"\b(if|for|while|case)\b|&&|\|\||\?")


def main():
    report = Report("sizes")
    for path, rel in sources(".c", ".h"):
        report.n_seen += 1
        text = path.read_text(errors="replace")
        n = text.count("\n")
        limit = HEADER_LINES if rel.endswith(".h") else FILE_LINES
        if n > limit:
            report.bad(rel, f"{n} lines, at most {limit}")
        if not text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n/* "):
            report.bad(f"{rel}:1", "begins with the SPDX line and a comment that says what it is")
        for name, line, length, body in functions(text):
            if length > FUNCTION_LINES:
                report.bad(f"{rel}:{line}", f"{name} has {length} lines, at most {FUNCTION_LINES}")
            complexity = 1 + len(BRANCH.findall(body))
            if complexity > COMPLEXITY:
                report.bad(f"{rel}:{line}", f"{name} has complexity {complexity}, at most {COMPLEXITY}")
    report.end()


main()
