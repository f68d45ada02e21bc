"""nvmath's types for matrix products: CUDA's numbers of types, and options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from logging import Logger
from typing import Any, Literal, Optional, TypeVar, Union

import numpy as np


class CudaDataType(IntEnum):
    """CUDA's numbers of the dtypes that can be multiplied."""

    CUDA_R_32F = 0
    CUDA_R_64F = 1
    CUDA_R_16F = 2
    CUDA_C_32F = 4
    CUDA_C_64F = 5
    CUDA_R_16BF = 14
    CUDA_R_8F_E4M3 = 28
    CUDA_R_8F_E5M2 = 29


class ComputeType(IntEnum):
    """cuBLAS's numbers of the types in which products are summed."""

    COMPUTE_16F = 64
    COMPUTE_16F_PEDANTIC = 65
    COMPUTE_32F = 68
    COMPUTE_32F_PEDANTIC = 69
    COMPUTE_64F = 70
    COMPUTE_64F_PEDANTIC = 71
    COMPUTE_32I = 72
    COMPUTE_32I_PEDANTIC = 73
    COMPUTE_32F_FAST_16F = 74
    COMPUTE_32F_FAST_16BF = 75
    COMPUTE_32F_FAST_TF32 = 77
    COMPUTE_32F_EMULATED_16BFX9 = 78
    COMPUTE_64F_EMULATED_FIXEDPOINT = 79


class MatmulEpilog(IntEnum):
    """The operation after a product."""

    DEFAULT = 0
    ALLREDUCE = 1
    RELU = 2
    BIAS = 4
    RELU_BIAS = 6
    GELU = 32
    GELU_BIAS = 36
    RELU_AUX = 130
    RELU_AUX_BIAS = 134
    DRELU = 136
    DRELU_BGRAD = 152
    GELU_AUX = 160
    GELU_AUX_BIAS = 164
    DGELU = 192
    DGELU_BGRAD = 208
    BGRADA = 256
    BGRADB = 512


class MatmulAlgoType(IntEnum):
    """cuBLASMp's strategies for overlapping. They are hints, and have no effect here."""

    DEFAULT = 0
    SPLIT_P2P = 1
    SPLIT_MULTICAST = 2
    ATOMIC_P2P = 3
    ATOMIC_MULTICAST = 4
    NO_OVERLAP = 5


#: The dtype of an array with three entries: the operations on A, B and C.
matrix_qualifiers_dtype: "np.dtype[Any]" = np.dtype(
    [("structure", object), ("is_transpose", "<i1"), ("is_conjugate", "<i1")]
)


@dataclass
class MatmulOptions:
    """Options of a distributed product.

    Attributes
    ----------
    inplace : bool
        True if the result is written into operand C, when there is one.
    compute_type : int, optional
        The type in which products are summed, of `MatmulComputeType`. By default it follows from
        the operands.
    scale_type : int, optional
        The type of alpha and beta.
    result_type : int, optional
        CUDA's number of the result's dtype. By default C's dtype, or without C, A's dtype.
    algo_type, sm_count_communication : int, optional
        Hints for GPUs, which have no effect here.
    result_amax : bool
        For 8-bit results: also return the largest magnitude of the whole result, before scaling.
    block_scaling : bool
        For 8-bit operands: True stands for MXFP8, which is refused.
    logger : logging.Logger, optional
        By default the root logger.
    blocking : True or "auto"
        Calls on arrays in host memory always block.
    """

    inplace: bool = True
    compute_type: Optional[int] = None
    scale_type: Optional[int] = None
    result_type: Optional[int] = None
    algo_type: Optional[int] = None
    result_amax: bool = False
    block_scaling: bool = False
    sm_count_communication: Optional[int] = None
    logger: Optional[Logger] = None
    blocking: Union[Literal[True], Literal["auto"]] = "auto"

    def __post_init__(self) -> None:
        if self.compute_type is not None:
            self.compute_type = ComputeType(self.compute_type)
        if self.scale_type is not None:
            self.scale_type = CudaDataType(self.scale_type)
        if self.algo_type is not None:
            self.algo_type = MatmulAlgoType(self.algo_type)
        count = self.sm_count_communication
        if count is not None and not (isinstance(count, int) and count > 0):
            raise ValueError("sm_count_communication must be a positive integer")
        if self.blocking not in (True, "auto"):
            raise ValueError("The value specified for blocking must be either True or 'auto'.")


@dataclass
class MatmulEpilogPreferences:
    """Preferences for an epilog's further results.

    Attributes
    ----------
    aux_type : int, optional
        CUDA's number of the dtype of GELU's saved input. By default the result's dtype.
    aux_amax : bool
        For 8-bit auxiliary outputs; True is refused.
    """

    aux_type: Optional[int] = None
    aux_amax: bool = False


@dataclass
class MatmulPlanPreferences:
    """Preferences for planning a product.

    Attributes
    ----------
    epilog : MatmulEpilogPreferences or dict, optional
        Preferences for the epilog.
    """

    epilog: Any = None

    def __post_init__(self) -> None:
        self.epilog = options_of(MatmulEpilogPreferences, self.epilog, "epilog preferences")


