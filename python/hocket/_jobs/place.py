"""Tells waiting processes which line of the program a thread of this process executes."""

from __future__ import annotations

import os
import sys

from .. import _hocket

# Folders of Python's own modules and of this package. `_INSTALLED` has those of other packages.
_LIBRARIES = (
    os.path.dirname(os.__file__) + "/",
    os.path.dirname(os.path.dirname(__file__)) + "/",
    "<frozen ",
)
_INSTALLED = ("/site-packages/", "/dist-packages/")
_MOST = 120  # letters of a file's name that are shown


def _is_of_a_library(file: str) -> bool:
    return file.startswith(_LIBRARIES) or any(folder in file for folder in _INSTALLED)


def _shown(file: str) -> str:
    here = os.getcwd().rstrip("/") + "/"
    if file.startswith(here):
        file = file[len(here):]
    return file if len(file) <= _MOST else "..." + file[-_MOST:]


def describe(thread: int) -> str:
    """Return "FILE:LINE in FUNCTION" of the innermost frame outside of libraries. Return "" if the
    thread has no frame.
    """
    innermost = frame = sys._current_frames().get(thread)
    while frame is not None and _is_of_a_library(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None:
        return ""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    return f"{_shown(code.co_filename)}:{frame.f_lineno} in {name}"


def prepare() -> None:
    """Let the library call `describe`, until the interpreter ends."""
    _hocket._tell_places(describe)
