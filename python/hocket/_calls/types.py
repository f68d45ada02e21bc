"""Types of arguments and results in signatures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union

#: An array of NumPy, PyTorch, CuPy, Numba, JAX (results come as new ones), or anything with DLPack, the buffer
#: protocol or the CUDA array interface.
Array = Any

#: The same, for a call whose result has the argument's type.
ArrayT = TypeVar("ArrayT")

#: Operator of a reduction, applied to two elements at a time.
Op = Literal["sum", "product", "prod", "min", "max", "avg", "band", "bor", "bxor"]

#: Seconds; infinity for no limit, None for the default.
Timeout = Optional[Union[float, timedelta]]


#: A GPU's stream: of CuPy, PyTorch, Numba, or its handle. None for the current one of the arrays'
#: framework.
Stream = Any


def type_in_words(value: object) -> str:
    """Names the type of a value that was passed by mistake: "an int", "None"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


class Received(NamedTuple):
    """The sender and tag of a received message, and its number of elements."""

    source: int
    tag: int
    count: int


class Envelope(NamedTuple):
    """Describes a message that has arrived and was not yet received."""

    source: int
    tag: int
    count: int
    dtype: str


class ReceivedObject(NamedTuple):
    """An object, and who sent it."""

    object: Any
    source: int
    tag: int
