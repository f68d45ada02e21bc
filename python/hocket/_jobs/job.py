"""Checks arguments of functions that start several ranks."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import InvalidArgument

_MOST = 1024  # processes; `hocket run` has the same limit


def number_of_ranks(who: str, n: Any, most: int = _MOST) -> int:
    """Return `n` as an int if `who` can start that many ranks. Otherwise raise InvalidArgument."""
    try:
        count = operator.index(n)
    except TypeError:
        raise InvalidArgument(f"{who}: n is {n!r}, expected a number of ranks") from None
    if count < 1:
        raise InvalidArgument(f"{who}: n is {n}, expected at least 1")
    if count > most:
        raise InvalidArgument(f"{who}: n is {n}, expected {most} at most")
    return count


def require_function(who: str, fn: Any, n: Any) -> None:
    """Refuse an `fn` that cannot be called. If it was swapped with `n`, the error says so."""
    if callable(fn):
        return
    advice = f"the function comes first, then the number of ranks: {who}(fn, {fn!r})"
    if not callable(n):
        advice = f"give a function of a communicator: {who}(fn, n)"
    raise InvalidArgument(f"{who}: fn is {fn!r}, which cannot be called; {advice}")
