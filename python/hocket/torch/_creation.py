"""Creates process groups: the ranks meet by torch.distributed's store."""

from __future__ import annotations

import secrets
import sys
import time
from datetime import timedelta
from typing import Any, Union

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup
from torch.distributed.rendezvous import register_rendezvous_handler

import hocket
from hocket._hocket import _run_time

from . import _batches, _extraction, _hooks, _joining
from ._backend import Base, HocketBackend
from ._group import HocketGroup, backends_by_device, whole_group
from ._rendezvous import by_launcher
from ._whole import WholeBackend


class StoreBootstrap(hocket.Bootstrap):
    """A bootstrap by a store of torch.distributed, whose prefix belongs to the group."""

    def __init__(self, store: Any, rank: int, size: int, start: str) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._start = start
        self._calls = 0

    @classmethod
    def meet(cls, store: Any, rank: int, size: int, timeout: timedelta) -> StoreBootstrap:
        """Make the ranks agree on a name of this start, which prefixes all keys.

        A store may hold what an earlier start of the same ranks wrote, as torchrun's outlives ranks
        that it restarts. So each rank writes a random word of its own. Rank 0 answers under that
        word with a name that it made up for this start.
        """
        own = secrets.token_hex(8)
        if rank != 0:
            store.set(f"hocket/here/{rank}", own)
            start = store.get(f"hocket/start/{own}").decode()
            store.set(f"hocket/{start}/met/{rank}", "1")
            return cls(store, rank, size, start)
        until = _run_time() + timeout.total_seconds()
        pause = _LEAST_PAUSE
        missing = set(range(1, size))
        answered: dict[int, bytes] = {}
        while True:
            for other in sorted(missing):
                here = f"hocket/here/{other}"
                if store.check([f"hocket/{own}/met/{other}"]):
                    missing.discard(other)
                elif store.check([here]) and (word := store.get(here)) != answered.get(other):
                    answered[other] = word  # may belong to an earlier start; then another one comes
                    store.set(f"hocket/start/{word.decode()}", own)
            if not missing:
                return cls(store, rank, size, own)
            if _run_time() > until:
                raise hocket.RendezvousError(
                    f"rank {', '.join(map(str, sorted(missing)))} of {size} has not come within "
                    f"{timeout.total_seconds():g} s; see its own output, or give init_process_group a "
                    "longer timeout"
                )
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)

    @property
    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of processes in the group."""
        return self._size

    def broadcast(self, buffer: Any, root: int) -> None:
        """See `hocket.Bootstrap.broadcast`."""
        key = self._next("broadcast")
        if self._rank == root:
            self._store.set(key, buffer.tobytes())
        else:
            buffer[:] = np.frombuffer(self._store.get(key), "uint8")

    def all_reduce(self, values: Any, op: Any) -> None:
        """See `hocket.Bootstrap.all_reduce`."""
        key = self._next("all_reduce")
        self._store.set(f"{key}/{self._rank}", values.tobytes())
        every = [
            np.frombuffer(self._store.get(f"{key}/{rank}"), "int64") for rank in range(self._size)
        ]
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        values[:] = fold.reduce(every)

    def _next(self, call: str) -> str:
        self._calls += 1
        return f"hocket/{self._start}/{self._calls}/{call}"


# Between rank 0's looks at who has come.
_LEAST_PAUSE, _MOST_PAUSE = 0.0001, 0.01


def create(options: Any, backend_options: Any = None) -> Union[HocketGroup, HocketBackend]:
    """Create a group; torch.distributed calls it on each member."""
    known = sys._getframe(1).f_locals
    if Base is ProcessGroup:
        _refuse_others(known)
    bootstrap = StoreBootstrap.meet(
        options.store, options.group_rank, options.group_size, options.timeout
    )
    comm = hocket.init(
        bootstrap=bootstrap,
        timeout=options.timeout,
        deadline=options.timeout,
        name=_name_of(options),
    )
    if Base is ProcessGroup:
        group = WholeBackend(comm, str(options.group_id), options.store)
        group.bind(known.get("device_id"))
        return group
    backend = HocketBackend(comm, str(options.group_id))
    return whole_group(backend, options, known) or backend


def _name_of(options: Any) -> str:
    """The group's name in errors: "world" for all ranks, else PyTorch's name and the members."""
    ranks = list(options.global_ranks_in_group)
    if not ranks:
        return "world"
    shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
    return f"group {options.group_id} of ranks {shown}"


_SHOWN = 8  # members of a group, in its name


def _refuse_others(known: dict[str, Any]) -> None:
    """This PyTorch would make a Python backend carry all devices, although others were asked
    for.
    """
    others = {n: d for d, n in backends_by_device(known).items() if n != "hocket"}
    for name, device in others.items():
        raise ValueError(
            f'the backend of {device} tensors is "{name}": PyTorch {torch.__version__} takes only '
            'whole process groups in Python; use "hocket" for all tensors, or a newer PyTorch (2.15 '
            "will do)"
        )


def register() -> None:
    """Register "hocket" and "hocket://" with torch.distributed; importing `hocket.torch` does
    it.
    """
    if "HOCKET" in dist.Backend._plugins:
        return
    _batches.install()
    _extraction.install()
    _joining.install()
    _hooks.install()
    register_rendezvous_handler("hocket", by_launcher)
    # PyTorch reports these as the devices of a group's tensors.
    devices = ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]
    dist.Backend.register_backend("hocket", create, extended_api=True, devices=devices)
