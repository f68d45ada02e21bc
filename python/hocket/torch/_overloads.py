"""The forms of a call that PyTorch's own process group accepts, besides the form with options.

``group.allreduce(tensor)`` means ``group.allreduce([tensor], AllreduceOptions())``. PyTorch
converts these forms in C++. This module converts them for direct calls on a group or backend in
Python.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch._C import _distributed_c10d as c10d
from torch.distributed import ReduceOp


class Overload(NamedTuple):
    """The parameters of a call in the form with options."""

    places: int  # number of arguments before the options
    options: str  # class of the options
    fields: tuple[str, ...] = ()  # option fields that a direct call may pass by position, in order
    listed: tuple[int, ...] = ()  # arguments that are lists; a direct call may pass one tensor


_REDUCE_SCATTER = Overload(2, "ReduceScatterOptions", ("reduceOp",), (0, 1))
_REDUCE_SCATTER_SINGLE = Overload(2, "ReduceScatterOptions", ("reduceOp",))
_ALL_GATHER_SINGLE = Overload(2, "AllgatherOptions")
_ALL_TO_ALL_SINGLE = Overload(4, "AllToAllOptions")

OVERLOADS = {
    "allreduce": Overload(1, "AllreduceOptions", ("reduceOp",), (0,)),
    "allreduce_coalesced": Overload(1, "AllreduceCoalescedOptions"),
    "reduce": Overload(1, "ReduceOptions", ("rootRank", "reduceOp"), (0,)),
    "reduce_scatter": _REDUCE_SCATTER,
    "reduce_scatter_single": _REDUCE_SCATTER_SINGLE,
    "_reduce_scatter_base": _REDUCE_SCATTER_SINGLE,
    "reduce_scatter_single_coalesced": _REDUCE_SCATTER_SINGLE,
    "reduce_scatter_tensor_coalesced": _REDUCE_SCATTER_SINGLE,
    "broadcast": Overload(1, "BroadcastOptions", ("rootRank",), (0,)),
    "allgather": Overload(2, "AllgatherOptions", (), (0, 1)),
    "allgather_coalesced": _ALL_GATHER_SINGLE,
    "all_gather_single": _ALL_GATHER_SINGLE,
    "_allgather_base": _ALL_GATHER_SINGLE,
    "gather": Overload(2, "GatherOptions", ("rootRank",), (0, 1)),
    "scatter": Overload(2, "ScatterOptions", ("rootRank",), (0, 1)),
    "all_to_all_single": _ALL_TO_ALL_SINGLE,
    "alltoall_base": _ALL_TO_ALL_SINGLE,
    "alltoall": Overload(2, "AllToAllOptions"),
}

# Types of values that a direct call may pass in the place of options.
_VALUES = frozenset({int, timedelta, type(None), ReduceOp, ReduceOp.RedOpType})
# Maps PyTorch's names of these arguments to the names of the option fields.
_NAMED = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def is_options(value: Any) -> bool:
    """Return True if the argument behind the tensors is the call's options, as torch.distributed
    passes them.
    """
    return type(value) not in _VALUES


def completed(
    overload: Overload, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the call's arguments in the form with options, and the remaining keywords."""
    tensors, values = list(arguments[: overload.places]), arguments[overload.places :]
    rest = dict(named)
    options = rest.pop("opts", None)
    if options is None and len(values) == 1 and is_options(values[0]):
        options, values = values[0], ()
    if options is None:
        options = getattr(c10d, overload.options)()
        options.asyncOp = True  # direct callers wait for the handle that the call returns
    for field, value in zip((*overload.fields, "timeout"), values):
        _give(options, field, value)
    for name in [name for name in rest if name in _NAMED]:
        _give(options, _NAMED[name], rest.pop(name))
    if overload.listed and _is_short(overload, tensors):
        for place in overload.listed:
            # In gather and scatter, only the root passes the list of all ranks' tensors.
            tensors[place] = [tensors[place]] if tensors[place] != [] else []
    return [*tensors, options], rest


def _is_short(overload: Overload, tensors: list[Any]) -> bool:
    return any(
        isinstance(tensors[place], torch.Tensor) for place in overload.listed if place < len(tensors)
    )


def _give(options: Any, field: str, value: Any) -> None:
    if field == "timeout" and (value is None or not hasattr(options, field)):
        return  # the call uses the group's timeout
    setattr(options, field, value)
