#!/usr/bin/env python3
"""many_cores.py: hocket beside Open MPI 5, MPICH 5 and Intel MPI on a machine with many cores.

Each kind of call is measured at each size with each number of ranks, bound and unbound, all
libraries in turns. A cell is hocket's time over the time of the quickest other library. It is the
greatest of the ratios to each library, and each ratio is the median of batches measured side by
side. Cells above 1.0 are marked with *, and those that hocket did not finish with !. Kinds that a
bare program has are measured beside it too, from 1 MiB on; there cells above 1.25 are marked.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("openmpi5", "mpich5", "impi")
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "reduce", "gather",
         "scatter", "scan", "barrier", "send_recv", "send", "send_window", "isend_window")
OF_TWO = ("send", "send_window", "isend_window")  # only ranks 0 and 1 take part
WINDOWS = ("send_window", "isend_window")
BARE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
SIZES = ("8", "1K", "16K", "64K", "256K", "1M", "4M", "16M", "64M")
RANKS = (2, 4, 8, 16, 32)
MIB = 1 << 20
LIMIT, WANTED, BARE_LIMIT = 1.0, 0.8, 1.25


def bytes_of(text: str) -> int:
    """Return the bytes of a size in the notation of `hocket bench`: 8, 64K, 16M."""
    units = {"K": 1 << 10, "M": MIB, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def size_text(size: int) -> str:
    for unit, name in ((MIB, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return f"{size}"


@dataclass(frozen=True)
class Job:
    """One run of `hocket bench`."""

    name: str
    bind: str
    kinds: tuple[str, ...]
    ranks: tuple[int, ...]
    sizes: tuple[str, ...]
    others: tuple[str, ...]

    def weight(self) -> float:
        """Estimate the job's relative time from the starts of libraries and the sizes."""
        starting = 20
        every = sum(1 + bytes_of(size) / (4 * MIB) for size in self.sizes)
        kinds = sum(1 if kind == "barrier" else every for kind in self.kinds)
        return (starting + kinds) * len(self.ranks) * (len(self.others) + 1)


def jobs_of(options: argparse.Namespace, processors: int) -> list[Job]:
    """Return the jobs for the table, without jobs that have nothing to measure."""
    jobs = []
    long = tuple(size for size in options.sizes if bytes_of(size) >= MIB)
    short = tuple(size for size in options.sizes if bytes_of(size) <= MIB)
    for bind in options.bind:
        ranks = tuple(n for n in options.ranks if bind == "none" or n <= processors)
        two = (2,) if 2 in ranks else ()
        among_all = tuple(kind for kind in options.kinds if kind not in OF_TWO)
        bare = tuple(kind for kind in options.kinds if kind in BARE) if options.bare else ()
        windows = tuple(kind for kind in options.kinds if kind in WINDOWS)
        send = tuple(kind for kind in options.kinds if kind == "send")
        for name, kinds, numbers, sizes, others in (
            ("windows", windows, two, short, options.compare),
            ("send", send, two, options.sizes, options.compare),
            ("calls", among_all, ranks, options.sizes, options.compare),
            ("bare", bare, ranks, long, ("bare",)),
        ):
            if kinds and numbers and sizes:
                jobs.append(Job(f"{name}-{bind}", bind, kinds, numbers, sizes, others))
    return jobs


def command_of(job: Job, options: argparse.Namespace, folder: Path, seconds: int | None) -> list[str]:
    words = [options.hocket, "bench", *job.kinds, "-n", ",".join(map(str, job.ranks)),
             "--sizes", ",".join(job.sizes), "--bind", job.bind,
             "--repeats", str(options.repeats), "--timeout", str(options.timeout),
             "--json", str(folder / f"{job.name}.json"), "--html", str(folder / f"{job.name}.html"),
             "--compare", ",".join(job.others)]
    return words + (["--seconds", str(seconds)] if seconds is not None else [])


def run(jobs: list[Job], options: argparse.Namespace, folder: Path) -> None:
    """Run all jobs. Each job gets a part of the remaining time, by its weight."""
    end = None if options.seconds is None else time.monotonic() + options.seconds
    for place, job in enumerate(jobs):
        seconds = None
        if end is not None:
            left = sum(each.weight() for each in jobs[place:])
            seconds = max(1, int((end - time.monotonic()) * job.weight() / left))
        print(f"\n== {job.name}: {', '.join(job.kinds)}; ranks {job.ranks}", flush=True)
        (folder / f"{job.name}.json").unlink(missing_ok=True)
        # The figures record a library that fails or is wrong, so the other jobs go on.
        subprocess.run(command_of(job, options, folder, seconds), check=False)


