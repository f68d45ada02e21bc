#!/usr/bin/env python3
"""The history of hocket's speed beside another library.

    tools/speed/history.py measure [--peer openmpi] [--ranks 2]   # appends a record to docs/history.jsonl
    tools/speed/history.py check                                  # compares the newest record with the one before
    tools/speed/history.py picture                                # writes docs/history.svg

A record has the commit and, for 20 cells of `hocket bench`, hocket's time as a part of the other
library's: the median of batches in turns, and its middle half. Ratios of one machine are compared,
which a change of the machine's clock or load hardly moves.

`check` ends with 1 if a cell has become more than 10 % slower and the middle halves do not meet, and
with 2 if it cannot tell. Where a machine was busy, measure again before you believe it.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "build/release/bin/hocket"
COLLECTIVES = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"]
SIZES = {8: "8 B", 1 << 16: "64 KiB", 1 << 20: "1 MiB", 1 << 24: "16 MiB"}
MOST_SLOWER = 1.10


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"history: {' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout.strip()


def measured(peer, ranks):
    """Run `hocket bench` and return the contents of its JSON file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        sizes = ",".join(map(str, SIZES))
        command = [BENCH, "bench", *COLLECTIVES, "-n", str(ranks), "--sizes", sizes, "--compare", peer, "--json", file]
        if subprocess.run(command).returncode:
            sys.exit(f"history: hocket bench failed; is {BENCH} built, and {peer} installed?")
        return json.loads(file.read_text())


def record_of(figures, commit, peer):
    """Return a record, which is one line of the file.

    A missing cell or a wrong result is an error, because a history with gaps hides slowdowns.
    """
    config = figures["config"]
    cells = {
        f"{ratio['collective']} {ratio['bytes']}": [ratio[key] for key in ("ratio", "lower_quartile", "upper_quartile")]
        for ratio in figures["ratios"]
        if ratio["to"] == peer
    }
    wrong = [row for row in figures["rows"] if not row["verified"]]
    expected = {f"{collective} {size}" for collective in COLLECTIVES for size in SIZES}
    if set(cells) != expected or wrong:
        raise ValueError(f"cells are missing: {sorted(expected - set(cells))}; results are wrong: {wrong}")
    return {
        "commit": commit,
        "date": config["date"],
        "hocket": config["hocket"],
        "machine": {key: config["machine"][key] for key in ("cpu", "processors")},
        "peer": config["libraries"][peer]["version"],
        "ranks": config["ranks"][0],
        "cells": cells,
    }


def are_comparable(one, other):
    return all(one[key] == other[key] for key in ("machine", "peer", "ranks"))


def falls(before, now):
    """Yield the cells that have become slower: (cell, earlier ratio, ratio now).

    A slower cell is more than 10 % above `before`, and its middle half lies above the earlier
    middle half.
    """
    for cell, (ratio, low, _) in now["cells"].items():
        was, _, high = before["cells"][cell]
        if ratio > MOST_SLOWER * was and low > high:
            yield cell, was, ratio


def check(records):
    if not records:
        print("history: there is no record; make one with tools/speed/history.py measure")
        return 2
    now = records[-1]
    before = next((r for r in reversed(records[:-1]) if are_comparable(r, now)), None)
    if before is None:
        print(f"history: no earlier record of this machine, with {now['peer']} and {now['ranks']} ranks; measure the "
              "last release on it, too")
        return 2
    found = list(falls(before, now))
    for cell, was, ratio in found:
        print(f"history: {cell} has become {ratio / was:.2f} times as slow: {was:.3g} of {now['peer']}'s time at "
              f"{before['commit'][:12]}, {ratio:.3g} at {now['commit'][:12]}")
    print(f"history: {len(now['cells'])} cells, {len(found)} fell since {before['commit'][:12]}")
    return 1 if found else 0


# --- The picture -------------------------------------------------------------------------------------

