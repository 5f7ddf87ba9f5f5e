# SPDX-License-Identifier: Apache-2.0
"""The manual's key table is the one of keys.def; LAGGARD_UPDATE=1 writes it there. No key is given
twice in one view, and every key of the table can be typed in a script."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("LAGGARD_SOURCE", "."))
PAGE = ROOT / "man/laggard-tui.1"
BEGIN, END = '.\\" keys begin: checked against viz/tui/keys.def\n', '.\\" keys end\n'
WHERE = {
    "LAG_AT_ANY": "Everywhere",
    "LAG_AT_OPEN": "Everywhere but in trust",
    "LAG_AT_FIND": "In the overview, the timeline and tables",
    "LAG_AT_TIMELINE": "In the timeline",
    "LAG_AT_TIME": "In the timeline and the pipeline",
    "LAG_AT_PIPELINE": "In the pipeline",
    "LAG_AT_ROWS": "In the timeline and the stragglers",
    "LAG_AT_TABLES": "In tables",
}


def lines():
    text = (ROOT / "viz/tui/keys.def").read_text()
    found = re.findall(
        r'^LAG_KEY\((\w+), "([^"]*)", (\w+), (\d+),\s*"([^"]*)",\s*"([^"]*)"\)', text, re.M)
    if len(found) != len(re.findall(r"^LAG_KEY\(", text, re.M)):
        sys.exit("keys.def has a line that this test cannot read")
    return found


def escape(key):
    return {".": "\\&.", ",": "\\&,", ";": "\\&;", ":": "\\&:", "(": "\\&(", "?": "\\&?",
            "[": "\\&[", "]": "\\&]", "-": "\\-", "|": "\\&|", "=": "\\&="}.get(key, key)


def block():
    out = []
    for where, title in WHERE.items():
        rows = [line for line in lines() if line[2] == where]
        if not rows:
            continue
        out.append(("" if not out else ".Pp\n") + f"{title}:\n.Bl -tag -width Ds -compact\n")
        if where == "LAG_AT_ANY":
            out.append(".It Ic 1 No to Ic 7\nthe views, in the order above\n")
        for _, keys, _, _, _, help_text in rows:
            names = " , ".join(f"Ic {escape(key)}" for key in keys.split())
            out.append(f".It {names}\n{help_text}\n")
        out.append(".El\n")
    return "".join(out)


def main():
    for where in {line[2] for line in lines()}:
        if where not in WHERE:
            sys.exit(f"no heading for keys that work at {where}")
        keys = [key for line in lines() if line[2] == where for key in line[1].split()]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            sys.exit(f"given twice at {where}: {twice}")
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    table, tail = rest.split(END)
    if table == block():
        print(f"{len(lines())} lines of keys agree")
        return
    if os.environ.get("LAGGARD_UPDATE") == "1":
        PAGE.write_text(head + BEGIN + block() + END + tail)
        return
    sys.exit("the key table of man/laggard-tui.1 is not that of viz/tui/keys.def")


main()
