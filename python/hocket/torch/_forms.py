"""The call forms of PyTorch's own process group, besides the one with options.

``group.allreduce(tensor)`` is ``group.allreduce([tensor], AllreduceOptions())``. PyTorch converts
the forms in C++. This module does it for direct calls on a group or backend in Python.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch._C import _distributed_c10d as c10d
from torch.distributed import ReduceOp


class Form(NamedTuple):
    """The signature of a call."""

    places: int  # number of arguments before the options
    options: str  # class of the options
    fields: tuple[str, ...] = ()  # option fields that may be given in place of options, in order
    listed: tuple[int, ...] = ()  # arguments that are lists; a single tensor may be given for one


_REDUCE_SCATTER = Form(2, "ReduceScatterOptions", ("reduceOp",), (0, 1))
_REDUCE_SCATTER_SINGLE = Form(2, "ReduceScatterOptions", ("reduceOp",))
_ALL_GATHER_SINGLE = Form(2, "AllgatherOptions")
_ALL_TO_ALL_SINGLE = Form(4, "AllToAllOptions")

FORMS = {
    "allreduce": Form(1, "AllreduceOptions", ("reduceOp",), (0,)),
    "allreduce_coalesced": Form(1, "AllreduceCoalescedOptions"),
    "reduce": Form(1, "ReduceOptions", ("rootRank", "reduceOp"), (0,)),
    "reduce_scatter": _REDUCE_SCATTER,
    "reduce_scatter_single": _REDUCE_SCATTER_SINGLE,
    "_reduce_scatter_base": _REDUCE_SCATTER_SINGLE,
    "reduce_scatter_single_coalesced": _REDUCE_SCATTER_SINGLE,
    "reduce_scatter_tensor_coalesced": _REDUCE_SCATTER_SINGLE,
    "broadcast": Form(1, "BroadcastOptions", ("rootRank",), (0,)),
    "allgather": Form(2, "AllgatherOptions", (), (0, 1)),
    "allgather_coalesced": _ALL_GATHER_SINGLE,
    "all_gather_single": _ALL_GATHER_SINGLE,
    "_allgather_base": _ALL_GATHER_SINGLE,
    "gather": Form(2, "GatherOptions", ("rootRank",), (0, 1)),
    "scatter": Form(2, "ScatterOptions", ("rootRank",), (0, 1)),
    "all_to_all_single": _ALL_TO_ALL_SINGLE,
    "alltoall_base": _ALL_TO_ALL_SINGLE,
    "alltoall": Form(2, "AllToAllOptions"),
}

# Types that may stand in the place of options.
_VALUES = frozenset({int, timedelta, type(None), ReduceOp, ReduceOp.RedOpType})
# PyTorch's names of these arguments, and the names of the option fields.
_NAMED = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def is_options(value: Any) -> bool:
    """True if the argument behind the tensors is the call's options, as torch.distributed passes
    them.
    """
    return type(value) not in _VALUES


def completed(
    form: Form, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The same call with its options, and the remaining keywords."""
    tensors, values = list(arguments[: form.places]), arguments[form.places :]
    rest = dict(named)
    options = rest.pop("opts", None)
    if options is None and len(values) == 1 and is_options(values[0]):
        options, values = values[0], ()
    if options is None:
        options = getattr(c10d, form.options)()
        options.asyncOp = True  # direct callers wait for the handle that they get
    for field, value in zip((*form.fields, "timeout"), values):
        _give(options, field, value)
    for name in [name for name in rest if name in _NAMED]:
        _give(options, _NAMED[name], rest.pop(name))
    if form.listed and _is_short(form, tensors):
        for place in form.listed:
            # In gather and scatter, only the root has the list of all.
            tensors[place] = [tensors[place]] if tensors[place] != [] else []
    return [*tensors, options], rest


def _is_short(form: Form, tensors: list[Any]) -> bool:
    return any(
        isinstance(tensors[place], torch.Tensor) for place in form.listed if place < len(tensors)
    )


def _give(options: Any, field: str, value: Any) -> None:
    if field == "timeout" and (value is None or not hasattr(options, field)):
        return  # the call uses its group's
    setattr(options, field, value)
