"""Symmetric memory on GPUs, as arrays of CuPy or PyTorch."""

from __future__ import annotations

from typing import Any


def make(comm: Any, package: Any, wanted: Any, nbytes: int) -> tuple[Any, int, Any]:
    """The array, its address, and the owner of its memory."""
    memory = comm.symmetric.empty(nbytes, "uint8", memory="cuda")
    address = memory.data_ptr
    if package.__name__ == "torch":
        flat = package.as_tensor(memory)[: wanted.nbytes].view(wanted.dtype)
        return flat.as_strided(wanted.shape, wanted.strides), address, memory
    flat = package.asarray(memory)
    strides = [stride * wanted.dtype.itemsize for stride in wanted.strides]
    array = package.ndarray(wanted.shape, wanted.dtype, flat.data, strides=strides)
    return array, address, memory
