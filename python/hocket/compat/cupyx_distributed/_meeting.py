"""Joins the processes of a job. A process joins once for each address."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any, Optional

import numpy as np

import hocket

# The worlds of this process, by address. They live until the process ends. A program may make
# several communicators with one address. Each of them is a duplicate of the world of this address.
_worlds: dict[tuple[Any, ...], hocket.Communicator] = {}

_TRIES = 5


def by_store(n: int, rank: int, host: str, port: int) -> hocket.Communicator:
    """Meet at rank 0's port. Return a communicator that only this caller uses."""
    place = (os.getpid(), host, port)
    world = _standing(place, n, rank)
    if world is None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        world = _worlds[place] = _join(n, rank, address, _worlds.pop(place, None))
    return world.duplicate()


def _join(
    n: int, rank: int, address: str, previous: Optional[hocket.Communicator]
) -> hocket.Communicator:
    if previous is None:
        return hocket.init(rank=rank, size=n, address=address)
    previous.close()
    del previous  # drops the last reference, so that its store leaves the address
    for _ in range(_TRIES - 1):
        try:
            return hocket.init(rank=rank, size=n, address=address)
        except hocket.RendezvousError:  # another process may still be closing the previous store
            time.sleep(0.2)
    return hocket.init(rank=rank, size=n, address=address)


def by_mpi(n: int, rank: int) -> hocket.Communicator:
    """Meet by mpi4py's COMM_WORLD. The ranks may differ from MPI's ranks."""
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
    place = (os.getpid(), "MPI")
    world = _standing(place, n, rank)
    if world is None:
        ranks = mpi.allgather(rank)
        if sorted(ranks) != list(range(n)):
            raise ValueError(f"the processes say that they are ranks {ranks}, expected each of {n}")
        world = _worlds[place] = hocket.init(mpi=mpi.Split(0, rank))
    return world.duplicate()


def acquaint(comm: hocket.Communicator) -> None:
    """Connect the ranks' current GPUs, if all ranks use CuPy and have a GPU.

    CuPy's communicators do this when they are made. With hocket, the first call on GPUs may be a
    message, in which only two ranks take part.
    """
    everywhere = np.array([_stream_of_gpu() is not None], "uint8")
    comm.all_reduce(everywhere, op="min")
    if everywhere[0]:
        # If hocket cannot use the GPUs, all ranks refuse the barrier. Calls on host arrays still
        # work.
        with contextlib.suppress(hocket.InvalidArgument):
            comm.barrier(stream=_stream_of_gpu())


def _stream_of_gpu() -> Optional[int]:
    """Return the handle of CuPy's current stream. Return None without CuPy or without GPUs."""
    runtime = getattr(getattr(sys.modules.get("cupy"), "cuda", None), "runtime", None)
    if runtime is None:
        return None
    try:
        if runtime.getDeviceCount() == 0:
            return None
    except runtime.CUDARuntimeError:  # no driver
        return None
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def _standing(place: tuple[Any, ...], n: int, rank: int) -> Optional[hocket.Communicator]:
    """Return the existing world of this address, if it has these ranks and has not failed."""
    world = _worlds.get(place)
    if world is None or world.status is not None or (world.size, world.rank) != (n, rank):
        return None
    return world
