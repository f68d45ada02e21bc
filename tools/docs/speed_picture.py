#!/usr/bin/env python3
"""speed_picture.py [--check]: makes docs/speed.svg from the tables of docs/performance.md.

Each table with a comment `picture: TITLE` before it becomes a group of bars. The length of a bar is
hocket's time divided by the other library's time. --check compares the picture with the tables and
writes nothing.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, PICTURE = ROOT / "docs/performance.md", ROOT / "docs/speed.svg"
SIZES = ("8 B", "64 KiB", "1 MiB", "16 MiB", "64 MiB")
LEFT, WIDTH, ROW, GAP = 96, 560, 22, 34


def tables():
    """Yield (title, [(size, other library's time, hocket's time)]) for each table to draw."""
    for match in re.finditer(r"<!-- picture: (.*?) -->\n((?:\|.*\n)+)", PAGE.read_text()):
        rows = [[c.strip() for c in line.strip("|\n ").split("|")] for line in match[2].splitlines()]
        yield match[1], [(r[0], float(r[1]), float(r[2])) for r in rows[2:] if r[0] in SIZES]


def time(microseconds):
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.3g} µs"


def bar(y, size, other, own):
    length = WIDTH * own / other
    text = f"{time(own)} instead of {time(other)}"
    inside = length > WIDTH * 0.55
    x, style = (LEFT + length - 8, "note end on") if inside else (LEFT + length + 8, "note")
    return (
        f'<text class="size end" x="{LEFT - 10}" y="{y + 12}">{size}</text>'
        f'<rect class="other" x="{LEFT}" y="{y}" width="{WIDTH}" height="16" rx="3"/>'
        f'<rect class="own" x="{LEFT}" y="{y}" width="{length:.1f}" height="16" rx="3"/>'
        f'<text class="{style}" x="{x:.1f}" y="{y + 12}">{text}</text>'
    )


def picture():
    parts, y = [], 48
    for title, rows in tables():
        parts.append(f'<text class="title" x="{LEFT}" y="{y + 4}">beside {title}</text>')
        y += 14
        for row in rows:
            parts.append(bar(y, *row))
            y += ROW
        y += GAP
    height = y - GAP + 16
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 24} {height}" role="img">\n'
        "<title>Time of an all_reduce, hocket as a part of the other library</title>\n"
        "<style>\n"
        "text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }\n"
        ".head { font-size: 15px; font-weight: 600; fill: #26241f }\n"
        ".title { font-size: 13px; font-weight: 600; fill: #26241f }\n"
        ".size { font-size: 12px; fill: #667079 } .end { text-anchor: end }\n"
        ".note { font-size: 12px; fill: #26241f } .on { fill: #ffffff }\n"
        ".other { fill: #e4e6e3 } .own { fill: #1769d2 }\n"
        "</style>\n"
        f'<rect width="{LEFT + WIDTH + 24}" height="{height}" fill="#ffffff"/>\n'
        f'<text class="head" x="{LEFT}" y="24">Time of an all_reduce. Grey: the other library. Blue: '
        "hocket.</text>\n"
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def main():
    made = picture()
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text() == made:
            return 0
        print("docs/speed.svg is not of docs/performance.md's tables; run tools/docs/speed_picture.py")
        return 1
    PICTURE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
