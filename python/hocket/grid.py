"""Ranks in a grid: a rank's neighbours, and exchanges of the borders of arrays (halos)."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Union

from ._calls.types import ArrayT, Timeout, type_in_words
from ._hocket import Communicator
from .errors import InvalidArgument

#: No rank, such as beyond an end of a grid. A message to or from it completes at once, and moves
#: nothing.
NULL_RANK = -2

#: Number of cells in the border at each end of an axis: one number for all axes, or for each axis
#: one number or a pair.
Halo = Union[int, Sequence[Union[int, tuple[int, int]]]]

#: One message along an axis: the axis, the destination, the cells to send, the source, the cells to
#: fill.
_Part = tuple[int, int, Any, int, Any]
_MOST_KEPT = 16


class Grid:
    """The ranks of a communicator as a grid of any number of axes, in C order.

    >>> grid = comm.grid((2, -1), periodic=(False, True))
    >>> grid.coordinates                      # of this rank
    (1, 0)
    >>> grid.neighbour_exchange(x, halo=1)    # x has a border of one cell around its own part

    Parameters
    ----------
    comm : Communicator
        All its ranks form the grid.
    shape : sequence of int
        Number of ranks along each axis. One entry may be -1; it is computed from the others.
    periodic : bool or sequence of bool
        True if the two ends of an axis are neighbours; one value for all axes, or one for each.
    """

    def __init__(
        self,
        comm: Communicator,
        shape: Sequence[int],
        periodic: Union[bool, Sequence[bool]] = False,
    ) -> None:
        self.comm = comm
        self._rank = comm.rank
        #: Number of ranks along each axis.
        self.shape: tuple[int, ...] = _shape(shape, comm.size)
        #: True for each axis whose two ends are neighbours.
        self.periodic: tuple[bool, ...] = _periodic(periodic, len(self.shape))
        self._kept: dict[Any, list[_Part]] = {}

    def __repr__(self) -> str:
        return f"<hocket.Grid of {self.shape}, rank {self.comm.rank} at {self.coordinates}>"

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The place of this rank in the grid."""
        return self.coordinates_of(self.comm.rank)

    def coordinates_of(self, rank: int) -> tuple[int, ...]:
        """Return the place of a rank in the grid."""
        rank = _whole(rank, "rank")
        if not 0 <= rank < self.comm.size:
            raise InvalidArgument(f"rank is {rank}, expected 0 to {self.comm.size - 1}")
        found = []
        for extent in reversed(self.shape):
            rank, place = divmod(rank, extent)
            found.append(place)
        return tuple(reversed(found))

    def rank_of(self, coordinates: Sequence[int]) -> int:
        """Return the rank at a place. Returns `hocket.NULL_RANK` beyond an end that is not
        periodic.
        """
        places = _wholes(coordinates, "coordinates")
        if len(places) != len(self.shape):
            raise InvalidArgument(
                f"coordinates has {len(places)} entries, and the grid {len(self.shape)} axes"
            )
        rank = 0
        for place, extent, is_periodic in zip(places, self.shape, self.periodic):
            if not is_periodic and not 0 <= place < extent:
                return NULL_RANK
            rank = rank * extent + place % extent
        return rank

    def shift(self, axis: int, distance: int = 1) -> tuple[int, int]:
        """Return the source and the destination if every rank passes data on along an axis.

        Parameters
        ----------
        axis : int
            Number of the axis.
        distance : int
            Number of steps by which the data move; negative for the opposite direction.

        Returns
        -------
        source, destination : int
            `hocket.NULL_RANK` beyond an end of the grid: messages to and from it do nothing.
        """
        distance = _whole(distance, "distance")
        return self._beside(axis, -distance), self._beside(axis, distance)

    def _beside(self, axis: int, distance: int) -> int:
        axes = len(self.shape)
        axis = _whole(axis, "axis")
        if not -axes <= axis < axes:
            raise InvalidArgument(f"axis is {axis}, and the grid has {axes}")
        place = list(self.coordinates)
        place[axis] += distance
        return self.rank_of(place)

    def neighbour_exchange(
        self, x: ArrayT, halo: Halo = 1, *, tag: int = 0, deadline: Timeout = None
    ) -> ArrayT:
        """Fill the border of this rank's part from its neighbours, including corners: a halo exchange.

        A collective call; it consists of messages. At an end of the grid without a neighbour, the
        border stays unchanged. If a rank refuses its arguments, it sends no messages. Its
        neighbours then wait until the deadline, and their error says that this rank never came.

        Parameters
        ----------
        x : array
            This rank's part with a border around it, of NumPy or CuPy, contiguous or not. It has as
            many axes as the grid, or more; the first axes are those of the grid. The sizes of parts
            may differ along an axis between ranks at different places on this axis.
        halo : int, or sequence of int or (int, int)
            Width of the border in cells: one number for all ends, one for each axis, or a pair
            (before, behind) for each axis.
        tag : int
            Tag of the messages.
        deadline : float or datetime.timedelta, optional
            Time limit of the messages along each axis, in seconds.

        Returns
        -------
        array
            `x`.
        """
        data: Any = x
        try:
            parts = self._kept[data.shape, halo, type(halo)]
        except (AttributeError, KeyError, TypeError):
            parts = self._parts(data, halo)
        flags = getattr(data, "flags", None)
        # Check all arguments before the first message. A later error would leave the neighbours
        # waiting.
        if getattr(flags, "writeable", True) is False:
            raise InvalidArgument("x is read-only, and its border would be written to")
        is_whole = getattr(flags, "c_contiguous", False)
        for axis, destination, mine, source, border in parts:
            if destination == self._rank:  # on a periodic axis, the rank may be its own neighbour
                data[border] = data[mine].copy()
                continue
            in_place = axis == 0 and is_whole
            given = None if destination == NULL_RANK else data[mine]
            taken = None if source == NULL_RANK else data[border]
            if not in_place:
                given = None if given is None else given.copy(order="C")
                taken = None if taken is None else taken.copy(order="C")
            # A message to or from NULL_RANK moves nothing, so any array may stand in for a missing
            # one.
            given, taken = taken if given is None else given, given if taken is None else taken
            self.comm.send_recv(given, destination, taken, source, tag, deadline)
            if not in_place and source != NULL_RANK:
                data[border] = taken
        return x

    def _parts(self, x: Any, halo: Halo) -> list[_Part]:
        """Return the messages of one exchange. Keeps them, because programs repeat the same
        exchange.
        """
        parts = []
        for axis, (before, behind) in enumerate(self._widths(x, halo)):
            parts += self._parts_along(axis, x.shape[axis], before, behind)
        if type(halo) is int and len(self._kept) < _MOST_KEPT:
            self._kept[x.shape, halo, int] = parts
        return parts

    def _widths(self, x: Any, halo: Halo) -> list[tuple[int, int]]:
        axes = len(self.shape)
        if not all(hasattr(x, name) for name in ("ndim", "shape", "__setitem__")):
            raise InvalidArgument(f"x is {type_in_words(x)}, not an array")
        given = [halo] * axes if _is_whole(halo) else _entries(halo, "halo")
        if len(given) != axes or x.ndim < axes:
            raise InvalidArgument(
                f"halo has {len(given)} entries, the array {x.ndim} axes, and the grid {axes}"
            )
        widths = [_pair(one) for one in given]
        for axis, (before, behind) in enumerate(widths):
            if before < 0 or behind < 0:
                raise InvalidArgument(
                    f"halo is {before} and {behind} along axis {axis}, expected at least 0"
                )
            own = x.shape[axis] - before - behind
            if own < max(before, behind):
                raise InvalidArgument(
                    f"along axis {axis} the array has {x.shape[axis]} cells, which is too few for a "
                    f"border of {before} and {behind} and as many within"
                )
        return widths

    def _parts_along(self, axis: int, cells: int, before: int, behind: int) -> list[_Part]:
        lower, upper = self.shift(axis)
        end = cells - behind

        def index(first: int, last: int) -> Any:
            return (slice(None),) * axis + (slice(first, last),)

        # Each part fills the border at one side from the rank at that side. If one rank is the
        # neighbour at both sides, its messages are paired in this order.
        parts = []
        if behind:
            border = index(end, end + behind)
            parts.append((axis, lower, index(before, before + behind), upper, border))
        if before:
            parts.append((axis, upper, index(end - before, end), lower, index(0, before)))
        return [part for part in parts if part[1] != NULL_RANK or part[3] != NULL_RANK]


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _whole(value: Any, name: str) -> int:
    if not _is_whole(value):
        raise InvalidArgument(f"{name} is {type_in_words(value)}; give a whole number")
    return operator.index(value)


