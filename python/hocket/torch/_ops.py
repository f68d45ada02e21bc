"""PyTorch's reductions, by hocket's names."""

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
# Options hold a ReduceOp, whose type differs from the constants'. Its hash is PyTorch's number of
# the reduction. A dictionary of ReduceOps would compare them, which takes longer than a short call.
BY_NUMBER = {
    hash(dist.ReduceOp(getattr(dist.ReduceOp, theirs))): ours
    for theirs, ours in _NAMES.items()
}


def op_of(options: Any) -> Optional[Op]:
    """The name of the reduction in a call's options; None for those that `summand` handles."""
    return BY_NUMBER.get(hash(options.reduceOp))


def summand(tensor: torch.Tensor, options: Any) -> tuple[torch.Tensor, Op]:
    """The tensor to reduce, and the operator: for PREMUL_SUM a new tensor, times this rank's
    factor.

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
    _, factor = options.reduceOp.__getstate__()  # no other access works in every version
    return (tensor.detach() * factor).to(tensor.dtype), "sum"
