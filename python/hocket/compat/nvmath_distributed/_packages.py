"""Queries about arrays of NumPy, PyTorch and CuPy."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from ..._arrays.kinds import is_on_gpu


def package_of(operand: Any) -> str:
    """Return the name of the operand's package."""
    return str(type(operand).__module__).partition(".")[0]


def orders_of(operand: Any) -> tuple[bool, bool]:
    """Return whether the elements lie in C order, and whether they lie in Fortran order."""
    if hasattr(operand, "flags"):
        return bool(operand.flags.c_contiguous), bool(operand.flags.f_contiguous)
    turned = operand.permute(*reversed(range(operand.ndim)))
    return bool(operand.is_contiguous()), bool(turned.is_contiguous())


@contextlib.contextmanager
def current_stream(stream: Any, operand: Any) -> Iterator[None]:
    """Make a context in which `stream`, a handle or a stream of the operand's package, is current.
    """
    if stream is None or not is_on_gpu(operand):
        yield
        return
    cuda: Any = importlib.import_module(f"{package_of(operand)}.cuda")
    if isinstance(stream, int):
        stream = cuda.ExternalStream(stream)
    with stream if hasattr(stream, "__enter__") else cuda.stream(stream):
        yield


def synchronize(result: Any) -> None:
    """Wait for the current stream of the GPU that holds the result."""
    if hasattr(result, "is_cuda"):
        import torch

        torch.cuda.current_stream(result.device).synchronize()
    else:
        import cupy

        cupy.cuda.get_current_stream().synchronize()
