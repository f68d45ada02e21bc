"""The common base of distributions."""

from __future__ import annotations

import copy as _copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from ... import distribution as _d
from ._grid import group

if TYPE_CHECKING:
    from . import _boxes as boxes


class BindDistributionError(Exception):
    """A distribution does not fit an array, or is already bound to a shape."""


class ConvertDistributionError(Exception):
    """A distribution cannot be converted."""


class Distribution(ABC):
    """The distribution of an array over the processes. It may be bound to the array's shape."""

    _whole: Optional[tuple[int, ...]] = None  # the array's shape; None: not bound

    @property
    @abstractmethod
    def ndim(self) -> Optional[int]:
        """Number of axes of the arrays; None for any number."""

    @abstractmethod
    def _local_shape(self, rank: int, whole: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the part of `rank` in an array of shape `whole`."""

    @abstractmethod
    def to(
        self, cls: type[Distribution], /, *, ndim: Optional[int] = None, copy: bool = False
    ) -> Distribution:
        """Convert to another kind of distribution. Raise ConvertDistributionError if none is equal.
        """

    def shape(self, rank: int, global_shape: Optional[Sequence[int]] = None) -> tuple[int, ...]:
        """Return the shape of a process's part.

        Parameters
        ----------
        rank : int
            The process.
        global_shape : sequence of int, optional
            The whole array's shape. It is not needed if the distribution is bound to a shape.
        """
        nranks = group().nranks
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
        """Return an equal distribution."""
        return _copy.copy(self)

    def _bind(self, global_shape: Sequence[int], *, shape: Optional[Sequence[int]] = None) -> Any:
        if self._whole is not None:
            raise BindDistributionError(f"{self} is already bound")
        if self.ndim is not None and len(global_shape) != self.ndim:
            raise ValueError(
                f"Dimensionality of shapes ({len(global_shape)}) doesn't match dimensionality of "
                f"this distribution ({self.ndim})"
            )
        mine = self._local_shape(group().rank, tuple(global_shape))
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
        if ndim is not None and self.ndim is not None and ndim < self.ndim:
            raise ValueError(
                f"ndim argument ({ndim}) must be >= the distribution's dimensionality ({self.ndim})"
            )

    @abstractmethod
    def _with_axes(self, count: int) -> Any:
        """Return an unbound copy for arrays with `count` further axes of length 1."""

    def _of_ndim(self, ndim: Optional[int]) -> Any:
        """Return the distribution for arrays of `ndim` axes; itself if it already fits them."""
        if ndim is None or self.ndim in (None, ndim):
            return self
        assert self.ndim is not None
        wide = self._with_axes(ndim - self.ndim)
        if self._whole is not None:
            wide._bind((*self._whole, *(1,) * (ndim - self.ndim)))
        return wide

    def _as_box(self, box: _d.Box) -> boxes.Box:
        from . import _boxes as boxes

        if self._whole is None or box.size == 0:
            raise ConvertDistributionError(
                f"{self} can't be converted to Box: it is unbound, or this process has nothing"
            )
        return boxes.Box(box.lower, box.upper)

    def _bound_text(self) -> str:
        return "" if self._whole is None else f"[bound: global_shape={self._whole}]"
