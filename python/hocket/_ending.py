"""How a rank's process ends: not before its calls on GPUs have."""

from __future__ import annotations

import atexit
import sys

from ._hocket import _finish_calls


def prepare() -> None:
    """Called by `init`. A child of multiprocessing ends by ``os._exit``, which calls no handlers."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return
    from multiprocessing import util

    # Last of all; and not in children of this one, as it remembers the process.
    util.Finalize(None, _end_child, exitpriority=-1000)


def _end_child() -> None:
    """What went wrong has been printed by then; an exception that ends the child goes first."""
    if _finish_calls():
        return
    ended_by = sys.exc_info()[1]
    if ended_by is None or (isinstance(ended_by, SystemExit) and not ended_by.code):
        sys.exit(1)


# The exit code is seen to by a handler of the process's, which comes after Python's end.
atexit.register(_finish_calls)
