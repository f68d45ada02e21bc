"""Linear algebra with nvmath's names, over `hocket.linalg`."""

from typing import NoReturn

from . import advanced, generic
from ._refused import refuse
from ._types import ComputeType

__all__ = ["ComputeType", "advanced", "generic"]


def __getattr__(name: str) -> NoReturn:
    refuse("nvmath.distributed.linalg", name)
