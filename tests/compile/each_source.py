#!/usr/bin/env python3
"""Compiles each source by itself that a build compiled together with others.

Such a source may depend on the includes of another one, which stays unnoticed until it moves.
compile_commands.json names the sources that a build compiled together, and the flags. Here the
compiler reads each source alone, and writes no output.

usage: each_source.py COMPILE_COMMANDS
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path


def sources_alone(commands: list[dict[str, str]]) -> list[tuple[Path, Path, list[str]]]:
    """Returns (source, directory, command) for each source that was compiled with others."""
    found = []
    for entry in commands:
        together = Path(entry["file"])
        if together.parent.name != "Unity":
            continue
        words = shlex.split(entry["command"])
        words = words[: words.index("-o")]  # its result and the source itself come last
        for source in re.findall(r'^#include "(.*)"$', together.read_text(), re.MULTILINE):
            found.append((Path(source), Path(entry["directory"]), words))
    return found


def errors_of(source: Path, directory: Path, words: list[str]) -> str:
    """Returns the compiler's errors, or "" if it accepts the source."""
    ran = subprocess.run([*words, "-fsyntax-only", "-O0", str(source)], cwd=directory,
                         capture_output=True, text=True, check=False)  # fmt: skip
    return f"{source}:\n{ran.stderr}" if ran.returncode != 0 else ""


def main() -> int:
    commands = json.loads(Path(sys.argv[1]).read_text())
    sources = sources_alone(commands)
    if not sources:
        print("no source was compiled together with others", file=sys.stderr)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [text for text in pool.map(lambda each: errors_of(*each), sources) if text]
    for text in failed:
        print(text, file=sys.stderr)
    print(f"{len(sources)} sources, {len(failed)} not compiled by themselves")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
