"""Hands over the state of one rank to others, such as newcomers. Arrays are sent without pickling.
"""

from __future__ import annotations

import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Optional

import numpy as np

from .._calls.refusals import announcing
from .._calls.types import type_in_words
from .._hocket import Communicator
from ..errors import InvalidArgument

# Arrays of fewer bytes are sent with the rest of the state.
_LEAST_BYTES = 1 << 16
# Number of bytes that are sent between two calls of `progress`.
_PIECE_BYTES = 64 << 20
_KINDS = "biufc"
_DICTS = {"dict": dict, "OrderedDict": OrderedDict}


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_long_array(value: Any) -> bool:
    if _is_torch(value):
        return True
    return type(value) is np.ndarray and value.dtype.kind in _KINDS and value.nbytes >= _LEAST_BYTES


def _describe(state: Any, arrays: list[Any]) -> Any:
    """Return the state with descriptions in place of the arrays, and append the arrays to `arrays`.

    A node is a tuple of a tag and the tag's content. So no value of the user can be taken for a
    tag.
    """
    if type(state) in _DICTS.values():
        items = [(key, _describe(value, arrays)) for key, value in state.items()]
        return (type(state).__name__, items)
    if type(state) in (list, tuple):
        return (type(state).__name__, [_describe(value, arrays) for value in state])
    if not _is_long_array(state):
        return ("value", state)
    if _is_torch(state):
        arrays.append(state.detach().contiguous())
        dtype = str(state.dtype).removeprefix("torch.")
        return ("torch", dtype, tuple(state.shape), state.device.type)
    arrays.append(np.ascontiguousarray(state))
    return ("numpy", state.dtype.str, state.shape)


def _allocate(node: Any, arrays: list[Any]) -> Any:
    """Return the state that a node describes, with new arrays, which are appended to `arrays` in
    order.
    """
    tag, *rest = node
    if tag in _DICTS:
        return _DICTS[tag]((key, _allocate(value, arrays)) for key, value in rest[0])
    if tag == "list":
        return [_allocate(value, arrays) for value in rest[0]]
    if tag == "tuple":
        return tuple(_allocate(value, arrays) for value in rest[0])
    if tag == "value":
        return rest[0]
    if tag == "torch":
        import torch

        dtype, shape, device = rest
        arrays.append(torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=device))
    else:
        dtype, shape = rest
        arrays.append(np.empty(tuple(shape), np.dtype(dtype)))
    return arrays[-1]


def _pieces(array: Any) -> Iterable[Any]:
    flat = array.reshape(-1)
    step = max(1, _PIECE_BYTES // (array.nbytes // max(1, len(flat)) or 1))
    for begin in range(0, len(flat), step):
        yield flat[begin : begin + step]


def _receivers(comm: Communicator, root: int, to: Optional[Iterable[int]]) -> list[int]:
    try:
        chosen = range(comm.size) if to is None else [operator.index(rank) for rank in to]
    except TypeError:
        raise InvalidArgument(f"to is {type_in_words(to)}; give ranks, or None for all") from None
    wrong = [rank for rank in chosen if not 0 <= rank < comm.size]
    if wrong:
        raise InvalidArgument(f"to has rank {wrong[0]}; ranks go from 0 to {comm.size - 1}")
    return sorted({root, *chosen})


def hand_over(
    comm: Communicator,
    state: Any = None,
    *,
    root: int,
    to: Optional[Iterable[int]] = None,
    allow_pickle: Optional[bool] = None,
    progress: Optional[Callable[[int, int], None]] = None,
) -> Any:
    """Give other ranks the state of one rank: a tree of dicts, lists and tuples with arrays and
    objects.

    A collective call of all ranks of `comm`. Arrays of NumPy and tensors of PyTorch are sent
    without pickling. The receivers get them in new arrays, on the same kind of device. All other
    values are sent as by `broadcast_object`.

    >>> state = hand_over(comm, state, root=0, to=comm.newcomers)

    Parameters
    ----------
    comm : Communicator
    state : object
        The state that the root hands over. Other ranks need not pass it.
    root : int
        The rank that has the state.
    to : iterable of int, optional
        The ranks that get the state; all ranks pass the same. By default all ranks get it.
    allow_pickle : bool, optional
        As in `broadcast_object`.
    progress : callable, optional
        Called as ``progress(done, total)`` on ranks that take part. Both are numbers of bytes of
        arrays. If it raises, it is not called again, and its exception is raised once all arrays
        have been sent.

    Returns
    -------
    object
        The root's state on ranks that get it; on other ranks the argument `state`.

    Raises
    ------
    InvalidArgument
        `root` or `to` is not of this communicator, or a value cannot be sent.
    """
    try:
        root = operator.index(root)
        if not 0 <= root < comm.size:
            raise InvalidArgument(f"root is {root}; ranks go from 0 to {comm.size - 1}")
        ranks = _receivers(comm, root, to)
    except (InvalidArgument, TypeError) as error:
        comm.refuse(str(error))
    if len(ranks) == comm.size:
        with comm._named("hand_over"):
            return _broadcast(comm, state, root, allow_pickle, progress)
    group = comm.new_group(ranks)
    if not group.is_member:
        return state
    with group, group._named("hand_over"):
        return _broadcast(group, state, ranks.index(root), allow_pickle, progress)


def _broadcast(
    comm: Communicator,
    state: Any,
    root: int,
    allow_pickle: Optional[bool],
    progress: Optional[Callable[[int, int], None]],
) -> Any:
    arrays: list[Any] = []
    has_it = comm.rank == root
    with announcing(comm):
        node = _describe(state, arrays) if has_it else None
    options = {} if allow_pickle is None else {"allow_pickle": allow_pickle}
    node = comm.broadcast_object(node, root=root, **options)
    with announcing(comm):
        result = state if has_it else _allocate(node, arrays)
    # The root of a broadcast does not wait for all ranks, so a refusal of one might not reach it.
    # The barrier waits until every rank has its arrays.
    comm.barrier()
    total = sum(array.nbytes for array in arrays)
    done = 0
    failed: Optional[BaseException] = None
    for array in arrays:
        for piece in _pieces(array):
            comm.broadcast(piece, root=root)
            done += piece.nbytes
            if progress is None or failed is not None:
                continue
            try:
                progress(done, total)
            except BaseException as error:  # raised at the end: the other ranks need all pieces
                failed = error
    if failed is not None:
        raise failed
    return result
