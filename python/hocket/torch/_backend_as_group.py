"""The backend for PyTorch versions, such as 2.11, that accept only whole groups in Python."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Backend, PrefixStore

import hocket

from ._backend import HocketBackend
from ._meeting import Place


class _Options(Backend.Options):  # type: ignore[misc, unused-ignore]
    """PyTorch's options. PyTorch copies them for a split group, but its own class cannot be copied.
    """

    def __deepcopy__(self, _memo: Any) -> _Options:
        return _Options(self.backend, self._timeout)


class BackendAsGroup(HocketBackend):
    """A `HocketBackend` that is a whole process group. Its tensors may lie on any device."""

    def __init__(self, comm: hocket.Communicator, name: str, place: Place) -> None:
        super().__init__(comm, name, place)
        self._store = place.store
        self.hands_on = self.is_called_directly = True

    def bind(self, device: Any) -> None:
        """Set the `device_id` of ``init_process_group``. PyTorch sets it only on the group that
        this object replaces, and ``dist.split_group`` refuses a group without it.
        """
        if device is not None:
            self.bound_device_id = device

    @property
    def options(self) -> Any:
        """See `HocketBackend.options`."""
        theirs = super().options
        return _Options(theirs.backend, theirs._timeout)

    def _get_backend(self, device: Any) -> BackendAsGroup:
        return self

    @property
    def _device_types(self) -> list[torch.device]:
        """The devices whose tensors this group carries. PyTorch's checkpoints read it."""
        names = ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]
        return [torch.device(name) for name in names]

    @property
    def group_name(self) -> str:
        """The group's name in torch.distributed."""
        return self._called

    def getGroupName(self) -> str:  # noqa: N802: PyTorch's name
        """Return the group's name. PyTorch's own code calls this method."""
        return self._called

    def _set_group_name(self, name: str) -> None:
        self._called = name

    def get_group_store(self) -> Any:
        """Return the store at which the group's ranks met."""
        return self._store

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: Optional[timedelta] = None,
        opts: Any = None,
        group_name: Any = None,
        group_desc: Optional[str] = None,
    ) -> Any:
        """Split this group. ``dist.split_group`` calls it on every rank. Returns None outside
        `ranks`.
        """
        comm = self.split_off(ranks, timeout)
        if comm is None:
            return None
        name = group_name or f"{self._called}:{min(ranks)}"
        store = PrefixStore(f"{name}/", self._store)
        return BackendAsGroup(comm, name, Place(store, timedelta(seconds=min(comm.deadline, 1e9)), name))
