"""The backend: the interface of a process group, except its calls on tensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Backend, ProcessGroup

import hocket

from ._error_texts import in_words, late_barrier, late_monitored_barrier
from ._meeting import Place
from ._membership import Membership
from ._overloads import OVERLOADS, completed, is_options
from ._profiler_spans import in_a_span
from ._verbs import Batch, Handle
from ._work import Kind, Together


def _base() -> Any:
    """Return the base class of backends in Python: Backend in newer PyTorch, ProcessGroup in older.
    """
    try:
        Backend(0, 1)
    except TypeError:
        return ProcessGroup
    return Backend


Base: Any = _base()


_SHORTEST = timedelta(milliseconds=1)


def _given(timeout: Optional[timedelta]) -> Optional[timedelta]:
    """Return a call's own timeout, or None if it has none; PyTorch then passes a negative one."""
    return timeout if timeout is not None and timeout >= timedelta(0) else None


class HocketBackend(Membership, Base):  # type: ignore[misc]
    """A process group of torch.distributed over a communicator of hocket.

    A resource, made by ``dist.init_process_group`` and ``dist.new_group``. Synchronous calls block
    the caller without the GIL. hocket's progress thread carries asynchronous calls on host memory.
    Asynchronous calls on CUDA tensors run on the group's own stream, and `wait` makes the current
    stream wait for this one. Synchronous calls on CUDA tensors run on the current stream. Errors
    are hocket's (`hocket.errors`). After `PeerDied`, `DeadlineExceeded`, `Mismatch` or `abort`,
    every later call raises.
    """

    def __init__(
        self, comm: hocket.Communicator, name: str, place: Optional[Place] = None
    ) -> None:
        Base.__init__(self, comm.rank, comm.size)
        Membership.__init__(self, comm, name, place)
        self._is_shut = False
        self.marks_batches = False

    @property
    def communicator(self) -> hocket.Communicator:
        """hocket's communicator, which has features beyond torch.distributed."""
        return self._comm

    # PyTorch reads these attributes in addition to the calls below. Without them, its own look-up
    # never ends.
    supports_splitting = True
    supports_window = False
    _supports_time_estimate = False

    @property
    def supports_coalescing(self) -> bool:
        """True if PyTorch marks the start and end of a batch of messages. It does so in a
        HocketGroup with GPUs.
        """
        return self.marks_batches and torch.cuda.is_initialized()

    def eager_connect_single_device(self, device: Any) -> None:
        """Connect the ranks' GPUs. PyTorch calls it for a group that has a fixed device."""
        if torch.device(device).type == "cuda" and torch.cuda.is_available():
            self._comm.barrier(stream=torch.cuda.current_stream(device))

    def split_off(
        self, ranks: Sequence[int], timeout: Optional[timedelta]
    ) -> Optional[hocket.Communicator]:
        """Split the communicator; all ranks call it. Return the communicator of `ranks`, in their
        order. Return None on ranks that are not listed.
        """
        member = self._comm.rank in ranks
        comm = self._comm.split(
            min(ranks) if member else -1, list(ranks).index(self._comm.rank) if member else 0
        )
        if not member:
            return None
        if timeout is not None:
            comm.deadline = timeout
        return comm

    def perform_nocolor_split(self, device: Any) -> None:
        """Do nothing. PyTorch calls it on a rank that a new group excludes."""

    @property
    def options(self) -> Any:
        """Options of PyTorch's class. hocket adds no options."""
        return Backend.Options("hocket", timedelta(seconds=min(self._comm.deadline, 1e9)))

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        """Return "hocket"."""
        return "hocket"

    def _start_coalescing(self, _device: torch.device) -> None:
        self.is_collecting += 1
        self.made.collected, self.made.batch = [], Batch(self)

    def _end_coalescing(self, _device: torch.device) -> Any:
        collected, batch = self.made.collected, self.made.batch
        assert collected is not None and batch is not None  # PyTorch has called _start_coalescing
        self.made.collected = self.made.batch = None
        self.is_collecting -= 1
        return Together(collected + batch.go())

    def barrier(self, opts: Any = None) -> Optional[Handle]:
        """Implements ``dist.barrier``."""
        if torch.cuda.is_initialized():  # a barrier leaves no earlier work on the streams
            torch.cuda.current_stream().synchronize()
            self._streams.synchronize()
        timeout = _given(getattr(opts, "timeout", None))
        if getattr(opts, "asyncOp", False):
            return self._pending(self._comm.barrier_async(timeout), [], Kind.COLLECTIVE)
        try:
            self._comm.barrier(timeout)
        except hocket.DeadlineExceeded as error:
            raise late_barrier(error) from None
        self._shared.pending.drop_ended()
        return self._finished([])

    def monitored_barrier(self, options: Any = None, wait_all_ranks: bool = False) -> None:
        """Implements ``dist.monitored_barrier``: a barrier whose error names all missing ranks.

        `options` are PyTorch's options. In older PyTorch it is the timeout.
        """
        timeout = options if isinstance(options, timedelta) else getattr(options, "timeout", None)
        has_time = timeout != timedelta(0)
        if not has_time:  # counts only ranks that are there already; hocket has no limit of zero
            timeout = _SHORTEST
        try:
            self._comm.barrier(_given(timeout))
        except hocket.DeadlineExceeded as error:
            raise late_monitored_barrier(
                error, self._comm.rank, wait_all_ranks, has_time
            ) from None

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the deadline of later calls."""
        self._comm.deadline = timeout

    _set_default_timeout = set_timeout  # older programs call it by this name

    @contextlib.contextmanager
    def lasting(self, timeout: Optional[timedelta]) -> Iterator[None]:
        """Make a context in which calls that start have this deadline. None stands for the group's.
        """
        usual = self._comm.deadline
        self._comm.deadline = usual if _given(timeout) is None else timeout
        try:
            yield
        finally:
            self._comm.deadline = usual

    def abort(self) -> None:
        """End the pending and later calls of all ranks at once."""
        self._comm.abort("torch.distributed aborted the process group")

    def shutdown(self) -> None:
        """Wait for this rank's calls, except receives. ``dist.destroy_process_group`` calls it.

        Raises
        ------
        Error
            The first error of these calls, if no call has raised an error before. The group has
            ended in any case.
        """
        if self._is_shut:
            return
        self._is_shut = True
        had_raised = self._shared.has_raised
        try:
            self._shared.pending.drain()
            error: Optional[BaseException] = self._streams.drain(self._comm)
        except hocket.Error as failure:
            error = failure
        finally:
            self._comm.close()
            self._shared.ends.close()
        if error is not None and not had_raised:
            raise error

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: hocket counts its calls itself."""

    def _get_sequence_number_for_group(self) -> int:
        """Return the number of the last call that this rank has made."""
        calls = self._comm.recent_calls()
        return calls[-1].sequence if calls else 0


