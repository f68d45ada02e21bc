"""What the face asks of arrays of NumPy, PyTorch and CuPy."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any


def package_of(operand: Any) -> str:
    """The package's name."""
    return str(type(operand).__module__).partition(".")[0]


def is_on_gpu(operand: Any) -> bool:
    """Whether an array lies in a GPU's memory."""
    if hasattr(operand, "is_cuda"):
        return bool(operand.is_cuda)
    return hasattr(operand, "__cuda_array_interface__")


def orders_of(operand: Any) -> tuple[bool, bool]:
    """Whether the elements lie in C order, and in Fortran order."""
    if hasattr(operand, "flags"):
        return bool(operand.flags.c_contiguous), bool(operand.flags.f_contiguous)
    turned = operand.permute(*reversed(range(operand.ndim)))
    return bool(operand.is_contiguous()), bool(turned.is_contiguous())


@contextlib.contextmanager
def current_stream(stream: Any, operand: Any) -> Iterator[None]:
    """Makes `stream`, of the operand's package or a handle, the current one."""
    if stream is None or not is_on_gpu(operand):
        yield
        return
    cuda: Any = importlib.import_module(f"{package_of(operand)}.cuda")
    if isinstance(stream, int):
        stream = cuda.ExternalStream(stream)
    with stream if hasattr(stream, "__enter__") else cuda.stream(stream):
        yield


def synchronize(result: Any) -> None:
    """Waits for what the current stream does on a GPU."""
    if hasattr(result, "is_cuda"):
        import torch

        torch.cuda.current_stream(result.device).synchronize()
    else:
        import cupy

        cupy.cuda.get_current_stream().synchronize()
