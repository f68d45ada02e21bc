"""Puts the words for which programs of torch.distributed search in front of hocket's messages."""

from __future__ import annotations

from typing import TypeVar

import hocket

_TWO_THREADS = "two threads are using communicator"


_E = TypeVar("_E", bound=hocket.Error)


def in_front(words: str, error: _E) -> _E:
    """Return the same error with a text that begins with `words`."""
    told = type(error)(f"{words}: {error}")
    told.__dict__.update(error.__dict__)
    return told


def in_words(error: hocket.Error) -> hocket.Error:
    """Return a call's error. If a rank has ended, the text begins with the words of gloo's error.
    """
    closed = "Connection closed by peer"
    if not isinstance(error, hocket.PeerDied) or str(error).startswith(closed):
        return error
    return in_front(closed, error)


def late_barrier(error: hocket.DeadlineExceeded) -> hocket.DeadlineExceeded:
    """Return the error of ``dist.barrier``."""
    return in_front("barrier: Timed out waiting for other ranks", error)


def late_monitored_barrier(
    error: hocket.DeadlineExceeded, rank: int, waits_for_all: bool, has_time: bool
) -> hocket.DeadlineExceeded:
    """Return the error of ``dist.monitored_barrier``. On rank 0 it names the missing ranks."""
    if rank != 0:
        words = (
            f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting "
            "for send/recv from rank 0"
        )
    elif not error.missing:
        words = f"Rank {rank} timed out in monitoredBarrier"
    elif waits_for_all and len(error.missing) > 1:
        missing = ", ".join(map(str, error.missing))
        words = f"Ranks {missing} failed to pass monitoredBarrier"
    else:
        words = f"Rank {error.missing[0]} failed to pass monitoredBarrier"
    if rank == 0 and not has_time and error.missing:
        words += ": Rank 0 timed out in monitoredBarrier"
    return in_front(words, error)


def refusal(error: hocket.InvalidArgument) -> hocket.InvalidArgument:
    """Return a refusal with advice in terms of torch.distributed, if this module has any."""
    if not str(error).startswith(_TWO_THREADS):
        return error
    told = hocket.InvalidArgument(
        f"{error}. With torch.distributed: give each thread or model a group of its own, such as "
        "DistributedDataParallel(model, process_group=dist.new_group())"
    )
    told.status = error.status
    return told
