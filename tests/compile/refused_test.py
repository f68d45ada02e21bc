#!/usr/bin/env python3
"""refused_test.py SOURCE COMMAND...

Compiles SOURCE once by COMMAND, which must fail, and looks in what the compiler says of each line that
ends in `//! WORDS` for these words. A line without a mark must compile.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path


def said_by_line(messages: str, source: str) -> dict[int, str]:
    """All that was said of each line of the source. The lines that lead to an error in a header come before
    it in GCC's messages, and after it in Clang's."""
    said = collections.defaultdict(str)
    place = re.compile(rf"^{re.escape(source)}:(\d+):", re.M)
    # A block: what leads to an error or warning, itself, and the notes to it.
    blocks = re.split(r"(?m)^(?=[^\n]*(?:: error:|: warning:|: In instantiation of|: In substitution of))", messages)
    pending = ""
    for block in blocks:
        pending += block
        if re.search(r": (?:error|warning):", block) is None:
            continue
        lines = {int(line) for line in place.findall(pending)}
        for line in lines:
            said[line] += pending
        pending = ""
    return said


def main() -> int:
    source, command = sys.argv[1], sys.argv[2:]
    # GCC goes on to the end by itself.
    done = subprocess.run([*command, *(["-ferror-limit=0"] if "clang" in command[0] else []), source],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}, timeout=280)
    said = said_by_line(done.stdout, source)
    wrong, marked = [], 0
    for number, line in enumerate(Path(source).read_text().splitlines(), 1):
        code, mark, words = line.partition("//! ")
        marked += bool(mark)
        if mark and words not in said[number]:
            wrong.append(f"{source}:{number}: {code.strip()}\n  expected: {words}\n  said: "
                         + (said[number] or "nothing")[:2000])
        if not mark and re.search(rf"(?m)^{re.escape(source)}:{number}:\d+: error:", said[number]):
            wrong.append(f"{source}:{number}: does not compile\n  said: {said[number][:2000]}")
    print("\n".join(wrong))
    print(f"{marked} lines must not compile, {len(wrong)} of all are otherwise")
    return 1 if wrong or done.returncode == 0 or marked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