@dataclass
class Cell:
    bind: str
    kind: str
    ranks: int
    asked: int  # the requested size
    bytes: int  # the measured size: each rank's part has whole elements
    beside: str  # "mpi" or "bare"
    us: float | None  # hocket's median; None if hocket did not finish
    ratio: float | None  # None if no other library was measured
    to: str | None  # the library that `ratio` compares with

    def limit(self) -> float:
        return BARE_LIMIT if self.beside == "bare" else LIMIT

    def is_marked(self) -> bool:
        return self.us is None or (self.ratio is not None and self.ratio > self.limit())


def cells_of(figures: dict, bind: str) -> list[Cell]:
    """Return the cells of a run of `hocket bench`, also those that hocket did not finish."""
    times, ratios = {}, {}
    for row in figures["rows"]:
        if row["library"] == "hocket":
            times[row["collective"], row["ranks"], row["bytes"]] = row["median_us"]
            if not row["verified"]:
                # A wrong result counts as not finished.
                times[row["collective"], row["ranks"], row["bytes"]] = None
    for gap in figures["unfinished"]:
        if gap["library"] == "hocket":
            times[gap["collective"], gap["ranks"], gap["bytes"]] = None
    for ratio in figures["ratios"]:
        place = ratio["collective"], ratio["ranks"], ratio["bytes"]
        ratios.setdefault(place, []).append((ratio["ratio"], ratio["to"]))
    beside = "bare" if set(figures["config"]["libraries"]) == {"hocket", "bare"} else "mpi"
    cells = []
    for (kind, ranks, size), us in times.items():
        ratio, to = max(ratios.get((kind, ranks, size), [(None, None)]))
        asked = asked_size(size, ranks, figures["config"]["sizes"])
        cells.append(Cell(bind, kind, ranks, asked, size, beside, us, None if us is None else ratio, to))
    return cells


def asked_size(size: int, ranks: int, asked: list[int]) -> int:
    """Return the requested size for a measured `size`.

    The bench rounds a size down, such that each rank's part has whole floats.
    """
    for each in asked:
        if size in (each, max(1, each // (4 * ranks)) * 4 * ranks):
            return each
    return size


def cell_text(cell: Cell | None) -> str:
    if cell is None:
        return "."
    if cell.us is None:
        return "!"
    if cell.ratio is None:
        return "-"
    # Round the ratio of a marked cell up, so that the cell does not look like one within the limit.
    shown = math.ceil(cell.ratio * 100 - 1e-9) / 100 if cell.is_marked() else cell.ratio
    return f"{shown:.2f}{'*' if cell.is_marked() else ''}"


def print_tables(cells: list[Cell]) -> None:
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.beside, cell.bind, cell.ranks), []).append(cell)
    for (beside, bind, ranks), group in sorted(groups.items(), key=lambda item: item[0][::-1]):
        quickest = "a bare program" if beside == "bare" else "the quickest MPI"
        print(f"\n{ranks} ranks, {'bound' if bind == 'core' else 'unbound'}: time over that of {quickest}")
        sizes = sorted({cell.asked for cell in group if cell.kind != "barrier"})
        print(f"{'':>16}" + "".join(f"{size_text(size):>8}" for size in sizes))
        for kind in [kind for kind in KINDS if any(cell.kind == kind for cell in group)]:
            of_kind = {cell.asked: cell for cell in group if cell.kind == kind}
            shown = of_kind.values() if kind == "barrier" else [of_kind.get(size) for size in sizes]
            print(f"{kind:>16}" + "".join(f"{cell_text(cell):>8}" for cell in shown))


