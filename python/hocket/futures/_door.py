"""Newcomers that take the places of workers which have died, in a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._hocket import Communicator
from ..errors import Error, RendezvousError
from ._worker import pairs_of

# Interval at which the end of the executor is seen.
_PATIENCE_SECONDS = 1.0


class Door:
    """Takes in newcomers that wait at the job's door, one for each place. A resource.

    Rank 0 alone admits them: each makes a world with it, and the other workers go on meanwhile.

    Parameters
    ----------
    own : Communicator
        Of rank 0 alone.
    came : function
        Called with the rank whose place is taken, and the pair's communicator with the newcomer.
    missed : function
        Called with the reason when nobody has come within the communicator's deadline.
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
        self._missing: list[tuple[int, float]] = []  # ranks, and since when
        self._changed = threading.Condition()
        self._is_closing = False
        self._worlds: list[Communicator] = []
        self._thread = threading.Thread(target=self._run, name="hocket door", daemon=True)
        self._thread.start()

    def replace(self, rank: int) -> None:
        """A worker has died. Any thread."""
        with self._changed:
            self._missing.append((rank, time.monotonic()))
            self._changed.notify()

    def close(self) -> None:
        """Take in nobody any more."""
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
            # The newcomer makes the same groups, as it makes an executor of this world.
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
    """A communicator of rank 0 alone. Collective."""
    return comm.new_group([0])
