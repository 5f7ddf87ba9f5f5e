# SPDX-License-Identifier: Apache-2.0
"""--help, the manual and the registries say the same: each option of each command is in its page and
the other way round; each command, analysis and variable is in the manual."""
import os
import re
import subprocess

from lib_source import ROOT, Report


def registry(path, macro):
    file = ROOT / path
    return re.findall(rf"^{macro}\(([a-z0-9_]+)", file.read_text(), re.M) if file.exists() else []


def help_options(program, command):
    text = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\s+(?:-\w, )?\s*--([a-z0-9-]+)", text, re.M)), text


def page_options(page):
    return set(re.findall(r"Fl Fl ([a-z0-9-]+)", page)) | set(re.findall(r"\\-\\-([a-z0-9-]+)", page))


def main():
    report = Report("docs")
    program = os.environ["LAGGARD"]
    commands = registry("cli/commands.def", "LAG_CMD")
    overview = (ROOT / "man/laggard.1").read_text()
    readme = (ROOT / "README.md").read_text()
    for command in commands:
        report.n_seen += 1
        page = (ROOT / f"man/laggard-{command}.1").read_text()
        options, text = help_options(program, command)
        documented = page_options(page.split(".Sh EXAMPLES")[0])
        for option in sorted(options - documented):
            report.bad(f"man/laggard-{command}.1", f"--{option} is missing")
        for option in sorted(documented - options):
            report.bad(f"man/laggard-{command}.1", f"--{option} is no option of the command")
        if f"laggard-{command} 1" not in overview:
            report.bad("man/laggard.1", f"does not refer to laggard-{command}")
        if not text.startswith(f"usage: laggard {command}"):
            report.bad(command, "--help does not begin with its usage")
    for analysis in registry("viz/analysis/analyses.def", "LAG_ANALYSIS"):
        report.n_seen += 1
        if analysis.replace("_", "-") not in (ROOT / "man/laggard-report.1").read_text():
            report.bad("man/laggard-report.1", f"does not describe the analysis {analysis}")
    for name in re.findall(r'"(LAGGARD_[A-Z_]+)"', (ROOT / "schema/env.h").read_text()):
        report.n_seen += 1
        if name not in (ROOT / "man/laggard-record.1").read_text():
            report.bad("man/laggard-record.1", f"does not describe {name}")
    for page in sorted((ROOT / "man").glob("*")):
        report.n_seen += 1
        try:
            lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
        except FileNotFoundError:
            print("mandoc is not here: pages are not linted")
            break
        for line in lint.stdout.splitlines():
            if "WARNING" in line or "ERROR" in line:
                report.bad(page.name, line.split(": ", 2)[-1])
    for word in ("./run demo", "./run test"):
        if word not in readme:
            report.bad("README.md", f"does not mention {word}")
    report.end()


main()
