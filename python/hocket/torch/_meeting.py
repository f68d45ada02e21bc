"""Where the ranks of a group meet: torch.distributed's store."""

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
    """The value of a key that another rank writes."""
    try:
        store.wait([key], timeout)
    except RuntimeError as error:  # of whichever store it is
        raise hocket.RendezvousError(
            f"{writer} has not come within {timeout.total_seconds():g} s, or the store has ended; "
            "see its own output, or give a longer timeout. The store says: "
            + str(error).partition("\n")[0]
        ) from error
    return bytes(store.get(key))


class StoreBootstrap(hocket.Bootstrap):
    """A bootstrap by a store of torch.distributed, whose prefix belongs to the group."""

    def __init__(self, store: Any, rank: int, size: int, start: str, timeout: timedelta) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._start = start
        self._timeout = timeout
        self._calls = 0

    @classmethod
    def meet(cls, store: Any, rank: int, size: int, timeout: timedelta) -> StoreBootstrap:
        """Make the ranks agree on a name of this start, which prefixes all keys.

        A store may hold what an earlier start of the same ranks wrote, as torchrun's outlives ranks
        that it restarts. So each rank writes a random word of its own. Rank 0 answers under that
        word with a name that it made up for this start.
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
                    answered[other] = word  # may belong to an earlier start; then another one comes
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


# Between rank 0's looks at who has come.
_LEAST_PAUSE, _MOST_PAUSE = 0.0001, 0.01


class Place(NamedTuple):
    """Where a group's ranks meet. A value."""

    store: Any  # its prefix belongs to the group
    timeout: timedelta
    name: str  # of the group, in errors

    def meet(
        self, rank: int, size: int, timeout: Any = None, under: str = ""
    ) -> hocket.Communicator:
        """The communicator of `size` ranks that meet here; each gives its own rank.

        `under` keeps several meetings apart. Ranks that failed to meet may try again.
        """
        limit = self.timeout if timeout is None else timeout
        store = PrefixStore(under, self.store) if under else self.store
        bootstrap = StoreBootstrap.meet(store, rank, size, limit)
        return hocket.init(
            bootstrap=bootstrap, timeout=limit, deadline=self.timeout, name=self.name
        )
