#!/usr/bin/env python3
"""Counts what the sources' trunk is to get rid of, and holds it against limits.

Prints a row for each count: today's number, its limit, and the wanted number. While the wanted
number is not reached, the limit is today's number, so that it can only go down. Exits with 1 if a
row is above its limit. Some rows count a pattern of the text that stands for the thing. The
docstring of the row's function names the pattern. `--where` also prints the places.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
BIG_CLASS = 100  # lines of code of a class, members' bodies included


class Tree:
    """The sources below a root, each read once, without comments."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        if path not in self._texts:
            raw = path.read_text()
            if path.suffix in SUFFIXES:
                raw = re.sub(r"//[^\n]*", "", raw)
            self._texts[path] = raw
        return self._texts[path]

    def sources(self, *folders: str) -> list[Path]:
        found = [path for folder in folders for path in (self.root / folder).rglob("*")
                 if path.suffix in SUFFIXES and path.is_file()]
        return sorted(path for path in found
                      if "src/interfaces/" not in path.as_posix())

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def places(self, pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
        return [f"{self.name(path)}:{self.text(path).count(chr(10), 0, match.start()) + 1}"
                for path in paths for match in pattern.finditer(self.text(path))]


def body_at(text: str, start: int) -> str:
    """Return the text between the first brace from `start` on and its closing brace."""
    begin = text.index("{", start)
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin + 1:at]
    return text[begin + 1:]


# --- Rows: each function returns the places that it counts ----------------------------------------

def naming_a_kind(tree: Tree) -> list[str]:
    paths = tree.sources("src", "include", "python/src", "tools")
    return [tree.name(p) for p in paths if re.search(r"\bkAllToAll\b", tree.text(p))]


def defaults_over_kinds(tree: Tree) -> list[str]:
    """Switches that have a label with `Kind::` or `Collective::`, and also a `default:`."""
    found = []
    for path in tree.sources("src"):
        text = tree.text(path)
        for match in re.finditer(r"\bswitch\s*\(", text):
            body = body_at(text, match.start())
            own = re.sub(r"\bswitch\s*\([^{]*\{.*", "", body, flags=re.DOTALL)
            if re.search(r"case (?:\w+::)*(?:Kind|Collective)::k", own) and "default:" in body:
                found.append(f"{tree.name(path)}:{text.count(chr(10), 0, match.start()) + 1}")
    return found


def defaults(tree: Tree) -> list[str]:
    return tree.places(re.compile(r"^\s*default:", re.MULTILINE), tree.sources("src"))


def largest_folder(tree: Tree) -> list[str]:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in (tree.root / "src").rglob("*"):
        if path.suffix in SUFFIXES and path.parent.name != "algorithm":
            folders[tree.name(path.parent)].append(tree.name(path))
    return sorted(max(folders.values(), key=len, default=[]))


def text_decides(tree: Tree) -> list[str]:
    """Comparisons that decide by the text of an error or a message.

    They compare a variable named text, reason or message with a known text. Only code that receives
    data from other processes counts. Settings and addresses do not count, because they are texts by
    nature.
    """
    word = r"(?:text|reason|why_not|what\(\)|message)(?:\.view\(\))?"
    known = r'(?:k[A-Z]\w*|")'
    pattern = rf"\b{word}\s*[!=]=\s*{known}|\b{word}\.(?:starts_with|ends_with|contains|find)\("
    folders = ("src/calls", "src/membership/control", "src/engines")
    paths = [p for p in tree.sources(*folders) if p.parent.name != "algorithm"]
    return tree.places(re.compile(pattern), paths)


def layer_of(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[1:3])


def types(tree: Tree) -> dict[str, list[tuple[Path, int]]]:
    """Return the types that are defined at the beginning of a line, so not within another type."""
    found: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    pattern = re.compile(r"^(?:class|struct|enum class)\s+(?:alignas\([^)]*\)\s*)?(\w+)[^;{]*\{",
                         re.MULTILINE)
    for path in tree.sources("src"):
        for match in pattern.finditer(tree.text(path)):
            found[match.group(1)].append((path, match.start()))
    return found


def names_of_two_layers(tree: Tree) -> list[str]:
    found = []
    for name, where in sorted(types(tree).items()):
        layers = sorted({layer_of(tree.name(path)) for path, _ in where})
        if len(layers) > 1:
            found.append(f"{name}: {', '.join(layers)}")
    return found


def big_friends(tree: Tree) -> list[str]:
    all_types = types(tree)

    def lines(name: str) -> int:
        count = sum(body_at(tree.text(p), at).count("\n") for p, at in all_types.get(name, []))
        member = re.compile(rf"^\S[^\n;]*\b{name}::~?\w+\(.*?^\}}", re.MULTILINE | re.DOTALL)
        return count + sum(m.group().count("\n") for path in tree.sources("src")
                           for m in member.finditer(tree.text(path)))

    found = []
    for name, where in sorted(all_types.items()):
        for path, at in where:
            for friend in re.findall(r"friend (?:class |struct )(?:\w+::)*(\w+);",
                                     body_at(tree.text(path), at)):
                if lines(name) > BIG_CLASS and lines(friend) > BIG_CLASS:
                    found.append(f"{tree.name(path)}: {name} and {friend}")
    return found


