"""The operations after a distributed product: bias, ReLU, GELU, their gradients, and auxiliary
data.

All operations are local, except the sums of a bias's gradients, which are reduced over the
processes. An operation processes this process's part of the result in groups of columns that fit
into a cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from .... import distribution as _d
from ...._arrays.kinds import gpu_of
from .._fft_memory import dtype_name
from .._packages import package_of
from ._arrays import in_dtype, like, module_of
from ._problem import spread_of
from ._types import DTYPES, FLOAT8, CudaDataType, MatmulEpilog

RELU, BIAS, GELU, AUX = 2, 4, 32, 128
DRELU, DGELU, BGRAD, BGRADA, BGRADB = 8, 64, 16, 256, 512
CACHE_BYTES = 1 << 18
_SLOPE, _BEND = math.sqrt(2 / math.pi), 0.044715


def relu_aux_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of ReLU's bit mask. A byte holds eight rows; columns have multiples of 16
    bytes.
    """
    return -(-shape[0] // 128) * 16, shape[1]


def gelu_aux_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of GELU's saved input. Columns have multiples of 8 elements."""
    return -(-shape[0] // 8) * 8, shape[1]


def gelu(x: Any) -> Any:
    """Return GELU in its form with tanh, like GPUs' libraries."""
    t = x * x
    t *= _BEND
    t += 1
    t *= x
    t *= _SLOPE
    module_of(x).tanh(t, out=t)
    t += 1
    t *= x
    t *= 0.5
    return t


def gelu_slope(x: Any) -> Any:
    """Return the derivative of `gelu`."""
    square = x * x
    t = module_of(x).tanh(_SLOPE * x * (1 + _BEND * square))
    return 0.5 * (1 + t) + 0.5 * _SLOPE * x * (1 - t * t) * (1 + 3 * _BEND * square)


def _places(spread: Any, whole: Sequence[int], comm: Any, axis: int) -> Any:
    """Return the indices of this process's rows (axis 0) or columns (axis 1) in the whole matrix.
    """
    if isinstance(spread, _d.Slab):
        box = spread.box(tuple(whole), comm.rank, comm.size)
        return np.arange(box.lower[axis], box.upper[axis])
    return spread.indices(whole, comm.rank)[axis]


class Epilog:
    """The operations of an epilog on this process's part of a result.

    Parameters
    ----------
    kind : MatmulEpilog
        Any epilog except ALLREDUCE.
    product : Matmul
        The product that is being planned. Its distributions are bound to shapes.
    inputs, preferences
        The program's arguments.

    Raises
    ------
    ValueError, TypeError
        Raised on this process only.
    """

    def __init__(self, kind: MatmulEpilog, product: Any, inputs: Any, preferences: Any) -> None:
        self.kind, self.flags = kind, int(kind)
        m, n, k = product.mm_traits
        self._comm, self._whole = product._comm, (m, n)
        self._package, self._gpu = product._package, product._gpu
        self._ops = product._qualifiers[:2]
        self._wholes = product._wholes
        self._spreads = [spread_of(d, whole)
                         for d, whole in zip(product.distributions, (*product._wholes[:2], (m, n)))]
        self._rows = _places(self._spreads[2], (m, n), self._comm, 0)
        self._shape = (len(self._rows), len(_places(self._spreads[2], (m, n), self._comm, 1)))
        self._dtype: str = product._result
        if self._dtype.startswith("complex") and self.flags & (RELU | GELU | DRELU | DGELU):
            raise ValueError(f"The epilog {kind.name} is not supported for complex operands.")
        if product._is_float8 and self.flags & ~(RELU | GELU | BIAS | AUX):
            raise ValueError(f"The epilog {kind.name} is not supported for FP8 operands.")
        if self.flags & (DRELU | DGELU) and k == 1:
            raise ValueError(f"K=1 is not supported for {kind.name.split('_')[0]} epilogs")
        self._set_aux(preferences)
        self._inputs: dict[str, Any] = {}
        names = set()
        if self.flags & BIAS:
            names.add("bias")
        if self.flags & (DRELU | DGELU):
            names.add("relu_aux" if self.flags & DRELU else "gelu_aux")
        given = {} if inputs is None else dict(inputs)
        if names != given.keys():
            raise ValueError(
                f"The epilog {kind.name} requires the following input tensors: {names or '{}'}. The "
                f"provided tensor names are: {given.keys()}"
            )
        self.names = names
        for name in names:
            self._check_place(given[name])
            self._check_input(name, given[name])
        self._inputs = given

    def _set_aux(self, preferences: Any) -> None:
        # cuBLAS's rule: if the result has 8 bits, C has half precision.
        self._aux_dtype = "float16" if self._dtype in FLOAT8 else self._dtype
        wanted = preferences.aux_type
        makes = not self.flags & (DRELU | DGELU) and bool(self.flags & AUX)
        if wanted is not None:
            for flag, name in ((RELU, "RELU"), (BGRAD | BGRADA | BGRADB, "BGRAD")):
                if self.flags & flag:
                    raise ValueError(
                        f"Custom type for auxiliary outputs is not supported for {name} epilogs."
                    )
            known = {int(row[0]): name for name, row in DTYPES.items()}
            name = known.get(int(wanted), "")
            if not name or name.startswith(("complex", "float8")):
                raise ValueError(
                    f"Auxiliary outputs of {CudaDataType(wanted).name} are not supported."
                )
            self._aux_dtype = name
        if preferences.aux_amax and makes:
            raise ValueError(
                "epilog.aux_amax=True is not supported when epilog output type is not FP8."
            )

    def _check_place(self, array: Any) -> None:
        package = package_of(array)
        if package != self._package:
            raise TypeError(f"Library package mismatch for epilog: '{self._package}' => '{package}'")
        if gpu_of(array) != self._gpu:
            places = ["cpu" if gpu is None else gpu for gpu in (gpu_of(array), self._gpu)]
            raise ValueError(
                f"The epilog inputs must be on the same device ({places[0]}) as the operands "
                f"({places[1]})."
            )

    def _check_input(self, name: str, array: Any) -> None:
        shape = tuple(map(int, array.shape))
        if name == "bias":
            self._check_bias(array, shape)
            return
        want = (relu_aux_shape if name == "relu_aux" else gelu_aux_shape)(self._shape)
        dtype = "uint8" if name == "relu_aux" else self._dtype
        what = "RELU" if name == "relu_aux" else "GELU"
        if len(shape) != 2:
            raise ValueError(f"{what} auxiliary input must be of rank 2, its shape is {shape}")
        if dtype_name(array) != dtype:
            raise ValueError(
                f"The dtype of the {what} auxiliary input for epilog {self.kind.name} must be "
                f"'{dtype}'. The epilog input's dtype is '{dtype_name(array)}'."
            )
        if shape != want:
            raise ValueError(
                f"The auxiliary epilog input for epilog {self.kind.name} must have the MM shape "
                f"(..., {want[0]}, {want[1]}). The epilog input's MM shape is (..., {shape[0]}, "
                f"{shape[1]})."
            )

    def _check_bias(self, array: Any, shape: tuple[int, ...]) -> None:
        if len(shape) > 2:
            raise ValueError("Batched matmul is currently not supported.")
        if not shape or shape[0] != self._shape[0]:
            raise ValueError(
                f"The M dimension of the bias vector ({shape[0] if shape else 0}) must match the local "
                "M dimension of A."
            )
        if len(shape) == 2 and shape[1] != 1:
            raise ValueError(f"The N dimension of the bias vector ({shape[1]}) must be equal to 1.")
        if dtype_name(array) not in DTYPES or dtype_name(array) in FLOAT8 or (
            dtype_name(array).startswith("complex") and not self._dtype.startswith("complex")
        ):
            raise ValueError(
                f"A bias of {dtype_name(array)} is not supported for a result of {self._dtype}."
            )

    def reset(self, inputs: Any, must: bool) -> None:
        """Replace the inputs by others of the same kind. If `must` is true, all inputs are
        required.
        """
        given = {} if inputs is None else dict(inputs)
        if must and given.keys() != self.names:
            if inputs is None:
                raise ValueError(f"The epilog inputs {self.names} must be provided.")
            raise ValueError(
                f"The epilog inputs {self.names} are required. The provided epilog input names are "
                f"{given.keys()}."
            )
        for name, array in given.items():
            if name not in self.names:
                raise ValueError(f"The epilog {self.kind.name} has no input named {name}.")
            self._check_place(array)
            old = self._inputs.get(name)
            if old is not None and dtype_name(old) != dtype_name(array):
                raise ValueError(
                    "The data type of the new operand must match the data type of the original operand."
                )
            if old is not None and tuple(old.shape) != tuple(array.shape):
                raise ValueError(
                    "The extents of the new operand must match the extents of the original operand."
                )
            self._check_input(name, array)
        self._inputs = {**self._inputs, **given}

    def release(self) -> None:
        """Drop the inputs."""
        self._inputs = {}

    def __call__(self, d: Any, a: Any, b: Any) -> dict[str, Any]:
        """Apply the epilog to the result `d`, and return the further results. Collective if
        gradients are summed.
        """
        aux: dict[str, Any] = {}
        if self.flags & AUX and self.flags & RELU:
            aux["relu_aux"] = like(d, relu_aux_shape(self._shape), "uint8")
        if self.flags & AUX and self.flags & GELU:
            aux["gelu_aux"] = like(d, gelu_aux_shape(self._shape), self._aux_dtype)
        rows, columns = self._shape
        wide = max(1, columns)
        if self._gpu is None:
            wide = max(1, CACHE_BYTES // max(1, rows * np.dtype(dtype_name(d)).itemsize))
        for left in range(0, columns, wide):
            self._pass(d, aux, slice(left, min(columns, left + wide)))
        name = self.kind.name.lower()
        if self.flags & BGRAD:
            aux[name] = self._sums(d, 0, 2, self._rows)
        elif self.flags & BGRADA:
            aux[name] = self._sums(a, int(self._ops[0][0]), 0, self._rows)
        elif self.flags & BGRADB:
            aux[name] = self._sums(b, 1 - int(self._ops[1][0]), 1, None)
        return aux

    def _pass(self, d: Any, aux: dict[str, Any], columns: slice) -> None:
        """Apply the epilog to some columns of the result."""
        x, flags, rows = d[:, columns], self.flags, self._shape[0]
        if flags & BIAS:
            bias = self._inputs["bias"].reshape(-1, 1)
            x += in_dtype(bias, dtype_name(d))
        if flags & RELU:
            if "relu_aux" in aux:
                _write_bits(x, aux["relu_aux"][:, columns])
            if self._package == "torch":
                x.clamp_(min=0)
            else:
                module_of(x).maximum(x, 0, out=x)
        elif flags & GELU:
            if "gelu_aux" in aux:
                aux["gelu_aux"][:rows, columns] = in_dtype(x, self._aux_dtype)
            x[...] = gelu(x)
        elif flags & DRELU:
            bits = self._inputs["relu_aux"][:, columns]
            for bit in range(8):
                part = x[bit::8]
                part[(bits[: part.shape[0]] & (1 << bit)) == 0] = 0
        elif flags & DGELU:
            x *= gelu_slope(in_dtype(self._inputs["gelu_aux"][:rows, columns], dtype_name(d)))

    def _sums(self, x: Any, kept: int, which: int, rows: Optional[Any]) -> Any:
        """Sum the whole matrix along the axis other than `kept`. Return the sums of `rows`, or all
        sums.
        """
        wide = "float32" if self._dtype in ("float16", "bfloat16") else self._dtype
        whole = self._whole if which == 2 else self._wholes[which]
        places = _places(self._spreads[which], whole, self._comm, kept)
        total = like(x, (1, whole[kept]), wide)[0]
        total[_index(places, x)] = in_dtype(x, wide).sum(1 - kept)
        if self._comm.size > 1:
            self._comm.all_reduce(total)
        if which < 2 and self._ops[which][1]:
            total = total.conj()
        mine = total if rows is None else total[_index(rows, x)]
        return in_dtype(mine, self._dtype)


def _index(places: Any, array: Any) -> Any:
    """Return an index in the form that the package of `array` accepts."""
    if len(places) == 0 or places[-1] - places[0] == len(places) - 1:
        return slice(int(places[0]) if len(places) else 0, int(places[-1]) + 1 if len(places) else 0)
    if package_of(array) == "torch":
        import torch

        return torch.as_tensor(places, device=array.device)
    return module_of(array).asarray(places)


def _write_bits(x: Any, bits: Any) -> None:
    """Record which elements ReLU keeps. Bit i % 8 of byte i // 8 of a column stands for row i."""
    kept = in_dtype(x >= 0, "uint8")
    for bit in range(8):
        part = kept[bit::8]
        bits[: part.shape[0]] += part * (1 << bit)
