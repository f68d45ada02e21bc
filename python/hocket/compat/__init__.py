"""Faces: hocket under the names of packages that programs were written for.

>>> import hocket.compat
>>> hocket.compat.install("cupyx.distributed")
>>> from cupyx.distributed import init_process_group    # hocket's

The program can stay as it is::

    python -m hocket.compat cupyx.distributed -- program.py arguments
    python -m hocket.compat cupyx.distributed,bagua -- -m module arguments

Each face only translates, and can be imported by its own name too (``hocket.compat.bagua``).
"""

from __future__ import annotations

import sys

from . import _finder

__all__ = ["available", "install"]


def available() -> tuple[str, ...]:
    """The names that `install` takes."""
    return tuple(_finder.FACES)


def install(*names: str, children: bool = True) -> None:
    """Put faces under the names of the packages that they stand for.

    From now on an import of the named packages gets hocket's faces. Until a face is used, no array
    library is imported, no thread started, no GPU touched. Call it before the packages are
    imported; modules imported earlier stay as they are.

    Parameters
    ----------
    *names : str
        Names from `available()`.
    children : bool
        Have Python processes that this one starts find the faces too, whether by spawn, forkserver
        or as programs. Sets HOCKET_COMPAT and puts a folder at the front of PYTHONPATH in
        ``os.environ``. (Forked processes find the faces in any case.)

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
    """The names, and the command line of the program."""
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
