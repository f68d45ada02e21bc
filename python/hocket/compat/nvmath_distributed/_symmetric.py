"""Symmetric memory as arrays of NumPy, PyTorch or CuPy."""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._runtime import communicator, require_context

PACKAGES = ("numpy", "cupy", "torch")

UNKNOWN = (
    "Unknown pointer to free: the array was freed already, by itself or by another that begins where it "
    "does, or it is a view that begins within a symmetric array; free each allocation once."
)


class _Block(NamedTuple):
    number: int  # number of the allocation, equal on all processes
    nbytes: int
    what: str
    gpu_memory: Any  # None for host memory, which lives as long as a view of it
    finalizer: Any


class _Heap:
    """The allocations of this process, by address."""

    def __init__(self) -> None:
        self.blocks: dict[int, _Block] = {}
        self.freed: set[int] = set()
        self.count = 0


_heap = _Heap()


def _strides(shape: Sequence[int], order: Union[str, Sequence[int]]) -> list[int]:
    """Return strides in elements. `order` lists the axes, the axis with the smallest stride first.
    """
    axes: Iterable[int]
    if isinstance(order, str):
        if order not in ("C", "F"):
            raise ValueError(f'axis_order is {order!r}, expected "C", "F" or a sequence of axes')
        axes = range(len(shape)) if order == "F" else reversed(range(len(shape)))
    else:
        axes = list(order)
        if sorted(axes) != list(range(len(shape))):
            raise ValueError(f"axis_order is {order}, expected each of {len(shape)} axes once")
    strides, stride = [0] * len(shape), 1
    for axis in axes:
        strides[axis] = stride
        stride *= shape[axis]
    return strides


class _Wanted(NamedTuple):
    shape: tuple[int, ...]
    strides: list[int]
    dtype: Any  # a dtype of the package
    nbytes: int


def _read(shape: Any, package: Any, dtype: Any, axis_order: Any) -> _Wanted:
    if getattr(package, "__name__", None) not in PACKAGES:
        raise ValueError(f"The package must be one of {PACKAGES}. Got {package}.")
    extents = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if any(n < 0 for n in extents):
        raise ValueError(f"shape is {extents}, expected no negative extent")
    if package.__name__ == "torch":
        dtype = package.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, package.dtype):
            raise ValueError(f"dtype is {dtype!r}, expected one of torch's")
        itemsize = dtype.itemsize
    else:
        dtype = np.dtype(np.float64 if dtype is None else dtype)
        itemsize = dtype.itemsize
    strides = _strides(extents, axis_order)
    return _Wanted(extents, strides, dtype, math.prod(extents) * itemsize)


def _has_host_arrays(package: Any) -> bool:
    """Return True if a package's arrays are NumPy's. This is true for an emulated CuPy."""
    return package.__name__ != "torch" and issubclass(package.ndarray, np.ndarray)


def allocate_symmetric_memory(
    shape: Union[int, Sequence[int]],
    package: Any,
    *,
    dtype: Any = None,
    axis_order: Union[str, Sequence[int]] = "C",
    make_symmetric: bool = False,
    skip_symmetric_check: bool = False,
    logger: Optional[logging.Logger] = None,
) -> Any:
    """Return a new, uninitialized array in symmetric memory. Collective.

    Parameters
    ----------
    shape : int or sequence of int
        May differ between processes if the sizes in bytes are equal, or if `make_symmetric` is
        true.
    package : module
        The package of the array: numpy, cupy or torch. With device_id "cpu", it lies in host
        memory.
    dtype : optional
        A dtype of the package; by default the package's default dtype.
    axis_order : {"C", "F"} or sequence of int
        The order of elements in memory. A sequence lists the axes, the one with the smallest stride
        first.
    make_symmetric : bool
        True: if sizes differ, every process gets the largest size.
    skip_symmetric_check : bool
        True: the caller guarantees that sizes are equal.

    Raises
    ------
    ValueError
        Raised on all processes: sizes differ, or a process has passed wrong arguments.
    """
    context = require_context()
    comm = communicator()
    try:
        if make_symmetric and skip_symmetric_check:
            raise ValueError("skip_symmetric_check is incompatible with make_symmetric=True")
        wanted = _read(shape, package, dtype, axis_order)
        in_host_memory = _has_host_arrays(package)
        on_gpu = context.device_id != "cpu" and not in_host_memory
        if package.__name__ == "cupy" and not (on_gpu or in_host_memory):
            raise ValueError('CuPy has no arrays in host memory, and device_id is "cpu"')
    except (TypeError, ValueError) as error:  # includes NumPy's own errors about shape and dtype
        comm.refuse(str(error))
    nbytes = wanted.nbytes
    if not skip_symmetric_check:
        sizes = comm.all_gather(np.array([nbytes]))
        nbytes = int(sizes.max())
        if int(sizes.min()) != nbytes and not make_symmetric:
            raise ValueError(
                "The buffer size for symmetric memory allocation is not the same on all processes. "
                "Consider using make_symmetric=True if you have uneven data distribution."
            )
    made = _make(comm, package, wanted, max(nbytes, 1), on_gpu)
    _heap.count += 1
    _heap.freed.discard(made.address)
    what = f"allocation {_heap.count}: {wanted.dtype} {wanted.shape}"
    finalizer = weakref.finalize(made.root, _leaked, made.address, logger)
    finalizer.atexit = False
    gpu_memory = made.memory if on_gpu else None
    _heap.blocks[made.address] = _Block(_heap.count, max(nbytes, 1), what, gpu_memory, finalizer)
    return made.array


