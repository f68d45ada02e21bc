"""The common code of both ways to run a test on ranks: threads and processes."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .._jobs.crew import Clock
from ..errors import Aborted, PeerDied

#: Seconds after the first rank's failure. After LEAVE_SECONDS the other ranks are interrupted.
#: After END_SECONDS the test ends in any case.
LEAVE_SECONDS = 0.2
END_SECONDS = 0.5


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Run a test's function to its end. An async function runs in a new event loop."""
    __tracebackhide__ = True
    result = function(**arguments)
    if inspect.iscoroutine(result):
        asyncio.run(result)
    elif inspect.isasyncgen(result):
        raise TypeError(f"{function.__name__} yields, so nothing of it has run; a test may not yield")


@dataclass(frozen=True)
class Limits:
    """Limits of a test's waits."""

    #: Seconds for which a rank may do nothing while another rank waits for it.
    patience: float = 0.5
    #: Seconds that the whole test may take.
    timeout: float = 60.0


@dataclass
class End:
    """The end of a rank that did not succeed."""

    rank: int
    when: float
    #: The exception, if the rank is a thread of this process.
    error: Optional[BaseException] = None
    #: The error in one line.
    summary: str = ""
    #: The error as pytest shows it, or the rank's stack.
    text: str = ""
    #: "error", "skip", "xfail", "ended", or "late": the rank did not reach a call in which others
    #: wait.
    kind: str = "error"

    @property
    def is_consequence(self) -> bool:
        """True if another rank's end may be the cause of this one."""
        return self.kind == "error" and self.summary.split(":")[0] in (
            PeerDied.__name__,
            Aborted.__name__,
            "KeyboardInterrupt",
        )


@dataclass
class Ends:
    """The ends of all ranks that did not succeed."""

    size: int
    ends: list[End] = field(default_factory=list)

    def first(self) -> End:
        """Return the end that caused the others."""
        return min(self.ends, key=lambda end: (end.is_consequence, end.when))

    def others(self) -> str:
        """Return the other ends as text, one line each."""
        first = self.first()
        rest = sorted((end for end in self.ends if end is not first), key=lambda end: end.rank)
        return "\n".join(f"rank {end.rank}: {end.summary}" for end in rest)


class RankFailure(Exception):
    """Raised if a rank of a test has failed, has ended, or has not reached a call."""

    def __init__(self, ends: Ends) -> None:
        first = ends.first()
        super().__init__(f"rank {first.rank} of {ends.size}: {first.summary}")
        self.ends = ends

    def text(self) -> str:
        """Return the whole report, for people."""
        first, others = self.ends.first(), self.ends.others()
        return "\n".join(filter(None, [first.text, str(self), others]))


def summary_of(error: BaseException) -> str:
    """Describe an exception in one line."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def waits(call: str) -> bool:
    """Return True if a rank waits in a call, judged by its last known call."""
    if call == "no collective call so far":
        return False
    return ", after " in call or not call.endswith(" (finished)")


class Watch:
    """Finds out that a test makes no progress.

    A test makes no progress if some ranks wait in calls, and all other ranks do nothing, for the
    time `patience`.
    """

    LOOK_SECONDS = 0.05
    #: Processor seconds between two looks up to which a rank counts as idle. A look itself costs
    #: some.
    IDLE_SECONDS = 0.03

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._clocks: dict[Any, Clock] = {}
        self._used: dict[Any, float] = {}
        self._calls = Clock()

    def missing(
        self,
        calls: list[str],
        used: dict[int, Any],
        there: set[int],
        stopped: Collection[int] = (),
    ) -> list[int]:
        """Return the ranks for which others wait in vain; empty if there are none.

        Parameters
        ----------
        calls : list of str
            The last known call of each rank.
        used : dict
            The processor time of each rank's process; None for a process that runs at the moment.
        there : set of int
            Ranks that have not ended.
        stopped : collection of int
            Ranks that signals have stopped. They cannot act, even if they were last seen in a call.
        """
        still = self._calls.unchanged((tuple(calls), frozenset(there))) >= self._patience
        able = there.difference(stopped)
        waiting = {rank for rank in able if rank < len(calls) and waits(calls[rank])}
        away = sorted(there - waiting)
        idle = [rank for rank in away if self._idle_for(rank, used[rank]) >= self._patience]
        return idle if still and waiting and idle == away else []

    def _idle_for(self, rank: int, used: Optional[float]) -> float:
        if used is None:
            self._clocks.pop(rank, None)
            return 0.0
        if used - self._used.setdefault(rank, used) > self.IDLE_SECONDS:
            self._used[rank] = used
        return self._clocks.setdefault(rank, Clock()).unchanged(self._used[rank])


def now() -> float:
    """Return seconds of a clock that all processes of a host share."""
    return time.monotonic()
