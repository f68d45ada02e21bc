"""Refuses to copy or pickle objects that belong to one process. The error says what to do instead.
"""

from __future__ import annotations

import copyreg
from typing import Any, Callable, NoReturn

from .._hocket import Communicator, Prepared, Store, StoreServer, SymmetricMemory, Work
from ..cluster import Cluster
from ..pool import DevicePool

_ADVICE = {
    Communicator: "comm.duplicate() makes another; other processes join by hocket.init()",
    Work: "wait for it, and pass on its result",
    Prepared: "prepare the call where it is made",
    SymmetricMemory: "each process has its communicator's",
    Store: "hocket.connect_store makes another, in other processes too",
    StoreServer: "pass on its address, for hocket.connect_store",
    Cluster: "a process that needs one makes its own",
    DevicePool: "a process that needs one makes its own",
}


def prepare() -> None:
    """Register the refusals. The package calls it once."""
    for kind, advice in _ADVICE.items():
        copyreg.pickle(kind, _refusal(kind, advice))


def _refusal(kind: type[Any], advice: str) -> Callable[[Any], NoReturn]:
    def refuse(_: Any) -> NoReturn:
        raise TypeError(f"a hocket.{kind.__name__} cannot be copied or pickled: {advice}")

    return refuse
