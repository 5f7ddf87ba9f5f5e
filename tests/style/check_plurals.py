# SPDX-License-Identifier: Apache-2.0
"""A number and its word agree: no "1 ranks". Where a format names a count and a word in the plural right
behind it, the word comes from LAG_PLURAL. Messages of what is out of reach (no memory, more than a limit)
name limits, not counts."""
import re

from lib_source import Report, sources

NUMBER = r"%(?:\d+)?(?:zu|zd|llu|lld|lu|ld|u|d)"
COUNTED = re.compile(r"(?<!of )" + NUMBER + r" (?:(?:communication|process|framework|more) )?([a-z]{3,}s)\b")
LIMIT = re.compile(r"(no|out of) memory|1 to %|(more|larger|fewer|less|later) than|at least|at most|up to |table %|impossible")
SAME = {"does", "has", "was", "this", "its", "ends", "begins", "bytes", "differs", "process", "carries"}
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"((?:\s*(?:PRI\w+)?\s*"(?:\\.|[^"\\\n])*")*)')


def texts(source):
    """String literals with their line, pieces joined, PRId64 and its kin as %d."""
    source = re.sub(r'%"\s*PRI\w+\s*"', "%d", source)
    for match in LITERAL.finditer(source):
        yield source.count("\n", 0, match.start()) + 1, "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match[0]))


def main():
    report = Report("plurals")
    for path, rel in sources(".c", ".h"):
        if rel.split("/")[0] not in ("cli", "merge", "viz", "schema"):
            continue
        report.n_seen += 1
        for line, text in texts(path.read_text()):
            for match in COUNTED.finditer(text):
                if match[1] not in SAME and not LIMIT.search(text):
                    report.bad(f"{rel}:{line}", f"'{match[0]}' may be of one: use LAG_PLURAL")
    report.end()


main()
