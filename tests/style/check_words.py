# SPDX-License-Identifier: Apache-2.0
"""No left-overs and no path of somebody's machine in what is shipped."""
import re
import subprocess

from lib_source import ROOT, Report

BAD = (
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "left-over"),
    (re.compile(r"not (yet )?implemented", re.I), "not done"),
    (re.compile(r"(^|[\s\"'(=])/(home|root|work)/\w"), "a path of one machine"),
)


def main():
    report = Report("words")
    try:
        files = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True,
                               check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        print("skipped: git cannot say here what is shipped")
        return
    for rel in filter(None, files):
        path = ROOT / rel
        if rel == "tests/style/check_words.py" or not path.is_file() or b"\0" in path.read_bytes()[:4096]:
            continue
        report.n_seen += 1
        for n, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for pattern, what in BAD:
                if pattern.search(line):
                    report.bad(f"{rel}:{n}", f"{what}: {line.strip()[:80]}")
    report.end()


main()
