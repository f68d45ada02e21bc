"""Translates PyTorch's reduction operators to hocket's names."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.distributed as dist

from hocket._calls.types import Op

_NAMES: dict[str, Op] = {
    "SUM": "sum",
    "AVG": "avg",
    "PRODUCT": "product",
    "MIN": "min",
    "MAX": "max",
    "BAND": "band",
    "BOR": "bor",
    "BXOR": "bxor",
}
# Options hold a ReduceOp, whose type differs from that of PyTorch's constants. A ReduceOp's hash is
# PyTorch's number of the operator. A dictionary with ReduceOps as keys would compare them, which
# takes longer than a short call.
BY_NUMBER = {
    hash(dist.ReduceOp(getattr(dist.ReduceOp, theirs))): ours
    for theirs, ours in _NAMES.items()
}


def op_of(options: Any) -> Optional[Op]:
    """Return the name of the operator in a call's options. Return None for PREMUL_SUM; see
    `summand`.
    """
    return BY_NUMBER.get(hash(options.reduceOp))


def summand(tensor: torch.Tensor, options: Any) -> tuple[torch.Tensor, Op]:
    """Return the tensor to reduce, and the operator.

    For PREMUL_SUM the tensor is a new one: the given tensor times this rank's factor.

    Raises
    ------
    ValueError
        PREMUL_SUM of a tensor that is neither floating nor complex.
    """
    op = op_of(options)
    if op is not None:
        return tensor, op
    if not tensor.is_floating_point() and not tensor.is_complex():
        raise ValueError(f"the tensor is {tensor.dtype}; PREMUL_SUM takes floating and complex ones")
    _, factor = options.reduceOp.__getstate__()  # the only access that works in every version
    return (tensor.detach() * factor).to(tensor.dtype), "sum"
