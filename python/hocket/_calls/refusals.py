"""Refusals of arguments that are checked in Python."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any, Optional

from .._hocket import Communicator
from ..errors import Error, InvalidArgument
from .keywords import F, takes_either


@contextlib.contextmanager
def announcing(comm: Optional[Communicator]) -> Iterator[None]:
    """Refuse for all ranks if the body refuses an argument, so that no rank waits.

    Other exceptions of an argument's own methods count, too. Without a communicator no rank hears
    of it.
    """
    try:
        yield
    except InvalidArgument as error:
        if comm is None:
            raise
        try:
            comm.refuse(str(error))
        except Error as refusal:
            raise refusal from None
    except BaseException as error:  # Ctrl-C too: the others would wait
        if comm is not None:
            with contextlib.suppress(Error):
                comm.refuse(f"{type(error).__name__}: {error}")
        raise


def collective(function: F) -> F:
    """Make a Python function that all ranks call refuse wrong arguments for all of them.

    The communicator is an argument, or the `_comm` of the first one. Includes `takes_either`.
    """
    either = takes_either(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return either(*args, **given)
        except TypeError as error:
            if _fits(function, args, given):
                raise  # of what it does
            with announcing(_communicator_of(*args, *given.values())):
                raise error from None

    return call  # type: ignore[return-value]


def _fits(function: Any, args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    if "timeout" in given and "deadline" not in given:
        given = {("deadline" if name == "timeout" else name): given[name] for name in given}
    try:
        inspect.signature(function).bind(*args, **given)
    except TypeError:
        return False
    return True


def _communicator_of(*args: Any) -> Optional[Communicator]:
    for one in args:
        if isinstance(one, Communicator):
            return one
    return getattr(args[0], "_comm", None) if args else None
