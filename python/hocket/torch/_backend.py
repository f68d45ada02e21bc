"""The backend itself: the interface of a process group, without its calls on tensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Backend, ProcessGroup

import hocket

from ._forms import FORMS, completed, is_options
from ._meeting import Place
from ._membership import Membership
from ._spans import in_a_span
from ._texts import in_words, late_barrier, late_monitored_barrier
from ._verbs import Batch, Handle
from ._work import Kind, Together


def _base() -> Any:
    """The base class of backends in Python: Backend in newer PyTorch, whole groups in older."""
    try:
        Backend(0, 1)
    except TypeError:
        return ProcessGroup
    return Backend


Base: Any = _base()


_SHORTEST = timedelta(milliseconds=1)


def _given(timeout: Optional[timedelta]) -> Optional[timedelta]:
    """A call's own timeout. PyTorch passes a negative one if the call has none."""
    return timeout if timeout is not None and timeout >= timedelta(0) else None


class HocketBackend(Membership, Base):  # type: ignore[misc]
    """A process group of torch.distributed over a communicator of hocket.

    A resource, made by ``dist.init_process_group`` and ``dist.new_group``. Synchronous calls block
    here without the GIL. hocket's progress thread moves asynchronous calls on host memory.
    Asynchronous calls on CUDA tensors run on the group's own stream, and `wait` makes the current
    stream wait for it. Synchronous ones run on the current stream. Errors are hocket's own
    (`hocket.errors`); after `PeerDied`, a deadline, `Mismatch` or `abort` every later call raises.
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
        """hocket's communicator, with features beyond torch.distributed."""
        return self._comm

    # Attributes that PyTorch asks for beyond the calls below. Without them its own look-up never
    # ends.
    supports_splitting = True
    supports_window = False
    _supports_time_estimate = False

    @property
    def supports_coalescing(self) -> bool:
        """True if PyTorch marks the start and end of a batch of messages: in a HocketGroup, with
        GPUs.
        """
        return self.marks_batches and torch.cuda.is_initialized()

    def eager_connect_single_device(self, device: Any) -> None:
        """Called for a group with a fixed device: introduces GPUs to each other."""
        if torch.device(device).type == "cuda" and torch.cuda.is_available():
            self._comm.barrier(stream=torch.cuda.current_stream(device))

    def split_off(
        self, ranks: Sequence[int], timeout: Optional[timedelta]
    ) -> Optional[hocket.Communicator]:
        """Called on all ranks. Returns the communicator of `ranks`, in their order; None
        elsewhere.
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
        """Called if a new group excludes this rank. There is nothing to do."""

    @property
    def options(self) -> Any:
        """Options of PyTorch's class; hocket adds none."""
        return Backend.Options("hocket", timedelta(seconds=min(self._comm.deadline, 1e9)))

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        """"hocket"."""
        return "hocket"

    def _start_coalescing(self, _device: torch.device) -> None:
        self.is_collecting += 1
        self.made.collected, self.made.batch = [], Batch(self)

    def _end_coalescing(self, _device: torch.device) -> Any:
        collected, batch = self.made.collected, self.made.batch
        self.made.collected = self.made.batch = None
        self.is_collecting -= 1
        return Together(collected + batch.go())

    def barrier(self, opts: Any = None) -> Handle:
        """``dist.barrier``."""
        if torch.cuda.is_initialized():  # nothing is left on the streams at this point
            torch.cuda.current_stream().synchronize()
            self._streams.synchronize()
        timeout = _given(getattr(opts, "timeout", None))
        if getattr(opts, "asyncOp", False):
            return self._pending(self._comm.barrier_async(timeout), [], Kind.COLLECTIVE)
        try:
            self._comm.barrier(timeout)
        except hocket.DeadlineExceeded as error:
            raise late_barrier(error) from None
        self._shared.pending.settle()
        return self._finished([])

    def monitored_barrier(self, options: Any = None, wait_all_ranks: bool = False) -> None:
        """``dist.monitored_barrier``: a barrier whose error names all missing ranks.

        `options`, or the timeout itself in older PyTorch.
        """
        timeout = options if isinstance(options, timedelta) else getattr(options, "timeout", None)
        has_time = timeout != timedelta(0)
        if not has_time:  # whoever is there already; hocket has no limit of zero
            timeout = _SHORTEST
        try:
            self._comm.barrier(_given(timeout))
        except hocket.DeadlineExceeded as error:
            raise late_monitored_barrier(
                error, self._comm.rank, wait_all_ranks, has_time
            ) from None

    def set_timeout(self, timeout: timedelta) -> None:
        """The deadline of later calls."""
        self._comm.deadline = timeout

    _set_default_timeout = set_timeout  # the name under which older programs call it

    @contextlib.contextmanager
    def lasting(self, timeout: Optional[timedelta]) -> Iterator[None]:
        """Give calls that start within the context this deadline; None for the group's."""
        usual = self._comm.deadline
        self._comm.deadline = usual if _given(timeout) is None else timeout
        try:
            yield
        finally:
            self._comm.deadline = usual

    def abort(self) -> None:
        """End the pending and later calls of all ranks, now."""
        self._comm.abort("torch.distributed aborted the process group")

    def shutdown(self) -> None:
        """Wait for this rank's calls, except receives; called by ``dist.destroy_process_group``.

        Raises
        ------
        Error
            The first error of one of them that no call has raised. The group has ended in any case.
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
        """Ignored: hocket counts its calls by itself."""

    def _get_sequence_number_for_group(self) -> int:
        """The number of the last call that this rank made."""
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
    """Run a call in its turn. If it is refused or fails before its start, all ranks are told."""
    form = FORMS.get(name)
    with_options = -1 if form is None else form.places + 1

    @functools.wraps(call)
    def collective(self: HocketBackend, *arguments: Any, **named: Any) -> Any:
        if self._shared.turns.open:
            self._shared.turns.come()
        try:
            # Called by torch.distributed.
            if len(arguments) == with_options and not named and is_options(arguments[-1]):
                return call(self, *arguments)
            if form is None:
                return call(self, *arguments, **named)
            whole, rest = completed(form, arguments, named)
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