@dataclass
class MatmulQuantizationScales:
    """The scale factors of 8-bit operands and results. They have no effect on other operands.

    Attributes
    ----------
    a, b, c, d : float or array of one float32, optional
        Scales of those operands and results that have 8 bits. Arrays are read at each execution.
    """

    a: Any = None
    b: Any = None
    c: Any = None
    d: Any = None


Options = TypeVar("Options")


def options_of(cls: type[Options], given: Any, name: str) -> Options:
    """Return the options of an argument, which may be None or a dict."""
    if given is None:
        return cls()
    if isinstance(given, dict):
        return cls(**given)
    if isinstance(given, cls):
        return given
    raise TypeError(
        f"The {name} must be provided as an object of type {cls.__name__} or as a dict with valid "
        f"{name}. The provided object is '{given}'."
    )


#: For each dtype: CUDA's number, the default scale type, and the default compute type.
_R, _C = CudaDataType, ComputeType
DTYPES: dict[str, tuple[CudaDataType, CudaDataType, ComputeType]] = {
    "float8_e4m3fn": (_R.CUDA_R_8F_E4M3, _R.CUDA_R_32F, _C.COMPUTE_32F),
    "float8_e5m2": (_R.CUDA_R_8F_E5M2, _R.CUDA_R_32F, _C.COMPUTE_32F),
    "float16": (_R.CUDA_R_16F, _R.CUDA_R_32F, _C.COMPUTE_32F),
    "bfloat16": (_R.CUDA_R_16BF, _R.CUDA_R_32F, _C.COMPUTE_32F),
    "float32": (_R.CUDA_R_32F, _R.CUDA_R_32F, _C.COMPUTE_32F),
    "float64": (_R.CUDA_R_64F, _R.CUDA_R_64F, _C.COMPUTE_64F),
    "complex64": (_R.CUDA_C_32F, _R.CUDA_C_32F, _C.COMPUTE_32F),
    "complex128": (_R.CUDA_C_64F, _R.CUDA_C_64F, _C.COMPUTE_64F),
}
#: The 8-bit dtypes, with their largest numbers.
FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
#: The dtypes that results of 8-bit operands may have.
FLOAT8_RESULTS = (*FLOAT8, "float16", "bfloat16", "float32")
#: A narrow dtype of nvmath that hocket refuses.
FLOAT4 = "float4_e2m1fn_x2"
#: For each scale type: NumPy's dtype, and the default compute type.
SCALES: dict[CudaDataType, tuple[str, ComputeType]] = {
    _R.CUDA_R_16F: ("float16", _C.COMPUTE_16F),
    _R.CUDA_R_16BF: ("float32", _C.COMPUTE_32F),
    _R.CUDA_R_32F: ("float32", _C.COMPUTE_32F),
    _R.CUDA_C_32F: ("complex64", _C.COMPUTE_32F),
    _R.CUDA_R_64F: ("float64", _C.COMPUTE_64F),
    _R.CUDA_C_64F: ("complex128", _C.COMPUTE_64F),
}


def name_of_type(number: int) -> str:
    """Return the dtype that has this number in CUDA."""
    names = {int(row[0]): name for name, row in DTYPES.items()}
    return names.get(int(number), str(number))


def scale_of(compute: int, is_complex: bool) -> CudaDataType:
    """Return the default scale type of a compute type."""
    name = ComputeType(compute).name
    if "_16F" in name[:11]:
        return CudaDataType.CUDA_R_16F
    if name.startswith("COMPUTE_64F"):
        return CudaDataType.CUDA_C_64F if is_complex else CudaDataType.CUDA_R_64F
    if name.startswith("COMPUTE_32F"):
        return CudaDataType.CUDA_C_32F if is_complex else CudaDataType.CUDA_R_32F
    raise ValueError(
        f"Unsupported compute type. The compute type '{ComputeType(compute)!r}' is currently not "
        "supported."
    )


def goes_with(dtype: str, compute: int, scale: int) -> bool:
    """Return True if operands of a dtype can be multiplied with these compute and scale types."""
    name = ComputeType(compute).name
    if name in ("COMPUTE_16F", "COMPUTE_16F_PEDANTIC"):
        return scale == CudaDataType.CUDA_R_16F and dtype == "float16"
    if name.startswith("COMPUTE_64F"):
        return dtype == {
            CudaDataType.CUDA_R_64F: "float64", CudaDataType.CUDA_C_64F: "complex128"
        }.get(CudaDataType(scale))
    if scale == CudaDataType.CUDA_C_32F:
        return dtype == "complex64"
    if scale != CudaDataType.CUDA_R_32F:
        return False
    narrow = ("float16", "bfloat16", *FLOAT8) if name in (
        "COMPUTE_32F", "COMPUTE_32F_PEDANTIC") else ()
    return dtype in ("float32", *narrow)
