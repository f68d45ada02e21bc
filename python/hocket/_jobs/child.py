"""Detects child processes of ranks: they inherit a rank's variables without being ranks."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import struct
import sys
import time
from typing import Any, Optional

from ..errors import InvalidArgument

_MARK = "HOCKET_CHILD_OF"
# The variables that tell a process its place in a job.
_PLACE = (
    "HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE", "RANK", "WORLD_SIZE", "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE",
    "SLURM_STEP_ID", "SLURM_PROCID",
)

# The same where they make a process a rank. A batch script of Slurm has some of the others, too.
_RANKS = (
    {"HOCKET_RANK"}, {"RANK"}, {"OMPI_COMM_WORLD_RANK"}, {"PMI_RANK"},
    {"SLURM_STEP_ID", "SLURM_PROCID"},
)
# Seconds that a rank has to end its pool before it is told less politely.
_PATIENCE = 5.0


def _hydra() -> Optional[int]:
    """The process that started this one for MPICH; None if the connection to it is closed."""
    try:
        with socket.socket(fileno=os.dup(int(os.environ["PMI_FD"]))) as way:
            return int(struct.unpack("3i", way.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    except (KeyError, ValueError, OSError):
        return None


def _place(rank: Optional[int], size: Optional[int], address: Optional[str]) -> list[Any]:
    return [str(rank), str(size), str(address), *(os.environ.get(name) for name in _PLACE)]


def mark(rank: int, size: int, place: list[Any]) -> None:
    """Tell this rank's children that they are children of this rank.

    A process that nobody made a rank has a world of one, and its children may have theirs.
    """
    if size == 1 and not any(names <= os.environ.keys() for names in _RANKS):
        return
    os.environ[_MARK] = json.dumps([os.getpid(), rank, place, _hydra()])


def _ignores(pid: int, number: int) -> bool:
    """Whether the process ignores a signal, as SIGINT in the background of a script."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            masks = [int(line.split()[1], 16) for line in status if line.startswith("SigIgn:")]
    except (OSError, ValueError, IndexError):
        return False
    return bool(masks) and bool(masks[0] >> (number - 1) & 1)


def _wait_for_end(parent: int) -> None:
    """Wait until the rank has ended, which may end this process earlier."""
    end = time.monotonic() + _PATIENCE
    while os.path.exists(f"/proc/{parent}") and time.monotonic() < end:
        time.sleep(0.02)


def _end_pool(parent: int, why: str) -> None:
    """End the rank's wait for a pool whose every worker fails while it imports the program.

    A pool starts another worker for each one that ends, forever. So each worker waits here until
    the pool or the rank ends. One of them interrupts the rank, and kills it if that has no effect.
    While it imports the program, a worker has its name already and no other state.
    """
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if "PoolWorker" not in process.name:  # nobody starts another one
        if process.name.endswith("-1"):
            print(f"hocket: {why}", file=sys.stderr, flush=True)
            os.kill(parent, signal.SIGINT)
        return
    with socket.socket(socket.AF_UNIX) as turn:
        try:
            turn.bind(f"\0hocket-ends-pool-of-{parent}")
        except OSError:  # another worker does it
            for _ in range(4):
                _wait_for_end(parent)
            return
        print(f"hocket: {why}", file=sys.stderr, flush=True)  # the rank may end this process at once
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if _ignores(parent, number):
                continue
            try:
                os.kill(parent, number)
            except ProcessLookupError:
                return
            _wait_for_end(parent)


def refuse_child(rank: Optional[int], size: Optional[int], address: Optional[str]) -> list[Any]:
    """Return this process's place.

    Raises
    ------
    InvalidArgument
        The place belongs to the rank that started this process.
    """
    place = _place(rank, size, address)
    try:
        parent, its_rank, its_place, hydra = json.loads(os.environ.get(_MARK, ""))
    except ValueError:
        return place
    if parent == os.getpid() or place != its_place or _hydra() not in (None, hydra):
        return place
    why = (
        f"this process is a child of rank {its_rank} (pid {parent}), not a rank: it has only "
        "inherited that rank's variables; put init, and all that only ranks do, under "
        "`if __name__ == \"__main__\":`, or start the process without those variables"
    )
    _end_pool(parent, why)
    raise InvalidArgument(why)
