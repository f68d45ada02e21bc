"""Spans of hocket's calls for torch.profiler: `hocket:all_reduce` and so on, with shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._C._autograd import _profiler_enabled
from torch._C._profiler import _RecordFunctionFast

# Names of spans that differ from the names of the backend's methods.
_NAMES = {
    "allreduce": "all_reduce",
    "allreduce_sparse": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "reduce_scatter_single_coalesced": "reduce_scatter_coalesced",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_coalesced",
    "_allgather_base": "all_gather",
    "all_gather_single": "all_gather",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather_coalesced",
    "all_gather_single_coalesced": "all_gather_coalesced",
    "allgather_into_tensor_coalesced": "all_gather_coalesced",
    "gather_single": "gather",
    "all_to_all_single": "all_to_all",
    "alltoall_base": "all_to_all",
    "alltoall": "all_to_all",
    "recv_anysource": "recv",
}

# Calls whose first argument is the output, and whose second argument is the input.
_OUTPUT_FIRST = ("reduce_scatter", "all_gather", "gather", "scatter", "all_to_all")


def _tensors(given: Any) -> Iterable[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _tensors(one)


def in_a_span(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method `name` of a backend, so that a running profiler shows it as a span.

    A span lasts until the method returns. An asynchronous call ends later than that. The span has
    the shapes of the input.
    """
    called = _NAMES.get(name, name)
    title = f"hocket:{called}"
    place = 1 if called.removesuffix("_coalesced") in _OUTPUT_FIRST else 0

    @functools.wraps(call)
    def watched(self: Any, *arguments: Any, **named: Any) -> Any:
        if not _profiler_enabled():
            return call(self, *arguments, **named)
        with _RecordFunctionFast(title, list(_tensors(arguments[place : place + 1]))):
            return call(self, *arguments, **named)

    return watched
