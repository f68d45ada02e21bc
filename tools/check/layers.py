#!/usr/bin/env python3
"""Holds the sources against the law of the layers.

The order of the layers is the list in src/CMakeLists.txt. These rules hold:

  - a layer includes itself and the layers before it;
  - engines (engines/...) never include each other;
  - engines/algorithm never includes foundation/os, foundation/cuda or an engine;
  - outside an engine's own folder, only the composition root (src/calls/compose) names engines;
  - public headers include only the standard library and hocket/;
  - the faces include only hocket's public headers and their own files. The faces are the command,
    the C interface, the MPI interface, the Python binding, the examples and the benchmarks;
  - only src/foundation/base/config.cc reads the environment for the library and the Python package;
  - a file of more than 400 lines gives a warning, one of more than 600 an error (tests excepted).

Prints one line for each breach, `file:line: what is wrong`. Exits with 1 if there is a breach.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

WARN_LINES = 400
MAX_LINES = 600
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".cpp", ".hpp"}

# Layers that `engines/algorithm` must not include, although they come before it in the list.
HIDDEN_FROM_ALGORITHM = ("foundation/os", "foundation/cuda")
# Folders below engines/ that are not engines: several engines include them.
SHARED_BY_ENGINES = ("engines/algorithm", "engines/movement", "engines/nvshmem")
COMPOSITION_ROOT = "calls/compose"
# Public headers that include another library's header, and the name of that header. They are for
# programs that use the other library anyway. hocket.h includes none of them.
VENDOR_HEADERS = {"mpi.h": ("mpi.h",)}
# The public headers for C. They include only each other and headers of the C standard library.
C_HEADERS = ("c.h", "c_membership.h", "c_calls.h", "c_grid.h", "c_operators.h")
C_STANDARD = ("stddef.h", "stdint.h")
ENVIRONMENT_READER = "src/foundation/base/config.cc"
# Faces of the library: folder -> prefixes of the face's own includes.
FACES = {
    "src/interfaces/cli": ("interfaces/cli/",),
    "src/interfaces/capi": ("interfaces/capi/",),
    "src/interfaces/mpi": ("interfaces/mpi/",),
    "python/src": ("python/",),
    "examples": (),
    "bench": ("bench/",),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
READS_ENVIRONMENT = re.compile(r"\b(?:std::|::)?(?:secure_)?getenv\s*\(")
FOREACH = re.compile(r"foreach\s*\(\s*layer\s+([^)]*)\)", re.DOTALL)


@dataclass
class Report:
    root: Path
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, path: Path, line: int, what: str) -> None:
        self.errors.append(f"{path.relative_to(self.root)}:{line}: {what}")

    def warn(self, path: Path, line: int, what: str) -> None:
        self.warnings.append(f"{path.relative_to(self.root)}:{line}: {what}")


@dataclass(frozen=True)
class Include:
    line: int
    path: str
    angled: bool


def read_layers(cmake: Path) -> list[str]:
    """Return the layers from the lowest to the highest, as src/CMakeLists.txt lists them."""
    match = FOREACH.search(cmake.read_text())
    if not match:
        sys.exit(f"{cmake}: no `foreach(layer ...)` with the list of layers")
    return match.group(1).split()


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def includes_of(path: Path) -> list[Include]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if match := INCLUDE.match(line):
            found.append(Include(number, match.group(2), match.group(1) == "<"))
    return found


def layer_of(name: str, layers: list[str]) -> str | None:
    """Return the layer that owns a path such as "engines/shm/engine.h", or None."""
    candidates = [layer for layer in layers if name.startswith(layer + "/")]
    return max(candidates, key=len, default=None)


def is_engine(layer: str) -> bool:
    return layer.startswith("engines/") and layer not in SHARED_BY_ENGINES


def breach(own: str, other: str, layers: list[str]) -> str | None:
    """Return the rule that layer `own` breaks by including a header of layer `other`.

    Return None if the include is allowed.
    """
    if own == other:
        return None
    if is_engine(other):
        if is_engine(own):
            return f"engine {own} includes engine {other}; engines never include each other"
        if own != COMPOSITION_ROOT:
            return (f"{own} names engine {other}; only the composition root "
                    f"(src/{COMPOSITION_ROOT}) does")
    if own == "engines/algorithm" and other in HIDDEN_FROM_ALGORITHM:
        return f"{own} includes {other}; it sees its transport through engine/ alone"
    if layers.index(other) > layers.index(own):
        return f"{own} includes {other}, which lies above it ({' < '.join(layers)})"
    return None


def check_layer_files(report: Report, layers: list[str]) -> None:
    for path in sources(report.root / "src"):
        name = path.relative_to(report.root / "src").as_posix()
        if name.startswith(("interfaces/cli/", "interfaces/mpi/")):
            continue
        own = layer_of(name, layers)
        if own is None:
            report.error(path, 1, "belongs to no layer of src/CMakeLists.txt")
            continue
        for include in includes_of(path):
            other = layer_of(include.path, layers)
            if include.path.startswith("interfaces/cli/"):
                report.error(path, include.line, f"{own} includes the command; nothing does")
            elif other and (what := breach(own, other, layers)):
                report.error(path, include.line, what)
            elif not include.angled and not other and (path.parent / include.path).is_file():
                report.error(path, include.line,
                             f'"{include.path}": write the path from src/, "{own}/{include.path}"')


def check_public_headers(report: Report) -> None:
    for path in sources(report.root / "include"):
        for include in includes_of(path):
            is_own = include.path.startswith("hocket/")
            # The headers of the C++ standard library have neither folder nor suffix.
            is_standard = include.angled and "/" not in include.path and "." not in include.path
            is_vendor = include.path in VENDOR_HEADERS.get(path.name, ())
            if path.name in C_HEADERS:
                is_own = is_own and Path(include.path).name in C_HEADERS
                is_standard = include.path in C_STANDARD
            if not is_own and not is_standard and not is_vendor:
                report.error(path, include.line,
                             f"a public header includes {include.path}; only the C++ standard "
                             "library and hocket/ may be reached from one")


def check_faces(report: Report, layers: list[str]) -> None:
    for folder, own_prefixes in FACES.items():
        for path in sources(report.root / folder):
            for include in includes_of(path):
                if include.path.startswith(("hocket/", *own_prefixes)):
                    continue
                beside = (path.parent / include.path).is_file() and not include.angled
                if layer_of(include.path, layers) and not beside:
                    report.error(path, include.line,
                                 f"{folder} includes {include.path}; it sees hocket/ alone")


def check_environment(report: Report) -> None:
    for folder in ("include", "src", "python/src"):
        for path in sources(report.root / folder):
            name = path.relative_to(report.root).as_posix()
            # The command is a program, whose environment is its input.
            if name == ENVIRONMENT_READER or name.startswith("src/interfaces/cli/"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                code = line.split("//")[0]
                if READS_ENVIRONMENT.search(code):
                    report.error(path, number,
                                 f"reads the environment; {ENVIRONMENT_READER} alone does")


def check_lengths(report: Report) -> None:
    paths = [path for folder in ("include", "src", "python/src")
             for path in sources(report.root / folder)]
    paths += sorted((report.root / "python").rglob("*.py"))
    for path in paths:
        length = len(path.read_text().splitlines())
        if length > MAX_LINES:
            report.error(path, length, f"{length} lines; more than {MAX_LINES} are refused, split it")
        elif length > WARN_LINES:
            report.warn(path, length, f"{length} lines; more than {WARN_LINES} want a reason")


def check(root: Path) -> Report:
    report = Report(root)
    layers = read_layers(root / "src/CMakeLists.txt")
    check_layer_files(report, layers)
    check_public_headers(report)
    check_faces(report, layers)
    check_environment(report)
    check_lengths(report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    report = check(parser.parse_args().root.resolve())
    for line in report.warnings:
        print(f"warning: {line}")
    for line in report.errors:
        print(f"error: {line}")
    print(f"layers: {len(report.errors)} breaches, {len(report.warnings)} warnings")
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
