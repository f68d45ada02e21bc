#!/usr/bin/env python3
"""A table of the faults that the tests of the pytest plugin have injected, into a page.

    pytest tests/python/jobs/test_testing_faults.py --faults 1000 --faults-log LOG
    tools/faults/fault_table.py LOG... [--page docs/reliability.md]
"""

import argparse
import re
import statistics
import time
from pathlib import Path

import campaign_tables as tables

BEGIN, END = "<!-- faults of tests -->\n", "<!-- end -->"


def rows_of(lines):
    for kind in sorted({line["kind"] for line in lines}):
        of_kind = [line for line in lines if line["kind"] == kind]
        seconds = sorted(line["seconds"] for line in of_kind)
        yield [kind, *(sum(line["place"] == place for line in of_kind) or ""
                       for place in ("processes", "threads")),
               sum(not line["wrong"] for line in of_kind),
               tables.in_time(statistics.median(seconds)), tables.in_time(seconds[-1])]


def text_of(lines):
    wrong = sum(bool(line["wrong"]) for line in lines)
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(line["at"])) for line in lines})
    head = ["fault", "processes", "threads", "as it must be", "median", "longest"]
    return (f"{len(lines)} faults, {wrong} of them with something wrong. "
            f"{' to '.join(dict.fromkeys([days[0], days[-1]]))}.\n\n"
            + tables.table(head, list(rows_of(lines))) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--page", type=Path, default=tables.PAGE)
    options = parser.parse_args()
    text = text_of(list(tables.read(options.logs)))
    page, found = re.subn(f"({BEGIN}).*?({END})", lambda m: m[1] + text + m[2],
                          options.page.read_text(), flags=re.S)
    if found != 1:
        raise SystemExit(f"{options.page} has no place for it")
    options.page.write_text(page)


if __name__ == "__main__":
    main()
