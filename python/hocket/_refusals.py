"""Refusals of arguments that are checked in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Optional

from ._hocket import Communicator
from .errors import Error, InvalidArgument


@contextlib.contextmanager
def announcing(comm: Optional[Communicator]) -> Iterator[None]:
    """Arguments that are refused in here are refused for all ranks, which wait for nothing.

    So is whatever else an argument's own methods raise. Without a communicator nobody is told.
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
