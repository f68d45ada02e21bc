"""The problem of a distributed product: the merged descriptions of all processes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

import numpy as np

from .... import distribution as _d
from ...._arrays.kinds import is_on_gpu
from .._boxes import Slab
from .._fft_memory import dtype_name
from .._grid import group
from .._runtime import communicator
from .._symmetric import is_symmetric
from ..distribution import BlockCyclic, ConvertDistributionError
from .._packages import package_of
from ._types import DTYPES, FLOAT4, FLOAT8, matrix_qualifiers_dtype

NAMES = "ABC"


def tell(error: Exception) -> NoReturn:
    """Raise `error` on this process, and a ValueError on the others, which would wait otherwise."""
    with contextlib.suppress(ValueError, TypeError):
        merge(communicator().all_gather_object({"error": str(error)}))
    raise error


def is_by_columns(operand: Any) -> bool:
    """Return True if a matrix's elements lie in Fortran order, without gaps."""
    if operand.ndim != 2:
        return True  # a later check refuses the operand
    if hasattr(operand, "flags"):
        return bool(operand.flags.f_contiguous)
    return bool(operand.T.is_contiguous())


def in_columns(operand: Any) -> Any:
    """Return the matrix in Fortran order without gaps: the matrix itself, or a copy."""
    if is_by_columns(operand):
        return operand
    if hasattr(operand, "flags"):
        return operand.copy(order="F")
    return operand.T.contiguous().T


def _words_of(distribution: Any) -> dict[str, Any]:
    """Return a distribution as plain data: its text, the fields that must agree, and its grid."""
    said: dict[str, Any] = {"text": str(distribution), "key": [], "blocks": None, "error": ""}
    try:
        blocks = distribution.to(BlockCyclic, ndim=2, copy=True)
    except ConvertDistributionError as error:
        said["error"] = str(error)
        return said
    grid = blocks.process_grid.grid
    if isinstance(distribution, Slab):
        said["key"] = ["slab", distribution.partition_dim]
    else:
        sizes = blocks.block_sizes
        said["key"] = [*grid.shape, *sizes, *blocks.first_process, *map(int, grid.ranks.flat)]
    said["grid"] = [list(grid.shape), [int(r) for r in grid.ranks.flat]]
    return said


def describe(
    operands: Sequence[Any], distributions: Sequence[Any], options: Any, alpha: Any, beta: Any,
    qualifiers: Any,
) -> dict[str, Any]:
    """Return this process's description, as plain data."""
    if qualifiers is None:
        qualifiers = np.zeros((3,), dtype=matrix_qualifiers_dtype)
    is_right = getattr(qualifiers, "dtype", None) == matrix_qualifiers_dtype
    return {
        "error": "",
        "shapes": [[int(n) for n in o.shape] for o in operands],
        "by_columns": [is_by_columns(o) for o in operands],
        "dtypes": [dtype_name(o) for o in operands],
        "packages": [package_of(o) for o in operands],
        "symmetric": all(is_symmetric(o) for o in operands),
        "spaces": ["cuda" if is_on_gpu(o) else "cpu" for o in operands],
        "distributions": [_words_of(d) for d in distributions],
        "options": str((options.inplace, options.compute_type, options.scale_type,
                        options.result_type, options.blocking)),
        "narrow_options": [bool(options.block_scaling), bool(options.result_amax)],
        "alpha": str(alpha),
        "beta": str(beta),
        "qualifiers": [[int(q["is_transpose"]), int(q["is_conjugate"])] for q in qualifiers]
        if is_right else None,
    }


def _check_shape(shape: Sequence[int], name: str) -> None:
    if len(shape) > 2:
        raise ValueError("Batched matmul is not supported")
    if name == "C" and len(shape) != 2:
        raise ValueError(
            "In order to avoid broadcasting behavior ambiguity, `c` must be 2-D. Use a singleton "
            "dimension to convert your input array to 2-D."
        )
    if len(shape) != 2:
        raise ValueError("Operands must be two-dimensional")
    if any(extent <= 0 for extent in shape):
        raise ValueError(
            f"The specified extents {shape} for operand {name} are not valid. The extents must be "
            "strictly positive. "
        )


def _check_process(said: dict[str, Any], rank: int) -> None:
    """Raise an error if one process's description is wrong by itself."""
    for shape, name in zip(said["shapes"], NAMES):
        _check_shape(shape, name)
    for key, text in (
        ("packages", "don't belong to the same package: got operand packages"),
        ("spaces", "are not in the same memory space: got operand memory spaces"),
    ):
        if len(set(said[key])) != 1:
            raise ValueError(f"The operands on process {rank} {text} {said[key]}")
    if said["dtypes"][0] == FLOAT4:
        raise TypeError("FP4 operands are not supported; FP8's are.")
    if said["dtypes"][0] in FLOAT8 and said["narrow_options"][0]:
        raise RuntimeError(
            "MXFP8 (block_scaling=True) is not supported: FP8 operands are multiplied with one scale "
            "for each. Set block_scaling=False, and give quantization_scales of one number each."
        )
    if said["qualifiers"] is None or len(said["qualifiers"]) != 3:
        raise ValueError(
            "The qualifiers must be specified as a NumPy array of length 3 corresponding to the "
            "operands A, B, and C of type 'matrix_qualifiers_dtype'."
        )


