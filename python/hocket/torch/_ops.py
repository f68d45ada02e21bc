"""PyTorch's reductions by hocket's names."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from hocket._types import Op

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
# Options hold a ReduceOp, which is another type than the constants.
_OPS = {dist.ReduceOp(getattr(dist.ReduceOp, theirs)): ours for theirs, ours in _NAMES.items()}


def op_of(options: Any) -> Op:
    """The name of the reduction that a call's options ask for."""
    op = _OPS.get(options.reduceOp)
    if op is None:
        raise ValueError(f"hocket has no such reduction; it takes {', '.join(_NAMES)}")
    return op