def casts_back(tree: Tree) -> list[str]:
    """Each dynamic_cast, and each static_cast to a reference or pointer of a derived class."""
    paths = tree.sources("src")
    derived = {name for path in paths
               for name in re.findall(r"(?:class|struct)\s+(\w+)(?:\s+final)?\s*:\s*public",
                                      tree.text(path))}
    found = tree.places(re.compile(r"\bdynamic_cast<"), paths)
    for path in paths:
        for match in re.finditer(r"static_cast<(?:const )?(?:\w+::)*(\w+)\s*[&*]>",
                                 tree.text(path)):
            if match.group(1) in derived:
                found.append(f"{tree.name(path)}: {match.group()}")
    return found


def touched_by(engine: str) -> Callable[[Tree], list[str]]:
    """Count the files that name an engine outside of its own folder."""
    def count(tree: Tree) -> list[str]:
        of_c = ("c.h", "c_membership.h", "c_calls.h", "c_grid.h", "c_operators.h")
        paths = [p for p in tree.sources("src", "include", "python/src") if p.name not in of_c]
        paths += sorted((tree.root / "src").rglob("CMakeLists.txt"))
        pattern = re.compile(engine, re.IGNORECASE)
        own = f"src/engines/{engine}/"
        return [tree.name(p) for p in paths
                if not tree.name(p).startswith(own) and pattern.search(tree.text(p))]
    return count


def waits(tree: Tree) -> list[str]:
    """Loops in which a thread gives up its processor until something changes.

    Such a loop calls yield, sleep, or the pause of a pace. Callers of `base::wait_until` have no
    loop of their own. The paces, which sleep for a loop, are in foundation/base/poll.h and
    calls/call/waiter.cc.
    """
    loop = re.compile(r"\bfor \(|\bwhile \(")
    pattern = re.compile(r"this_thread::(?:yield|sleep_for|sleep_until)\b|\.pause\(|"
                         r"\b(?:sched_yield|usleep|nanosleep)\(")
    paces = ("src/foundation/base/poll.h", "src/calls/call/waiter.cc")
    others = [p for p in tree.sources("src") if tree.name(p) not in paces]
    return tree.places(loop, [tree.root / paces[0]]) + tree.places(pattern, others)


def memos(tree: Tree) -> list[str]:
    """Members that store a choice or a plan for repeated calls.

    They have a type that is made for this, or they are an earlier call, request or signature that
    the next one is compared with.
    """
    pattern = re.compile(r"\b(?:\w*Memo|Kept\w+)<[^;]*>\s+\w+_;|"
                         r"\b(?:Call|Request|Signature)\s+(?:last|repeated|kept)_?\w*_\b[^;()]*;")
    return tree.places(pattern, [p for p in tree.sources("src") if p.suffix == ".h"])


@dataclass(frozen=True)
class Row:
    what: str
    places: Callable[[Tree], list[str]]
    limit: int
    wanted: int


ROWS = (
    Row("source files that name kAllToAll (tests, bench, cli apart)", naming_a_kind, 12, 12),
    Row("default: in switches over kinds", defaults_over_kinds, 0, 0),
    Row("default: in all (faces apart)", defaults, 0, 0),
    Row("files of the largest folder (algorithm, faces apart)", largest_folder, 30, 30),
    Row("decisions by comparing a text", text_decides, 0, 0),
    Row("type names that are defined in two layers", names_of_two_layers, 0, 0),
    Row("friend between classes of more than 100 lines", big_friends, 0, 0),
    Row("casts back of an interface", casts_back, 0, 0),
    Row("files outside its folder that name UCX", touched_by("ucx"), 3, 3),
    Row("files outside its folder that name NCCL", touched_by("nccl"), 3, 3),
    Row("loops in which a thread waits", waits, 1, 1),
    Row("memos of what was chosen or planned", memos, 1, 1),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--where", action="store_true", help="print the places, too")
    arguments = parser.parse_args()
    tree = Tree(arguments.root.resolve())
    above = 0
    width = max(len(row.what) for row in ROWS)
    print(f"{'':{width}}  today  limit  wanted")
    for row in ROWS:
        places = row.places(tree)
        is_above = len(places) > row.limit
        above += is_above
        print(f"{row.what:{width}}  {len(places):5}  {row.limit:5}  {row.wanted:6}"
              f"{'  ABOVE ITS LIMIT' if is_above else ''}")
        if arguments.where or is_above:
            for place in places:
                print(f"    {place}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
