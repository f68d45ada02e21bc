"""How the processes of a job find each other, once a process and address."""

from __future__ import annotations

import os
from typing import Any, Optional

import hocket

# The worlds of this process that stand. A program may make several communicators on one port, one
# after the other; all but the first are duplicates, as the port is the first one's.
_worlds: dict[tuple[Any, ...], hocket.Communicator] = {}


def by_store(n: int, rank: int, host: str, port: int) -> tuple[Any, hocket.Communicator]:
    """Meets at rank 0's port; the key of the world, and a communicator of one's own."""
    key = (os.getpid(), n, rank, host, port)
    world = _usable(key)
    if world is None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        world = _worlds[key] = hocket.init(rank=rank, size=n, address=address)
    return key, world.duplicate()


def by_mpi(n: int, rank: int) -> tuple[Any, hocket.Communicator]:
    """Meets by mpi4py's COMM_WORLD; the ranks need not be MPI's."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(
            "use_mpi=True needs the package mpi4py, which cannot be imported: "
            f"{error}. Install it, or leave use_mpi away"
        ) from error
    mpi = MPI.COMM_WORLD
    if mpi.Get_size() != n:
        raise ValueError(f"n_devices is {n}, but MPI's COMM_WORLD has {mpi.Get_size()} processes")
    key = (os.getpid(), n, rank, "MPI")
    world = _usable(key)
    if world is None:
        ranks = mpi.allgather(rank)
        if sorted(ranks) != list(range(n)):
            raise ValueError(f"the processes say that they are ranks {ranks}, expected each of {n}")
        world = _worlds[key] = hocket.init(mpi=mpi.Split(0, rank))
    return key, world.duplicate()


def leave(key: Any) -> None:
    """Ends the world, so that its port can be used again."""
    world = _worlds.pop(key, None)
    if world is not None:
        world.close()


def _usable(key: Any) -> Optional[hocket.Communicator]:
    world = _worlds.get(key)
    if world is not None and world.status is not None:
        leave(key)
        return None
    return world
