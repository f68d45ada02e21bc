"""Reshape: moving an array from box to box, over `hocket.distribution`."""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from ... import distribution as _d
from ._runtime import communicator
from ._symmetric import allocate_symmetric_memory, is_symmetric
from .distribution import Box

__all__ = ["InvalidReshapeState", "Reshape", "ReshapeOptions", "reshape"]


class InvalidReshapeState(Exception):
    """A Reshape was used after it was freed."""


@dataclass
class ReshapeOptions:
    """Options of a Reshape.

    Attributes
    ----------
    logger : logging.Logger, optional
        By default the root's.
    blocking : True or "auto"
        With "auto", calls on arrays of GPUs return before they are done.
    """

    logger: Optional[logging.Logger] = None
    blocking: Union[Literal[True], Literal["auto"]] = "auto"

    def __post_init__(self) -> None:
        if self.blocking not in (True, "auto"):
            raise ValueError("The value specified for 'blocking' must be either True or 'auto'.")


def _package_of(operand: Any) -> str:
    return str(type(operand).__module__).partition(".")[0]


def _is_on_gpu(operand: Any) -> bool:
    if hasattr(operand, "is_cuda"):
        return bool(operand.is_cuda)
    return hasattr(operand, "__cuda_array_interface__")


def _orders_of(operand: Any) -> tuple[bool, bool]:
    """True if the elements lie in C order; the same for Fortran order."""
    if hasattr(operand, "flags"):
        return bool(operand.flags.c_contiguous), bool(operand.flags.f_contiguous)
    turned = operand.permute(*reversed(range(operand.ndim)))
    return bool(operand.is_contiguous()), bool(turned.is_contiguous())


