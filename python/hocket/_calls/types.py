"""Types of arguments and results in signatures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union

#: An array: of NumPy, PyTorch, CuPy, Numba, or JAX (then results are new arrays), or any object
#: with DLPack, the buffer protocol or the CUDA array interface.
Array = Any

#: The type of an array argument, for a call whose result has the same type.
ArrayT = TypeVar("ArrayT")

#: The operator of a reduction, which combines two elements.
Op = Literal["sum", "product", "prod", "min", "max", "avg", "band", "bor", "bxor"]

#: A duration in seconds; infinity for no limit, None for the default.
Timeout = Optional[Union[float, timedelta]]


#: A GPU's stream: a stream of CuPy, PyTorch or Numba, or its handle. None for the current stream of
#: the arrays' framework.
Stream = Any


def type_in_words(value: object) -> str:
    """Return the type of a value that was passed by mistake, in words: "an int", "None"."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


class Received(NamedTuple):
    """A received message's sender, tag, and number of elements."""

    source: int
    tag: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class Envelope(NamedTuple):
    """Describes a message that has arrived, and that no receive has taken yet."""

    source: int
    tag: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    dtype: str


class ReceivedObject(NamedTuple):
    """A received object, its sender, and its tag."""

    object: Any
    source: int
    tag: int
