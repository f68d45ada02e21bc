"""Symmetric memory on GPUs, as arrays of CuPy or PyTorch."""

from __future__ import annotations

from typing import Any

from ._symmetric import Made


class _Root:
    """A GPU's memory in the form that CuPy and PyTorch accept. Views of the arrays keep it alive.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.__cuda_array_interface__ = memory.__cuda_array_interface__


def make(comm: Any, package: Any, wanted: Any, nbytes: int) -> Made:
    """Make an array in GPUs' symmetric memory. Collective."""
    memory = comm.symmetric.empty(nbytes, "uint8", memory="cuda")
    address, root = memory.data_ptr, _Root(memory)
    if package.__name__ == "torch":
        flat = package.as_tensor(root)[: wanted.nbytes].view(wanted.dtype)
        return Made(flat.as_strided(wanted.shape, wanted.strides), address, root, memory)
    flat = package.asarray(root)
    strides = [stride * wanted.dtype.itemsize for stride in wanted.strides]
    array = package.ndarray(wanted.shape, wanted.dtype, flat.data, strides=strides)
    return Made(array, address, root, memory)
