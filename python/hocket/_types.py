"""Types that signatures speak of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, NamedTuple, Optional, Union

#: A NumPy array, a PyTorch tensor on the CPU, or anything with DLPack or the buffer protocol.
Array = Any

#: What a reduction does with two elements.
Op = Literal["sum", "product", "prod", "min", "max", "avg", "band", "bor", "bxor"]

#: Seconds, infinity for ever, None for the default.
Timeout = Optional[Union[float, timedelta]]


class Received(NamedTuple):
    """Who sent a received message."""

    source: int
    tag: int
