"""Distributions by nvmath's names, over `hocket.distribution`."""

from __future__ import annotations

import copy as _copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Optional

import numpy as np

from ... import distribution as _d
from ._runtime import require_context

__all__ = [
    "BindDistributionError",
    "BlockCyclic",
    "BlockNonCyclic",
    "Box",
    "ConvertDistributionError",
    "Distribution",
    "ProcessGrid",
    "Slab",
]


def _group() -> Any:
    return require_context().process_group


class BindDistributionError(Exception):
    """A distribution does not fit an array, or is bound already."""


class ConvertDistributionError(Exception):
    """A distribution cannot be converted."""


class ProcessGrid:
    """Processes in a grid of `shape`, numbered along the rows or the columns, or as listed."""

    class Layout(IntEnum):
        """Which neighbours have neighbouring numbers."""

        COL_MAJOR = 0
        ROW_MAJOR = 1

    def __init__(
        self,
        *,
        shape: Optional[Sequence[int]] = None,
        layout: Optional[ProcessGrid.Layout] = None,
        process_array: Any = None,
    ) -> None:
        self._nranks = _group().nranks
        if process_array is None:
            if shape is None:
                raise ValueError("shape must be provided when process_array=None")
            self._shape = tuple(shape)
            if layout is None:
                if self._nranks not in self._shape:
                    raise ValueError(
                        "layout must be provided when process_array=None and partitioning on "
                        "multiple dimensions"
                    )
                layout = ProcessGrid.Layout.ROW_MAJOR
            if not isinstance(layout, ProcessGrid.Layout):
                raise TypeError(f"layout must be of type ProcessGrid.Layout, got {layout}")
        else:
            process_array = np.asarray(process_array)
            self._shape = tuple(process_array.shape)
            if shape is not None and tuple(shape) != self._shape:
                raise ValueError(
                    f"shape {shape} and process_array.shape ({process_array.shape}) don't match"
                )
            layout = None
        if math.prod(self._shape) != self._nranks:
            raise ValueError(
                f"Number of grid elements ({math.prod(self._shape)}) must equal the number of "
                f"processes ({self._nranks})"
            )
        self._layout = layout
        self._process_array = process_array
        self.grid = _d.ProcessGrid(
            self._shape,
            "column" if layout is ProcessGrid.Layout.COL_MAJOR else "row",
            process_array,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid's extents."""
        return self._shape

    @property
    def layout(self) -> Optional[ProcessGrid.Layout]:
        """How the processes are numbered; None where they are listed."""
        return self._layout

    @property
    def process_array(self) -> Any:
        """The list of processes, where one was given."""
        return self._process_array

    def _is_1d_distribution(self) -> bool:
        return self._nranks in self._shape

    def __hash__(self) -> int:
        return hash(self._shape)

    def __eq__(self, other: object) -> bool:
        # Along one axis all ways of numbering are one.
        return isinstance(other, ProcessGrid) and self.grid == other.grid

    def __str__(self) -> str:
        name = None if self._layout is None else self._layout.name
        return f"ProcessGrid(shape={self._shape}, layout={name}, process_array={self._process_array})"


class Distribution(ABC):
    """How an array is spread over the processes; bound to an array's shape, or not."""

    _whole: Optional[tuple[int, ...]] = None  # the shape it is bound to

    @property
    @abstractmethod
    def ndim(self) -> Optional[int]:
        """Axes of the arrays it is for; None for any number."""

    @abstractmethod
    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        """What `rank` has of an array of shape `whole`."""

    @abstractmethod
    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """The same as another kind of distribution; ConvertDistributionError where there is none."""

    def shape(self, rank: int, global_shape: Optional[Sequence[int]] = None) -> tuple[int, ...]:
        """The shape of what a process has.

        Parameters
        ----------
        rank : int
            The process.
        global_shape : sequence of int, optional
            The whole array's; not needed where the distribution is bound.
        """
        nranks = _group().nranks
        if not isinstance(rank, int):
            raise ValueError(f"rank must be an integer, got {rank}")
        if not 0 <= rank < nranks:
            raise ValueError(
                f"This is not a valid process rank: got rank={rank} with nranks={nranks}"
            )
        if global_shape is None and self._whole is None:
            raise RuntimeError("This distribution is unbound: please specify a global shape")
        if global_shape is not None and self._whole not in (None, tuple(global_shape)):
            raise ValueError(
                "This distribution is already bound to a different global shape: provided "
                f"{global_shape}, bound to {self._whole}"
            )
        whole = self._whole if global_shape is None else tuple(global_shape)
        assert whole is not None
        return self._local_shape(rank, whole)

    def copy(self) -> Any:
        """Another one like it."""
        return _copy.copy(self)

    def _bind(self, global_shape: Sequence[int], *, shape: Optional[Sequence[int]] = None) -> Any:
        if self._whole is not None:
            raise BindDistributionError(f"{self} is already bound")
        if self.ndim is not None and len(global_shape) != self.ndim:
            raise ValueError(
                f"Dimensionality of shapes ({len(global_shape)}) doesn't match dimensionality of "
                f"this distribution ({self.ndim})"
            )
        mine = self._local_shape(_group().rank, tuple(global_shape))
        if shape is not None and tuple(shape) != mine:
            raise BindDistributionError(
                f"The given shapes (global_shape={global_shape}, shape={shape}) don't fit "
                f"distribution {self}: expected shape is {mine}"
            )
        self._whole = tuple(global_shape)
        return self

    def _check_to(self, cls: Any, ndim: Optional[int]) -> None:
        if cls is Distribution or not issubclass(cls, Distribution):
            raise ValueError(f"{cls} is not a valid distribution")
        if ndim is not None and self.ndim is not None and ndim != self.ndim:
            raise ValueError(
                f"ndim argument ({ndim}) doesn't match this distribution's dimensionality "
                f"({self.ndim})"
            )

    def _as_box(self, box: _d.Box) -> Box:
        if self._whole is None or box.size == 0:
            raise ConvertDistributionError(
                f"{self} can't be converted to Box: it is unbound, or this process has nothing"
            )
        return Box(box.lower, box.upper)

    def _bound_text(self) -> str:
        return "" if self._whole is None else f"[bound: global_shape={self._whole}]"


class Slab(Distribution):
    """Cut along one axis: the first processes have one more where it does not divide."""

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
        """Slab.X, Slab.Y, Slab.Z or Slab."""
        return f"Slab.{'XYZ'[self._partition_dim]}" if self._partition_dim < 3 else "Slab"

    @property
    def partition_dim(self) -> int:
        """The axis that is cut."""
        return self._partition_dim

    @property
    def ndim(self) -> Optional[int]:
        """Axes of the arrays it is for; None for any number."""
        return self._ndim

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        if self._partition_dim >= len(whole):
            raise ValueError("partition_dim must be < ndim")
        return _d.Slab(self._partition_dim).box(whole, rank, _group().nranks).shape

    def _bind(self, global_shape: Sequence[int], *, shape: Optional[Sequence[int]] = None) -> Any:
        super()._bind(global_shape, shape=shape)
        self._ndim = len(global_shape)
        return self

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """As a Slab, a BlockCyclic or BlockNonCyclic or, once bound, this process's Box."""
        self._check_to(cls, ndim)
        if ndim is not None and self._partition_dim >= ndim:
            raise ValueError(
                f"ndim ({ndim}) must be greater than the partition dimension "
                f"({self._partition_dim})"
            )
        ndim = self._ndim if ndim is None else ndim
        if cls is Slab:
            if not copy and ndim == self._ndim:
                return self
            slab: Slab = self.copy()
            slab._ndim = ndim
            return slab
        if cls is Box:
            group = _group()
            whole = self._whole or (0,) * (self._partition_dim + 1)
            return self._as_box(_d.Slab(self._partition_dim).box(whole, group.rank, group.nranks))
        if ndim is None:
            raise ConvertDistributionError(
                "Can't convert Slab distribution to BlockCyclic: unknown dimensionality"
            )
        nranks = _group().nranks
        grid = ProcessGrid(shape=[nranks if i == self._partition_dim else 1 for i in range(ndim)],
                           layout=ProcessGrid.Layout.ROW_MAJOR)
        blocks = BlockNonCyclic(grid)
        if self._whole is not None:
            mine = self.shape(_group().rank)
            try:
                blocks._bind(self._whole, shape=mine)
            except BindDistributionError as error:
                raise ConvertDistributionError(f"Can't convert {self}: {error}") from error
        return blocks

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
    """What one process has, by its lower and upper corners."""

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
        """Axes of the arrays it is for."""
        return len(self._lower)

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        if rank != _group().rank:
            raise RuntimeError("Can't calculate local shape of peer process with Box distribution")
        return tuple(b - a for a, b in zip(self._lower, self._upper))

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """As a Box."""
        self._check_to(cls, ndim)
        if cls is Box:
            box: Box = self.copy() if copy else self
            return box
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


class BlockCyclic(Distribution):
    """Blocks of one size, dealt out over a grid of processes in turn."""

    def __init__(
        self,
        process_grid: ProcessGrid,
        block_sizes: Sequence[int],
        *,
        first_process: Optional[Sequence[int]] = None,
    ) -> None:
        if block_sizes is None or not all(isinstance(x, int) for x in block_sizes):
            raise ValueError(f"Must provide a sequence of integer block sizes, got {block_sizes}")
        if len(block_sizes) != len(process_grid.shape):
            raise ValueError(
                f"Number of block sizes ({len(block_sizes)}) doesn't match dimensionality "
                f"({len(process_grid.shape)})"
            )
        first = (0,) * len(block_sizes) if first_process is None else tuple(first_process)
        if not all(isinstance(x, int) for x in first):
            raise ValueError(
                f"first_process must be a sequence of integer coordinates, got {first_process}"
            )
        if not all(0 <= x < n for x, n in zip(first, process_grid.shape)):
            raise ValueError(
                f"first_process {first_process} is not a valid index into the process grid of shape "
                f"{process_grid.shape}"
            )
        self._process_grid, self._block_sizes = process_grid, tuple(block_sizes)
        self._first_process = first

    @property
    def process_grid(self) -> ProcessGrid:
        """The processes."""
        return self._process_grid

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The extents of a block."""
        return self._block_sizes

    @property
    def first_process(self) -> tuple[int, ...]:
        """The place in the grid that has the first block."""
        return self._first_process

    @property
    def ndim(self) -> int:
        """Axes of the arrays it is for."""
        return len(self._process_grid.shape)

    def _blocks_for(self, whole: Sequence[int]) -> tuple[int, ...]:
        return self._block_sizes

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        blocks = _d.BlockCyclic(
            self._process_grid.grid, self._blocks_for(whole), self._first_process
        )
        return blocks.shape(whole, rank)

    def _cut_axis(self) -> int:
        """The one axis along which there are several processes."""
        nranks = _group().nranks
        if nranks not in self._process_grid.shape:
            raise ConvertDistributionError(
                "Can't convert this block distribution to Slab: partitioning must be on a single "
                "dimension"
            )
        return self._process_grid.shape.index(nranks)

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """As blocks, or as a Slab where each process has one block along one axis."""
        self._check_to(cls, ndim)
        if issubclass(cls, BlockCyclic):
            blocks: BlockCyclic = self.copy() if copy else self
            return blocks
        if cls is Box:
            raise ConvertDistributionError(f"{self} gives a process more than one box")
        if self._whole is None:
            raise ConvertDistributionError(
                "Unbound BlockCyclic distribution can't be converted to Slab. Consider using "
                "BlockNonCyclic if there is no cyclic distribution of blocks."
            )
        axis = self._cut_axis()
        length, nranks = self._whole[axis], _group().nranks
        if length % nranks != 0 or self._block_sizes[axis] != length // nranks:
            raise ConvertDistributionError(
                f"Can't convert this distribution to Slab: data doesn't divide evenly on partition "
                f"dimension, or the block size does not fit. Global shape is {self._whole}, "
                f"partition dimension is {axis}, block size {self._block_sizes[axis]} and number of "
                f"processes is {nranks}."
            )
        return Slab(axis, ndim=self.ndim)._bind(self._whole)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BlockCyclic)
            and self._process_grid == other._process_grid
            and self._first_process == other._first_process
            and (self._block_sizes == other._block_sizes or self._is_open_to(other))
        )

    def _is_open_to(self, other: BlockCyclic) -> bool:
        return False

    def __hash__(self) -> int:
        return hash((self._process_grid, self._first_process))

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}(process_grid={self._process_grid}, "
            f"block_sizes={self._block_sizes}){self._bound_text()}"
        )


class BlockNonCyclic(BlockCyclic):
    """One block a process; its size follows from the array."""

    def __init__(
        self, process_grid: ProcessGrid, *, first_process: Optional[Sequence[int]] = None
    ) -> None:
        super().__init__(
            process_grid, (-1,) * len(process_grid.shape), first_process=first_process
        )

    def _blocks_for(self, whole: Sequence[int]) -> tuple[int, ...]:
        return _d.BlockNonCyclic(self._process_grid.grid).bound(whole).block

    def _is_open_to(self, other: BlockCyclic) -> bool:
        return isinstance(other, BlockNonCyclic) and None in (self._whole, other._whole)

    def _bind(self, global_shape: Sequence[int], *, shape: Optional[Sequence[int]] = None) -> Any:
        super()._bind(global_shape, shape=shape)
        self._block_sizes = self._blocks_for(global_shape)
        return self

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """As blocks, as a Slab or, once bound, as this process's Box."""
        self._check_to(cls, ndim)
        if cls is Box and self._whole is not None and not any(self._first_process):
            grid = _d.BlockNonCyclic(self._process_grid.grid)
            return self._as_box(grid.box(self._whole, _group().rank))
        if cls is Slab and self._whole is None:
            return Slab(self._cut_axis(), ndim=self.ndim)
        return super().to(cls, ndim=ndim, copy=copy)
