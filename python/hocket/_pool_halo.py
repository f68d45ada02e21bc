"""Blending where the parts of neighbours overlap, with array operations: on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import InvalidArgument

if TYPE_CHECKING:
    from .pool import DevicePool


def part_of(x: Any, axis: int, first: int, last: int) -> tuple[slice, ...]:
    """The index of entries [first, last) along an axis."""
    before: int = axis % x.ndim
    return (slice(None),) * before + (slice(first, last),)


def blend_on_gpus(
    pool: DevicePool, arrays: Sequence[Any], seams: Sequence[int], overlap: int, axis: int
) -> list[Any]:
    """Each worker mends its own sides, from copies of what its neighbours have."""
    xp = pool.module
    if overlap < 1 or len(seams) != pool.size - 1:
        raise InvalidArgument(
            f"overlap is {overlap}, expected at least 1, and there are {len(seams)} seams for "
            f"{pool.size} workers, expected {pool.size - 1}"
        )

    def side(i: int, seam: int) -> Any:
        return arrays[i][part_of(arrays[i], axis, seams[seam], seams[seam] + overlap)]

    def give(i: int) -> dict[int, Any]:
        # Whole copies, as GPUs copy from each other what lies in one piece.
        return {seam: side(i, seam).copy() for seam in (i - 1, i) if 0 <= seam < pool.size - 1}

    def fetch(i: int) -> list[tuple[int, Any, bool]]:
        found = []
        if i > 0:
            found.append((i - 1, xp.array(given[i - 1][i - 1]), False))
        if i + 1 < pool.size:
            found.append((i, xp.array(given[i + 1][i]), True))
        return found

    def mend(i: int, found: list[tuple[int, Any, bool]]) -> None:
        form = [1] * arrays[i].ndim
        form[axis] = overlap
        up = xp.linspace(0.0, 1.0, overlap + 2)[1:-1].reshape(form)
        down = xp.linspace(1.0, 0.0, overlap + 2)[1:-1].reshape(form)
        for seam, theirs, is_low in found:
            mine = side(i, seam)
            mine[...] = down * mine + up * theirs if is_low else down * theirs + up * mine

    given = pool.map(give, range(pool.size))
    fetched = pool.map(fetch, range(pool.size))
    pool.map(mend, range(pool.size), fetched)
    return list(arrays)
