"""The end of a rank's process: waits for calls on GPUs, and tells the other ranks the reason."""

from __future__ import annotations

import atexit
import sys
import threading
from typing import Optional

from .._hocket import _begin_end, _finish_calls, _tell_end, _tell_trouble


def prepare() -> None:
    """Register the handlers; `init` calls it.

    A child of multiprocessing ends by ``os._exit``, which calls no atexit handlers. It gets a
    finalizer of multiprocessing instead.
    """
    _watch_threads()
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return
    from multiprocessing import util

    # This finalizer runs last. Child processes of this process skip it, because it remembers its
    # pid.
    util.Finalize(None, _end_child, exitpriority=-1000)


def _watch_threads() -> None:
    """If an exception ends a thread of this process, tell the other ranks."""
    show = threading.excepthook
    if getattr(show, "_tells_ranks", False):
        return

    def tell(thrown: threading.ExceptHookArgs) -> None:
        if thrown.exc_type is not SystemExit:
            who = f"its thread {thrown.thread.name}" if thrown.thread else "a thread of it"
            _tell_trouble(f"{who} raised {summary_of(thrown.exc_value or thrown.exc_type())}")
        show(thrown)

    tell._tells_ranks = True  # type: ignore[attr-defined]
    threading.excepthook = tell


def summary_of(error: BaseException) -> str:
    """Describe the exception in one line, even if its `__str__` fails."""
    name = type(error).__name__
    try:
        # A file name in the message may contain bytes that are not UTF-8, which are lone
        # surrogates.
        text = str(error).encode("utf-8", "backslashreplace").decode("utf-8")
        text = " ".join(text.split())
    except Exception as another:
        return f"{name}, whose text cannot be had ({type(another).__name__})"
    return f"{name}: {text}" if text else name


def reason_of(error: Optional[BaseException]) -> str:
    """Return the reason that other ranks are told if an exception ends this rank. Return an empty
    text if the exception is no failure.
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
    """Run as Python ends, with or without an uncaught exception."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    _tell_end(reason_of(error))
    _begin_end()
    _finish_calls()


def _end_child() -> None:
    """End a child process after its calls on GPUs. If a call failed, exit with code 1, unless an
    exception already sets an exit code.
    """
    ended_by = sys.exc_info()[1]
    _tell_end(reason_of(ended_by))
    if _finish_calls():
        return
    if ended_by is None or (isinstance(ended_by, SystemExit) and not ended_by.code):
        sys.exit(1)


# Python's atexit handlers cannot set the exit code. A handler of the C++ module, which runs later,
# sets it.
atexit.register(_end)
