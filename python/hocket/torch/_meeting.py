"""Lets the ranks of a group meet at torch.distributed's store."""

from __future__ import annotations

import secrets
import time
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
from torch._C._distributed_c10d import PrefixStore

import hocket
from hocket._hocket import _run_time


def _awaited(store: Any, key: str, timeout: timedelta, writer: str) -> bytes:
    """Wait for a key that another rank writes, and return its value."""
    try:
        store.wait([key], timeout)
    except RuntimeError as error:  # the kinds of stores raise different subclasses
        raise hocket.RendezvousError(
            f"{writer} has not come within {timeout.total_seconds():g} s, or the store has ended; "
            "see its own output, or give a longer timeout. The store says: "
            + str(error).partition("\n")[0]
        ) from error
    return bytes(store.get(key))


class StoreBootstrap(hocket.Bootstrap):
    """A bootstrap that uses a store of torch.distributed. The store's prefix belongs to the group.
    """

    def __init__(self, store: Any, rank: int, size: int, start: str, timeout: timedelta) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._start = start
        self._timeout = timeout
        self._calls = 0

    @classmethod
    def meet(cls, store: Any, rank: int, size: int, timeout: timedelta) -> StoreBootstrap:
        """Let the ranks agree on a name for this start. It becomes the prefix of all keys.

        A store may hold values of an earlier start of the same ranks: torchrun's store outlives
        ranks that torchrun restarts. So each rank writes a new random word. Rank 0 answers under
        that word with the name of this start, which is random, too.
        """
        own = secrets.token_hex(8)
        if rank != 0:
            store.set(f"hocket/here/{rank}", own)
            start = _awaited(store, f"hocket/start/{own}", timeout, "rank 0").decode()
            store.set(f"hocket/{start}/met/{rank}", "1")
            return cls(store, rank, size, start, timeout)
        until = _run_time() + timeout.total_seconds()
        pause = _LEAST_PAUSE
        missing = set(range(1, size))
        answered: dict[int, bytes] = {}
        while True:
            for other in sorted(missing):
                here = f"hocket/here/{other}"
                if store.check([f"hocket/{own}/met/{other}"]):
                    missing.discard(other)
                elif store.check([here]) and (word := store.get(here)) != answered.get(other):
                    answered[other] = word  # if it is of an earlier start, another word comes later
                    store.set(f"hocket/start/{word.decode()}", own)
            if not missing:
                return cls(store, rank, size, own, timeout)
            if _run_time() > until:
                raise hocket.RendezvousError(
                    f"rank {', '.join(map(str, sorted(missing)))} of {size} has not come within "
                    f"{timeout.total_seconds():g} s; see its own output, or give init_process_group a "
                    "longer timeout"
                )
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)

    @property
    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of processes in the group."""
        return self._size

    def broadcast(self, buffer: Any, root: int) -> None:
        """See `hocket.Bootstrap.broadcast`."""
        key = self._next("broadcast")
        if self._rank == root:
            self._store.set(key, buffer.tobytes())
        else:
            sent = _awaited(self._store, key, self._timeout, f"rank {root}")
            buffer[:] = np.frombuffer(sent, "uint8")

    def all_reduce(self, values: Any, op: Any) -> None:
        """See `hocket.Bootstrap.all_reduce`."""
        key = self._next("all_reduce")
        self._store.set(f"{key}/{self._rank}", values.tobytes())
        every = [
            _awaited(self._store, f"{key}/{rank}", self._timeout, f"rank {rank}")
            for rank in range(self._size)
        ]
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        values[:] = fold.reduce([np.frombuffer(sent, "int64") for sent in every])

    def _next(self, call: str) -> str:
        self._calls += 1
        return f"hocket/{self._start}/{self._calls}/{call}"


# Seconds that rank 0 pauses between two checks of which ranks have come: the shortest, the longest.
_LEAST_PAUSE, _MOST_PAUSE = 0.0001, 0.01


class Place(NamedTuple):
    """The place where a group's ranks meet. A value."""

    store: Any  # a store whose prefix belongs to the group
    timeout: timedelta
    name: str  # the group's name in errors

    def meet(
        self, rank: int, size: int, timeout: Any = None, under: str = ""
    ) -> hocket.Communicator:
        """Return the communicator of `size` ranks that meet here. Each rank passes its own number.

        `under` is a prefix for the keys of this meeting. Ranks that failed to meet may try again.
        """
        limit = self.timeout if timeout is None else timeout
        store = PrefixStore(under, self.store) if under else self.store
        bootstrap = StoreBootstrap.meet(store, rank, size, limit)
        return hocket.init(
            bootstrap=bootstrap, timeout=limit, deadline=self.timeout, name=self.name
        )
