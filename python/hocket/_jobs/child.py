"""Detects child processes of ranks, which inherit a rank's variables without being ranks."""

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
# Variables that tell a process its place in a job.
_PLACE = (
    "HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE", "RANK", "WORLD_SIZE", "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE",
    "SLURM_STEP_ID", "SLURM_PROCID",
)

# Sets of variables that only a rank has. A batch script of Slurm also has some variables of _PLACE.
_RANKS = (
    {"HOCKET_RANK"}, {"RANK"}, {"OMPI_COMM_WORLD_RANK"}, {"PMI_RANK"},
    {"SLURM_STEP_ID", "SLURM_PROCID"},
)
# Seconds between the interrupt that asks a rank to end its pool, and the next, stronger signal.
_PATIENCE = 5.0


def _hydra() -> Optional[int]:
    """Return the pid of the MPICH process that started this process. Return None if their
    connection is closed.
    """
    try:
        with socket.socket(fileno=os.dup(int(os.environ["PMI_FD"]))) as way:
            return int(struct.unpack("3i", way.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    except (KeyError, ValueError, OSError):
        return None


def _place(rank: Optional[int], size: Optional[int], address: Optional[str]) -> list[Any]:
    return [str(rank), str(size), str(address), *(os.environ.get(name) for name in _PLACE)]


def mark(rank: int, size: int, place: list[Any]) -> None:
    """Store this rank's identity in the environment, by which its child processes recognize
    themselves.

    Does nothing for a process without a launcher: its world has one rank, and its children may have
    such worlds, too.
    """
    if size == 1 and not any(names <= os.environ.keys() for names in _RANKS):
        return
    os.environ[_MARK] = json.dumps([os.getpid(), rank, place, _hydra()])


def _ignores(pid: int, number: int) -> bool:
    """Return whether a process ignores a signal. A script's background processes ignore SIGINT."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            masks = [int(line.split()[1], 16) for line in status if line.startswith("SigIgn:")]
    except (OSError, ValueError, IndexError):
        return False
    return bool(masks) and bool(masks[0] >> (number - 1) & 1)


def _wait_for_end(parent: int) -> None:
    """Wait until the rank has ended, at most `_PATIENCE` seconds. The rank may kill this process
    before.
    """
    end = time.monotonic() + _PATIENCE
    while os.path.exists(f"/proc/{parent}") and time.monotonic() < end:
        time.sleep(0.02)


def _end_pool(parent: int, why: str) -> None:
    """End the rank's wait for a pool if every worker of the pool fails while it imports the
    program.

    A pool replaces each worker that ends, forever. So each worker waits here until the pool or the
    rank ends. One of the workers interrupts the rank, and kills the rank if that has no effect.
    While a worker imports the program, it already has its name and `_inheriting`, and no other
    state.
    """
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if "PoolWorker" not in process.name:  # no pool replaces this process
        if process.name.endswith("-1"):
            print(f"hocket: {why}", file=sys.stderr, flush=True)
            os.kill(parent, signal.SIGINT)
        return
    with socket.socket(socket.AF_UNIX) as turn:
        try:
            turn.bind(f"\0hocket-ends-pool-of-{parent}")
        except OSError:  # another worker already ends the rank's wait
            for _ in range(4):
                _wait_for_end(parent)
            return
        print(f"hocket: {why}", file=sys.stderr, flush=True)  # first: the rank may end this process
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if _ignores(parent, number):
                continue
            try:
                os.kill(parent, number)
            except ProcessLookupError:
                return
            _wait_for_end(parent)


def refuse_child(rank: Optional[int], size: Optional[int], address: Optional[str]) -> list[Any]:
    """Return this process's place in the job.

    Raises
    ------
    InvalidArgument
        This process is a child of a rank, and has that rank's place.
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