# --- What all calls have in common ----------------------------------------------------------------
_COLLECTIVES = (
    "allreduce allreduce_sparse allreduce_coalesced reduce reduce_scatter_single _reduce_scatter_base "
    "reduce_scatter reduce_scatter_single_coalesced reduce_scatter_tensor_coalesced broadcast "
    "all_gather_single _allgather_base allgather allgather_coalesced all_gather_single_coalesced "
    "allgather_into_tensor_coalesced gather gather_single scatter all_to_all_single alltoall_base "
    "alltoall barrier monitored_barrier"
).split()
_MESSAGES = ("send", "recv", "recv_anysource", "_end_coalescing")


def _as_collective(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a collective call. It runs in its turn. If it is refused or fails before its start, all
    ranks are told.
    """
    overload = OVERLOADS.get(name)
    with_options = -1 if overload is None else overload.places + 1

    @functools.wraps(call)
    def collective(self: HocketBackend, *arguments: Any, **named: Any) -> Any:
        if self._shared.turns.open:
            self._shared.turns.come()
        try:
            # torch.distributed has made the call, in the usual form.
            if len(arguments) == with_options and not named and is_options(arguments[-1]):
                return call(self, *arguments)
            if overload is None:
                return call(self, *arguments, **named)
            whole, rest = completed(overload, arguments, named)
            with self.lasting(getattr(whole[-1], "timeout", None)):
                return call(self, *whole, **rest)
        except Exception as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from None

    return collective


def _as_message(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def message(self: HocketBackend, *arguments: Any, **named: Any) -> Any:
        try:
            return call(self, *arguments, **named)
        except hocket.Error as error:
            self._shared.has_raised = True
            told = in_words(error)
            if told is error:
                raise
            raise told from None

    return message


for _name in _COLLECTIVES:
    _there = "_all_reduce_in_full" if _name == "allreduce" else _name
    _call = _as_collective(_name, getattr(HocketBackend, _there))
    setattr(HocketBackend, _there, in_a_span(_name, _call))
for _name in _MESSAGES:
    _call = _as_message(getattr(HocketBackend, _name))
    setattr(HocketBackend, _name, _call if _name == "_end_coalescing" else in_a_span(_name, _call))
