#!/usr/bin/env python3
"""Makes the tables of docs/verbs.md from tools/docs/verbs.txt: hocket's verbs in each language.

verbs.py           prints the tables
verbs.py --write   writes the tables into docs/verbs.md
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tools" / "docs" / "verbs.txt"
PAGE = ROOT / "docs" / "verbs.md"
BEGIN, END = "<!-- verbs: begin -->\n", "<!-- verbs: end -->\n"


@dataclass
class Verb:
    """A row: one verb and its name in each language. "-" means that the language lacks the verb."""

    name: str
    cpp: str
    c: str
    python: str
    forms: tuple[str, ...] = ()
    note: str = ""

    def names(self, language: str) -> list[str]:
        """Return the verb's names in a language, including its `_async` and `prepare_` forms."""
        base = getattr(self, language)
        if base == "-":
            return []
        before, scope = base, ""
        for mark in ("::", "."):
            if mark in base:
                scope, before = base.rsplit(mark, 1)
                scope += mark
        if language == "c":
            scope, before = "hocket_", base.removeprefix("hocket_")
        made = [base]
        if "async" in self.forms:
            made.append(f"{scope}{before}_async")
        if "prepare" in self.forms:
            made.append(f"{scope}prepare_{before}")
        return made


@dataclass
class Verbs:
    """All rows by section, and in `aside` the public names that are no verbs, by language."""

    sections: dict[str, list[Verb]] = field(default_factory=dict)
    aside: dict[str, set[str]] = field(default_factory=dict)

    def names(self, language: str) -> set[str]:
        """Return all the verbs' names in a language."""
        return {
            name
            for rows in self.sections.values()
            for verb in rows
            for name in verb.names(language)
        }


def read(path: Path = LIST) -> Verbs:
    """Read verbs.txt, whose first lines explain its format."""
    verbs = Verbs()
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
            continue
        if not line or line.startswith("#"):
            continue
        if section == "No verbs":
            language, *names = line.split()
            verbs.aside.setdefault(language, set()).update(names)
            continue
        line, _, note = line.partition("|")
        words = line.split()
        given = dict(word.split("=", 1) for word in words if "=" in word)
        forms = tuple(word for word in words[1:] if word in ("async", "prepare"))
        name = " ".join(word for word in words if "=" not in word and word not in forms)
        verb = Verb(
            name=name,
            cpp=given.get("cpp", f"Communicator::{name}"),
            c=given.get("c", f"hocket_{name}"),
            python=given.get("python", f"Communicator.{name}"),
            forms=forms,
            note=note.strip(),
        )
        verbs.sections.setdefault(section, []).append(verb)
    return verbs


def tables(verbs: Verbs) -> str:
    """Return the tables as Markdown."""

    def cell(name: str) -> str:
        return name if name == "-" else f"`{name}`"

    lines = []
    for section, rows in verbs.sections.items():
        lines += [f"## {section}", "| verb | C++ | C and Fortran | Python | |", "|---|---|---|---|---|"]
        for verb in rows:
            also = ["`_async`"] * ("async" in verb.forms) + ["`prepare_`"] * ("prepare" in verb.forms)
            notes = [f"also {', '.join(also)}"] * bool(also) + [verb.note] * bool(verb.note)
            cells = [verb.name, cell(verb.cpp), cell(verb.c), cell(verb.python), "; ".join(notes)]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def page(verbs: Verbs, text: str) -> str:
    """Return the page's text with the tables replaced."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + tables(verbs) + END + after


def main() -> None:
    verbs = read()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(verbs, PAGE.read_text()))
    else:
        print(tables(verbs))


if __name__ == "__main__":
    main()
