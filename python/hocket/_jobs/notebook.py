"""The cell magic for notebooks: ``%load_ext hocket``, then ``%%ranks``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Optional

from ..errors import InvalidArgument


def _ranks(line: str) -> Optional[list[int]]:
    """Return the ranks that the line names: "0", "0,2", "1-3". Return None for "", which means all.
    """
    found: list[int] = []
    for part in filter(None, re.split(r"[,\s]+", line.strip())):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise InvalidArgument(f"%%ranks: {part!r} is no rank; give numbers, as in %%ranks 0,2-3")
        first = int(match[1])
        found.extend(range(first, int(match[2] or first) + 1))
    return found or None


def load_ipython_extension(shell: Any) -> None:
    """Register hocket's magics. ``%load_ext hocket`` calls it."""

    def ranks(line: str, cell: str) -> None:
        """Run the cell on the ranks of the newest cluster: on all ranks, or on those that the line
        names.
        """
        from ..cluster import current

        current().run_cell(cell, _ranks(line))

    register: Callable[..., None] = shell.register_magic_function
    register(ranks, magic_kind="cell", magic_name="ranks")
