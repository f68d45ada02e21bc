"""Replaces workers that have died by processes that join the job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._hocket import Communicator
from ..errors import Error, RendezvousError
from ._worker import pairs_of

# Seconds between two checks of whether the executor has ended.
_PATIENCE_SECONDS = 1.0


class Door:
    """Admits processes that wait to join the job, one for each dead worker. A resource.

    Rank 0 alone admits a newcomer: the two form a world of their own, while the other workers go
    on.

    Parameters
    ----------
    own : Communicator
        A communicator whose only member is rank 0.
    came : function
        Called with the rank of a dead worker, and the communicator of rank 0 and the newcomer.
    missed : function
        Called with the reason if no process has come within the communicator's deadline.
    """

    def __init__(
        self,
        own: Communicator,
        came: Callable[[int, Communicator], None],
        missed: Callable[[str, BaseException], None],
    ) -> None:
        self._own = own
        self._came = came
        self._missed = missed
        self._missing: list[tuple[int, float]] = []  # (rank, time of its loss)
        self._changed = threading.Condition()
        self._is_closing = False
        self._worlds: list[Communicator] = []
        self._thread = threading.Thread(target=self._run, name="hocket door", daemon=True)
        self._thread.start()

    def replace(self, rank: int) -> None:
        """Look for a newcomer that replaces a dead worker. Any thread may call it."""
        with self._changed:
            self._missing.append((rank, time.monotonic()))
            self._changed.notify()

    def close(self) -> None:
        """Stop admitting newcomers."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        self._own.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._missing or self._is_closing)
                if self._is_closing:
                    return
            try:
                self._admit()
            except Error as error:
                self._give_up("a newcomer could not be taken in", error)

    def _admit(self) -> None:
        world = self._own.duplicate().admit(1, patience=_PATIENCE_SECONDS)
        if world.newcomers:
            # The newcomer also calls pairs_of and own_group, when it creates its executor.
            pairs = pairs_of(world)
            own_group(world)
            self._worlds.append(world)
            self._came(self._missing.pop(0)[0], pairs[1])
            return
        world.close()
        waited = time.monotonic() - self._missing[0][1]
        if waited > self._own.deadline:
            why = f"no newcomer has come within {waited:.0f} s; start one: hocket run --join"
            self._give_up(why, RendezvousError(why))

    def _give_up(self, why: str, error: Error) -> None:
        self._missing.pop(0)
        self._missed(why, error)


def own_group(comm: Communicator) -> Communicator:
    """Return a communicator whose only member is rank 0. Collective."""
    return comm.new_group([0])
