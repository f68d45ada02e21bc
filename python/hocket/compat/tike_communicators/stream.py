"""tike.communicators.stream: loads and computes at the same time, over `hocket.stream`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional

from ... import stream as _stream
from ..._arrays.kinds import is_on_gpu
from ._module import array_module

__all__ = [
    "stream_and_modify",
    "stream_and_modify2",
    "stream_and_modify_debug",
    "stream_and_modify_debug2",
    "stream_and_reduce",
]


def _device() -> Literal["cpu", "cuda"]:
    return "cpu" if array_module().__name__ == "numpy" else "cuda"


def _finish() -> None:
    """Wait for the current stream, so that results are ready when the caller returns."""
    if _device() == "cuda":
        array_module().cuda.get_current_stream().synchronize()


def stream_and_reduce(
    f: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    y_shapes: Sequence[Sequence[int]],
    y_dtypes: Sequence[Any],
    streams: Sequence[Any] = (),
    indices: Optional[Sequence[int]] = None,
    *,
    chunk_size: int = 64,
) -> list[Any]:
    """Add up the results of `f` over all chunks of args: ``[sum(y) for y in zip(*f(chunks))]``."""
    sums = _stream.reduce(
        f,
        args,
        y_shapes,
        y_dtypes,
        indices=indices,
        chunk_size=chunk_size,
        device=_device(),
        streams=_pair(streams),
    )
    _finish()
    return sums


def stream_and_modify(
    f: Callable[[list[Any], tuple[Any, ...], list[int]], tuple[Any, ...]],
    ind_args: Sequence[Any],
    mod_args: tuple[Any, ...],
    streams: Sequence[Any] = (),
    indices: Optional[Sequence[int]] = None,
    *,
    chunk_size: int = 64,
) -> tuple[Any, ...]:
    """Pass mod_args through ``mod_args = f(chunks, mod_args, indices)`` for each chunk."""
    values = _stream.modify(
        f,
        ind_args,
        mod_args,
        indices=indices,
        chunk_size=chunk_size,
        device=_device(),
        streams=_pair(streams),
    )
    _finish()
    return values


def stream_and_modify2(
    f: Callable[[list[Any], int, int], None],
    ind_args: Sequence[Any],
    streams: Sequence[Any] = (),
    *,
    chunk_size: int = 64,
    lo: Optional[int] = None,
    hi: Optional[int] = None,
) -> None:
    """Call ``f(chunks, lo, hi)`` for the chunks of ``ind_args[lo:hi]``."""
    for x in ind_args:
        if is_on_gpu(x):
            raise ValueError(
                "Use nonlocal in the context of f instead of listing cupy arrays in ind_args to "
                "avoid non-async memory copies."
            )
    first = 0 if lo is None else lo
    last = len(ind_args[0]) if hi is None else hi
    _stream.chunks(
        lambda parts, a, b: f(parts, a + first, b + first),
        [x[first:last] for x in ind_args],
        count=last - first,
        chunk_size=chunk_size,
        device=_device(),
        streams=_pair(streams),
    )
    _finish()


def _pair(streams: Sequence[Any]) -> Optional[Sequence[Any]]:
    return streams if len(streams) >= 2 and _device() == "cuda" else None


def stream_and_modify_debug(
    f: Callable[[list[Any], tuple[Any, ...], list[int]], tuple[Any, ...]],
    ind_args: Sequence[Any],
    mod_args: tuple[Any, ...],
    streams: Any = None,
    indices: Optional[Sequence[int]] = None,
    *,
    chunk_size: int = 64,
) -> tuple[Any, ...]:
    """Do the same as `stream_and_modify` without streams: no chunk is loaded ahead."""
    xp = array_module()
    chosen = list(range(len(ind_args[0]))) if indices is None else list(indices)
    loaded = [xp.asarray(x[chosen]) for x in ind_args]
    for i in range(0, len(chosen), chunk_size):
        parts = [x[i : i + chunk_size] for x in loaded]
        mod_args = f(parts, mod_args, chosen[i : i + chunk_size])
    return mod_args


def stream_and_modify_debug2(
    f: Callable[[list[Any], int, int], None],
    ind_args: Sequence[Any],
    streams: Sequence[Any] = (),
    *,
    chunk_size: int = 64,
    lo: Optional[int] = None,
    hi: Optional[int] = None,
) -> None:
    """Do the same as `stream_and_modify2` without streams: no chunk is loaded ahead."""
    xp = array_module()
    first = 0 if lo is None else lo
    last = len(ind_args[0]) if hi is None else hi
    loaded = [xp.asarray(x[first:last]) for x in ind_args]
    for a in range(first, last, chunk_size):
        b = min(a + chunk_size, last)
        f([x[a - first : b - first] for x in loaded], a, b)
