# SPDX-License-Identifier: Apache-2.0
"""The real program on real terminals (tmux): every size and type it must work on, every view, colours,
resizing, unknown keys, leaving, signals."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tmux import Session, need_tmux

PROGRAM = [os.environ["LAGGARD_TUI_SCREENS"], "run"]
VIEWS = {"2": "compute ", "3": "pipeline 2 of 2", "4": "verdict", "5": "communicator", "6": "kernel",
         "7": "on record", "1": "Where"}


def check(condition, what):
    if not condition:
        sys.exit(what)


def every_view(width, height, term):
    with Session(PROGRAM, width, height, term) as session:
        session.wait("trust")
        for key, text in VIEWS.items():
            session.keys(key)
            screen = session.wait("trust" if height < 10 else text)
            check(all(len(line) <= width for line in screen.splitlines()), f"too wide in {term}")
        session.keys("?")
        session.wait("Keys in" if height >= 5 else "trust")
        session.keys("q")
        session.wait(lambda text: "Keys in" not in text)
        session.keys("q")
        session.wait("left with 0")


def interrupted():
    with Session(PROGRAM, 80, 24, "xterm-256color") as session:
        session.wait("trust")
        session.keys("2")
        session.wait("compute ")
        session.keys("C-c")
        session.wait("left with 0")


def killed():
    """By a signal from elsewhere: it ends by that signal, and the terminal is as it was."""
    modes = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag} #{keypad_flag}"
    for term in ("xterm-256color", "vt100"):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Session(PROGRAM, 80, 24, term) as session:
                session.wait("trust")
                shell, tty = session.tmux("display", "-p", "#{pane_pid} #{pane_tty}").split()
                program, = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
                os.kill(int(program), number)
                session.wait(f"left with {128 + number}")
                stty = subprocess.run(["stty", "-aF", tty], check=True, capture_output=True, text=True).stdout
                check(set(stty.split()) >= {"icanon", "echo", "icrnl", "isig"} and "intr = ^C" in stty, f"{term}: {stty}")
                now = session.tmux("display", "-p", modes)
                check(now.split() == ["0", "1", "0", "0", "0"], f"{term} after {number}: {now}")


def colours():
    for term, want in (("xterm-256color", r"\x1b\[[0-9;]*38;5;\d"), ("xterm", r"\x1b\[[0-9;]*3[1-7]m"),
                       ("vt100", None)):
        with Session(PROGRAM, 80, 24, term) as session:
            session.keys("2")
            session.wait("compute ")
            text = session.capture(colours=True)
            found = re.search(want or r"\x1b\[[0-9;]*(38;5|3[1-7]m)", text)
            check(bool(found) == bool(want), f"{term}: colours {'missing' if want else 'drawn'}")
    with Session(PROGRAM, 80, 24, "xterm-256color", {"NO_COLOR": "1"}) as session:
        session.wait("Where")
        check("38;5" not in session.capture(colours=True), "NO_COLOR is ignored")


def without_utf8():
    with Session(PROGRAM, 80, 24, "xterm", {"LC_ALL": "C"}) as session:
        session.keys("2")
        screen = session.wait("bubble")
        check(screen.isascii(), "not ASCII in the C locale")
        check("####" in screen, "no ASCII glyph for compute")


def session_of_a_user():
    with Session(PROGRAM, 80, 24, "xterm-256color") as session:
        session.wait("rank 5 (node2")
        session.keys("Enter")
        session.wait("compute v. peers")
        session.keys("Enter")
        session.wait("dur ")
        session.keys("/")
        session.type("flash")
        session.wait("/flash")
        session.keys("Enter")
        session.wait("flash_fwd_kernel")
        session.keys("+", "+", "F3", "M-x")  # two of them unknown: swallowed
        session.wait("flash_fwd_kernel")
        session.resize(200, 60)
        session.wait(lambda text: any(len(line) > 150 for line in text.splitlines()))
        session.resize(20, 5)
        session.wait(lambda text: "trust" in text and all(len(x) <= 20 for x in text.splitlines()))
        session.resize(10, 3)
        session.wait("needs 20x5")
        session.resize(80, 24)
        session.wait("flash_fwd_kernel")
        session.keys("q", "q", "q")
        session.wait("left with 0")


def main():
    need_tmux()
    for term in ("xterm", "xterm-256color", "vt100"):
        for width, height in ((80, 24), (200, 60), (20, 5)):
            every_view(width, height, term)
    interrupted()
    killed()
    colours()
    without_utf8()
    session_of_a_user()
    print("9 terminals, colours, ASCII, resizing and a whole session")


main()
