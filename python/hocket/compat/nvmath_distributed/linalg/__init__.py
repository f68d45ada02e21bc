"""Linear algebra by nvmath's names, over `hocket.linalg`."""

from . import advanced
from ._types import ComputeType

__all__ = ["ComputeType", "advanced"]
