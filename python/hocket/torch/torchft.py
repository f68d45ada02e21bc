"""A process group for torchft, whose replicas may come and go while a model trains.

>>> from hocket.torch.torchft import ProcessGroupHocket
>>> manager = torchft.Manager(pg=ProcessGroupHocket(), ...)
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import ProcessGroup, Store, Work

import hocket

try:
    from torchft.process_group import ProcessGroupWrapper
except ImportError as _error:
    raise ImportError(
        f"hocket.torch.torchft needs torchft, which cannot be imported: {_error}. Install it (pip "
        "install torchft), or use dist._reconfigure with hocket.torch"
    ) from _error

from ._backend import HocketBackend
from ._backend_as_group import BackendAsGroup
from ._error_texts import in_front
from ._group import HocketGroup
from ._meeting import Place
from ._streams import failure_of


class Told(Work):  # type: ignore[misc, unused-ignore]
    """A call whose error `wait` does not raise. The error is kept in the call's future and in
    `errored`.

    torchft 0.2 needs this for all_reduce. The hook by which its DDP adds up gradients fails if
    `wait` raises, over gloo, too. NCCL's `wait` does not raise either.
    """

    def __init__(self, work: Optional[Work], error: Optional[hocket.Error] = None) -> None:
        super().__init__()
        self._work = work  # None if the call could not be started
        self._error = error

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait until the call has ended. Return True if it has succeeded."""
        if self._work is None:
            return False
        try:
            return bool(self._work.wait() if timeout is None else self._work.wait(timeout))
        except hocket.Error as error:
            self._error = error
            return False

    def is_completed(self) -> bool:
        """Return True if the call has ended."""
        return self._work is None or self._work.is_completed()

    def is_success(self) -> bool:
        """Return True if the call has ended with success."""
        return self._work is not None and self._work.is_success()

    def exception(self) -> Optional[BaseException]:
        """Return the error of a call that has ended."""
        return self._error if self._work is None else self._work.exception()

    def get_future(self) -> Any:
        """Return a future that gets the result or the error."""
        if self._work is not None:
            return self._work.get_future()
        future: Any = torch.futures.Future()
        future.set_exception(self._error)
        return future


class ProcessGroupHocket(ProcessGroupWrapper):  # type: ignore[misc, unused-ignore]
    """torchft's interface of a process group, over hocket, for CPU and CUDA tensors.

    A resource, like torchft's own groups. `configure` makes a new communicator of the ranks that
    meet at its address. `abort` ends the calls of all ranks; another thread may call it. If a rank
    dies, the calls end, too, within milliseconds. torchft then calls `configure` again.

    Parameters
    ----------
    timeout : timedelta
        Time limit of `configure`, and of each call.
    """

    def __init__(self, timeout: timedelta = timedelta(seconds=60)) -> None:
        super().__init__(timeout)
        self._backend: Optional[HocketBackend] = None

    def _create_pg(self, store: Store, rank: int, world_size: int) -> ProcessGroup:
        self._close()
        name = "torchft's group"
        if self._quorum_id is not None:
            name += f" of quorum {self._quorum_id}"
        place = Place(store, self._timeout, name)
        try:
            comm = place.meet(rank, world_size)
        except hocket.RendezvousError as error:
            raise in_front("Socket Timeout", error) from None
        if issubclass(HocketBackend, ProcessGroup):  # in older PyTorch
            self._backend = group = BackendAsGroup(comm, name, place)
            return group
        self._backend = backend = HocketBackend(comm, name, place)
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        return HocketGroup.assemble(store, backend, devices, {})

    def _close(self) -> None:
        """Drop the previous communicator. `abort` has already ended its calls."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.has_raised()
            with contextlib.suppress(hocket.Error):
                backend.shutdown()

    def shutdown(self) -> None:
        """Wait for this rank's calls, then leave the group."""
        super().shutdown()
        self._close()

    def errored(self) -> Optional[Exception]:
        """Return the error that ended the group. Then the group must be configured again."""
        backend = self._backend
        error = None if backend is None else failure_of(backend.communicator)
        return None if error is None else in_front("aborted", error)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of `configure` and of later calls."""
        super().set_timeout(timeout)
        if self._backend is not None:
            self._backend.set_timeout(timeout)

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        """Return "torchft-hocket"."""
        return "torchft-hocket"

    def allreduce(self, tensors: list[torch.Tensor], opts: object) -> Work:
        """Implements ``dist.all_reduce``. If the call fails, its handle's `wait` returns False; see
        `Told`.
        """
        try:
            return Told(super().allreduce(tensors, opts))
        except hocket.InvalidArgument:
            raise
        except hocket.Error as error:
            return Told(None, error)
