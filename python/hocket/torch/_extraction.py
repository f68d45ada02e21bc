"""Finds the tensors in a future's value quickly. PyTorch finds them by pickling the value.

PyTorch pickles when the value is set, and again when its C++ code takes the value, as in every step
of DDP. The value of a collective is a list of tensors, which needs no pickling.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch._jit_internal as internal

_theirs: Any = getattr(internal, "_extract_tensors", None)


@functools.wraps(_theirs)
def extract_tensors(obj: Any) -> Any:
    """Do the same as PyTorch's function, but faster for a list of tensors."""
    if type(obj) is list:
        for each in obj:
            if not isinstance(each, torch.Tensor):
                break
        else:
            return obj
    return _theirs(obj)


def install() -> None:
    """Replace PyTorch's function, before its C++ code looks it up for the first time."""
    if _theirs is not None:
        internal._extract_tensors = extract_tensors