def _entries(values: Any, name: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise InvalidArgument(
            f"{name} is {type_in_words(values)}; give a tuple with an entry for each axis"
        ) from None


def _wholes(values: Any, name: str) -> list[int]:
    return [_whole(value, f"{name}[{i}]") for i, value in enumerate(_entries(values, name))]


def _pair(width: Any) -> tuple[int, int]:
    if _is_whole(width):
        return operator.index(width), operator.index(width)
    pair = _wholes(width, "halo")
    if len(pair) != 2:
        raise InvalidArgument(f"halo of an axis has {len(pair)} entries; give one or two")
    return pair[0], pair[1]


def _periodic(periodic: Any, axes: int) -> tuple[bool, ...]:
    if type(periodic).__name__ in ("bool", "bool_"):  # NumPy's, too
        return (bool(periodic),) * axes
    ends = _entries(periodic, "periodic")
    if len(ends) != axes:
        raise InvalidArgument(f"periodic has {len(ends)} entries, and the grid {axes} axes")
    for axis, end in enumerate(ends):
        if type(end).__name__ not in ("bool", "bool_") and not (_is_whole(end) and end in (0, 1)):
            raise InvalidArgument(f"periodic[{axis}] is {end!r}; give True or False")
    return tuple(bool(end) for end in ends)


def _shape(shape: Any, size: int) -> tuple[int, ...]:
    extents = _wholes(shape, "shape")
    known = math.prod(extent for extent in extents if extent != -1)
    if extents.count(-1) == 1 and known > 0 and size % known == 0:
        extents[extents.index(-1)] = size // known
    if not extents or min(extents) < 1 or math.prod(extents) != size:
        raise InvalidArgument(f"a grid of {tuple(extents)} does not have the communicator's {size} ranks")
    return tuple(extents)
