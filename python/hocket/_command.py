"""The command `hocket`, which is part of this package."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

# Maps an option to the folder of the installed package that it prints.
FOLDERS = {
    "--cmake-dir": "lib/cmake/hocket",
    "--include-dir": "include",
    "--pkg-config-dir": "lib/pkgconfig",
}


def find_folder(option: str) -> str:
    """Return the folder of the package that an option of ``python -m hocket`` asks for."""
    folder = Path(__file__).resolve().parent / FOLDERS[option]
    if not folder.is_dir():
        raise SystemExit(
            f"hocket: {option}: there is no {folder}, as this package was not installed from a "
            "wheel; cmake --install has put the library where its prefix says"
        )
    return str(folder)


def find_command() -> str:
    """Return the path of the command: the one in this package, or else the first in PATH."""
    bundled = Path(__file__).parent / "bin" / "hocket"
    if os.access(bundled, os.X_OK):
        return str(bundled)
    found = shutil.which("hocket")
    if found is None:
        raise FileNotFoundError(f"the command hocket is neither {bundled} nor in PATH")
    return found


def main() -> NoReturn:
    """Replace this process by the command. Only ``hocket demo`` runs in this process."""
    if sys.argv[1:2] == ["demo"]:
        from ._jobs.demo import main as demo

        raise SystemExit(demo(sys.argv[2:]))
    command = find_command()
    if sys.argv[1:2] == ["doctor"]:
        # The command describes the first python3 in PATH. The running Python may lie in an
        # environment that is not activated, so its folder is put first.
        folders = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
        os.environ["PATH"] = os.pathsep.join(folders)
    os.execv(command, ["hocket", *sys.argv[1:]])


def mpicc() -> NoReturn:
    """Replace this process by the package's ``hocket-mpicc``."""
    _run_wrapper("hocket-mpicc")


def mpicxx() -> NoReturn:
    """Replace this process by the package's ``hocket-mpicxx``."""
    _run_wrapper("hocket-mpicxx")


def _run_wrapper(name: str) -> NoReturn:
    wrapper = Path(__file__).resolve().parent / "bin" / name
    if not wrapper.exists():
        raise SystemExit(f"{name}: this hocket was built without its MPI, so there is no {wrapper}")
    os.execv(wrapper, [name, *sys.argv[1:]])
