"""FFTs with nvmath's names, over `hocket.fft`: in place, and without scaling."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any, Literal, Optional

from ... import distribution as _d
from ... import fft as _fft
from ..._arrays.kinds import is_on_gpu
from ._base import BindDistributionError
from ._boxes import Slab
from ._fft_memory import cut_last, dtype_name, has_c_layout, is_packed, packed, reinterpreted
from ._fft_operand import allocate_operand, merged, tell
from ._fft_problem import (
    RESULTS,
    FFTDirection,
    FFTOptions,
    describe,
    direction_of,
    options_of,
    own_copy,
)
from ._lifetime import Planned
from ._runtime import communicator
from ._packages import current_stream, package_of, synchronize

__all__ = [
    "FFT",
    "FFTDirection",
    "FFTOptions",
    "InvalidFFTState",
    "Slab",
    "allocate_operand",
    "fft",
    "ifft",
    "irfft",
    "rfft",
]

#: hocket's names for nvmath's types of transforms.
KINDS: dict[str, Literal["c2c", "r2c", "c2r"]] = {"C2C": "c2c", "R2C": "r2c", "C2R": "c2r"}


class InvalidFFTState(Exception):
    """An FFT was used after it was freed."""


class FFT(Planned):
    """A transform over several processes, which is planned once and executed repeatedly.

    Parameters
    ----------
    operand : array
        This process's part: an array of NumPy, PyTorch or CuPy with two or three axes. The result
        overwrites it.
    distribution : Slab or pair of Box
        The distribution of the operand. For boxes, also the distribution of the result.
    options : FFTOptions or dict, optional
    stream : optional
        A GPU's stream; by default the current stream of the operand's package.

    Raises
    ------
    ValueError
        Raised on all processes if one process's arguments do not fit.
    """

    _name = "FFT"
    _freed_error = InvalidFFTState

    def __init__(
        self, operand: Any, /, *, distribution: Any, options: Any = None, stream: Any = None
    ) -> None:
        self._comm = communicator()
        try:
            self.options: FFTOptions = options_of(options)
            self.distribution: Any = own_copy(distribution, operand.ndim)
            is_gpu = is_on_gpu(operand)
            said = describe(operand.shape, has_c_layout(operand), dtype_name(operand),
                            package_of(operand), "cuda" if is_gpu else "cpu", self.distribution,
                            self.options)
        except Exception as error:
            tell(error)
        self.logger: logging.Logger = self.options.logger or logging.getLogger()
        self._problem = problem = merged(said)
        problem.check_result()
        self.global_extents: tuple[int, ...] = problem.extents
        self.fft_abstract_type: str = problem.fft_type
        self._package, self._dtype = package_of(operand), dtype_name(operand)
        self._gpu = _fft.gpu_of(operand)
        self._agree_on(self._bind(operand.shape))
        self._boxes = self._boxes_now()
        self._plans: dict[Any, _fft.FFT] = {}
        self._operand: Any = operand
        self._is_planned = False
        view, fault = self._result_view(operand), None
        if view is None:
            fault = RuntimeError(self._no_room(operand))
        self._agree_on(fault)
        self.logger.info(f"The FFT type is {self.fft_abstract_type}.")
        self.logger.info(f"The global FFT extents are {self.global_extents}.")
        self.logger.info("The distributed FFT operation has been created.")

    def _agree_on(self, fault: Optional[Exception]) -> None:
        """If a process has a fault, raise the same error on all processes: that of the first such
        process.
        """
        for kind, text in self._comm.all_gather_object([type(fault).__name__, str(fault)]):
            if kind != "NoneType":
                known = {"BindDistributionError": BindDistributionError, "ValueError": ValueError}
                raise known.get(kind, RuntimeError)(text)

    def _bind(self, shape: Sequence[int]) -> Optional[Exception]:
        first = self.distribution if self._problem.is_slab else self.distribution[0]
        try:
            first._bind(self.global_extents, shape=tuple(shape))
        except Exception as error:
            return error
        return None

    def _boxes_now(self) -> tuple[_d.Box, _d.Box]:
        redistribute = self._problem.is_slab and self.options.redistribute
        return self._problem.boxes(
            self.distribution, redistribute, self._comm.rank, self._comm.size
        )

    def _result_view(self, operand: Any) -> Optional[Any]:
        shape = list(self._boxes[1].shape)
        length = shape[-1]
        if self.fft_abstract_type == "C2R" and self._problem.is_slab:
            shape[-1] = 2 * self.global_extents[-1]
        view = reinterpreted(operand, shape, RESULTS[self.fft_abstract_type][self._dtype])
        return None if view is None else cut_last(view, length)

    def _no_room(self, operand: Any) -> str:
        return (
            f"[{self._comm.rank}] the operand, of shape {tuple(operand.shape)} and dtype "
            f"{self._dtype}, doesn't have a base array large enough for the result, of shape "
            f"{self._boxes[1].shape}. Consider allocating the operand for this FFT with "
            "nvmath.distributed.fft.allocate_operand()"
        )

    def _plan_now(self) -> _fft.FFT:
        if self._boxes not in self._plans:
            shape = self._problem.result_extents
            if self.fft_abstract_type != "C2R":
                shape = self.global_extents
            self._plans[self._boxes] = _fft.FFT(
                self._comm, shape, *self._boxes, kind=KINDS[self.fft_abstract_type],
                dtype=self._dtype, norm="none", planning="estimated",
                gpu=self._gpu)
        return self._plans[self._boxes]

    def plan(self, *, stream: Any = None) -> None:
        """Make the plan. Collective; it may be called again."""
        self._check()
        self._plan_now()
        self._is_planned = True

    def reset_operand(self, operand: Any, *, distribution: Any, stream: Any = None) -> None:
        """Replace the operand by another one. Package, dtype and the whole array's shape are the
        same.
        """
        self._check()
        if operand is None:
            raise ValueError(
                "reset_operand() requires a valid operand. Use release_operand() to release the operand."
            )
        if package_of(operand) != self._package:
            raise TypeError(
                f"Library package mismatch: '{self._package}' => '{package_of(operand)}'"
            )
        if dtype_name(operand) != self._dtype:
            raise ValueError(
                f"The data type of the new operand must match that of the original one. The data "
                f"type of the new operand is {dtype_name(operand)}, and that of the original one "
                f"{self._dtype}."
            )
        if operand.ndim != self._problem.ndim:
            raise ValueError(
                f"The reset operand number of dimensions ({operand.ndim}) does not match the FFT "
                f"number of dimensions ({self._problem.ndim})"
            )
        if _fft.gpu_of(operand) != self._gpu:
            places = ["the CPU" if gpu is None else f"GPU {gpu}"
                      for gpu in (_fft.gpu_of(operand), self._gpu)]
            raise ValueError(
                f"The memory space of the new operand must match that of the original one. The new "
                f"operand is on {places[0]}, and the original one on {places[1]}."
            )
        if not has_c_layout(operand):
            raise ValueError("The reset operand memory layout is not C")
        if distribution is None:
            raise ValueError("Please specify the distribution of the operand for reset_operand")
        self._reset_distribution(own_copy(distribution, operand.ndim), operand)
        self._operand = operand

    #: `reset_operand` is already cheap, so an unchecked form would not be faster.
    reset_operand_unchecked = reset_operand

    def release_operand(self) -> None:
        """Drop the operand; call `reset_operand` before the next execution."""
        self._check()
        self._operand = None

    def _reset_distribution(self, given: Any, operand: Any) -> None:
        is_slab = isinstance(given, Slab)
        if is_slab != self._problem.is_slab:
            names = ["slab" if kind else "box" for kind in (self._problem.is_slab, is_slab)]
            raise ValueError(
                f"This FFT uses {names[0]} distribution, but got {names[1]} distribution in "
                "reset_operand."
            )
        if given != self.distribution:
            if self.fft_abstract_type != "C2C":
                raise ValueError(f"Can't change distribution with FFT type {self.fft_abstract_type}")
            if is_slab and self.options.redistribute:
                raise ValueError("Can't change distribution when using redistribute=True")
            if not is_slab and given != tuple(reversed(self.distribution)):
                raise ValueError(
                    "The reset operand distribution must use the original boxes (in any order)"
                )
        before, boxes = self.distribution, self._boxes
        self.distribution = given
        fault = self._bind(operand.shape)
        if fault is None:
            self._boxes = self._boxes_now()
            if self._result_view(operand) is None:
                fault = RuntimeError(self._no_room(operand))
        if fault is not None:
            self.distribution, self._boxes = before, boxes
            raise fault

    def execute(
        self,
        *,
        direction: Any = None,
        stream: Any = None,
        release_workspace: bool = False,
        sync_symmetric_memory: bool = True,
    ) -> Any:
        """Transform the operand in place. Collective.

        Returns
        -------
        array
            The result. It begins at the operand's address. If shape and dtype are the same, it is
            the operand itself.
        """
        self._check_execution(self._is_planned, self._operand is not None)
        way = direction_of(direction, self.fft_abstract_type)
        plan = self._plan_now()
        result = self._result_view(self._operand)
        assert result is not None
        with current_stream(stream, self._operand):
            source, target = packed(self._operand), result if is_packed(result) else None
            out = plan(source, target, "inverse" if way == FFTDirection.INVERSE else "forward")
            if target is None:
                result[...] = out
            if self.options.blocking is True and self._gpu is not None:
                synchronize(result)
        return result

    def free(self) -> None:
        """Release everything. It may be called again."""
        self._operand = None
        self._plans.clear()
        super().free()


def _once(
    operand: Any, distribution: Any, direction: Any, options: Any, stream: Any, kind: str
) -> Any:
    is_complex = dtype_name(operand).startswith("complex")
    if is_complex != (kind == "complex"):
        tell(ValueError(f"This function expects {kind} operand, found {dtype_name(operand)}"))
    with FFT(operand, distribution=distribution, options=options, stream=stream) as one:
        one.plan(stream=stream)
        return one.execute(direction=direction, stream=stream)


def fft(
    operand: Any,
    /,
    *,
    distribution: Any,
    direction: Any = FFTDirection.FORWARD,
    sync_symmetric_memory: bool = True,
    options: Any = None,
    stream: Any = None,
) -> Any:
    """Transform a complex array once, in place; see `FFT`."""
    return _once(operand, distribution, direction, options, stream, "complex")


def ifft(
    operand: Any,
    /,
    *,
    distribution: Any,
    direction: Any = FFTDirection.INVERSE,
    sync_symmetric_memory: bool = True,
    options: Any = None,
    stream: Any = None,
) -> Any:
    """Transform a complex array back once, in place; see `FFT`."""
    return _once(operand, distribution, direction, options, stream, "complex")


def rfft(
    operand: Any,
    /,
    *,
    distribution: Any,
    sync_symmetric_memory: bool = True,
    options: Any = None,
    stream: Any = None,
) -> Any:
    """Transform a real array once, in place; see `FFT`."""
    if dtype_name(operand).startswith("complex"):
        tell(RuntimeError(
            f"rfft expects a real input, but got {dtype_name(operand)}. Please use fft for complex "
            "input."
        ))
    return _once(operand, distribution, None, options, stream, "real")


def irfft(
    operand: Any,
    /,
    *,
    distribution: Any,
    sync_symmetric_memory: bool = True,
    options: Any = None,
    stream: Any = None,
) -> Any:
    """Transform a real array's spectrum back once, in place; see `FFT`."""
    try:
        options = dataclasses.replace(options_of(options), fft_type="C2R")
    except Exception as error:
        tell(error)
    return _once(operand, distribution, FFTDirection.INVERSE, options, stream, "complex")
