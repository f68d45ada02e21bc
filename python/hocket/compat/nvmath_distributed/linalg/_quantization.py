"""The scale factors of 8-bit operands and results."""

from __future__ import annotations

from typing import Any

from ...._arrays.kinds import gpu_of
from .._fft_memory import dtype_name
from .._packages import package_of
from ._types import FLOAT8, MatmulQuantizationScales, options_of


def agreed(given: Any, product: Any) -> MatmulQuantizationScales:
    """Return the scales of a new product. An error on one process is raised on all processes."""
    scales, fault = MatmulQuantizationScales(), None
    try:
        scales = checked(given, product, must=True)
    except (ValueError, TypeError) as error:
        fault = error
    for kind, text in product._comm.all_gather_object([type(fault).__name__, str(fault)]):
        if kind != "NoneType":
            raise (TypeError if kind == "TypeError" else ValueError)(text)
    return scales


def checked(given: Any, product: Any, must: bool) -> MatmulQuantizationScales:
    """Return the program's scales, checked against the product. If `must` is true, every needed
    scale must be given.
    """
    if given is None:
        raise ValueError(
            "Scales are required for narrow-precision (FP8 and lower) operations. Please set "
            "`quantization_scales` argument."
        )
    scales = options_of(MatmulQuantizationScales, given, "Scale factors")
    needed = "AB"
    if product._result in FLOAT8:
        needed += "D"
    elif scales.d is not None:
        raise ValueError(
            "Quantization scaling is not supported for D when it is not a narrow-precision (FP8 and "
            "lower) type."
        )
    if product.num_operands == 3 and product._dtypes[2] in FLOAT8:
        needed += "C"
    elif scales.c is not None:
        raise ValueError(
            "Quantization scaling is not supported for C when it is not a narrow-precision (FP8 and "
            "lower) type."
        )
    for name in needed if must else "":
        if getattr(scales, name.lower()) is None:
            raise ValueError(f"Scale for {name} is not specified")
    for name in "abcd":
        scale = getattr(scales, name)
        if scale is not None and not isinstance(scale, (int, float)):
            _check_array(scale, name.upper(), product)
    return scales


def _check_array(scale: Any, name: str, product: Any) -> None:
    if not hasattr(scale, "dtype") or package_of(scale) != product._package:
        raise TypeError(
            f"The quantization scaling tensor for {name} must belong to the same package as the "
            "operands."
        )
    if gpu_of(scale) != product._gpu:
        places = ["cpu" if gpu is None else gpu for gpu in (gpu_of(scale), product._gpu)]
        raise ValueError(
            f'The scale for {name} is on device "{places[0]}", but it should be on device '
            f'"{places[1]}" to match the operands memory space.'
        )
    shape = tuple(scale.shape)
    if shape not in ((1,), ()):
        raise ValueError(f"The scale for {name} must be of shape (1,) or (). Got {shape} instead.")
    if dtype_name(scale) != "float32":
        raise ValueError(
            f"The scale for {name} must be float32 type. Got {dtype_name(scale)} instead."
        )


def updated(old: MatmulQuantizationScales, new: MatmulQuantizationScales) -> MatmulQuantizationScales:
    """Return the old scales, replaced by the new ones that are given."""
    return MatmulQuantizationScales(
        *(getattr(old if getattr(new, name) is None else new, name) for name in "abcd")
    )


def values(scales: MatmulQuantizationScales) -> list[float]:
    """Return the values of a, b, c and d. An absent scale is 1. Waits for values on a GPU."""
    given = [getattr(scales, name) for name in "abcd"]
    return [1.0 if x is None else float(x.item() if hasattr(x, "item") else x) for x in given]