class _Problem:
    """The merged descriptions of the processes' operands: the same on all, or the same error."""

    def __init__(self, said: Sequence[dict[str, Any]]) -> None:
        first = said[0]
        for other in said:
            if other["error"]:
                raise ValueError(other["error"])
            for key, text in {
                "ndim": "The number of dimensions of the input operand is inconsistent across "
                "processes",
                "dtype": "The operand dtype is inconsistent across processes",
                "package": "operand doesn't belong to the same package on all processes",
                "gpu": 'operand is not on the same memory space ("cpu", "cuda") on all processes',
                "blocking": "options are inconsistent across processes",
            }.items():
                if other[key] != first[key]:
                    raise ValueError(f"{text}: {first[key]} != {other[key]}")
        is_c, is_f = (all(s[key] for s in said) for key in ("is_c", "is_f"))
        if not is_c and not is_f:
            raise ValueError(
                "The input memory layout is not C or Fortran, or is inconsistent across processes"
            )
        self.order: Literal["C", "F"] = "C" if is_c else "F"
        self.is_symmetric = all(s["symmetric"] for s in said)
        ranges = [self._hull([s[name] for s in said]) for name in ("input", "output")]
        if ranges[0] != ranges[1]:
            raise ValueError(
                "The global box derived from the input and output boxes doesn't match: "
                f"{ranges[0]} != {ranges[1]}"
            )
        shape = tuple(b - a for a, b in zip(*ranges[0]))
        for s in said:
            mine = tuple(b - a for a, b in zip(*s["input"]))
            if mine != tuple(s["shape"]):
                raise ValueError(
                    f"The given shapes don't fit this Box distribution: shape {tuple(s['shape'])}, "
                    f"lower={tuple(s['input'][0])} upper={tuple(s['input'][1])}"
                )
        if sum(math.prod(s["shape"]) for s in said) != math.prod(shape):
            raise ValueError(
                "The global number of elements is incompatible with the inferred global shape "
                f"{shape}"
            )

    @staticmethod
    def _hull(boxes: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        lower = tuple(min(axis) for axis in zip(*(box[0] for box in boxes)))
        return lower, tuple(max(axis) for axis in zip(*(box[1] for box in boxes)))


def _describe(operand: Any, boxes: Sequence[Any], options: Any) -> dict[str, Any]:
    """This process's description; "error" says what is wrong with it."""
    said: dict[str, Any] = {"error": ""}
    ndim = getattr(operand, "ndim", None)
    if ndim is None:
        kind = type(operand).__name__
        said["error"] = f"the operand is a {kind}, expected an array of NumPy, PyTorch or CuPy"
        return said
    if not 1 <= ndim <= 3:
        said["error"] = (
            "Reshape currently only supports 1-D, 2-D and 3-D tensors. The number of dimensions of "
            f"the operand is {ndim}."
        )
        return said
    for box in boxes:
        if not isinstance(box, Box):
            said["error"] = f"{box} is not a Box distribution"
        elif box.ndim != ndim:
            said["error"] = (
                f"The dimensionality of {box} doesn't match the dimensionality of the reshape "
                f"operand ({ndim})"
            )
    if said["error"]:
        return said
    is_c, is_f = _orders_of(operand)
    return {
        **said,
        "ndim": ndim,
        "shape": [int(n) for n in operand.shape],
        "dtype": str(operand.dtype),
        "package": _package_of(operand),
        "gpu": _is_on_gpu(operand),
        "symmetric": is_symmetric(operand),
        "blocking": str(options.blocking),
        "is_c": is_c,
        "is_f": is_f,
        "input": [list(c) for c in boxes[0]],
        "output": [list(c) for c in boxes[1]],
    }


class Reshape:
    """A redistribution from box to box, to be planned once and executed again and again.

    Parameters
    ----------
    operand : array
        This process's part: an array of NumPy, PyTorch or CuPy with one to three axes. If it is in
        symmetric memory on all processes, each result is too, and the program frees it.
    input_box, output_box : Box
        The part of the whole that this process has, and the part that it wants.
    options : ReshapeOptions or dict, optional
    stream : optional
        A GPU's stream; by default the current one of the operand's package.

    Raises
    ------
    ValueError
        Raised on all processes alike if the operand or the boxes of one process do not fit.
    """

    def __init__(
        self,
        operand: Any,
        /,
        input_box: Box,
        output_box: Box,
        *,
        options: Union[ReshapeOptions, dict[str, Any], None] = None,
        stream: Any = None,
    ) -> None:
        self._comm = communicator()
        wrong = ""
        try:
            self.options = ReshapeOptions(**options) if isinstance(options, dict) else (
                options or ReshapeOptions()
            )
        except (TypeError, ValueError) as error:
            self.options, wrong = ReshapeOptions(), str(error)
        said = _describe(operand, (input_box, output_box), self.options)
        said["error"] = wrong or said["error"]
        problem = _Problem(self._comm.all_gather_object(said))
        self.order = problem.order
        self._is_symmetric = problem.is_symmetric
        self.input_box, self.output_box = input_box, output_box
        self._operand: Any = operand
        self._kind = self._kind_of(operand)
        self._plan: Optional[_d.Redistribution] = None
        self._freed = False

    @staticmethod
    def _kind_of(operand: Any) -> tuple[Any, ...]:
        return (_package_of(operand), str(operand.dtype), tuple(operand.shape),
                _is_on_gpu(operand), _orders_of(operand))

    def __enter__(self) -> Reshape:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def _check(self, what: str = "") -> None:
        if self._freed:
            raise InvalidReshapeState(
                "The Reshape object cannot be used after resources are free'd"
            )
        if what and self._plan is None:
            raise RuntimeError(f"{what} cannot be performed before plan() has been called.")
        if what and self._operand is None:
            raise RuntimeError(
                f"{what} cannot be performed after the operand has been released. Use "
                "reset_operand() to provide a new operand before performing the "
                f"{what.lower()}."
            )

    def plan(self, stream: Any = None) -> None:
        """Make the plan. Collective; a second call does nothing."""
        self._check()
        if self._plan is None:
            boxes = [_d.Box(*box) for box in (self.input_box, self.output_box)]
            self._plan = _d.Redistribution(self._comm, boxes[0], boxes[1], self.order)

    def reset_operand(self, operand: Any, *, stream: Any = None) -> None:
        """Take another operand of the same package, dtype, shape, order and memory."""
        self._check()
        if operand is None:
            raise ValueError(
                "Resetting operand requires a valid operand. Use release_operand() to release the "
                "operand."
            )
        kind = self._kind_of(operand)
        if kind[0] != self._kind[0]:
            raise TypeError(f"Library package mismatch: '{self._kind[0]}' => '{kind[0]}'")
        for name, mine, given in zip(
            ("data type", "shape", "memory space", "order in memory"), self._kind[1:], kind[1:]
        ):
            if given != mine:
                raise ValueError(
                    f"The {name} of the new operand ({given}) does not match the original one "
                    f"({mine})."
                )
        self._operand = operand

    def reset_operand_unchecked(self, operand: Any, *, stream: Any = None) -> None:
        """The same as `reset_operand`, whose checks are cheap."""
        self.reset_operand(operand, stream=stream)

    def release_operand(self) -> None:
        """Drop the operand; call `reset_operand` before the next execution."""
        self._check()
        self._operand = None

    def execute(
        self,
        *,
        stream: Any = None,
        release_workspace: bool = False,
        sync_symmetric_memory: bool = True,
    ) -> Any:
        """Move the operand. Collective.

        Returns
        -------
        array
            The part that this process wants: a new array of the operand's package, in symmetric
            memory if the operand is.
        """
        self._check("Execution")
        assert self._plan is not None
        with _current(stream, self._operand):
            result = self._plan(self._operand, self._new_result())
            if self.options.blocking is True and _is_on_gpu(result):
                _synchronize(result)
        return result

    def _new_result(self) -> Any:
        """A result in symmetric memory; None if the plan makes one."""
        if not self._is_symmetric:
            return None
        return allocate_symmetric_memory(
            _d.Box(*self.output_box).shape,
            importlib.import_module(_package_of(self._operand)),
            dtype=self._operand.dtype,
            axis_order=self.order,
            make_symmetric=True,
            logger=self.options.logger,
        )

    def free(self) -> None:
        """Release everything. A second call does nothing."""
        self._operand = self._plan = None
        self._freed = True


@contextlib.contextmanager
def _current(stream: Any, operand: Any) -> Iterator[None]:
    """Make `stream`, of the operand's package or a handle, the current one."""
    if stream is None or not _is_on_gpu(operand):
        yield
        return
    cuda: Any = importlib.import_module(f"{_package_of(operand)}.cuda")
    if isinstance(stream, int):
        stream = cuda.ExternalStream(stream)
    with stream if hasattr(stream, "__enter__") else cuda.stream(stream):
        yield


def _synchronize(result: Any) -> None:
    if hasattr(result, "is_cuda"):
        import torch

        torch.cuda.current_stream(result.device).synchronize()
    else:
        import cupy

        cupy.cuda.get_current_stream().synchronize()


def reshape(
    operand: Any,
    /,
    input_box: Box,
    output_box: Box,
    sync_symmetric_memory: bool = True,
    options: Union[ReshapeOptions, dict[str, Any], None] = None,
    stream: Any = None,
) -> Any:
    """Move an array from box to box, once; see `Reshape`."""
    with Reshape(operand, input_box, output_box, options=options, stream=stream) as one:
        one.plan(stream)
        return one.execute(stream=stream, sync_symmetric_memory=sync_symmetric_memory)
