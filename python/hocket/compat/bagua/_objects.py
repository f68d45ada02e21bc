"""Encodes objects with PyTorch's tensors as plain data, which hocket sends without pickle."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

_MARK = "hocket.compat.bagua"


def encode(value: Any) -> Any:
    """Return tensors, ordered dicts, sizes and dtypes as tagged tuples, and other values unchanged.
    """
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        kind = "parameter" if isinstance(value, torch.nn.Parameter) else "tensor"
        shape, dtype = list(value.shape), str(value.dtype).removeprefix("torch.")
        return (_MARK, kind, dtype, shape, value.requires_grad, flat)
    if isinstance(value, torch.Size):
        return (_MARK, "size", list(value))
    if isinstance(value, torch.dtype):
        return (_MARK, "dtype", str(value).removeprefix("torch."))
    if type(value) is OrderedDict:
        return (_MARK, "ordered", [(encode(k), encode(v)) for k, v in value.items()])
    if type(value) is dict:
        return {encode(k): encode(v) for k, v in value.items()}
    if type(value) is list:
        return [encode(item) for item in value]
    if type(value) is tuple:
        items = tuple(encode(item) for item in value)
        return (_MARK, "tuple", items) if items and items[0] == _MARK else items
    return value


def decode(value: Any) -> Any:
    """Return the value that `encode` has encoded. Tensors arrive on the CPU."""
    if type(value) is tuple:
        if value and isinstance(value[0], str) and value[0] == _MARK:
            return _decode_tagged(*value[1:])
        return tuple(decode(item) for item in value)
    if type(value) is list:
        return [decode(item) for item in value]
    if type(value) is dict:
        return {decode(k): decode(v) for k, v in value.items()}
    return value


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"a rank sent a tensor of dtype {name!r}, which this PyTorch lacks")
    return dtype


def _decode_tagged(kind: str, *content: Any) -> Any:
    if kind in ("tensor", "parameter"):
        name, shape, requires_grad, flat = content
        tensor = torch.from_numpy(flat.copy()).view(_dtype(name)).reshape(shape)
        if kind == "parameter":
            return torch.nn.Parameter(tensor, requires_grad=requires_grad)
        return tensor.requires_grad_(requires_grad)
    if kind == "size":
        return torch.Size(content[0])
    if kind == "dtype":
        return _dtype(content[0])
    if kind == "ordered":
        return OrderedDict((decode(k), decode(v)) for k, v in content[0])
    return tuple(decode(item) for item in content[0])
