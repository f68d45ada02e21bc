"""The command `hocket`, which the package carries."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn


def find_command() -> str:
    """The path of the command: the package's own, else the first in PATH."""
    bundled = Path(__file__).parent / "bin" / "hocket"
    if os.access(bundled, os.X_OK):
        return str(bundled)
    found = shutil.which("hocket")
    if found is None:
        raise FileNotFoundError(f"the command hocket is neither {bundled} nor in PATH")
    return found


def main() -> NoReturn:
    """Become the command."""
    command = find_command()
    os.execv(command, ["hocket", *sys.argv[1:]])
