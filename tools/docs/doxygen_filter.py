#!/usr/bin/env python3
"""doxygen_filter.py HEADER: the header with its plain comments as those that Doxygen reads.

A comment before a declaration says what it is, one behind it likewise. A line such as
`// --- Groups ---` heads what follows.
"""

import re
import sys
from pathlib import Path

SECTION = re.compile(r"^\s*(?://|/\*) -{2,}.*$")
BEHIND = re.compile(r"^(\s*[^/\s][^\"]*?[;,{]?\s+)// (.*)$")
ALONE = re.compile(r"^(\s*)//( .*|)$")
# Indented text within a comment is a table, or code.
INDENTED = re.compile(r"^ {3,}(\S.*)$")


# Joins the rows of a table, which only an empty comment line kept apart from clang-format.
def without_gaps(lines):
    def is_row(line):
        return (match := ALONE.match(line)) and INDENTED.match(match[2])

    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""]):
        if not (line.strip() == "//" and is_row(before) and is_row(after)):
            yield line


def cpp(lines):
    for number, line in enumerate(lines):
        if SECTION.match(line):
            yield ""
        elif (match := ALONE.match(line)) and (inner := INDENTED.match(match[2])):
            yield f"{match[1]}///{match[2].replace(' ', '     ', 1)}"
        elif match:
            # The first comment of a file is the file's.
            yield f"{match[1]}///{' @file' + chr(10) + '///' if number == 0 else ''}{match[2]}"
        elif (match := BEHIND.match(line)) and "NOLINT" not in match[2]:
            yield f"{match[1]}///< {match[2]}"
        else:
            yield line


def c(text):
    text = re.sub(r"/\* -{2,}.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^(.*[;,{].*?)/\* ", r"\1/**< ", text, flags=re.M)
    text = re.sub(r"^(\s*)/\* ", r"\1/** ", text, flags=re.M)
    text = re.sub(r"^ \*( {3,}\S)", r" *    \1", text, flags=re.M)
    return text.replace("/** ", "/** @file\n * ", 1)


def main():
    path = Path(sys.argv[1])
    text = path.read_text()
    print(c(text) if path.name == "c.h" else "\n".join(cpp(without_gaps(text.splitlines()))))


if __name__ == "__main__":
    main()
