#!/usr/bin/env python3
"""stub_library.py LIBRARY NEWEST OUT: writes OUT.s and OUT.map, the sources of a stand-in library.

The stand-in has LIBRARY's symbols up to the versions NEWEST, such as GLIBCXX_3.4.25,CXXABI_1.3.11.
Programs linked against it run on every system with those versions.

If LIBRARY has a symbol in several versions, the stand-in has the newest version up to NEWEST.
"""

from __future__ import annotations

import re
import subprocess
import sys


def key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def is_old(version: str, newest: dict[str, list[int]]) -> bool:
    family, _, numbers = version.partition("_")
    return bool(re.fullmatch(r"[\d.]+", numbers)) and family in newest and key(version) <= newest[family]


def symbols(library: str, newest: dict[str, list[int]]) -> dict[str, tuple[str, str, str]]:
    """Return a dictionary from each symbol's name to its version, type and size."""
    listed = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    found: dict[str, tuple[str, str, str]] = {}
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) < 8 or "@" not in fields[7] or fields[6] == "UND":
            continue
        name, version = re.split("@@?", fields[7])
        if fields[3] not in ("FUNC", "OBJECT", "TLS") or not is_old(version, newest):
            continue
        if name not in found or key(found[name][0]) < key(version):
            found[name] = (version, fields[3], fields[2])
    return found


def main() -> None:
    library, limits, out = sys.argv[1:]
    newest = {limit.partition("_")[0]: key(limit) for limit in limits.split(",")}
    found = symbols(library, newest)
    sections = {"FUNC": ".text", "OBJECT": ".data", "TLS": '.section .tdata,"awT",%progbits'}
    kinds = {"FUNC": "%function", "OBJECT": "%object", "TLS": "%tls_object"}
    with open(out + ".s", "w") as text:
        for name, (_, kind, size) in found.items():
            text.write(f"{sections[kind]}\n.globl {name}\n.type {name}, {kinds[kind]}\n"
                       f".size {name}, {int(size, 0)}\n{name}: .quad 0\n")
    with open(out + ".map", "w") as text:
        for version in sorted({version for version, _, _ in found.values()}, key=key):
            names = "".join(f"    {name};\n" for name, at in found.items() if at[0] == version)
            text.write(f"{version} {{\n  global:\n{names}}};\n")


if __name__ == "__main__":
    main()
