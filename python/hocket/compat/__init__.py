"""Faces: hocket under the names of other packages, so that programs for these packages use hocket.

>>> import hocket.compat
>>> hocket.compat.install("cupyx.distributed")
>>> from cupyx.distributed import init_process_group    # hocket's

The program need not change::

    python -m hocket.compat cupyx.distributed -- program.py arguments
    python -m hocket.compat cupyx.distributed,bagua -- -m module arguments

Each face only translates calls. It can also be imported by its own name (``hocket.compat.bagua``).
"""

from __future__ import annotations

import sys

from . import _finder

__all__ = ["available", "install"]


def available() -> tuple[str, ...]:
    """Return the names that `install` accepts."""
    return tuple(_finder.FACES)


def install(*names: str, children: bool = True) -> None:
    """Install faces under the names of the packages for which they stand.

    After this call, an import of the named packages gets hocket's faces. Until a program uses a
    face, no array library is imported, no thread is started, and no GPU is used. Call it before the
    program imports the packages; modules imported earlier stay as they are.

    Parameters
    ----------
    *names : str
        Names from `available()`.
    children : bool
        True: Python processes that this process starts find the faces, too, whether they are
        started by spawn, by forkserver or as programs. For that, HOCKET_COMPAT is set, and a folder
        is put at the front of PYTHONPATH in ``os.environ``. (Forked processes find the faces in any
        case.)

    Raises
    ------
    ValueError
        There is no face of that name.
    """
    faces = _finder.check(names)
    _finder.install_here(faces)
    if children:
        _finder.tell_children(faces)


def _program(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the faces, and the command line of the program."""
    if "--" not in arguments:
        raise ValueError("there is no -- before the program")
    at = arguments.index("--")
    names = [name for argument in arguments[:at] for name in argument.split(",") if name]
    if not names:
        raise ValueError("no face is named")
    if not arguments[at + 1 :]:
        raise ValueError("there is no program after --")
    return _finder.check(names), arguments[at + 1 :]


def _check_flags() -> None:
    if sys.flags.no_site or sys.flags.ignore_environment:
        raise ValueError(
            "Python runs without site or without its environment (-S, -E, -I), so the program "
            "cannot be told; call hocket.compat.install(...) in it instead"
        )
