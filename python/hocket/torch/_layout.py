"""Tensors as hocket takes them: flat and contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch


class Layout:
    """A tensor that is written to: itself where it is contiguous, else a copy and the way back."""

    __slots__ = ("_copy", "_tensor", "flat")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._copy: Optional[torch.Tensor] = None
        if tensor.is_contiguous():
            self.flat = tensor.detach().view(-1)
        else:
            self._copy = tensor.detach().contiguous()
            self.flat = self._copy.view(-1)

    def copy_back(self) -> None:
        """Bring the result into the tensor, when the call has ended."""
        if self._copy is not None:
            self._tensor.detach().copy_(self._copy)


def as_flat(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that is read from."""
    return tensor.detach().contiguous().view(-1)


def each_flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors that are read from, one after the other."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
