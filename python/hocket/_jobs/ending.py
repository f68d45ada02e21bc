"""The end of a rank's process: it waits for calls on GPUs, and tells the other ranks the reason."""

from __future__ import annotations

import atexit
import sys
from typing import Optional

from .._hocket import _begin_end, _finish_calls, _tell_end


def prepare() -> None:
    """Register the handlers; `init` calls it. A child of multiprocessing ends by ``os._exit``,
    which calls no atexit handlers.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return
    from multiprocessing import util

    # Runs last, and not in children of this process, as it remembers its pid.
    util.Finalize(None, _end_child, exitpriority=-1000)


def summary_of(error: BaseException) -> str:
    """Describe the exception in one line, even if its `__str__` fails."""
    name = type(error).__name__
    try:
        # Names of files may hold bytes that are no text, as lone surrogates.
        text = str(error).encode("utf-8", "backslashreplace").decode("utf-8")
        text = " ".join(text.split())
    except Exception as another:
        return f"{name}, whose text cannot be had ({type(another).__name__})"
    return f"{name}: {text}" if text else name


def reason_of(error: Optional[BaseException]) -> str:
    """The reason that other ranks get for an exception that ends this rank; empty if it is no
    failure.
    """
    if error is None or isinstance(error, GeneratorExit):
        return ""
    if not isinstance(error, SystemExit):
        return f"raised {summary_of(error)}"
    if error.code is None or error.code == 0:
        return ""
    if error.__context__ is not None and not error.__suppress_context__:
        return reason_of(error.__context__)
    status = error.code & 0xFF if isinstance(error.code, int) else 1
    return f"ended with exit status {status}" if status else ""


def _end() -> None:
    """Runs as Python ends, with or without an uncaught exception."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    _tell_end(reason_of(error))
    _begin_end()
    _finish_calls()


def _end_child() -> None:
    """End a child after its calls on GPUs. Their failure sets the exit code, unless an exception
    does.
    """
    ended_by = sys.exc_info()[1]
    _tell_end(reason_of(ended_by))
    if _finish_calls():
        return
    if ended_by is None or (isinstance(ended_by, SystemExit) and not ended_by.code):
        sys.exit(1)


# The exit code is set by a handler of the process, which runs after Python's end.
atexit.register(_end)
