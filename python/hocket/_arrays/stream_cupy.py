"""Streams chunks of arrays onto a GPU with CuPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

BUFFERS = 3


def stream_chunks(
    use: Callable[[list[Any], int, int], None],
    arrays: Sequence[Any],
    indices: Optional[Any],
    count: int,
    chunk: int,
    streams: Optional[Sequence[Any]],
) -> None:
    """See `hocket.stream.chunks`. The caller's current stream waits for the last chunk's work."""
    import cupy

    load, work = streams or (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    caller = cupy.cuda.get_current_stream()
    begun = caller.record()
    load.wait_event(begun)
    work.wait_event(begun)
    with load:
        buffers = [
            [cupy.empty((chunk, *x.shape[1:]), x.dtype) for x in arrays] for _ in range(BUFFERS)
        ]
    used: list[Any] = []
    for k, first in enumerate(range(0, count, chunk)):
        last = min(first + chunk, count)
        targets = [x[: last - first] for x in buffers[k % BUFFERS]]
        with load:
            if k >= BUFFERS:
                load.wait_event(used[k - BUFFERS])
            for target, x in zip(targets, arrays):
                part = x[first:last] if indices is None else x[indices[first:last]]
                if isinstance(part, cupy.ndarray):
                    target[...] = part
                else:
                    target.set(part)
            loaded = load.record()
        with work:
            work.wait_event(loaded)
            use(targets, first, last)
            used.append(work.record())
    # CuPy may reuse a chunk's memory for later loads, so the two streams wait for the last work.
    load.wait_event(used[-1])
    caller.wait_event(used[-1])
