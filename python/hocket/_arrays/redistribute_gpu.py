"""Moving an array in GPUs' memory from one distribution to another, with array operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

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
    """Move the data by one all_to_all_v, on the current stream. `boxes`: each rank's source and
    target.
    """
    xp = _package(x)
    if out is None:
        out = _empty(x, target.shape, order)
    parts = [x[_within(source, theirs)].reshape(-1) for _, theirs in boxes]
    whole = xp.cat(parts) if hasattr(xp, "cat") else xp.concatenate(parts)
    received = _empty(x, (target.size,), "C")
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


def _empty(x: Any, shape: Sequence[int], order: str) -> Any:
    shape = tuple(shape)
    turned = shape if order == "C" else shape[::-1]
    made = x.new_empty(turned) if hasattr(x, "new_empty") else _package(x).empty(turned, x.dtype)
    if order == "C":
        return made
    axes = tuple(reversed(range(len(shape))))
    return made.permute(*axes) if hasattr(made, "permute") else made.transpose(axes)


def _within(box: Box, other: Box) -> tuple[slice, ...]:
    """The slices of `other` within the array of `box`."""
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