PANEL, HEIGHT, LEFT, TOP, GAP = 168, 200, 52, 64, 20
LOWEST, HIGHEST = 0.01, 10.0
COLOURS = ["#1769d2", "#12805c", "#b3541e", "#7a3fa0"]


def y_of(ratio):
    part = math.log(min(max(ratio, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return TOP + HEIGHT * (1 - part)


def panel(number, collective, records):
    left = LEFT + number * (PANEL + GAP)
    yield f'<text class="title" x="{left}" y="{TOP - 8}">{collective}</text>'
    for ratio in (0.01, 0.1, 1, 10):
        kind = "one" if ratio == 1 else "grid"
        yield f'<line class="{kind}" x1="{left}" x2="{left + PANEL}" y1="{y_of(ratio):.1f}" y2="{y_of(ratio):.1f}"/>'
        if number == 0:
            yield f'<text class="note end" x="{left - 6}" y="{y_of(ratio) + 4:.1f}">{ratio:g}</text>'
    step = PANEL / max(1, len(records) - 1)
    for size, colour in zip(SIZES, COLOURS):
        points = [(left + i * step, *map(y_of, record["cells"][f"{collective} {size}"]))
                  for i, record in enumerate(records)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>'
        for x, y, low, high in points:
            yield f'<line stroke="{colour}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            yield f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def picture(records):
    """Draw the records that are comparable with the newest one, from left to right."""
    records = [record for record in records if are_comparable(record, records[-1])]
    width, height = LEFT + len(COLLECTIVES) * (PANEL + GAP), TOP + HEIGHT + 36
    now = records[-1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>hocket's time as a part of another library's, by commit</title>",
        "<style>text { font-family: system-ui, 'DejaVu Sans', sans-serif; font-size: 12px; fill: #26241f }",
        ".head, .title { font-weight: 600 } .end { text-anchor: end } .note { fill: #667079 }",
        ".grid { stroke: #e4e6e3 } .one { stroke: #667079; stroke-dasharray: 4 3 }</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text class="head" x="{LEFT}" y="22">hocket\'s time as a part of {now["peer"]}\'s, {now["ranks"]} ranks, '
        f'{now["machine"]["cpu"]}; less is faster</text>',
    ]
    for number, collective in enumerate(COLLECTIVES):
        parts += panel(number, collective, records)
    bottom = TOP + HEIGHT + 22
    parts.append(f'<text class="note" x="{LEFT}" y="{bottom}">{records[0]["commit"][:12]} to {now["commit"][:12]}</text>')
    for i, (name, colour) in enumerate(zip(SIZES.values(), COLOURS)):
        x = LEFT + PANEL + GAP + i * 90
        parts.append(f'<circle fill="{colour}" cx="{x}" cy="{bottom - 4}" r="4"/><text x="{x + 9}" y="{bottom}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def measure(file, peer, ranks):
    if changed := output_of("git", "status", "--porcelain", "--untracked-files=no", "src", "include"):
        sys.exit(f"history: a record names a commit, and these files differ from it:\n{changed}")
    record = record_of(measured(peer, ranks), output_of("git", "rev-parse", "HEAD"), peer)
    with file.open("a") as lines:
        lines.write(json.dumps(record) + "\n")
    print(f"history: {file} has a record of {record['commit'][:12]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "check", "picture"])
    parser.add_argument("--peer", default="openmpi", help="the other library, as `hocket bench --compare` names it")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--file", type=Path, default=ROOT / "docs/history.jsonl")
    arguments = parser.parse_args()
    if arguments.what == "measure":
        return measure(arguments.file, arguments.peer, arguments.ranks)
    lines = arguments.file.read_text().splitlines() if arguments.file.exists() else []
    records = [json.loads(line) for line in lines]
    if arguments.what == "check" or not records:
        return check(records)
    arguments.file.with_suffix(".svg").write_text(picture(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
