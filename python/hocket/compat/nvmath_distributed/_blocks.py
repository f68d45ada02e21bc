"""Distributions of blocks over a grid of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from ... import distribution as _d
from ._base import ConvertDistributionError, Distribution
from ._boxes import Box, Slab
from ._grid import ProcessGrid, group


class BlockCyclic(Distribution):
    """Blocks of one size, distributed cyclically over a grid of processes."""

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
        """The grid of processes."""
        return self._process_grid

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The extents of a block."""
        return self._block_sizes

    @property
    def first_process(self) -> tuple[int, ...]:
        """The position in the grid of the process that has the first block."""
        return self._first_process

    @property
    def ndim(self) -> int:
        """Number of axes of its arrays."""
        return len(self._process_grid.shape)

    def _is_row_wise(self) -> bool:
        return self._process_grid.shape == (group().nranks, 1)

    def _is_col_wise(self) -> bool:
        return self._process_grid.shape == (1, group().nranks)

    def _is_1d_distribution(self) -> bool:
        return self._process_grid._is_1d_distribution()

    def _blocks_for(self, whole: Sequence[int]) -> tuple[int, ...]:
        return self._block_sizes

    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        blocks = _d.BlockCyclic(
            self._process_grid.grid, self._blocks_for(whole), self._first_process
        )
        return blocks.shape(whole, rank)

    def _with_axes(self, count: int) -> Any:
        wide: Any = self.copy()
        wide._whole = None
        wide._process_grid = self._process_grid._with_axes(count)
        wide._block_sizes = (*self._block_sizes, *(1,) * count)
        wide._first_process = (*self._first_process, *(0,) * count)
        return wide

    def _whole_of(self, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the whole array's shape, computed from the shapes of all processes' parts."""
        ranks = self._process_grid.grid.ranks
        whole = []
        for axis in range(self.ndim):
            # The processes of one line along this axis hold the whole axis together.
            lines = np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis])
            sums = {sum(shapes[rank][axis] for rank in line) for line in lines}
            if len(sums) != 1:
                raise ValueError(f"The problem size is inconsistent across processes:{list(shapes)}")
            whole.append(int(sums.pop()))
        return tuple(whole)

    def _box_in(self, whole: Sequence[int]) -> _d.Box:
        """Return this process's part of an array of shape `whole`. Raise TypeError if it is several
        boxes.
        """
        blocks = self._blocks_for(whole)
        grid = self._process_grid.grid
        if any(p > 1 and -(-n // b) > p for n, b, p in zip(whole, blocks, grid.shape)):
            raise TypeError("Redistribute requires distributions compatible with Box distribution")
        dealt = _d.BlockCyclic(grid, blocks, self._first_process)
        parts = dealt.indices(whole, group().rank)
        lower = tuple(int(part[0]) if len(part) else 0 for part in parts)
        return _d.Box(lower, tuple(a + len(part) for a, part in zip(lower, parts)))

    def _cut_axis(self) -> int:
        """Return the only axis along which there are several processes."""
        nranks = group().nranks
        if nranks not in self._process_grid.shape:
            raise ConvertDistributionError(
                "Can't convert this block distribution to Slab: partitioning must be on a single "
                "dimension"
            )
        return self._process_grid.shape.index(nranks)

    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """Convert to blocks. Convert to a Slab if each process has one block along one axis."""
        self._check_to(cls, ndim)
        if ndim not in (None, self.ndim):
            wide: Distribution = self._of_ndim(ndim).to(cls)
            return wide
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
        length, nranks = self._whole[axis], group().nranks
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
    """One block for each process. The block's size follows from the array's size."""

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
        """Convert to blocks or a Slab. If bound to a shape, also convert to this process's Box."""
        self._check_to(cls, ndim)
        if ndim not in (None, self.ndim):
            return super().to(cls, ndim=ndim)
        if cls is Box and self._whole is not None and not any(self._first_process):
            grid = _d.BlockNonCyclic(self._process_grid.grid)
            return self._as_box(grid.box(self._whole, group().rank))
        if cls is Slab and self._whole is None:
            return Slab(self._cut_axis(), ndim=self.ndim)
        return super().to(cls, ndim=ndim, copy=copy)
