"""An agreed stop: all ranks learn at the same call of a signal that the batch system has sent."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any, Optional, Union

import numpy as np

from .._calls.types import Timeout, type_in_words
from .._hocket import Communicator
from ..errors import InvalidArgument

Number = Union[int, signal.Signals]


class StopRequest:
    """Tells all ranks at the same call that a signal has asked one of them to stop.

    Batch systems send SIGTERM some time before they kill a job. Often only some processes get it,
    and never all at the same moment. A rank that stopped alone would leave the other ranks waiting.
    So a rank only notes the signal, and all ranks compare their notes in `agreed`::

        with hocket.StopRequest(comm) as stop:
            for step in range(first, steps):
                train(step)
                if stop.agreed():  # on all ranks, or on none
                    save(step)
                    break

    Make it in the main thread, where Python handles signals. `close`, or the end of the ``with``,
    restores the earlier handlers.

    Parameters
    ----------
    comm : Communicator
        Its ranks stop together.
    signals : iterable of int
        The signals that ask to stop; by default SIGTERM. Slurm's ``--signal=USR1@120`` sends
        SIGUSR1.
    """

    def __init__(self, comm: Communicator, signals: Iterable[Number] = (signal.SIGTERM,)) -> None:
        if not isinstance(comm, Communicator):
            raise InvalidArgument(f"comm is {type_in_words(comm)}, expected a Communicator")
        self._comm = comm
        self._noted = 0
        self._signal = 0
        self._before: dict[int, Any] = {}
        wanted = list(signals)
        try:
            for number in wanted:
                self._before[int(number)] = signal.signal(number, self._note)
        except (ValueError, OSError, TypeError) as error:
            self.close()
            raise InvalidArgument(
                f"StopRequest cannot handle signals {wanted}: {error}; make it in the main thread, "
                "for signals that can be caught"
            ) from error

    @property
    def noted(self) -> bool:
        """True if this rank has received one of the signals. Other ranks may not know of it yet."""
        return self._noted != 0

    @property
    def signal(self) -> int:
        """The signal for which all ranks have agreed to stop; 0 before."""
        return self._signal

    def agreed(self, deadline: Timeout = None) -> bool:
        """Return True on all ranks if any rank has received one of the signals. Then it stays true.

        Collective, and about as cheap as a barrier. Once it has returned True, it returns at once
        without a call.
        """
        if self._signal == 0:
            number = np.array(self._noted, np.int32)
            self._comm.all_reduce(number, op="max", deadline=deadline)
            self._signal = int(number)
        return self._signal != 0

    def close(self) -> None:
        """Restore the earlier handlers of the signals. Local; it may be called again."""
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def __enter__(self) -> StopRequest:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def _note(self, number: int, _frame: Optional[FrameType]) -> None:
        self._noted = number
