"""The problem of a distributed FFT: the merged descriptions of all processes, and the boxes that
follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from logging import Logger
from typing import Any, Literal, Optional, Union

from ... import distribution as _d
from ...fft import spectrum_of
from ._base import Distribution
from ._boxes import Box, Slab
from ._older_names import also_by

FFTType = Literal["C2C", "C2R", "R2C"]

#: The dtype of the result, by the type of the transform and the dtype of the operand.
RESULTS = {
    "C2C": {"complex64": "complex64", "complex128": "complex128"},
    "R2C": {"float32": "complex64", "float64": "complex128"},
    "C2R": {"complex64": "float32", "complex128": "float64"},
}


@also_by(reshape="redistribute")
@dataclass
class FFTOptions:
    """Options of a distributed FFT.

    Attributes
    ----------
    fft_type : {"C2C", "C2R", "R2C"}, optional
        By default "C2C" for complex operands, and "R2C" for real operands.
    redistribute : bool
        True if the result has the input's distribution; only for a Slab. nvmath 0.9 calls it
        `reshape`, and this name works, too.
    last_axis_parity : {"even", "odd"}
        For "C2R": whether the result's length along the last axis is even or odd.
    logger : logging.Logger, optional
        By default the root logger.
    blocking : True or "auto"
        True if calls on GPUs block. Calls on host memory always block.
    """

    fft_type: Optional[FFTType] = None
    redistribute: bool = True
    last_axis_parity: Literal["even", "odd"] = "even"
    logger: Optional[Logger] = None
    blocking: Union[Literal[True], Literal["auto"]] = "auto"

    def __post_init__(self) -> None:
        if self.fft_type not in (None, *RESULTS):
            known = [None, "C2C", "C2R", "R2C"]
            raise ValueError(f"The value specified for 'fft_type' must be one of {known}.")
        if not isinstance(self.redistribute, bool):
            raise ValueError(
                "The value specified for 'redistribute' must be of type bool (True or False)."
            )
        if self.last_axis_parity not in ("even", "odd"):
            raise ValueError(
                "The value specified for 'last_axis_parity' must be one of ['even', 'odd']."
            )
        if self.blocking not in (True, "auto"):
            raise ValueError("The value specified for 'blocking' must be either True or 'auto'.")

    @property
    def reshape(self) -> bool:
        """The name of `redistribute` in nvmath 0.9."""
        return self.redistribute

    @reshape.setter
    def reshape(self, value: bool) -> None:
        self.redistribute = value


class FFTDirection(IntEnum):
    """The direction of a transform, which is the sign of the exponent."""

    FORWARD = -1
    INVERSE = 1


def options_of(options: Any) -> FFTOptions:
    """Return the options of an argument, which may be None or a dict."""
    if options is None:
        return FFTOptions()
    if isinstance(options, dict):
        return FFTOptions(**options)
    if isinstance(options, FFTOptions):
        return options
    raise TypeError(
        "The Distributed FFT options must be provided as an object of type FFTOptions or as a dict "
        f"with valid options. The provided object is '{options}'."
    )


def direction_of(direction: Any, fft_type: str) -> FFTDirection:
    """Return the direction of an argument. By default it is the direction of the type."""
    own = FFTDirection.INVERSE if fft_type == "C2R" else FFTDirection.FORWARD
    if direction is None:
        return own
    if isinstance(direction, str) and direction.upper() in FFTDirection.__members__:
        direction = FFTDirection[direction.upper()]
    asked = FFTDirection(direction)
    if fft_type != "C2C" and asked != own:
        raise ValueError(
            f"The specified direction {asked.name} is not compatible with the FFT type '{fft_type}'."
        )
    return asked


def type_of(dtype: str, fft_type: Optional[str]) -> FFTType:
    """Return the requested type. By default it is the type for operands of that dtype."""
    if fft_type is None:
        fft_type = {"f": "R2C", "c": "C2C"}.get(dtype[:1])
        if fft_type is None or not dtype.startswith(("float", "complex")):
            raise ValueError(f"Unsupported dtype '{dtype}' for FFT.")
    if dtype not in RESULTS[fft_type]:
        long = {"C2C": "complex-to-complex", "R2C": "real-to-complex", "C2R": "complex-to-real"}
        raise ValueError(f"Incompatible dtype '{dtype}' for {long[fft_type]} transform.")
    return fft_type  # type: ignore[return-value]


def own_copy(distribution: Any, ndim: int) -> Union[Slab, tuple[Box, ...]]:
    """Return a copy of a distribution. Binding the copy to a shape has no effect on the program's
    object.
    """
    if isinstance(distribution, Distribution):
        slab = distribution.to(Slab, ndim=ndim, copy=True)
        assert isinstance(slab, Slab)
        return slab
    return tuple(box.copy() for box in distribution)


def describe(
    shape: Sequence[int], is_c: bool, dtype: str, package: str, space: str, distribution: Any,
    options: FFTOptions,
) -> dict[str, Any]:
    """Return this process's description, as plain data."""
    is_slab = isinstance(distribution, Slab)
    return {
        "error": "",
        "shape": [int(n) for n in shape],
        "dtype": dtype,
        "package": package,
        "space": space,
        "options": [str(options.fft_type), options.redistribute, str(options.blocking),
                    options.last_axis_parity],
        "is_c": is_c,
        "slab": distribution.partition_dim if is_slab else -1,
        "boxes": [] if is_slab else [
            [list(corner) for corner in box] if isinstance(box, Box) else [] for box in distribution
        ],
    }