class Made(NamedTuple):
    """An array in symmetric memory.

    Every view of the array keeps `root` alive, even a transposed view. The program may drop the
    array itself while views of it live, as by ``a = a.T``.
    """

    array: Any
    address: int
    root: Any
    memory: Any


def _make(comm: Any, package: Any, wanted: _Wanted, nbytes: int, on_gpu: bool) -> Made:
    if on_gpu:
        from ._symmetric_gpu import make

        return make(comm, package, wanted, nbytes)
    memory = comm.symmetric.empty((nbytes,), "uint8")
    address = memory.__array_interface__["data"][0]
    if package.__name__ == "torch":
        flat = package.from_numpy(memory)[: wanted.nbytes].view(wanted.dtype)
        return Made(flat.as_strided(wanted.shape, wanted.strides), address, memory, memory)
    strides = [stride * wanted.dtype.itemsize for stride in wanted.strides]
    array = np.ndarray(wanted.shape, wanted.dtype, memory, strides=strides)
    return Made(array, address, memory, memory)


def _leaked(address: int, logger: Optional[logging.Logger]) -> None:
    block = _heap.blocks.pop(address, None)
    if block is not None:
        (logger or logging.getLogger()).error(
            "Symmetric heap memory needs to be deallocated explicitly (%s)", block.what
        )


def address_of(array: Any) -> int:
    """Return the address of an array's first element, or where it would be in an empty array."""
    if hasattr(array, "data_ptr"):
        return int(array.data_ptr()) if array.numel() else _address_of_empty(array)
    if hasattr(array, "__cuda_array_interface__"):
        if hasattr(getattr(array, "data", None), "ptr"):
            return int(array.data.ptr)  # CuPy's array interface has no address for empty arrays
        return int(array.__cuda_array_interface__["data"][0])
    if hasattr(array, "__array_interface__"):
        return int(array.__array_interface__["data"][0])
    raise TypeError(f"free_symmetric_memory called on a {type(array).__name__}, which is no array")


def _address_of_empty(tensor: Any) -> int:
    """Return the address where an empty tensor's data would begin. PyTorch's `data_ptr` returns 0.
    """
    # PyTorch before 2.0 has another name for the storage.
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return int(storage.data_ptr()) + int(tensor.storage_offset()) * int(tensor.element_size())


def is_symmetric(array: Any) -> bool:
    """Return True if an array, or the base of a view, lies in symmetric memory."""
    try:
        address = address_of(array)
    except TypeError:
        return False
    return any(a <= address < a + b.nbytes for a, b in _heap.blocks.items())


def _verdict(array: Any) -> tuple[int, str]:
    """Return the allocation's number and an empty text, or 0 and an error text."""
    try:
        address = address_of(array)
    except TypeError as error:
        return 0, str(error)
    if address in _heap.blocks:
        return _heap.blocks[address].number, ""
    return 0, "view" if is_symmetric(array) or address in _heap.freed else "ordinary"


def free_symmetric_memory(*tensors: Any) -> None:
    """Free arrays that `allocate_symmetric_memory` has returned. Collective, in the same order.

    If several arrays begin at the same address, free one of them. The operand and the result of a
    transform in place begin at the same address.

    Raises
    ------
    TypeError
        An array does not lie in symmetric memory, on this process or on another one.
    RuntimeError
        An array is a view that begins within an array, or was already freed, or processes free
        different arrays.
    """
    require_context()
    comm = communicator()
    found = [_verdict(array) for array in tensors]
    everybody = comm.all_gather_object([list(verdict) for verdict in found])
    for verdicts in everybody:
        for _, wrong in verdicts:
            if wrong == "ordinary":
                raise TypeError(
                    "free_symmetric_memory called on CPU array/tensor, or one of a GPU, that is not "
                    "on symmetric memory"
                )
            if wrong == "view":
                raise RuntimeError(UNKNOWN)
            if wrong:
                raise TypeError(wrong)
    if any([number for number, _ in v] != [number for number, _ in found] for v in everybody):
        raise RuntimeError("processes free different symmetric arrays, or in different orders")
    numbers = [number for number, _ in found]
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(UNKNOWN)
    for array in tensors:
        address = address_of(array)
        block = _heap.blocks.pop(address)
        block.finalizer.detach()
        _heap.freed.add(address)
        if block.gpu_memory is not None:
            # Views of the memory may outlive the array. They are no leak to report at the program's
            # end.
            comm.symmetric.free(block.gpu_memory)


def forget_all() -> None:
    """Log allocations that have not been freed, and forget them."""
    for block in _heap.blocks.values():
        block.finalizer.detach()
        logging.getLogger().error(
            "Symmetric heap memory was not deallocated explicitly (%s)", block.what
        )
    _heap.blocks.clear()
    _heap.freed.clear()
    _heap.count = 0
