"""Distributions in which a process has one box of the array: slabs and other boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Optional

import numpy as np

from ... import distribution as _d
from ._base import BindDistributionError, ConvertDistributionError, Distribution
from ._grid import ProcessGrid, group


class Slab(Distribution):
    """Splits one axis. If there is a remainder, the first processes have one row more."""

    X: ClassVar[Slab]
    Y: ClassVar[Slab]
    Z: ClassVar[Slab]

    def __init__(self, partition_dim: int, ndim: Optional[int] = None) -> None:
        if not isinstance(partition_dim, int) or partition_dim < 0:
            raise ValueError(f"partition_dim must be integer >= 0, got {partition_dim}")
        if ndim is not None and (not isinstance(ndim, int) or ndim < 1):
            raise ValueError(f"ndim must be integer >= 1, got {ndim}")
        if ndim is not None and partition_dim >= ndim:
            raise ValueError("partition_dim must be < ndim")
        self._partition_dim, self._ndim = partition_dim, ndim

    @property
    def name(self) -> str:
        """The name: Slab.X, Slab.Y, Slab.Z or Slab."""
        return f"Slab.{'XYZ'[self._partition_dim]}" if self._partition_dim < 3 else "Slab"

    @property
    def partition_dim(self) -> int:
        """The axis that is split."""
        return self._partition_dim

    @property
    def ndim(self) -> Optional[int]:
        """Number of axes of the arrays; None for any number."""
        return self._ndim

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        if self._partition_dim >= len(whole):
            raise ValueError("partition_dim must be < ndim")
        return _d.Slab(self._partition_dim).box(whole, rank, group().nranks).shape

    def _bind(self, global_shape: Sequence[int], *, shape: Optional[Sequence[int]] = None) -> Any:
        super()._bind(global_shape, shape=shape)
        self._ndim = len(global_shape)
        return self

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """Convert to a Slab, a BlockCyclic or a BlockNonCyclic. If bound to a shape, also convert
        to this process's Box.
        """
        self._check_to(cls, ndim)
        if ndim is not None and self._partition_dim >= ndim:
            raise ValueError(
                f"ndim ({ndim}) must be greater than the partition dimension "
                f"({self._partition_dim})"
            )
        if self._ndim is not None and ndim not in (None, self._ndim):
            wide: Distribution = self._of_ndim(ndim).to(cls)
            return wide
        ndim = self._ndim if ndim is None else ndim
        if cls is Slab:
            if not copy and ndim == self._ndim:
                return self
            slab: Slab = self.copy()
            slab._ndim = ndim
            return slab
        if cls is Box:
            here = group()
            whole = self._whole or (0,) * (self._partition_dim + 1)
            return self._as_box(_d.Slab(self._partition_dim).box(whole, here.rank, here.nranks))
        if ndim is None:
            raise ConvertDistributionError(
                "Can't convert Slab distribution to BlockCyclic: unknown dimensionality"
            )
        from ._blocks import BlockNonCyclic

        nranks = group().nranks
        grid = ProcessGrid(shape=[nranks if i == self._partition_dim else 1 for i in range(ndim)],
                           layout=ProcessGrid.Layout.ROW_MAJOR)
        blocks = BlockNonCyclic(grid)
        if self._whole is not None:
            mine = self.shape(group().rank)
            try:
                blocks._bind(self._whole, shape=mine)
            except BindDistributionError as error:
                raise ConvertDistributionError(f"Can't convert {self}: {error}") from error
        return blocks

    def _with_axes(self, count: int) -> Slab:
        assert self._ndim is not None
        return Slab(self._partition_dim, self._ndim + count)

    def _whole_of(self, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the whole array's shape, computed from the shapes of all processes' parts."""
        cut, whole = self._partition_dim, list(shapes[0])
        for shape in shapes:
            if any(n != m for i, (n, m) in enumerate(zip(shape, whole)) if i != cut):
                raise ValueError("The problem size is inconsistent across processes")
        whole[cut] = sum(shape[cut] for shape in shapes)
        return tuple(whole)

    def _box_in(self, whole: Sequence[int]) -> _d.Box:
        """Return this process's part of an array of shape `whole`."""
        here = group()
        return _d.Slab(self._partition_dim).box(whole, here.rank, here.nranks)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Slab)
            and self._partition_dim == other._partition_dim
            and (None in (self._ndim, other._ndim) or self._ndim == other._ndim)
        )

    def __hash__(self) -> int:
        return self._partition_dim

    def __str__(self) -> str:
        return f"Slab(partition_dim={self._partition_dim}, ndim={self._ndim}){self._bound_text()}"


Slab.X, Slab.Y, Slab.Z = Slab(0), Slab(1), Slab(2)


class Box(Distribution):
    """The part of one process, given by its lower and upper corners."""

    def __init__(self, lower: Sequence[int], upper: Sequence[int]) -> None:
        if len(lower) != len(upper):
            raise ValueError("lower and upper coordinates must have the same dimensionality")
        if not all(isinstance(x, (int, np.integer)) for x in [*lower, *upper]):
            raise ValueError("lower and upper coordinates must be integer")
        if not all(a < b for a, b in zip(lower, upper)):
            raise ValueError(
                "The upper coordinates must be larger than the lower coordinates, but got "
                f"lower={lower} upper={upper}"
            )
        self._lower, self._upper = tuple(map(int, lower)), tuple(map(int, upper))

    @property
    def lower(self) -> tuple[int, ...]:
        """The lower corner."""
        return self._lower

    @property
    def upper(self) -> tuple[int, ...]:
        """The upper corner."""
        return self._upper

    @property
    def ndim(self) -> int:
        """Number of axes of its arrays."""
        return len(self._lower)

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The box's lengths along all axes."""
        return tuple(b - a for a, b in zip(self._lower, self._upper))

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        if rank != group().rank:
            raise RuntimeError("Can't calculate local shape of peer process with Box distribution")
        return self.box_shape

    def _with_axes(self, count: int) -> Box:
        return Box((*self._lower, *(0,) * count), (*self._upper, *(1,) * count))

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """Convert to a Box, which is this object or a copy."""
        self._check_to(cls, ndim)
        if cls is Box:
            box: Box = self._of_ndim(ndim)
            return box.copy() if copy and box is self else box
        raise ConvertDistributionError("A Box says nothing of the other processes' parts")

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter((self._lower, self._upper))

    def __getitem__(self, index: int) -> tuple[int, ...]:
        return (self._lower, self._upper)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._lower, self._upper))

    def __str__(self) -> str:
        return f"Box(lower={self._lower}, upper={self._upper}){self._bound_text()}"
