"""``python -m hocket.compat NAMES -- program.py arguments``: see `hocket.compat`."""

from __future__ import annotations

import os
import subprocess
import sys

from . import _check_flags, _finder, _program, available

USAGE = """usage: python -m hocket.compat NAME[,NAME...] -- program.py [arguments]
       python -m hocket.compat NAME[,NAME...] -- -m module [arguments]

Runs a Python program in which the named packages are hocket's faces:
"""


def main(arguments: list[str]) -> None:
    """Replace this process by the program, with the same pid and descriptors. The environment names
    the faces.
    """
    if arguments in (["-h"], ["--help"]):
        print(USAGE + "\n".join(f"  {name}" for name in available()))
        return
    try:
        names, program = _program(arguments)
        _check_flags()
    except ValueError as error:
        text = str(error).removeprefix("hocket.compat: ")
        sys.exit(f"hocket.compat: {text}\n{USAGE}" + "\n".join(f"  {name}" for name in available()))
    _finder.tell_children(names)
    sys.stdout.flush()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    os.execv(sys.executable, [sys.executable, *flags, *program])


if __name__ == "__main__":
    main(sys.argv[1:])