def summary_of(cells: list[Cell]) -> dict:
    compared = [cell for cell in cells if cell.beside == "mpi" and (cell.ratio is not None or cell.us is None)]
    bare = [cell for cell in cells if cell.beside == "bare" and (cell.ratio is not None or cell.us is None)]
    return {
        "cells": len(compared),
        "above_limit": sum(cell.is_marked() for cell in compared),
        "at_most_wanted": sum(cell.ratio is not None and cell.ratio <= WANTED for cell in compared),
        "not_finished": sum(cell.us is None for cell in compared),
        "bare_cells": len(bare),
        "bare_above_limit": sum(cell.is_marked() for cell in bare),
    }


def print_summary(summary: dict, cells: list[Cell]) -> None:
    count = max(1, summary["cells"])
    print(f"\n{summary['cells']} cells beside MPIs: {summary['above_limit']} above {LIMIT} (marked), "
          f"{summary['at_most_wanted']} at most {WANTED} ({100 * summary['at_most_wanted'] / count:.0f} %), "
          f"{summary['not_finished']} not finished by hocket")
    print(f"{summary['bare_cells']} cells beside a bare program: {summary['bare_above_limit']} above {BARE_LIMIT}")
    for cell in sorted((cell for cell in cells if cell.is_marked()),
                       key=lambda cell: -(cell.ratio or math.inf)):
        what = "not finished" if cell.us is None else f"{cell.ratio:.2f} of {cell.to}, {cell.us:g} us"
        print(f"  {cell.kind}, {size_text(cell.asked)}, {cell.ranks} ranks, --bind {cell.bind}: {what}")


def make_table(folder: Path) -> None:
    cells, config, problems = [], {}, []
    for path in sorted(folder.glob("*-*.json")):
        figures = json.loads(path.read_text())
        config[path.stem] = figures["config"]
        problems += [f"{path.stem}: {problem.splitlines()[0]}" for problem in figures["config"]["problems"]]
        cells += cells_of(figures, path.stem.rpartition("-")[2])
    print_tables(cells)
    summary = summary_of(cells)
    print_summary(summary, cells)
    if problems:
        print("\nproblems:", *problems, sep="\n  ")
    table = {"summary": summary, "cells": [vars(cell) | {"marked": cell.is_marked()} for cell in cells],
             "config": config}
    (folder / "table.json").write_text(json.dumps(table, indent=1) + "\n")
    print(f"\nfigures: {folder / 'table.json'}")


def words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def find_hocket() -> str:
    root = Path(__file__).resolve().parents[2]
    for path in (root / "build" / "release" / "bin" / "hocket", root / "bin" / "hocket"):
        if path.exists():
            return str(path)
    return "hocket"


def parsed(arguments: list[str], processors: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="many_cores.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kinds", type=words, default=KINDS, help="of " + ", ".join(KINDS))
    add("--sizes", type=words, default=SIZES, help=",".join(SIZES))
    add("--ranks", type=words, default=tuple(str(n) for n in RANKS if n <= processors),
        help="2,4,8,16,32, as the processors allow")
    add("--bind", type=words, default=("core", "none"), help="core,none")
    add("--compare", type=words, default=LIBRARIES, help=",".join(LIBRARIES))
    add("--no-bare", dest="bare", action="store_false", help="not beside the bare program")
    add("--repeats", type=int, default=5, help="batches of each case (5)")
    add("--seconds", type=int, help="shorten the batches such that all takes about so long")
    add("--timeout", type=int, default=20, help="give a library up in a case after so many seconds (20)")
    add("--hocket", default=find_hocket(), help="the command")
    add("--out", type=Path, default=Path("many_cores_figures"), help="the folder of the figures")
    add("--table", action="store_true", help="measure nothing: make the table of what is in that folder")
    options = parser.parse_args(arguments)
    for name, known in (("kinds", KINDS), ("bind", ("core", "none"))):
        for word in getattr(options, name):
            if word not in known:
                parser.error(f"--{name}: there is no '{word}'; there are {', '.join(known)}")
    try:
        options.ranks = tuple(int(word) for word in options.ranks)
        sorted(map(bytes_of, options.sizes))
    except ValueError as error:
        parser.error(f"--ranks and --sizes take numbers with commas between: {error}")
    return options


def main() -> int:
    processors = len(os.sched_getaffinity(0))
    options = parsed(sys.argv[1:], processors)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.table:
        jobs = jobs_of(options, processors)
        if not jobs:
            sys.exit(f"many_cores: nothing to measure with these options on {processors} processors")
        run(jobs, options, options.out)
    make_table(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
