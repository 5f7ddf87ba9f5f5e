# SPDX-License-Identifier: Apache-2.0
"""SQL lives in .sql files only, and every one of them compiles against the schema."""
import re
import sqlite3

from lib_source import ROOT, Report, sources

LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
SQL = re.compile(r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|CREATE\s+(TABLE|INDEX|VIEW)|DELETE\s+FROM|UPDATE\s+\w+\s+SET)\b")


def main():
    report = Report("sql")
    for path, rel in sources(".c", ".h"):
        report.n_seen += 1
        if rel.startswith("tests/"):
            continue
        for n, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for literal in LITERAL.findall(line):
                if SQL.search(literal):
                    report.bad(f"{rel}:{n}", "SQL outside a .sql file")
    db = sqlite3.connect(":memory:")
    for name in ("schema", "index", "views"):
        file = ROOT / "schema/sql" / f"{name}.sql"
        if file.exists():
            db.executescript(file.read_text())
    for path, rel in sources(".sql"):
        report.n_seen += 1
        if rel.startswith("schema/sql/"):
            if path.stem in ("schema", "index", "views"):
                continue
        statement = ""
        for line in path.read_text().splitlines(keepends=True):
            statement += line
            if not sqlite3.complete_statement(statement):
                continue
            try:
                db.execute("EXPLAIN " + re.sub(r"^(\s*--[^\n]*\n)*", "", statement),
                           (None,) * len(re.findall(r"\?", statement)))
            except sqlite3.Error as error:
                if "no query" not in str(error) and "PRAGMA" not in statement.upper():
                    report.bad(rel, f"{error}: {statement.strip()[:80]}")
            statement = ""
        if statement.strip() and not re.fullmatch(r"(\s*--[^\n]*\n?)*\s*", statement):
            report.bad(rel, "the last statement has no ';'")
    report.end()


main()
