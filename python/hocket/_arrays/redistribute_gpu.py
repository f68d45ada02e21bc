"""Moves an array in GPUs' memory from one distribution to another, by array operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from .kinds import empty_like, name_of

if TYPE_CHECKING:
    from .._hocket import Communicator
    from ..distribution import Box


def move(
    comm: Communicator,
    x: Any,
    out: Optional[Any],
    source: Box,
    target: Box,
    boxes: Sequence[tuple[Box, Box]],
    order: str,
) -> Any:
    """Move the data by one all_to_all_v, on the current stream. `boxes` holds each rank's source
    and target.
    """
    xp = _package(x)
    if out is None:
        out = empty_like(x, target.shape, name_of(x.dtype), order)
    parts = [x[_within(source, theirs)].reshape(-1) for _, theirs in boxes]
    whole = xp.cat(parts) if hasattr(xp, "cat") else xp.concatenate(parts)
    received = empty_like(x, (target.size,), name_of(x.dtype))
    out_counts = [_shared(held, target) for held, _ in boxes]
    comm.all_to_all_v(whole, [len(p) for p in parts], out=received, out_counts=out_counts)
    at = 0
    for (held, _), count in zip(boxes, out_counts):
        place = _within(target, held)
        if count > 0:
            out[place] = received[at : at + count].reshape(out[place].shape)
        at += count
    return out


def _package(x: Any) -> Any:
    import importlib

    return importlib.import_module(type(x).__module__.partition(".")[0])


def _within(box: Box, other: Box) -> tuple[slice, ...]:
    """Return the slices that select `other` in the array of `box`."""
    found = []
    for low, high, a, b in zip(box.lower, box.upper, other.lower, other.upper):
        first = min(max(low, a), high)
        found.append(slice(first - low, max(first, min(high, b)) - low))
    return tuple(found)


def _shared(box: Box, other: Box) -> int:
    count = 1
    for part in _within(box, other):
        count *= part.stop - part.start
    return count
