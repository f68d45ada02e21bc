"""Groups whose members change: `dist._reconfigure` and `dist.shrink_group`.

PyTorch names the members of the next group by handles, which the program exchanges. The members may
be any processes that share a store, whether or not they were in one group before. So they make a
new world, like newcomers and members in hocket's `admit`. The old communicator lives until the new
communicator exists.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn, Optional

from torch._C import _distributed_c10d
from torch._C._distributed_c10d import PrefixStore

import hocket

from ._fast_path import FastPath
from ._meeting import Place
from ._work import Finished, finished_of


_SHRINK_ABORT = 1  # PyTorch's flag


class Unformed:
    """Stands for the communicator of a group that has not been configured yet."""

    status = None

    def __init__(self, rank: int, size: int, timeout: timedelta, name: str) -> None:
        self.rank, self.size, self.name = rank, size, name
        self.deadline: Any = timeout.total_seconds()

    def recent_calls(self) -> list[Any]:
        """Return no calls."""
        return []

    def close(self) -> None:
        """Do nothing: there is no communicator to end."""

    def abort(self, reason: str = "") -> None:
        """Do nothing: there is no communicator to end."""

    def refuse(self, reason: str) -> NoReturn:
        """Raise the refusal. There are no other ranks to tell."""
        raise hocket.InvalidArgument(reason)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*_: Any, **__: Any) -> NoReturn:
            raise hocket.RendezvousError(
                f"{self.name} has no members yet, as it was made with enable_reconfigure=True; "
                "call dist._reconfigure(uuid, handles) first, on all members"
            )

        return call


class Membership(FastPath):
    """The methods of a backend that change its members.

    Part of `HocketBackend`, whose docstring also describes these methods.
    """

    # True if the group was made with enable_reconfigure=True.
    is_movable = False
    supports_shrinking = True
    devices: Sequence[str] = ("cpu",)  # the devices whose tensors the group carries

    def __init__(self, comm: hocket.Communicator, name: str, place: Optional[Place]) -> None:
        super().__init__(comm)
        self._called = name  # the group's name in torch.distributed
        self._place = place
        self._handle = f"hocket:{secrets.token_hex(16)}"
        self._uuids: set[int] = set()

    @property
    def supports_reconfigure(self) -> bool:
        """True if the group was made with enable_reconfigure=True."""
        return self.is_movable

    def rank(self) -> int:
        """Return this process's number in the current group."""
        return self._comm.rank

    def size(self) -> int:
        """Return the number of processes in the current group."""
        return self._comm.size

    def get_reconfigure_handle(self) -> str:
        """Return the handle by which others take this process into a group. It never changes."""
        self._require_movable()
        return self._handle

    def reconfigure(self, opts: Any) -> Finished:
        """Implements ``dist._reconfigure``: go on as the group of the processes in `opts.handles`.

        Exactly these processes call it. A list gives the ranks by position; a set gives them in the
        sorted order of the handles. If the call fails, the group is unchanged, and a call with
        another uuid may follow.

        Raises
        ------
        InvalidArgument
            The uuid was used before. Or the handles hold one handle twice, a handle of another
            backend, or not this process's own handle.
        RendezvousError
            A process has not come within the timeout, or has died. The message names it.
        """
        self._require_movable()
        handles = sorted(opts.handles) if isinstance(opts.handles, set) else list(opts.handles)
        rank = self._rank_among(handles)
        if opts.uuid in self._uuids:
            raise hocket.InvalidArgument(
                f"uuid {opts.uuid} was already used by this group; give a fresh one, the same on "
                "all members"
            )
        self._uuids.add(opts.uuid)
        self._move(rank, len(handles), opts.timeout, f"reconfigure/{opts.uuid}")
        return finished_of([])

    def shrink(
        self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, opts_override: Any = None
    ) -> Any:
        """Implements ``dist.shrink_group``: returns the backend of the other ranks, in their order.

        Exactly these ranks call it; the excluded ranks may have died. With SHRINK_ABORT, pending
        calls are ended first.
        """
        left = [rank for rank in range(self.size()) if rank not in set(ranks_to_exclude)]
        if self.rank() not in left:
            raise hocket.InvalidArgument(f"rank {self.rank()} is excluded, and calls shrink itself")
        if self._place is None:
            raise hocket.InvalidArgument("this group has no store of its own to meet by")
        if shrink_flags & _SHRINK_ABORT:
            self._comm.abort("torch.distributed shrinks the process group")
        timeout = getattr(opts_override, "_timeout", None)
        under = "shrink/" + "-".join(map(str, left))
        comm = self._place.meet(left.index(self.rank()), len(left), timeout, under)
        self.has_raised()  # PyTorch now destroys this group, which other ranks may have left
        place = self._place._replace(store=PrefixStore(under, self._place.store))
        smaller = type(self)(comm, self._called, place)
        smaller.devices = self.devices
        return smaller

    def has_raised(self) -> None:
        """Note that the program knows of the group's end. `shutdown` then raises no error."""
        self._shared.has_raised = True

    def get_error(self) -> Any:
        """Return the error that ended the group, as PyTorch's class. An abort is no error."""
        status = self._comm.status
        kinds = _distributed_c10d.ErrorType
        if status is None or status.code == "aborted":
            return kinds.SUCCESS
        if status.code == "deadline_exceeded":
            return kinds.TIMEOUT
        return kinds.REMOTE_ERROR if status.code == "peer_died" else kinds.COMM_ERROR

    def _require_movable(self) -> None:
        if not self.is_movable:
            raise hocket.InvalidArgument(
                "the group's members are fixed; make it with enable_reconfigure=True, which "
                "PyTorch has since 2.14: dist.init_process_group(\"hocket\", enable_reconfigure=True)"
            )

    def _rank_among(self, handles: list[str]) -> int:
        if len(set(handles)) != len(handles):
            raise hocket.InvalidArgument("a handle is there twice; give one for each process")
        for place, handle in enumerate(handles):
            if not handle.startswith("hocket:"):
                raise hocket.InvalidArgument(
                    f"handles[{place}] is {handle!r}, expected one of "
                    "dist._get_reconfigure_handle() on a group of hocket"
                )
        if self._handle not in handles:
            raise hocket.InvalidArgument(
                f"this process's own handle is not among the {len(handles)} handles; only members "
                "of the next group call _reconfigure"
            )
        return handles.index(self._handle)

    def _move(self, rank: int, size: int, timeout: Optional[timedelta], under: str) -> None:
        assert self._place is not None
        before, streams, shared = self._comm, self._streams, self._shared
        comm = self._place.meet(rank, size, timeout, under)
        comm.deadline = before.deadline
        self._use(comm)
        # Pending calls of the old communicator end with an error. Handles keep the objects that
        # they need.
        before.abort("torch.distributed reconfigured the process group")
        streams.synchronize()
        before.close()
        shared.ends.close()
