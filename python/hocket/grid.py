"""Ranks in a grid: who is beside whom, and the borders of arrays that neighbours hold."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Union

from ._hocket import Communicator
from ._types import ArrayT, Timeout
from .errors import InvalidArgument

#: Nobody, as beyond an end of a grid: a message to or from it is through at once, and moves nothing.
NULL_RANK = -2

#: Cells beside each end of an axis: one number for all, or for each axis one or a pair.
Halo = Union[int, Sequence[Union[int, tuple[int, int]]]]


class Grid:
    """The ranks of a communicator as a grid of any number of axes, in C order.

    >>> grid = comm.grid((2, -1), periodic=(False, True))
    >>> grid.coordinates                      # of this rank
    (1, 0)
    >>> grid.neighbour_exchange(x, halo=1)    # x has a border of one cell around its own part

    Parameters
    ----------
    comm : Communicator
        Its ranks, all of them.
    shape : sequence of int
        How many ranks along each axis; one of them may be -1, which is what is left.
    periodic : bool or sequence of bool
        Whether the ends of an axis are beside each other; of all axes, or of each.
    """

    def __init__(
        self,
        comm: Communicator,
        shape: Sequence[int],
        periodic: Union[bool, Sequence[bool]] = False,
    ) -> None:
        self.comm = comm
        #: How many ranks along each axis.
        self.shape = _shape(shape, comm.size)
        axes = len(self.shape)
        ends = [periodic] * axes if isinstance(periodic, bool) else list(periodic)
        if len(ends) != axes:
            raise InvalidArgument(f"periodic has {len(ends)} entries, and the grid {axes} axes")
        #: Whether the ends of each axis are beside each other.
        self.periodic = tuple(bool(end) for end in ends)

    def __repr__(self) -> str:
        return f"<hocket.Grid of {self.shape}, rank {self.comm.rank} at {self.coordinates}>"

    @property
    def coordinates(self) -> tuple[int, ...]:
        """Where this rank is."""
        return self.coordinates_of(self.comm.rank)

    def coordinates_of(self, rank: int) -> tuple[int, ...]:
        """Where a rank is."""
        if not 0 <= operator.index(rank) < self.comm.size:
            raise InvalidArgument(f"rank is {rank}, expected 0 to {self.comm.size - 1}")
        found = []
        for extent in reversed(self.shape):
            rank, place = divmod(rank, extent)
            found.append(place)
        return tuple(reversed(found))

    def rank_of(self, coordinates: Sequence[int]) -> int:
        """The rank at a place; `hocket.NULL_RANK` beyond an end that is not periodic."""
        if len(coordinates) != len(self.shape):
            raise InvalidArgument(
                f"coordinates has {len(coordinates)} entries, and the grid {len(self.shape)} axes"
            )
        rank = 0
        for place, extent, is_periodic in zip(coordinates, self.shape, self.periodic):
            if not is_periodic and not 0 <= place < extent:
                return NULL_RANK
            rank = rank * extent + place % extent
        return rank

    def shift(self, axis: int, distance: int = 1) -> tuple[int, int]:
        """Whom to receive from and whom to send to, for all to pass something on along an axis.

        Parameters
        ----------
        axis : int
            Which.
        distance : int
            How far it is passed on; negative the other way.

        Returns
        -------
        source, destination : int
            `hocket.NULL_RANK` where there is nobody: messages to and from it do nothing.
        """
        return self._beside(axis, -distance), self._beside(axis, distance)

    def _beside(self, axis: int, distance: int) -> int:
        axes = len(self.shape)
        if not -axes <= axis < axes:
            raise InvalidArgument(f"axis is {axis}, and the grid has {axes}")
        place = list(self.coordinates)
        place[axis] += distance
        return self.rank_of(place)

    def neighbour_exchange(
        self, x: ArrayT, halo: Halo = 1, *, tag: int = 0, deadline: Timeout = None
    ) -> ArrayT:
        """Fill the border of this rank's part with what its neighbours hold, corners too.

        All ranks make the call. Where there is no neighbour the border stays as it is.

        Parameters
        ----------
        x : array
            Of NumPy or CuPy, contiguous or not: this rank's part with its border around it, as many
            axes as the grid, or more: then the first ones are the grid's. Parts may differ in size
            along an axis, among ranks that differ in their place on it.
        halo : int, or sequence of int or (int, int)
            How wide the border is: everywhere; along each axis; before and behind along each axis.
        tag : int
            Of the messages.
        deadline : float or datetime.timedelta, optional
            For each axis's messages.

        Returns
        -------
        array
            `x`.
        """
        widths = self._widths(x, halo)
        for axis, (before, behind) in enumerate(widths):
            self._exchange_axis(x, axis, before, behind, tag, deadline)
        return x

    def _widths(self, x: Any, halo: Halo) -> list[tuple[int, int]]:
        axes = len(self.shape)
        given = [halo] * axes if isinstance(halo, int) else list(halo)
        if len(given) != axes or x.ndim < axes:
            raise InvalidArgument(
                f"halo has {len(given)} entries, the array {x.ndim} axes, and the grid {axes}"
            )
        widths = [(one, one) if isinstance(one, int) else (one[0], one[1]) for one in given]
        for axis, (before, behind) in enumerate(widths):
            own = x.shape[axis] - before - behind
            if before < 0 or behind < 0 or own < max(before, behind):
                raise InvalidArgument(
                    f"along axis {axis} the array has {x.shape[axis]} cells, which is too few for a "
                    f"border of {before} and {behind} and as many within"
                )
        return widths

    def _exchange_axis(
        self, x: Any, axis: int, before: int, behind: int, tag: int, deadline: Timeout
    ) -> None:
        lower, upper = self.shift(axis)
        end = x.shape[axis] - behind

        def cells(first: int, last: int) -> Any:
            return x[(slice(None),) * axis + (slice(first, last),)]

        # What each side lacks, and who has it. Messages of two ranks that are beside each other twice
        # pair in this order.
        parts = [
            (lower, cells(before, before + behind), upper, cells(end, end + behind)),
            (upper, cells(end - before, end), lower, cells(0, before)),
        ]
        outgoing, incoming, arrived = [], [], []
        for destination, mine, source, border in parts:
            if border.shape[axis] == 0:
                continue
            if destination == self.comm.rank:  # alone on a periodic axis
                border[...] = mine.copy()
                continue
            if destination != NULL_RANK:
                outgoing.append((mine.copy(order="C"), destination))
            if source != NULL_RANK:
                packed = border.copy(order="C")
                incoming.append((packed, source))
                arrived.append((border, packed))
        self.comm.exchange(outgoing, incoming, tag=tag, deadline=deadline)
        for border, packed in arrived:
            border[...] = packed


def _shape(shape: Iterable[int], size: int) -> tuple[int, ...]:
    extents = [operator.index(extent) for extent in shape]
    known = math.prod(extent for extent in extents if extent != -1)
    if extents.count(-1) == 1 and known > 0 and size % known == 0:
        extents[extents.index(-1)] = size // known
    if not extents or min(extents) < 1 or math.prod(extents) != size:
        raise InvalidArgument(f"a grid of {tuple(extents)} does not have the communicator's {size} ranks")
    return tuple(extents)
