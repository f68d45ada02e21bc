"""Tests that run on several ranks: a plugin for pytest, and faults that a test can inject.

pytest loads the plugin if hocket is installed. Otherwise use ``-p hocket.testing.plugin``.

>>> @pytest.mark.ranks(1, 2, 4)
... def test_sum(comm):
...     x = np.full(10, comm.rank + 1.0)
...     comm.all_reduce(x)
...     assert (x == comm.size * (comm.size + 1) / 2).all()

Ranks are threads. With ``--hocket-processes`` they are processes, which are reused by later tests.
The functions here send signals to ranks that are processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from ..errors import InvalidArgument

__all__ = ["delay", "kill", "stop"]

#: Asks the process that runs the test for a fault. Arguments: name of the fault, rank, seconds,
#: after.
Injector = Callable[[str, int, float, float], None]
_injectors: list[Injector] = []


def kill(rank: int, *, after: float = 0.0) -> None:
    """Kill the process of a rank of the test by SIGKILL.

    The test goes on without this rank. The rank's end alone does not fail the test.

    Parameters
    ----------
    rank : int
        Rank in the test's first communicator. It may be the caller's own rank.
    after : float
        Seconds from now until the signal. If it is not 0, the call returns at once.

    Raises
    ------
    InvalidArgument
        There is no such rank, or ranks are threads.
    """
    _inject("kill", rank, 0.0, after)


def stop(rank: int, *, after: float = 0.0) -> None:
    """Stop the process of a rank by SIGSTOP, until the test has ended on all other ranks.

    For the arguments see `kill`.
    """
    _inject("stop", rank, 0.0, after)


def delay(rank: int, seconds: float, *, after: float = 0.0) -> None:
    """Stop the process of a rank by SIGSTOP, and continue it after `seconds`.

    For the other arguments see `kill`.
    """
    _inject("delay", rank, seconds, after)


def _inject(what: str, rank: int, seconds: float, after: float) -> None:
    injector: Optional[Injector] = _injectors[-1] if _injectors else None
    if injector is None:
        raise InvalidArgument(
            f"hocket.testing.{what}: only ranks that are processes can be sent signals, in a test; "
            "mark it with ranks(..., processes=True), or run pytest with --hocket-processes"
        )
    injector(what, rank, seconds, after)
