#!/usr/bin/env python3
"""prose.py [FILE ...]: are the documents easy to read?

Reports four kinds of places: each sentence with more than 35 words, each parenthesis with more than
20 words, each page that does not begin with a title and its purpose, and each page that does not
end with a pointer to another page. Skips code, tables and headings. Without arguments it checks the
pages at the top and in docs/, but not the notebook in docs/notes.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 35
MOST_IN_PARENTHESES = 20
TOPS = ("README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md")

FENCE = re.compile(r"^\s*(```|~~~|:::)")
# A line that does not continue its neighbours: a heading, a row of a table, or a comment.
APART = re.compile(r"^\s*(#|\||<!--|---\s*$)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# A full stop ends a sentence if a space and the beginning of a new sentence follow. A sentence may
# also begin with a small letter, if its first word is hocket or a name with an underscore.
END = re.compile(r"(?<=[.!?])[)\"'*_]*\s+(?=[\"'(*_`\[]*(?:[A-Z0-9`]|hocket\b|[a-z]+_))")
ABBREVIATIONS = ("e.g.", "i.e.", "cf.", "vs.", "etc.", "No.")


class Text(NamedTuple):
    line: int
    text: str


class Finding(NamedTuple):
    line: int
    what: str


def texts(document: str) -> Iterator[Text]:
    """Yield the paragraphs and the items of lists, each as one line of text."""
    fenced = False
    start, parts = 0, []
    for number, line in enumerate(document.splitlines(), start=1):
        ends = FENCE.match(line) or APART.match(line) or not line.strip()
        if (ends or fenced or ITEM.match(line)) and parts:
            yield Text(start, " ".join(parts))
            parts = []
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not ends:
            if not parts:
                start = number
            parts.append(ITEM.sub("", line).strip())
    if parts:
        yield Text(start, " ".join(parts))


def plain(text: str) -> str:
    """Return the text without addresses of links, and with each piece of code as one word."""
    text = LINK.sub(r"\1", text)
    return re.sub(r"`[^`]*`", "CODE", text)


def sentences(text: str) -> list[str]:
    for abbreviation in ABBREVIATIONS:
        text = text.replace(abbreviation, abbreviation.replace(".", ""))
    return [sentence for sentence in END.split(text) if sentence.strip()]


def words(sentence: str) -> int:
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def check_sentences(document: str) -> Iterator[Finding]:
    for text in texts(document):
        for sentence in sentences(plain(text.text)):
            count = words(sentence)
            if count > MOST_WORDS:
                yield Finding(text.line, f"{count} words in a sentence: {sentence[:80]}...")
            for inner in re.findall(r"\(([^()]*)\)", sentence):
                if words(inner) > MOST_IN_PARENTHESES:
                    yield Finding(text.line, f"{words(inner)} words in parentheses: ({inner[:60]}...")


def check_frame(document: str) -> Iterator[Finding]:
    """Check that a page begins with its title and purpose, and ends with links to other pages."""
    lines = document.splitlines()
    after_title = next((line for line in lines[1:] if line.strip()), "")
    if not lines[0].startswith("# ") or APART.match(after_title) or FENCE.match(after_title):
        yield Finding(1, "the page does not begin with a title and what it is for")
    headings = [number for number, line in enumerate(lines) if line.startswith("## ")]
    last = "\n".join(lines[headings[-1]:]) if headings else ""
    if not last.startswith("## Where to go") or "](" not in last:
        yield Finding(len(lines), 'the page does not end with "## Where to go ..." and links')


def check(path: Path) -> list[Finding]:
    document = path.read_text()
    findings = list(check_sentences(document))
    if path.parent.name in ("docs", "moving", "decisions") or path.name == "README.md":
        findings += check_frame(document)
    return sorted(findings)


def default_files() -> list[Path]:
    tops = [ROOT / name for name in TOPS]
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [*tops, *(page for page in pages if page.parent.name != "notes")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    failed = 0
    for path in parser.parse_args().files or default_files():
        for finding in check(path.resolve()):
            failed += 1
            print(f"{path}:{finding.line}: {finding.what}")
    print(f"prose: {failed} findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