class Problem:
    """The merged descriptions of all processes. All processes get the same object, or the same
    error.
    """

    def __init__(self, said: Sequence[dict[str, Any]]) -> None:
        first = said[0]
        for other in said:
            if other["error"]:
                raise ValueError(other["error"])
            if len(other["shape"]) != len(first["shape"]):
                raise ValueError(
                    "The number of dimensions of the input operand is inconsistent across processes"
                )
        self.ndim = ndim = len(first["shape"])
        if ndim not in (2, 3):
            raise ValueError(
                "Distributed FFT is currently supported only for 2-D and 3-D tensors. The number of "
                f"dimensions of the operand is {ndim}."
            )
        for key, text in {
            "dtype": "The operand dtype is inconsistent across processes",
            "package": "operand doesn't belong to the same package on all processes",
            "space": 'operand is not on the same memory space ("cpu", "cuda") on all processes',
            "options": "options are inconsistent across processes",
        }.items():
            for other in said:
                if other[key] != first[key]:
                    raise ValueError(f"{text}: {first[key]} != {other[key]}")
        if not all(s["is_c"] for s in said):
            raise ValueError("The input memory layout is not C on every process")
        self.is_slab = first["slab"] >= 0
        if any((s["slab"] >= 0) != self.is_slab for s in said):
            raise ValueError(
                "distribution must be either Slab or box on all processes, not a mix of both"
            )
        given = None if first["options"][0] == "None" else first["options"][0]
        self.fft_type = type_of(first["dtype"], given)
        (self._check_slabs if self.is_slab else self._check_boxes)(said)
        last = self.extents[-1]
        odd = first["options"][3] == "odd"
        self.result_extents = {
            "C2C": self.extents,
            "R2C": spectrum_of(self.extents),
            "C2R": (*self.extents[:-1], 2 * (last - 1) + odd),
        }[self.fft_type]

    def check_result(self) -> None:
        """Check that the boxes of the result have its shape."""
        if not self.is_slab and self.hulls[1][1] != self.result_extents:
            raise ValueError(
                "The global box derived from the output boxes doesn't have the expected shape: "
                f"{self.hulls[1][1]} instead of {self.result_extents}"
            )

    def _check_slabs(self, said: Sequence[dict[str, Any]]) -> None:
        cut = said[0]["slab"]
        if self.ndim == 2 and self.fft_type == "R2C" and cut != 0:
            raise ValueError("2D FFT R2C only supports X-slab input")
        if self.ndim == 2 and self.fft_type == "C2R" and cut != 1:
            raise ValueError("2D FFT C2R only supports Y-slab input")
        if any(s["slab"] != cut for s in said):
            raise ValueError("The slab distribution is inconsistent across processes")
        if cut not in (0, 1):
            raise ValueError("The Slab partition dimension must be X or Y")
        shape = list(said[0]["shape"])
        for other in said[1:]:
            if any(other["shape"][i] != shape[i] for i in range(self.ndim) if i != cut):
                raise ValueError("The problem size is inconsistent across processes")
        shape[cut] = sum(s["shape"][cut] for s in said)
        self.extents = tuple(shape)

    def _check_boxes(self, said: Sequence[dict[str, Any]]) -> None:
        for s in said:
            if not all(s["boxes"]):
                raise ValueError("distribution must be a Slab or a Box pair")
            if len(s["boxes"]) != 2:
                raise ValueError("Must provide a Box pair on every process")
            for box in s["boxes"]:
                if len(box[0]) != self.ndim:
                    raise ValueError(
                        f"The dimensionality of {box} doesn't match the dimensionality of the FFT "
                        f"operand ({self.ndim})"
                    )
            mine = [b - a for a, b in zip(*s["boxes"][0])]
            if mine != s["shape"]:
                raise ValueError(
                    f"The operand shape {s['shape']} does not match the input box shape "
                    f"{tuple(mine)}"
                )
        self.hulls = [
            (
                tuple(min(axis) for axis in zip(*(s["boxes"][i][0] for s in said))),
                tuple(max(axis) for axis in zip(*(s["boxes"][i][1] for s in said))),
            )
            for i in (0, 1)
        ]
        self.extents = tuple(b - a for a, b in zip(*self.hulls[0]))
        count = sum(_d.Box(*map(tuple, s["boxes"][0])).size for s in said)
        if count != _d.Box((0,) * self.ndim, self.extents).size:
            raise ValueError(
                "The global number of elements is incompatible with the inferred global shape "
                f"{self.extents}"
            )

    def boxes(
        self, distribution: Any, redistribute: bool, rank: int, size: int
    ) -> tuple[_d.Box, _d.Box]:
        """Return a process's boxes of the input and of the result."""
        if not self.is_slab:
            source, target = (_d.Box(*box) for box in distribution)
            return source, target
        cut = distribution.partition_dim
        there = cut if redistribute else 1 - cut
        return (
            _d.Slab(cut).box(self.extents, rank, size),
            _d.Slab(there).box(self.result_extents, rank, size),
        )
