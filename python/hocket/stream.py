"""Processes arrays in chunks, and loads the next chunk while the current chunk is used.

On the host, a separate thread copies the next chunk. For work on a GPU (``device="cuda"``), one
stream copies chunks to the GPU while another stream computes; events order the two.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional

import numpy as np

from ._hocket import _stream_chunks
from .errors import InvalidArgument

__all__ = ["chunks", "modify", "reduce"]

Device = Literal["cpu", "cuda"]


def chunks(
    use: Callable[[list[Any], int, int], None],
    arrays: Sequence[Any],
    *,
    count: Optional[int] = None,
    indices: Optional[Sequence[int]] = None,
    chunk_size: int = 64,
    device: Device = "cpu",
    streams: Optional[Sequence[Any]] = None,
) -> None:
    """Call ``use(parts, first, last)`` for each chunk of some arrays, in order.

    Parameters
    ----------
    use : callable
        Called as ``use(parts, first, last)``. The parts are the entries ``[first:last]`` of each
        array. They lie in a buffer that is reused after the call.
    arrays : sequence of numpy.ndarray
        They have equal length along the first axis. Page-locked arrays load fastest onto a GPU.
    count : int, optional
        Number of entries. Required if `arrays` is empty; then ``parts`` is empty, too.
    indices : sequence of int, optional
        Indices of the entries to process, instead of all; ``first`` and ``last`` then count in this
        list.
    chunk_size : int
        Entries of a chunk, at least 1.
    device : {"cpu", "cuda"}
        Device of the parts. With "cuda" they are CuPy arrays on the current GPU, and ``use`` runs
        with the stream for work as the current stream.
    streams : sequence, optional
        On a GPU: CuPy's stream for loading and CuPy's stream for work.

    Raises
    ------
    InvalidArgument
        Arrays differ in length or have masks, an index has no entry, or `chunk_size` is less than
        1.
    """
    length = _length(arrays, count)
    for i, x in enumerate(arrays):
        if np.ma.is_masked(x):
            raise InvalidArgument(f"arrays[{i}] has a mask, which would be lost; pass x.filled(value)")
    try:
        chunk_size = operator.index(chunk_size)
    except TypeError:
        raise InvalidArgument(f"chunk_size is {chunk_size!r}, expected a whole number") from None
    if chunk_size < 1:
        raise InvalidArgument(f"chunk_size is {chunk_size}, expected at least 1")
    chosen = None if indices is None else _entries(indices, length)
    count = length if chosen is None else len(chosen)
    if count == 0:
        return
    if device == "cuda":
        from ._arrays.stream_cupy import stream_chunks

        stream_chunks(use, arrays, chosen, count, min(chunk_size, count), streams)
    elif device == "cpu":
        _stream_on_host(use, arrays, chosen, count, min(chunk_size, count))
    else:
        raise InvalidArgument(f'device is {device!r}, expected "cpu" or "cuda"')


def _length(arrays: Sequence[Any], count: Any) -> int:
    """Return the number of entries, after a check."""
    if count is None and not arrays:
        raise InvalidArgument("arrays is empty; give count, the number of entries, to go without")
    lengths = {len(x) for x in arrays}
    if len(lengths) > 1:
        raise InvalidArgument(f"the arrays differ in length: {sorted(lengths)}")
    if count is None:
        return lengths.pop()
    try:
        count = operator.index(count)
    except TypeError:
        raise InvalidArgument(f"count is {count!r}, expected a whole number") from None
    if count < 0:
        raise InvalidArgument(f"count is {count}, expected at least 0")
    if lengths - {count}:
        raise InvalidArgument(f"count is {count}, and the arrays have {lengths.pop()} entries")
    return int(count)


def _entries(indices: Any, length: int) -> Any:
    """Return the indices after a check, because loading would wrap wrong indices and round
    fractions.
    """
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size > 0):
        raise InvalidArgument(
            f"indices has dtype {chosen.dtype} and shape {chosen.shape}, expected a list of whole "
            "numbers"
        )
    outside = chosen[(chosen < -length) | (chosen >= length)]
    if outside.size > 0:
        raise InvalidArgument(f"indices has {outside[0]}, and the arrays have {length} entries")
    return chosen.astype(np.intp)


def _stream_on_host(
    use: Callable[[list[Any], int, int], None],
    arrays: Sequence[Any],
    indices: Optional[Any],
    count: int,
    chunk: int,
) -> None:
    sources = [np.asarray(x) for x in arrays]
    buffers = [[np.empty((chunk, *x.shape[1:]), x.dtype) for x in sources] for _ in range(2)]

    def load(buffer: int, first: int, last: int) -> None:
        for target, x in zip(buffers[buffer], sources):
            if indices is None:
                target[: last - first] = x[first:last]
            else:
                np.take(x, indices[first:last], axis=0, out=target[: last - first], mode="wrap")

    def run(buffer: int, first: int, last: int) -> None:
        use([x[: last - first] for x in buffers[buffer]], first, last)

    _stream_chunks(count, chunk, 2, load, run)


def reduce(
    f: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    *,
    indices: Optional[Sequence[int]] = None,
    chunk_size: int = 64,
    device: Device = "cpu",
    streams: Optional[Sequence[Any]] = None,
) -> list[Any]:
    """Sum a function's results over all chunks: ``sum(f(*parts))``.

    Parameters
    ----------
    f : callable
        Gets one chunk of each array. Returns its contributions, one for each of `shapes`.
    shapes, dtypes : sequence
        Shapes and dtypes of the sums.
    arrays, indices, chunk_size, device, streams
        As in `chunks`.

    Returns
    -------
    list of array
        The sums.
    """
    xp: Any = np
    if device == "cuda":
        import cupy

        xp = cupy
    if len(shapes) != len(dtypes):
        raise InvalidArgument(f"there are {len(shapes)} shapes and {len(dtypes)} dtypes")
    sums = [xp.zeros(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes)]

    def use(parts: list[Any], first: int, last: int) -> None:
        made = list(f(*parts))
        if len(made) != len(sums):
            raise InvalidArgument(f"f made {len(made)} contributions, expected {len(sums)}")
        for total, part in zip(sums, made):
            total += part

    chunks(
        use, arrays, indices=indices, chunk_size=chunk_size, device=device, streams=streams
    )
    return sums


def modify(
    f: Callable[[list[Any], tuple[Any, ...], list[int]], tuple[Any, ...]],
    arrays: Sequence[Any],
    values: tuple[Any, ...],
    *,
    indices: Optional[Sequence[int]] = None,
    chunk_size: int = 64,
    device: Device = "cpu",
    streams: Optional[Sequence[Any]] = None,
) -> tuple[Any, ...]:
    """Pass values through a function, chunk by chunk: ``values = f(parts, values, indices)``.

    Parameters
    ----------
    f : callable
        Gets a list with one chunk of each array, the current values, and the indices of the chunk's
        entries. Returns the new values.
    values : tuple
        The first values.
    arrays, indices, chunk_size, device, streams
        As in `chunks`.

    Returns
    -------
    tuple
        The values after the last chunk.
    """
    chosen = None if indices is None else list(indices)

    def use(parts: list[Any], first: int, last: int) -> None:
        nonlocal values
        here = list(range(first, last)) if chosen is None else chosen[first:last]
        values = f(parts, values, here)

    chunks(
        use, arrays, indices=chosen, chunk_size=chunk_size, device=device, streams=streams
    )
    return values
