"""Ends child processes that a user's function forks while hocket calls it."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any, Iterator, NoReturn, Optional


@contextlib.contextmanager
def children_end_here() -> Iterator[None]:
    """Make a context around a call of a user's function. If the function forks, the child process ends
    when the function returns.

    The code after the call is for the parent alone: a child would send a result for which no rank waits.
    """
    process = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != process:
            end_child(error)
        raise
    if os.getpid() != process:
        end_child(None)


def end_child(error: Optional[BaseException]) -> NoReturn:
    """End this process like Python ends a program: print the exception, and set the exit code."""
    code: Any = 1
    if error is None:
        code = 0
    elif not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
    elif error.code is None or isinstance(error.code, int):
        code = error.code or 0
    else:
        print(error.code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF)
