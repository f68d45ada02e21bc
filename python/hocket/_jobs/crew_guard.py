"""The guard of a crew: a process that ends the crew's processes when their starter is gone.

The kernel ends the members themselves. Processes that they have started outlive them, and nobody
else is there to end those. A program of its own, which imports nothing of hocket: the guard works
while members are busy or stopped.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from pathlib import Path

_MOST_LOOKS = 100


def marked(mark: str) -> list[int]:
    """The processes that have the mark in their environment: members' descendants inherit it."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # another user's, or gone
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def end_marked(mark: str) -> None:
    """Kill all processes that have the mark."""
    for _ in range(_MOST_LOOKS):  # a process may start another one meanwhile
        left = marked(mark)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break


def main(starter: int, mark: str) -> None:
    """Wait until `starter` is gone, then end what has the mark.

    Standard input is a pipe that the starter holds. Children that it has forked may hold it too, so
    the process is watched as well where the system can do that.
    """
    watched = [sys.stdin.fileno()]
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # gone already, or an old kernel
            watched.append(os.pidfd_open(starter))
    if os.getppid() == starter:
        select.select(watched, [], [])
    end_marked(mark)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
