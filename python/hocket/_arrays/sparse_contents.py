"""Sparse arrays as messages: descriptions and contents, encoded and decoded.

A message consists of a description, which is ten int64 values, and of the contents, which are
bytes:

    | values | pad | row or indptr | pad | col or indices | pad |
    0              offsets[1]            offsets[2]             offsets[3]
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from .._calls.types import Stream, type_in_words
from .._hocket import Communicator
from ..errors import InvalidArgument

#: A sparse array or matrix of SciPy or CuPy, of two dimensions, in CSR, CSC or COO.
Sparse = Any

_FORMATS = ("csr", "csc", "coo")
# Maps the numbers of the C++ enum DType to NumPy's dtypes. NumPy lacks bfloat16, number 10.
_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 - float32 float64"
_DTYPES = {
    code: np.dtype(name)
    for code, name in enumerate(f"{_NAMES} complex64 complex128".split())
    if name != "-"
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_ALIGNMENT = 16  # bytes; each part is aligned so that arrays of any type can be views of it


class Kind(NamedTuple):
    """The two modules of a package: the one of its sparse classes, and the one of its dense arrays.
    """

    sparse: Any
    xp: Any


class Description(NamedTuple):
    """Describes a sparse array. It is sent before the contents, as int64 values."""

    format: int
    is_array: int  # 1: csr_array and the like, whose * is elementwise; 0: csr_matrix and the like
    rows: int
    columns: int
    dtypes: tuple[int, int, int]
    sizes: tuple[int, int, int]

    def encode(self) -> Any:
        """Return the description as an array of int64."""
        return np.array([*self[:4], *self.dtypes, *self.sizes], "int64")

    @property
    def offsets(self) -> tuple[int, int, int, int]:
        """Return the offsets of the three parts in the contents, and of the contents' end, in
        bytes.
        """
        places = [0]
        for dtype, size in zip(self.dtypes, self.sizes):
            end = places[-1] + size * _DTYPES[dtype].itemsize
            places.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        return (places[0], places[1], places[2], places[3])

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows, self.columns)


LENGTH = 10


def decode(row: Any) -> Description:
    numbers = [int(number) for number in row]
    kind, is_array, rows, columns, *rest = numbers
    dtypes, sizes = (rest[0], rest[1], rest[2]), (rest[3], rest[4], rest[5])
    sane = kind in range(len(_FORMATS)) and all(dtype in _DTYPES for dtype in dtypes)
    if not sane or min(rows, columns, *sizes) < 0:
        raise InvalidArgument("a rank sent what describes no sparse array; use hocket.sparse there")
    return Description(kind, is_array, rows, columns, dtypes, sizes)


# --- Arguments --------------------------------------------------------------------------------
def holds_sparse(array: Any) -> bool:
    """Return True for a sparse array of SciPy or CuPy, or for a list that begins with one."""
    if isinstance(array, (list, tuple)):
        return bool(array) and holds_sparse(array[0])
    return _find_kind(array) is not None


def _find_kind(array: Any) -> Optional[Kind]:
    # Look only at imported packages: a program that has such an array has imported its package.
    for package, arrays in (("scipy.sparse", "numpy"), ("cupyx.scipy.sparse", "cupy")):
        module = sys.modules.get(package)
        if module is not None and module.issparse(array):
            return Kind(module, sys.modules[arrays])
    return None


def kind_of(array: Any, name: str) -> Kind:
    kind = _find_kind(array)
    if kind is None:
        raise TypeError(
            f"{name} is {type_in_words(array)}, expected a sparse array of SciPy or CuPy"
        )
    if array.format not in _FORMATS:
        raise TypeError(
            f"{name} is in the format {array.format!r}, expected one of {', '.join(_FORMATS)}; "
            "convert it by .tocsr()"
        )
    if len(array.shape) != 2:
        raise TypeError(f"{name} has {len(array.shape)} dimensions, expected 2")
    return kind


def _parts(array: Sparse) -> tuple[Any, Any, Any]:
    if array.format == "coo":
        if not getattr(array, "has_canonical_format", True):
            array = array.copy()
            array.sum_duplicates()
        return array.data, array.row, array.col
    return array.data, array.indptr, array.indices


def _require_sound(array: Sparse, parts: tuple[Any, Any, Any], name: str) -> None:
    """Raise an error if an index is wrong. SciPy does not check indices when it makes or adds
    arrays, and a wrong index could crash another rank.
    """
    values, first, second = parts
    if array.format == "coo":
        axes = [("row", first, array.shape[0]), ("col", second, array.shape[1])]
    else:
        lines, across = array.shape if array.format == "csr" else reversed(array.shape)
        axes = [("indices", second, across)]
        ends = first.size == lines + 1 and first[0] == 0 and first[-1] <= values.size
        if not ends or (first[1:] < first[:-1]).any():
            raise InvalidArgument(f"{name}.indptr does not count the {values.size} values")
    used = values.size if array.format == "coo" else int(first[-1])
    for part, indices, extent in axes:
        if indices.size != values.size:
            raise InvalidArgument(f"{name}.{part} has {indices.size} entries, not {values.size}")
        if used == 0:
            continue
        low, high = int(indices[:used].min()), int(indices[:used].max())
        if low < 0 or high >= extent:
            wrong = low if low < 0 else high
            raise InvalidArgument(
                f"{name}.{part} has {wrong}, and the axis goes from 0 to {extent - 1}"
            )


def _code(dtype: Any, name: str) -> int:
    code = _CODES.get(np.dtype(dtype))
    if code is None:
        raise TypeError(f"{name} holds {dtype}, which hocket.sparse does not carry")
    return code


class Message(NamedTuple):
    """A sparse array that is ready to be sent."""

    description: Description
    parts: tuple[Any, Any, Any]


def make_message(array: Sparse, name: str) -> Message:
    kind = kind_of(array, name)
    parts = _parts(array)
    if kind.xp is np:  # an array on a GPU is not checked, because the check would have to wait
        _require_sound(array, parts, name)
    codes = [_code(part.dtype, name) for part in parts]
    sizes = [int(part.size) for part in parts]
    description = Description(
        _FORMATS.index(array.format),
        int(isinstance(array, getattr(kind.sparse, "sparray", ()))),
        int(array.shape[0]),
        int(array.shape[1]),
        (codes[0], codes[1], codes[2]),
        (sizes[0], sizes[1], sizes[2]),
    )
    return Message(description, parts)


def make_messages(arrays: Any, comm: Communicator, name: str) -> list[Message]:
    if not isinstance(arrays, (list, tuple)):
        raise InvalidArgument(f"{name} is {type_in_words(arrays)}, expected a list, one a rank")
    if len(arrays) != comm.size:
        raise InvalidArgument(f"{name} has {len(arrays)} entries, expected {comm.size}, one a rank")
    return [make_message(array, f"{name}[{i}]") for i, array in enumerate(arrays)]


@contextlib.contextmanager
def on(stream: Stream, kind: Kind) -> Iterator[None]:
    """Make a context in which CuPy's copies run on the call's stream."""
    if stream is None or kind.xp is np:
        yield
        return
    if not hasattr(stream, "__enter__"):
        stream = kind.xp.cuda.ExternalStream(int(getattr(stream, "ptr", stream) or 0))
    with stream:
        yield


# --- Contents ---------------------------------------------------------------------------------
def pack(messages: Sequence[Message], xp: Any) -> tuple[Any, list[int]]:
    """Return the contents of all messages, one after the other, as bytes, and the length of each.
    """
    lengths = [message.description.offsets[3] for message in messages]
    packed = xp.empty(sum(lengths), "uint8")
    start = 0
    for message, length in zip(messages, lengths):
        offsets = message.description.offsets
        for part, offset in zip(message.parts, offsets):
            raw = xp.ascontiguousarray(part).reshape(-1).view("uint8")
            packed[start + offset : start + offset + raw.size] = raw
        start += length
    return packed, lengths


def unpack(description: Description, packed: Any, kind: Kind) -> Sparse:
    parts = []
    for code, size, offset in zip(description.dtypes, description.sizes, description.offsets):
        dtype = _DTYPES[code]
        parts.append(packed[offset : offset + size * dtype.itemsize].view(dtype))
    is_array = description.is_array and hasattr(kind.sparse, "sparray")
    name = _FORMATS[description.format]
    make = getattr(kind.sparse, name + ("_array" if is_array else "_matrix"))
    first, second, third = parts
    content = (first, (second, third)) if name == "coo" else (first, third, second)
    result = make(content, shape=description.shape)
    if name == "coo":
        result.has_canonical_format = True
    return result


def unpack_all(table: Any, packed: Any, kind: Kind) -> list[Sparse]:
    results, start = [], 0
    for row in table:
        description = decode(row)
        length = description.offsets[3]
        results.append(unpack(description, packed[start : start + length], kind))
        start += length
    return results


def lengths_of(table: Any) -> list[int]:
    return [decode(row).offsets[3] for row in table]


def assign(out: Sparse, result: Sparse) -> None:
    """Make `out` hold the contents, shape and element type of `result`. `out` keeps its format."""
    kind = kind_of(out, "out")
    if result.format != out.format:
        result = result.asformat(out.format)
    first, second, third = _parts(result)
    if kind.xp is np:
        is_coo = out.format == "coo"
        content = (first, (second, third)) if is_coo else (first, third, second)
        type(out).__init__(out, content, shape=result.shape)
        return
    names = ("row", "col") if out.format == "coo" else ("indptr", "indices")
    out.data = first
    setattr(out, names[0], second)
    setattr(out, names[1], third)
    out._shape = tuple(result.shape)
    for flag in ("_has_canonical_format", "_has_sorted_indices"):
        out.__dict__.pop(flag, None)
    if out.format == "coo":
        out.has_canonical_format = True
