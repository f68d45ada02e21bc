"""The task of a redistribution: every process's box of the array before and after it.

The processes exchange their descriptions, which are checked to agree and merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from ... import distribution as _d
from ..._arrays.kinds import is_on_gpu
from ._base import BindDistributionError, Distribution
from ._blocks import BlockCyclic
from ._boxes import Box, Slab
from ._packages import orders_of, package_of
from ._symmetric import is_symmetric

Corners = tuple[tuple[int, ...], tuple[int, ...]]

#: Fields that must be equal on all processes, with the error text if they differ.
SAME = {
    "ndim": "The number of dimensions of the input operand is inconsistent across processes",
    "dtype": "The operand dtype is inconsistent across processes",
    "package": "operand doesn't belong to the same package on all processes",
    "gpu": 'operand is not on the same memory space ("cpu", "cuda") on all processes',
    "blocking": "options are inconsistent across processes",
}


def _words_of(distribution: Distribution) -> dict[str, Any]:
    """Return a distribution as plain data."""
    key: list[Any] = []
    if isinstance(distribution, Slab):
        key = [distribution.partition_dim]
    elif isinstance(distribution, BlockCyclic):
        grid = distribution.process_grid.grid
        key = [*grid.shape, *distribution.block_sizes, *distribution.first_process,
               *map(int, grid.ranks.flat)]
    box = [list(corner) for corner in distribution] if isinstance(distribution, Box) else []
    return {
        "kind": type(distribution).__name__,
        "text": str(distribution),
        "key": key,
        "box": box,
        "whole": list(distribution._whole or ()),
    }


def _wrong_with(distribution: Any, ndim: int, taken: Any) -> str:
    """Return the error text of one distribution. Return an empty text if it is valid."""
    if not isinstance(distribution, taken):
        return f"{distribution} is not a {taken.__name__} distribution"
    if distribution.ndim not in (None, ndim):
        return (
            f"The dimensionality of {distribution} doesn't match the dimensionality of the local "
            f"operand ({ndim})"
        )
    if isinstance(distribution, Slab) and distribution.partition_dim >= ndim:
        return "partition_dim must be < ndim"
    return ""


def describe(
    name: str, operand: Any, distributions: Sequence[Any], taken: Any, options: Any
) -> dict[str, Any]:
    """Return this process's description, as plain data. If it has a fault, "error" is its text."""
    ndim = getattr(operand, "ndim", None)
    if ndim is None:
        kind = type(operand).__name__
        return {"error": f"the operand is a {kind}, expected an array of NumPy, PyTorch or CuPy"}
    if not 1 <= ndim <= 3:
        return {"error": (
            f"{name} currently only supports 1-D, 2-D and 3-D tensors. The number of dimensions of "
            f"the operand is {ndim}."
        )}
    wrong = [text for text in (_wrong_with(d, ndim, taken) for d in distributions) if text]
    if wrong:
        return {"error": wrong[0]}
    is_c, is_f = orders_of(operand)
    return {
        "error": "",
        "ndim": ndim,
        "shape": [int(n) for n in operand.shape],
        "dtype": str(operand.dtype),
        "package": package_of(operand),
        "gpu": is_on_gpu(operand),
        "symmetric": is_symmetric(operand),
        "blocking": str(options.blocking),
        "is_c": is_c,
        "is_f": is_f,
        "input": _words_of(distributions[0]),
        "output": _words_of(distributions[1]),
    }


def hull_of(boxes: Sequence[Any]) -> Corners:
    """Return the smallest box that contains all boxes."""
    lower = tuple(min(axis) for axis in zip(*(box[0] for box in boxes)))
    return lower, tuple(max(axis) for axis in zip(*(box[1] for box in boxes)))


class Problem:
    """The merged descriptions of all processes. All processes get the same object, or the same
    error.

    Parameters
    ----------
    said : sequence of dict
        Each process's description, from `describe`.
    source, target : Distribution
        This process's distributions.
    """

    def __init__(self, said: Sequence[dict[str, Any]], source: Any, target: Any) -> None:
        self._said = said
        self._check_same()
        is_c, is_f = (all(s[key] for s in said) for key in ("is_c", "is_f"))
        if not is_c and not is_f:
            raise ValueError(
                "The input memory layout is not C or Fortran, or is inconsistent across processes"
            )
        self.order: Literal["C", "F"] = "C" if is_c else "F"
        self.is_symmetric = all(s["symmetric"] for s in said)
        lower, self.whole = self._input(source)
        self.hulls = [(lower, tuple(a + n for a, n in zip(lower, self.whole)))]
        self.hulls.append(self._output(target))
        count = sum(math.prod(s["shape"]) for s in said)
        if count != math.prod(self.whole):
            raise ValueError(
                "The global number of elements is incompatible with the inferred global shape "
                f"{self.whole}"
            )

    def _check_same(self) -> None:
        first = self._said[0]
        for other in self._said:
            if other["error"]:
                raise ValueError(other["error"])
            for key, text in SAME.items():
                if other[key] != first[key]:
                    raise ValueError(f"{text}: {first[key]} != {other[key]}")
            for side in ("input", "output"):
                a, b = first[side], other[side]
                if a["kind"] != b["kind"] or a["key"] != b["key"]:
                    raise ValueError(
                        f"{side} distribution types are inconsistent across processes: {a['text']} "
                        f"!= {b['text']}"
                    )

    def _input(self, source: Any) -> Corners:
        """Return the lower corner and the shape of the whole array."""
        shapes = [tuple(s["shape"]) for s in self._said]
        if isinstance(source, Box):
            for s, shape in zip(self._said, shapes):
                box = tuple(b - a for a, b in zip(*s["input"]["box"]))
                if box != shape:
                    raise ValueError(f"The operand shape {shape} does not match the box shape {box}")
            lower, upper = hull_of([s["input"]["box"] for s in self._said])
            whole = tuple(b - a for a, b in zip(lower, upper))
        else:
            whole = source._whole_of(shapes)
            lower = (0,) * len(whole)
        self._check_bound("input", whole)
        for rank, shape in enumerate(shapes):
            if not isinstance(source, Box) and source._local_shape(rank, whole) != shape:
                raise BindDistributionError(
                    f"The given shapes (global_shape={whole}, shape={shape}) don't fit distribution "
                    f"{source}"
                )
        return lower, whole

    def _output(self, target: Any) -> Corners:
        """Return the corners of the smallest box that contains all results."""
        hull = self.hulls[0]
        if isinstance(target, Box):
            hull = hull_of([s["output"]["box"] for s in self._said])
            shape = tuple(b - a for a, b in zip(*hull))
            if shape != self.whole:
                raise ValueError(
                    "The global shape derived from the input and output distributions doesn't match: "
                    f"{self.whole} != {shape}"
                )
        self._check_bound("output", self.whole)
        return hull

    def _check_bound(self, side: str, whole: tuple[int, ...]) -> None:
        for s in self._said:
            bound = tuple(s[side]["whole"])
            if bound and bound != whole:
                raise ValueError(
                    f"The {side} distribution {s[side]['text']} is bound to another global shape than "
                    f"the operand's, {whole}"
                )

    def box(self, distribution: Any, lower: Sequence[int]) -> _d.Box:
        """Return this process's part of the whole array. The indices of a Box are relative to
        `lower`.
        """
        if isinstance(distribution, Box):
            corners = [tuple(x - a for x, a in zip(corner, lower)) for corner in distribution]
            return _d.Box(*corners)
        box: _d.Box = distribution._box_in(self.whole)
        return box
