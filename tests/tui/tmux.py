# SPDX-License-Identifier: Apache-2.0
"""A program in a real terminal: a private tmux server, keys in, screens out."""
import itertools
import os
import shutil
import subprocess
import sys
import time


def need_tmux():
    if not shutil.which("tmux"):
        print("skipped: tmux is not here")
        sys.exit(77)


class Session:
    """One program on one terminal of the given size. Use it in a `with` block."""

    numbers = itertools.count()

    def __init__(self, command, width, height, term, env=None):
        # A server that was told to end may still be there: none is met twice.
        self.socket = f"laggard-test-{os.getpid()}-{next(Session.numbers)}"
        self.command = command
        self.size = (width, height)
        environ = {"TERM": term, **(env or {})}
        self.prefix = ["env", *(f"{key}={value}" for key, value in environ.items())]

    def tmux(self, *args, check=True):
        return subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *args], check=check,
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout

    def __enter__(self):
        # The status line must be off before the program sees the size; the shell keeps the terminal
        # after the program has ended, so that what it left behind can be seen.
        self.tmux("start-server", ";", "set-option", "-g", "status", "off", ";", "new-session", "-d", "-x",
                  str(self.size[0]), "-y", str(self.size[1]), "--", *self.prefix, "sh", "-c",
                  '"$@"; echo "left with $?"; sleep 60', "sh", *self.command)
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)

    def capture(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def wait(self, what, seconds=10):
        """The screen once `what` (a text, or a function of the screen) holds; ends the test if not."""
        test = what if callable(what) else lambda text: what in text
        end = time.monotonic() + seconds
        while True:
            text = self.capture()
            if test(text):
                return text
            if time.monotonic() > end:
                sys.exit(f"{self.prefix[1]} {self.size}: never seen: {what}\n{text}")
            time.sleep(0.03)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def resize(self, width, height):
        self.size = (width, height)
        self.tmux("resize-window", "-x", str(width), "-y", str(height))
