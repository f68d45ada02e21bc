"""Distributions of one large array over ranks, and moves of arrays between distributions.

>>> from hocket.distribution import Slab, redistribute
>>> rows = Slab(0).box((1000, 800), comm.rank, comm.size)      # what this rank has
>>> columns = Slab(1).box((1000, 800), comm.rank, comm.size)   # what it wants
>>> x = redistribute(comm, x, rows, columns)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Optional

import numpy as np

from ._arrays.kinds import is_on_gpu
from ._calls.refusals import announcing, collective
from ._calls.types import Array, Timeout, type_in_words
from ._hocket import Communicator, _Redistribution
from .errors import InvalidArgument

__all__ = [
    "BlockCyclic",
    "BlockNonCyclic",
    "Box",
    "ProcessGrid",
    "Redistribution",
    "Slab",
    "redistribute",
]


class Box(NamedTuple):
    """A block of a large array: the elements with ``lower[i] <= index[i] < upper[i]``."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths along all axes."""
        return tuple(b - a for a, b in zip(self.lower, self.upper))

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.shape)


class Slab(NamedTuple):
    """Cuts an array along one axis into slabs, one for each rank. If the length is not a multiple
    of the number of ranks, the first slabs are longer by one.
    """

    axis: int

    def box(self, shape: Sequence[int], rank: int, size: int) -> Box:
        """Return the part that rank `rank` of `size` has of an array of `shape`."""
        shape, axis = _extents(shape), _whole(self.axis, "axis")
        if not 0 <= axis < len(shape):
            raise InvalidArgument(f"axis is {axis}, and the array has {len(shape)} axes")
        _check_rank(rank, size)
        length = shape[axis]
        cuts = [r * (length // size) + min(r, length % size) for r in (rank, rank + 1)]
        lower, upper = [0] * len(shape), list(shape)
        lower[axis], upper[axis] = cuts
        return Box(tuple(lower), tuple(upper))


class ProcessGrid:
    """Ranks in a grid.

    Parameters
    ----------
    shape : sequence of int
        Number of ranks along each axis.
    layout : {"row", "column"}
        "row" if consecutive ranks are neighbours along the last axis, "column" along the first.
    ranks : array of int, optional
        The rank at each place, in the shape `shape`. It replaces `layout`.
    """

    def __init__(
        self,
        shape: Sequence[int],
        layout: Literal["row", "column"] = "row",
        ranks: Optional[Any] = None,
    ) -> None:
        self.shape: tuple[int, ...] = _wholes(shape, "shape")
        self.size: int = math.prod(self.shape)
        if not self.shape or min(self.shape) < 1:
            raise InvalidArgument(f"a process grid of shape {self.shape} has no places")
        if layout not in ("row", "column"):
            raise InvalidArgument(f'layout is {layout!r}, expected "row" or "column"')
        if ranks is None:
            order: Literal["C", "F"] = "C" if layout == "row" else "F"
            self.ranks: Any = np.arange(self.size).reshape(self.shape, order=order)
        else:
            self.ranks = np.asarray(ranks)
            if (
                self.ranks.dtype.kind not in "iu"
                or self.ranks.shape != self.shape
                or sorted(self.ranks.flat) != list(range(self.size))
            ):
                raise InvalidArgument(
                    f"ranks is {self.ranks.tolist()}, expected each of 0 to {self.size - 1} once, "
                    f"in shape {self.shape}"
                )

    def place_of(self, rank: int) -> tuple[int, ...]:
        """Return the place of a rank in the grid."""
        _check_rank(rank, self.size)
        return tuple(int(i) for i in np.argwhere(self.ranks == rank)[0])

    def rank_at(self, place: Sequence[int]) -> int:
        """Return the rank at a place in the grid."""
        place = _wholes(place, "place")
        if len(place) != len(self.shape) or not all(0 <= i < n for i, n in zip(place, self.shape)):
            raise InvalidArgument(f"place {place} is outside the grid of shape {self.shape}")
        return int(self.ranks[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessGrid) and np.array_equal(self.ranks, other.ranks)

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"ProcessGrid({self.shape}, ranks={self.ranks.tolist()})"


class BlockCyclic:
    """Blocks of one size, which are dealt out cyclically over a grid, along each axis
    independently.

    Parameters
    ----------
    grid : ProcessGrid
        The ranks.
    block : sequence of int
        The extents of a block.
    first : sequence of int, optional
        The place in the grid that has the first block; by default place 0 along each axis.
    """

    def __init__(
        self, grid: ProcessGrid, block: Sequence[int], first: Optional[Sequence[int]] = None
    ) -> None:
        self.grid: ProcessGrid = grid
        self.block: tuple[int, ...] = _wholes(block, "block")
        self.first: tuple[int, ...] = (0,) * len(grid.shape) if first is None else _wholes(first, "first")
        if not len(self.block) == len(self.first) == len(grid.shape):
            raise InvalidArgument(
                f"block {self.block} and first {self.first} must have an entry for each axis of the "
                f"grid of shape {grid.shape}"
            )
        if min(self.block) < 1:
            raise InvalidArgument(f"block is {self.block}, expected at least 1 on each axis")
        if not all(0 <= i < n for i, n in zip(self.first, grid.shape)):
            raise InvalidArgument(f"first {self.first} is outside the grid of shape {grid.shape}")

    def shape(self, whole: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return the shape of the part that a rank has of an array of shape `whole`."""
        return tuple(len(part) for part in self.indices(whole, rank))

    def indices(self, whole: Sequence[int], rank: int) -> list[Any]:
        """Return the indices that a rank's part has in the whole array, along each axis; for
        ``numpy.ix_``.
        """
        whole = _extents(whole)
        if len(whole) != len(self.block):
            raise InvalidArgument(
                f"the array's shape {tuple(whole)} has {len(whole)} axes, the grid {len(self.block)}"
            )
        place = self.grid.place_of(rank)
        found = []
        for n, block, at, first, places in zip(
            whole, self.block, place, self.first, self.grid.shape
        ):
            index = np.arange(n)
            found.append(index[(index // block + first) % places == at])
        return found


class BlockNonCyclic:
    """One block for each rank. All blocks have one size, except where the array ends.

    Parameters
    ----------
    grid : ProcessGrid
        The ranks.
    """

    def __init__(self, grid: ProcessGrid) -> None:
        self.grid = grid

    def bound(self, whole: Sequence[int]) -> BlockCyclic:
        """Return the same distribution as a BlockCyclic, for an array of shape `whole`."""
        whole = _extents(whole)
        if len(whole) != len(self.grid.shape):
            raise InvalidArgument(
                f"the array's shape {tuple(whole)} has {len(whole)} axes, the grid "
                f"{len(self.grid.shape)}"
            )
        return BlockCyclic(self.grid, [max(1, -(-n // p)) for n, p in zip(whole, self.grid.shape)])

    def box(self, whole: Sequence[int], rank: int) -> Box:
        """Return the box that a rank has of an array of shape `whole`."""
        block = self.bound(whole).block
        place = self.grid.place_of(rank)
        lower = tuple(min(n, i * b) for n, i, b in zip(whole, place, block))
        return Box(lower, tuple(min(n, a + b) for n, a, b in zip(whole, lower, block)))


class Redistribution:
    """A redistribution that can be made repeatedly. Creating the object is collective.

    Parameters
    ----------
    comm : Communicator
        Its ranks take part.
    source : Box
        This rank's part of the whole array. The boxes of all ranks cover it exactly once.
    target : Box
        The part that this rank wants. Targets may overlap, and need not cover the whole array.
    order : {"C", "F"}
        The order of elements in memory, for the arrays of both boxes.
    deadline : float or datetime.timedelta, optional
        Time limit of each call, in seconds.

    Raises
    ------
    InvalidArgument
        Raised on all ranks: axes or orders differ between ranks, the sources overlap or leave
        holes, or a target reaches outside the whole array.
    """

    @collective
    def __init__(
        self,
        comm: Communicator,
        source: Box,
        target: Box,
        order: Literal["C", "F"] = "C",
        deadline: Timeout = None,
    ) -> None:
        self._comm = comm
        with announcing(comm):
            if order not in ("C", "F"):
                raise InvalidArgument(f'order is {order!r}, expected "C" or "F"')
            self._source = _checked_box("source", source)
            self._target = _checked_box("target", target)
        self._order: Literal["C", "F"] = order
        self._plan = _Redistribution(
            comm,
            list(self._source[0]),
            list(self._source[1]),
            list(self._target[0]),
            list(self._target[1]),
            order == "F",
            deadline,
        )
        self._boxes: Optional[list[Any]] = None

    @property
    def whole(self) -> Box:
        """The box of the whole array."""
        lower, upper = self._plan.whole
        return Box(tuple(lower), tuple(upper))

    @collective
    def __call__(self, x: Array, out: Optional[Array] = None) -> Any:
        """Move an array. Collective: one ``all_to_all_v``.

        Parameters
        ----------
        x : array
            This rank's part, of the shape of `source`, contiguous in `order`.
        out : array, optional
            Receives the part that this rank wants; by default a new array of the package of `x`.

        Returns
        -------
        array
            `out`.
        """
        with announcing(self._comm):
            out = self._result(x, out)
        if is_on_gpu(x):
            return self._move_on_gpu(x, out)
        self._plan.move(self._comm, x, out, self._order == "F")
        return out

    def _result(self, x: Any, out: Optional[Any]) -> Any:
        """Return `out`, or a new array in host memory. Checks both arrays before."""
        for name, array in (("x", x), ("out", out)):
            if not (hasattr(array, "shape") or (array is None and name == "out")):
                raise InvalidArgument(f"{name} is {type_in_words(array)}, expected an array")
        if tuple(x.shape) != self._source.shape:
            raise InvalidArgument(f"x has shape {tuple(x.shape)}, expected {self._source.shape}")
        if out is None:
            return None if is_on_gpu(x) else _empty_like(x, self._target.shape, self._order)
        if tuple(out.shape) != self._target.shape:
            raise InvalidArgument(f"out has shape {tuple(out.shape)}, expected {self._target.shape}")
        if is_on_gpu(out) != is_on_gpu(x):
            raise InvalidArgument("x and out lie in different kinds of memory")
        if is_on_gpu(x) and out.dtype != x.dtype:
            raise InvalidArgument(f"out is {out.dtype}, expected {x.dtype} as x")
        return out

    def _move_on_gpu(self, x: Any, out: Optional[Any]) -> Any:
        from ._arrays.redistribute_gpu import move

        if self._boxes is None:
            mine = [list(map(int, corner)) for box in (self._source, self._target) for corner in box]
            said = self._comm.all_gather_object(mine)
            self._boxes = [(Box(*map(tuple, s[:2])), Box(*map(tuple, s[2:]))) for s in said]
        return move(self._comm, x, out, self._source, self._target, self._boxes, self._order)


@collective
def redistribute(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Box,
    out: Optional[Array] = None,
    order: Literal["C", "F"] = "C",
    deadline: Timeout = None,
) -> Any:
    """Move an array once from one distribution to another; see `Redistribution`."""
    return Redistribution(comm, source, target, order, deadline)(x, out)


def _checked_box(name: str, box: Box) -> Box:
    try:
        lower, upper = (tuple(map(operator.index, corner)) for corner in box)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name} is {box!r}, expected a Box with two corners of whole numbers"
        ) from None
    if len(lower) != len(upper) or any(not 0 <= a <= b < 1 << 63 for a, b in zip(lower, upper)):
        raise InvalidArgument(f"{box} has a lower corner below 0 or above its upper one")
    return Box(lower, upper)


def _empty_like(x: Any, shape: tuple[int, ...], order: Literal["C", "F"]) -> Any:
    if isinstance(x, np.ndarray):
        return np.empty(shape, x.dtype, order=order)
    if hasattr(x, "new_empty"):  # PyTorch
        if order == "C":
            return x.new_empty(shape)
        return x.new_empty(shape[::-1]).permute(*reversed(range(len(shape))))
    seen = np.asarray(x)
    if seen.dtype == object and hasattr(x, "__dlpack__"):  # NumPy reads it only by DLPack
        seen = np.from_dlpack(x)
    return np.empty(shape, seen.dtype, order=order)


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} is {value!r}, expected a whole number") from None


def _wholes(values: Any, name: str) -> tuple[int, ...]:
    try:
        wholes = tuple(map(operator.index, values))
    except TypeError:
        raise InvalidArgument(f"{name} is {values!r}, expected whole numbers") from None
    if any(not -(1 << 63) <= whole < 1 << 63 for whole in wholes):
        raise InvalidArgument(f"{name} is {wholes}, more than any array has")
    return wholes


def _extents(shape: Any) -> tuple[int, ...]:
    """Return the shape of a whole array, after a check."""
    extents = _wholes(shape, "the array's shape")
    if min(extents, default=0) < 0:
        raise InvalidArgument(f"the array's shape is {extents}; no extent is negative")
    return extents


def _check_rank(rank: int, size: int) -> None:
    rank, size = _whole(rank, "rank"), _whole(size, "size")
    if not 0 <= rank < size:
        raise InvalidArgument(f"rank is {rank}, expected 0 to {size - 1}")