def _check_pair(first: dict[str, Any], other: dict[str, Any]) -> None:
    """Check that two processes agree in all fields that must be equal."""
    for a, b, name in zip(first["shapes"], other["shapes"], NAMES):
        if len(a) != len(b):
            raise ValueError(
                f"The number of dimensions of the operand {name} is inconsistent across processes"
            )
    if first["packages"][0] != other["packages"][0]:
        raise ValueError("operands don't belong to the same package on all processes")
    if first["spaces"][0] != other["spaces"][0]:
        raise ValueError(
            'operands are not in the same memory space ("cpu", "cuda") on all processes'
        )
    for key, text in (
        ("options", "options are inconsistent across processes"),
        ("alpha", "alpha does not match across processes"),
        ("beta", "beta does not match across processes"),
    ):
        if first[key] != other[key]:
            raise ValueError(f"{text}: {first[key]} != {other[key]}")
    if first["dtypes"][0] in FLOAT8 and first["narrow_options"] != other["narrow_options"]:
        raise ValueError(
            "options are inconsistent across processes: (block_scaling, result_amax) = "
            f"{first['narrow_options']} != {other['narrow_options']}"
        )
    if first["qualifiers"] != other["qualifiers"]:
        raise ValueError("The qualifiers don't match across processes")
    if len(first["distributions"]) != 3 or len(other["distributions"]) != 3:
        raise ValueError("Must provide distributions for A, B and C/D")
    for a, b, name in zip(first["distributions"], other["distributions"], NAMES):
        if a["key"] != b["key"] or a["error"] != b["error"]:
            raise ValueError(
                f"Distribution for {name} doesn't match across processes: {a['text']} != {b['text']}"
            )


def merge(said: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the whole shapes of the operands. On a fault, raise the same error on all processes.
    """
    first = said[0]
    for other in said:
        if other["error"]:
            raise ValueError(other["error"])
    for other in said:
        if len(other["dtypes"]) != len(first["dtypes"]):
            raise ValueError("The number of operands doesn't match across processes")
    for i in range(len(first["dtypes"])):
        for other in said:
            if other["dtypes"][i] != first["dtypes"][i]:
                raise ValueError(
                    f"Operand {NAMES[i]} dtype does not match across processes: "
                    f"{first['dtypes'][i]} != {other['dtypes'][i]}"
                )
        if first["dtypes"][i] not in (*DTYPES, FLOAT4):
            raise ValueError(
                f"The dtype of operand {NAMES[i]} ({first['dtypes'][i]}) is not supported."
            )
    for rank, one in enumerate(said):
        _check_process(one, rank)
    for other in said:
        _check_pair(first, other)
    for words in first["distributions"]:
        if words["error"]:
            raise TypeError(
                "Distributed matrix multiplicaton requires distributions compatible with BlockCyclic"
            )
    for i in range(len(first["shapes"])):
        if not all(s["by_columns"][i] for s in said):
            raise ValueError(
                f"Operand {NAMES[i]} doesn't have column-major (Fortran) memory layout"
            )
    return [_whole_of(said, i) for i in range(len(first["shapes"]))]


def _whole_of(said: Sequence[dict[str, Any]], i: int) -> tuple[int, int]:
    shapes = [s["shapes"][i] for s in said]
    (high, wide), flat = said[0]["distributions"][i]["grid"]
    ranks = np.reshape(flat, (high, wide))
    if 1 in (high, wide):
        kept = 1 if wide == 1 else 0
        for shape, one in zip(shapes, said):
            if shape[kept] != shapes[0][kept]:
                raise ValueError(
                    "The problem size is inconsistent across processes:"
                    f"{said[0]['shapes']} vs {one['shapes']}"
                )
    return (sum(shapes[r][0] for r in ranks[:, 0]), sum(shapes[r][1] for r in ranks[0]))


def spread_of(distribution: Any, whole: Sequence[int]) -> Any:
    """Return hocket's equivalent of a distribution of a matrix of shape `whole`."""
    if isinstance(distribution, Slab):
        return _d.Slab(distribution.partition_dim)
    blocks = distribution._blocks_for(whole)
    return _d.BlockCyclic(distribution.process_grid.grid, blocks, distribution.first_process)


def cut_axis(distribution: Any) -> Optional[int]:
    """Return the axis along which the matrix is split. Return None if both axes are split."""
    if isinstance(distribution, Slab):
        return distribution.partition_dim
    shape = distribution.process_grid.shape
    if group().nranks not in shape:
        return None
    return 0 if shape[0] == group().nranks else 1


def pattern(
    distributions: Sequence[Any],
    wholes: Sequence[tuple[int, int]],
    qualifiers: Sequence[Sequence[bool]],
    is_summed: bool,
) -> int:
    """Return cuBLASMp's number of the exchange for these distributions; -1 if it defines none."""
    size = group().nranks
    if size == 1:
        return 5
    axes = [cut_axis(d) for d in distributions]
    for axis, whole, distribution in zip(axes, wholes, distributions):
        if axis is None or (whole[axis] % size and not is_summed):
            return -1
        own = isinstance(distribution, Slab) or (
            distribution.block_sizes[axis] * size >= whole[axis]
        )
        if not own:
            return -1
    if is_summed:
        return 4
    # `a` and `b` say whether the matrices A and B are split along their second axis. A transposed
    # matrix counts in the form in which the product uses it.
    a, b = (axis != int(q[0]) for axis, q in zip(axes, qualifiers[:2]))
    if axes[2] == 0 and not a and b:
        return 3
    return 2 if axes[2] == 1 and a and not b else 0
