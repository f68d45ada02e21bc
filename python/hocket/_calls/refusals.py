"""Tells other ranks of arguments that Python code refuses."""

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
    """Make a context for checks of arguments. If they refuse an argument, the call is refused on
    all ranks, so that no rank waits.

    Any other exception, such as one of an argument's own methods, also refuses the call. Without a
    communicator, no other rank is told.
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
    except BaseException as error:  # Ctrl-C, too: the other ranks would wait
        if comm is not None:
            with contextlib.suppress(Error):
                comm.refuse(f"{type(error).__name__}: {error}")
        raise


def collective(function: F) -> F:
    """Make a collective Python function refuse wrong arguments on all ranks.

    The communicator is the first argument that is one, or the `_comm` of the first argument. The
    result also accepts `timeout` for `deadline`, as by `takes_either`. If the function is one of
    `hocket.sparse`, errors of the calls that it makes name the function.
    """
    either = takes_either(function)
    is_sparse = function.__module__ == "hocket.sparse"

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        comm = _communicator_of(*args, *given.values()) if is_sparse else None
        try:
            with comm._named(f"sparse.{function.__name__}") if comm else contextlib.nullcontext():
                return either(*args, **given)
        except TypeError as error:
            if _fits(function, args, given):
                raise  # an error within the function, not of its arguments
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
