"""The tasks that the processes of `hocket.Cluster` run."""

from __future__ import annotations

import ast
import contextlib
import gc
import linecache
import pickle
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import numpy as np

import hocket

from .._jobs.crew_member import Member
from .._jobs.forked import children_end_here
from .._jobs.spawn import dumps, failure_of

# Seconds in which ranks of one host that have already started must become one world.
_ADMIT_SECONDS = 20.0


class Answer(NamedTuple):
    """One rank's answer to a task."""

    #: The pickled result, or the pickled `Failure` if `is_failure` is true.
    content: bytes
    is_failure: bool
    #: True if the rank's communicator has ended.
    is_broken: bool
    #: The number of the last call that this rank has made.
    sequence: int


def _names(member: Member) -> dict[str, Any]:
    names: dict[str, Any] = member.kept.setdefault("names", {"__name__": "__ranks__"})
    return names


def greet(member: Member, rank: int) -> Answer:
    """Report that this process has started."""
    return _answer(member, rank, lambda: None)


def join(member: Member, rank: int, size: int, address: str) -> Answer:
    """Leave the current job, and join the job that meets at `address`. The answer is the deadline
    of its calls.
    """

    def body() -> float:
        if member.comm is not None:
            leave, member.comm = member.comm, None
            try:
                leave.abort("the cluster begins anew")
            except hocket.Error:
                pass
            leave.close()
        member.comm = hocket.init(rank=rank, size=size, address=address, timeout=60)
        _names(member).update(comm=member.comm, hocket=hocket, np=np)
        return member.comm.deadline

    return _answer(member, rank, body)


def door(member: Member, rank: int) -> Answer:
    """Return the address at which this rank's job admits newcomers. Return None if it has none."""

    def body() -> Optional[str]:
        comm = member.comm
        with contextlib.suppress(hocket.Error):
            return None if comm is None else comm.door
        return None

    return _answer(member, rank, body)


def admit(member: Member, rank: int, door: str, count: int) -> Answer:
    """Join a job at its door, or admit newcomers there. The answer is this process's new rank."""

    def body() -> int:
        if member.comm is None:
            member.comm = hocket.init(join=door, timeout=_ADMIT_SECONDS)
        else:
            member.comm = member.comm.admit(count, patience=_ADMIT_SECONDS)
        _names(member).update(comm=member.comm, hocket=hocket, np=np)
        return member.comm.rank

    return _answer(member, rank, body)


def call(member: Member, rank: int, task: bytes) -> Answer:
    """Call a pickled function with pickled arguments."""

    def body() -> Any:
        function, arguments = pickle.loads(task)
        return function(member.comm, *arguments)

    return _answer(member, rank, body)


def run_cell(member: Member, rank: int, source: str, number: int) -> Answer:
    """Run a cell with this rank's names. Show the value of its last line, if that is an expression.
    """

    def body() -> None:
        file = f"<cell {number} on rank {rank}>"
        # Stores the cell's lines, so that tracebacks can show them.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        tree = ast.parse(source, file)
        last: Optional[ast.Expression] = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        names = _names(member)
        exec(compile(tree, file, "exec"), names)
        if last is not None:
            value = eval(compile(last, file, "eval"), names)
            if value is not None:
                print(repr(value))

    return _answer(member, rank, body)


def get(member: Member, rank: int, name: str) -> Answer:
    """Return the value of one of this rank's names."""

    def body() -> Any:
        names = _names(member)
        if name not in names:
            raise KeyError(f"there is no {name!r} on rank {rank}")
        return names[name]

    return _answer(member, rank, body)


def put(member: Member, rank: int, name: str, value: bytes) -> Answer:
    """Give one of this rank's names a value."""
    return _answer(member, rank, lambda: _names(member).__setitem__(name, pickle.loads(value)))


def clean_up(member: Member, rank: int) -> Answer:
    """Clean up after a failed task. The answer is True if its leftovers would disturb the next
    task.
    """

    def body() -> bool:
        # A traceback's frames may keep a pending call alive in a reference cycle. Collecting this
        # call cancels it, which ends the communicator. That happens here, before the next task.
        gc.collect()
        comm = member.comm
        if comm is None:
            return False
        with contextlib.suppress(hocket.Error):
            return comm.probe_now(hocket.ANY_SOURCE, tag=hocket.ANY_TAG) is not None
        return True

    return _answer(member, rank, body)


def _answer(member: Member, rank: int, body: Callable[[], Any]) -> Answer:
    try:
        with member.interruptible(), children_end_here():
            content, is_failure = dumps(body()), False
    except BaseException as error:
        content, is_failure = failure_of(rank, time.monotonic_ns(), error), True
    comm = member.comm
    sequence = 0
    if comm is not None:
        with contextlib.suppress(hocket.Error):
            sequence = max((made.sequence for made in comm.recent_calls()), default=0)
    if not is_failure:
        member.rest()
    return Answer(content, is_failure, comm is None or comm.status is not None, sequence)
