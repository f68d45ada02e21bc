#!/usr/bin/env python3
"""weight_test.py HEADER COMMAND...: which headers of the standard library a public header brings along.

COMMAND compiles, without a file. Those listed below compile slowly, and no program of hocket's may pay
for them unasked: <complex> alone takes a fifth of the time of <hocket/hocket.h>.
"""

import subprocess
import sys
from pathlib import PurePath

SLOW = {
    "algorithm", "any", "barrier", "chrono", "complex", "deque", "execution", "filesystem", "fstream",
    "future", "iomanip", "iostream", "istream", "latch", "list", "locale", "map", "numeric", "random",
    "ranges", "regex", "semaphore", "set", "sstream", "stop_token", "syncstream", "thread", "unordered_set",
}


def main():
    header, *command = sys.argv[1:]
    listed = subprocess.run([*command, "-M", "-x", "c++", "-"], input=f"#include <{header}>\n",
                            capture_output=True, text=True, check=True).stdout
    found = sorted(path for path in listed.replace("\\\n", " ").split()
                   if PurePath(path).name in SLOW and "c++" in path)
    for path in found:
        print(f"<{header}> includes {path}")
    return 1 if found or header not in listed else 0


if __name__ == "__main__":
    sys.exit(main())
