"""The guard of a crew: a process that ends the crew's processes when their starter is gone.

The kernel ends the members themselves. But processes that members have started would live on, and
only the guard is left to end these. The guard is a program of its own, which imports nothing of
hocket. So it also works while members are busy or stopped.
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
    """Return the pids of all processes with the mark in their environment. Child processes inherit
    it.
    """
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # a process of another user, or one that has ended
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def end_marked(mark: str) -> None:
    """Kill all processes that have the mark in their environment."""
    for _ in range(_MOST_LOOKS):  # a process may start another process meanwhile
        left = marked(mark)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break


def main(starter: int, mark: str) -> None:
    """Wait until `starter` is gone, then kill all processes with the mark.

    Standard input is a pipe whose other end the starter holds. Child processes of the starter may
    hold it, too. So the guard also watches the process itself, if the system has pidfds.
    """
    watched = [sys.stdin.fileno()]
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # the process has ended already, or the kernel is old
            watched.append(os.pidfd_open(starter))
    if os.getppid() == starter:
        select.select(watched, [], [])
    end_marked(mark)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
