"""Runs a test on ranks that are processes, which later tests reuse."""

from __future__ import annotations

import heapq
import itertools
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, Optional

from .._jobs.crew import (
    Crew,
    Event,
    Labels,
    fresh_address,
    how_it_ended,
    is_stopped,
    processor_time,
)
from ._runs import END_SECONDS, LEAVE_SECONDS, End, Ends, Limits, Watch, now, waits

#: Seconds after which another member is asked for the last calls, if the first does not answer.
ANSWER_SECONDS = 0.2
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "delay": signal.SIGSTOP}


class ProcessRun:
    """One run of one test on the processes of `crew`. Use an object only once."""

    def __init__(self, crew: Crew, n: int, limits: Limits, show: Callable[[str], Any]) -> None:
        self._crew = crew
        self._n = n
        self._limits = limits
        self._labels = Labels(show)
        self._there: set[int] = set()  # ranks that have not ended
        self._gone: set[int] = set()  # ranks whose processes have ended
        self._bad: list[End] = []
        self._killed: set[int] = set()  # ranks that the test has killed
        self._stopped: set[int] = set()  # ranks stopped on purpose, and not continued yet
        self._faults = False
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._calls: list[str] = []
        # The rank that was asked for the last calls, and the time of the request.
        self._asked: Optional[tuple[int, float]] = None
        self._looked = 0.0
        self._stacks: dict[int, list[tuple[str, int, str, str]]] = {}

    def run(self, task: bytes) -> Optional[Ends]:
        """Run a pickled (function, arguments). Return None if all ranks succeeded.

        Each member calls the function with itself, its rank, n, the address at which ranks meet,
        and the arguments.
        """
        self._crew.complete(self._n)
        function, arguments = pickle.loads(task)
        address = fresh_address()
        for rank in range(self._n):
            own = pickle.dumps((function, (rank, self._n, address, *arguments)))
            self._crew[rank].send("task", 0, own)
        self._there = set(range(self._n))
        try:
            self._until_end()
        finally:
            for rank in self._there | self._gone:  # after Ctrl-C, or when the test took too long
                self._crew.end(rank)
            self._labels.end()
        return Ends(self._n, self._bad) if self._bad else None

    def _until_end(self) -> None:
        watch, begun = Watch(self._limits.patience), now()
        while self._there and not self._there <= self._stopped:
            first = min((end.when for end in self._bad), default=None)
            if first is not None and now() > first + END_SECONDS:
                return self._give_up()
            if first is None and now() > begun + self._limits.timeout:
                why = f"has not ended after {self._limits.timeout:g} s"
                return self._come_late(sorted(self._there - self._stopped), why)
            for event in self._crew.events(sorted(self._there), self._next_look()):
                self._take(event)
            self._do_what_is_due()
            if not self._bad and not self._faults and now() >= self._looked + Watch.LOOK_SECONDS:
                self._looked = now()
                self._look(watch)

    def _next_look(self) -> float:
        times = [Watch.LOOK_SECONDS]
        times += [when - now() for when, *_ in self._later[:1]]
        return max(0.0, min(times))

    def _do_what_is_due(self) -> None:
        while self._later and self._later[0][0] <= now():
            heapq.heappop(self._later)[2]()

    def _at(self, when: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (when, next(self._count), do))

    # --- What members do ----------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        rank = event.member
        if event.kind == "output":
            self._labels.print(rank, event.content)
        elif event.kind == "ended":
            self._there.discard(rank)
            if rank not in self._killed:
                pid = self._crew[rank].pid
                summary = f"process {pid} {how_it_ended(event.content)}"
                self._fail(End(rank, now(), None, summary, "", "ended"))
            self._gone.add(rank)  # kept: other ranks may still ask the system how it ended
        else:
            kind, *rest = event.content
            if kind == "done":
                self._there.discard(rank)
                if rest[1] is not None:
                    self._fail(End(rank, *rest[1]))
            elif kind == "request":
                self._answer(rank, *rest)
            elif kind == "calls":
                self._calls, self._asked = rest[0], None
            elif kind == "stack":
                self._stacks[rank] = rest[0]

    def _fail(self, end: End) -> None:
        if not self._bad:
            self._at(now() + LEAVE_SECONDS, self._interrupt)
        self._bad.append(end)

    def _interrupt(self) -> None:
        for rank in self._there - self._stopped:
            self._crew[rank].kill(signal.SIGINT)

    # --- Faults -------------------------------------------------------------------------------

    def _answer(
        self, rank: int, number: int, what: str, whom: int, seconds: float, after: float
    ) -> None:
        is_one = isinstance(whom, int) and 0 <= whom < self._n
        if is_one:
            self._faults = True
            if after > 0:
                self._at(now() + after, lambda: self._inject(what, whom, seconds))
            else:
                self._inject(what, whom, seconds)
        self._crew[rank].send("answer", number, is_one)

    def _inject(self, what: str, rank: int, seconds: float) -> None:
        if rank not in self._there:
            return
        if what == "kill":
            self._killed.add(rank)
        else:
            self._stopped.add(rank)
        self._crew[rank].kill(_SIGNALS[what])
        if what == "delay":
            self._at(now() + seconds, lambda: self._go_on(rank))

    def _go_on(self, rank: int) -> None:
        self._stopped.discard(rank)
        if rank in self._there:
            self._crew[rank].kill(signal.SIGCONT)

    # --- Ranks that do not come ---------------------------------------------------------------

    def _look(self, watch: Watch) -> None:
        used = {rank: processor_time(self._crew[rank].pid) for rank in self._there}
        stopped = {rank for rank in self._there if is_stopped(self._crew[rank].pid)}
        late = watch.missing(self._calls, used, self._there, stopped)
        if late:
            why = f"did nothing for {self._limits.patience:g} s, while others wait for it"
            self._come_late(late, why)
        elif self._there and (self._asked is None or now() > self._asked[1] + ANSWER_SECONDS):
            able = sorted(self._there - stopped) or sorted(self._there)
            # The rank that answers works meanwhile, so it would not count as idle. Therefore a rank
            # that waits in a call is asked. A rank that does not answer is stopped, or runs code of
            # a library that holds the GIL.
            before = self._asked[0] if self._asked else -1
            waiting = [r for r in able if r < len(self._calls) and waits(self._calls[r])]
            asked = waiting if waiting and not self._asked else able
            rank = next((rank for rank in asked if rank > before), asked[0])
            self._asked = rank, now()
            self._crew[rank].send("calls")

    def _come_late(self, late: list[int], why: str) -> None:
        self._ask_for_stacks(late)
        for rank in late:
            place, text = self._place_of(rank)
            self._fail(End(rank, now(), None, f"{why}; it is {place}", text, "late"))
            self._crew[rank].kill()
            self._there.discard(rank)
            self._gone.add(rank)

    def _give_up(self) -> None:
        left = sorted(self._there - self._stopped)
        self._ask_for_stacks(left)
        for rank in left:
            place, text = self._place_of(rank)
            self._bad.append(End(rank, now(), None, f"still {place}", text, "late"))

    def _ask_for_stacks(self, ranks: list[int]) -> None:
        for rank in ranks:
            self._crew[rank].send("stack")
        until = now() + 0.1  # a stopped rank never answers
        while now() < until and any(rank in self._there - set(self._stacks) for rank in ranks):
            for event in self._crew.events(sorted(self._there), until - now()):
                self._take(event)

    def _place_of(self, rank: int) -> tuple[str, str]:
        stack = self._stacks.get(rank)
        if is_stopped(self._crew[rank].pid):
            return "stopped by a signal", ""
        if not stack:
            return "in no Python code that could be asked", ""
        own = [entry for entry in stack if "/hocket/testing/" not in entry[0]]
        own = [e for e in own if "/hocket/_jobs/crew" not in e[0] and "<frozen" not in e[0]] or stack
        file, line, name, _ = own[-1]
        lines = [f'  File "{f}", line {n}, in {where}\n    {text}\n' for f, n, where, text in own]
        return f"at {file}:{line} in {name}", f"rank {rank} is here:\n{''.join(lines)}"


def show_in_test(text: str) -> None:
    """Print to the stream that pytest captures."""
    sys.stdout.write(text)
