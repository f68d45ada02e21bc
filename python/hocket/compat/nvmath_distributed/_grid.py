"""Grids of processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Optional

import numpy as np

from ... import distribution as _d
from ._runtime import require_context


def group() -> Any:
    """Return the process group with which the runtime was initialized."""
    return require_context().process_group


class ProcessGrid:
    """Processes in a grid of `shape`, numbered along the rows or the columns, or in a given array.
    """

    class Layout(IntEnum):
        """The axis along which neighbours have consecutive numbers."""

        COL_MAJOR = 0
        ROW_MAJOR = 1

    def __init__(
        self,
        *,
        shape: Optional[Sequence[int]] = None,
        layout: Optional[ProcessGrid.Layout] = None,
        process_array: Any = None,
    ) -> None:
        self._nranks = group().nranks
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
        self.grid: _d.ProcessGrid = _d.ProcessGrid(
            self._shape,
            "column" if layout is ProcessGrid.Layout.COL_MAJOR else "row",
            process_array,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of processes along each axis."""
        return self._shape

    @property
    def layout(self) -> Optional[ProcessGrid.Layout]:
        """The numbering of the processes. None if an array of processes was given."""
        return self._layout

    @property
    def process_array(self) -> Any:
        """The array of processes, if one was given."""
        return self._process_array

    def _with_axes(self, count: int) -> ProcessGrid:
        """Return the same processes in a grid with `count` further axes of length 1."""
        shape = (*self._shape, *(1,) * count)
        if self._process_array is not None:
            return ProcessGrid(process_array=self._process_array.reshape(shape))
        return ProcessGrid(shape=shape, layout=self._layout)

    def _is_1d_distribution(self) -> bool:
        return self._nranks in self._shape

    def __hash__(self) -> int:
        return hash(self._shape)

    def __eq__(self, other: object) -> bool:
        # Compares the grids, because several layouts of a one-dimensional grid number the processes
        # equally.
        return isinstance(other, ProcessGrid) and self.grid == other.grid

    def __str__(self) -> str:
        name = None if self._layout is None else self._layout.name
        return f"ProcessGrid(shape={self._shape}, layout={name}, process_array={self._process_array})"
