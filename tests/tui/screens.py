# SPDX-License-Identifier: Apache-2.0
"""Scripted screens beside their goldens (tests/tui/golden). LAGGARD_UPDATE=1 writes them anew: look at
the difference before committing it."""
import difflib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE / "golden"
WIDE, CLASSIC, TINY = (105, 28), (80, 24), (20, 5)

# name: view, size, ascii, keys
CASES = {
    "overview-80": ("overview", CLASSIC, 0, ""),
    "overview-105": ("overview", WIDE, 0, ""),
    "overview-ascii": ("overview", CLASSIC, 1, ""),
    "overview-20": ("overview", TINY, 0, ""),
    "timeline-80": ("timeline", CLASSIC, 0, ""),
    "timeline-105-open": ("timeline", WIDE, 0, "Down Down Down Down Down Enter Right Right Right"),
    "timeline-ascii": ("timeline", CLASSIC, 1, ""),
    "timeline-20": ("timeline", TINY, 0, ""),
    "timeline-fit": ("timeline", CLASSIC, 0, "0"),
    "timeline-late": ("timeline", WIDE, 0, "n Enter Down Down Down"),
    "timeline-bubble-zoom": ("timeline", WIDE, 0, "b + + + +"),
    "timeline-stage": ("timeline", CLASSIC, 0, "f"),
    "timeline-closed": ("timeline", CLASSIC, 0, "E"),
    "timeline-goto": ("timeline", CLASSIC, 0, ": s t e p Space 3 Enter : r 5 Enter"),
    "timeline-find": ("timeline", CLASSIC, 0, "/ flash Enter"),
    "timeline-measure": ("timeline", CLASSIC, 0, "Right Space Right Right Right"),
    "pipeline-80": ("pipeline", CLASSIC, 0, ""),
    "pipeline-200": ("pipeline", (200, 60), 0, "f ] Down Right Right"),
    "pipeline-ascii": ("pipeline", CLASSIC, 1, ""),
    "stragglers-80": ("stragglers", CLASSIC, 0, ""),
    "stragglers-105": ("stragglers", WIDE, 0, "Down Down Down Down Down"),
    "stragglers-20": ("stragglers", TINY, 0, ""),
    "stragglers-groups": ("stragglers", CLASSIC, 0, "E"),
    "evidence": ("overview", CLASSIC, 0, "Enter Enter"),
    "collectives-80": ("collectives", CLASSIC, 0, ""),
    "collectives-evidence": ("collectives", CLASSIC, 0, "Enter"),
    "kernels-80": ("kernels", CLASSIC, 0, "s s r"),
    "kernels-evidence": ("kernels", CLASSIC, 0, "Down Enter"),
    "trust-80": ("trust", CLASSIC, 0, ""),
    "trust-60": ("trust", (60, 30), 1, ""),
    "help-80": ("timeline", CLASSIC, 0, "?"),
    "prompt": ("timeline", CLASSIC, 0, "/ gem"),
    "too-small": ("overview", (19, 4), 0, ""),
    "print-overview": ("overview", (100, 0), 0, ""),
    "print-stragglers": ("stragglers", (100, 0), 0, ""),
    "print-timeline": ("timeline", (100, 0), 1, ""),
}


def screen(view, size, ascii_only, keys):
    done = subprocess.run([os.environ["LAGGARD_TUI_SCREENS"], view, str(size[0]), str(size[1]),
                           str(ascii_only), keys], capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{view} {size} {keys!r}: exit code {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def main():
    update = os.environ.get("LAGGARD_UPDATE") == "1"
    bad = 0
    for name, case in CASES.items():
        text, file = screen(*case), GOLDEN / f"{name}.txt"
        if update:
            GOLDEN.mkdir(exist_ok=True)
            file.write_text(text)
            continue
        if case[2] and not text.isascii():
            print(f"{name}: not ASCII")
            bad += 1
        if case[1][1] and text.count("\n") != case[1][1]:
            print(f"{name}: {text.count(chr(10))} lines")
            bad += 1
        want = file.read_text() if file.exists() else ""
        if text != want:
            bad += 1
            sys.stdout.writelines(difflib.unified_diff(
                want.splitlines(True), text.splitlines(True), f"golden/{name}.txt", "now"))
    leftover = {file.stem for file in GOLDEN.glob("*.txt")} - set(CASES)
    if leftover:
        print(f"goldens without a case: {sorted(leftover)}")
        bad += 1
    print(f"{len(CASES)} screens, {bad} differ")
    sys.exit(bad > 0)


main()
