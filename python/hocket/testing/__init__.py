"""Tests that run on several ranks: a plugin of pytest, and faults to inject.

pytest loads the plugin if hocket is installed; else use ``-p hocket.testing.plugin``.

>>> @pytest.mark.ranks(1, 2, 4)
... def test_sum(comm):
...     x = np.full(10, comm.rank + 1.0)
...     comm.all_reduce(x)
...     assert (x == comm.size * (comm.size + 1) / 2).all()

Ranks are threads, or with ``--hocket-processes`` processes that are kept from test to test. The
functions here send signals to ranks that are processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from ..errors import InvalidArgument

__all__ = ["delay", "kill", "stop"]

#: Asks the process that runs the test to do it: (what, rank, seconds, after).
Injector = Callable[[str, int, float, float], None]
_injectors: list[Injector] = []


def kill(rank: int, *, after: float = 0.0) -> None:
    """Kill the process of a rank of the test by SIGKILL.

    The test goes on without the rank; its end alone fails nothing.

    Parameters
    ----------
    rank : int
        Rank in the test's first communicator; may be the caller's own.
    after : float
        Seconds from now; with it the call returns at once.

    Raises
    ------
    InvalidArgument
        There is no such rank, or ranks are threads.
    """
    _inject("kill", rank, 0.0, after)


def stop(rank: int, *, after: float = 0.0) -> None:
    """Stop the process of a rank by SIGSTOP, until the test has ended on all others.

    For the arguments see `kill`.
    """
    _inject("stop", rank, 0.0, after)


def delay(rank: int, seconds: float, *, after: float = 0.0) -> None:
    """Stop the process of a rank, and continue it some seconds later.

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
