#!/usr/bin/env python3
"""doxygen_filter.py HEADER: prints the header with its comments in the form that Doxygen reads.

A plain comment before a declaration, or behind it, describes the declaration. A line such as
`// --- Groups ---` is a heading for readers of the header, so it is left out.
"""

import re
import sys
from pathlib import Path

SECTION = re.compile(r"^\s*(?://|/\*) -{2,}.*$")
BEHIND = re.compile(r"^(\s*[^/\s][^\"]*?[;,{]?\s+)// (.*)$")
ALONE = re.compile(r"^(\s*)//( .*|)$")
# Text that is indented within a comment is a table or code.
INDENTED = re.compile(r"^ {3,}(\S.*)$")


# Removes the empty comment lines between the rows of a table. The headers only have them to keep
# clang-format from joining the rows.
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
            # The first comment of a header describes the whole file.
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
    print(c(text) if text.startswith("/*") else "\n".join(cpp(without_gaps(text.splitlines()))))


if __name__ == "__main__":
    main()
