"""Messages between the two sides of `hocket.futures`: a value, and the arrays in it.

A value is pickled, but its longer arrays are not. pickle (protocol 5) leaves them out, and they are
sent as messages of their own, from their memory into new memory.

    opening, at most 4096 bytes             then, as far as there are any
    | kind, counts | sizes | the pickle |   | a longer pickle | array | array | ...

Small tasks are sent in batches: one opening holds their pickles, one after the other. The worker
writes the outcomes into a `Ledger`, which is memory that both sides see. One message then reports
several outcomes.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from .._hocket import Communicator, Work
from ..errors import Error, InvalidArgument

# Kinds of messages from the master to a worker.
TASK, MAP, FUNCTION, STOP, BATCH = range(5)
# Kinds of messages from a worker. READY: the worker's initializer has returned.
READY, RESULT, FAILURE, BYE, NEWS, ELSEWHERE = range(6)

OPENING_BYTES = 4096
# In bytes. Shorter arrays are copied into the pickle.
_LEAST_APART = 2048
_MOST_APART = 256
_FOREVER = float("inf")
_PATIENCE_SECONDS = 0.2
_HEADER = struct.Struct("<IIQ")  # kind, number of arrays, length of the pickle
_SIZE = struct.Struct("<Q")
# The most bytes that the tasks of a batch may have together.
BATCH_BYTES = OPENING_BYTES - _HEADER.size
_LEDGER_BYTES = 1 << 16
_RESERVED_BYTES = 1 << 14

Buffers = list[pickle.PickleBuffer]


class Packer:
    """Turns values into messages. A packer never changes, so any thread may use it.

    Parameters
    ----------
    same_program : bool
        True if both sides run the same program, so that workers find functions of ``__main__``.
    """

    def __init__(self, same_program: bool) -> None:
        self._same_program = same_program

    def pack(self, kind: int, value: Any) -> list[Any]:
        """Return the messages that carry the value."""
        buffers: Buffers = []

        def keep_in(buffer: pickle.PickleBuffer) -> bool:
            if len(buffers) >= _MOST_APART or buffer.raw().nbytes < _LEAST_APART:
                return True
            buffers.append(buffer)
            return False

        content = self._pickled(value, keep_in, buffers)
        if not buffers and len(content) <= BATCH_BYTES:
            return [_HEADER.pack(kind, 0, len(content)) + content]
        sizes = b"".join(_SIZE.pack(buffer.raw().nbytes) for buffer in buffers)
        opening = _HEADER.pack(kind, len(buffers), len(content)) + sizes
        if len(opening) + len(content) <= OPENING_BYTES:
            return [opening + content, *(buffer.raw() for buffer in buffers)]
        return [opening, content, *(buffer.raw() for buffer in buffers)]

    def bytes_of(self, value: Any) -> bytes:
        """Return the whole value as bytes for `pickle.loads`."""
        return self._pickled(value, lambda _: True, [])

    def _pickled(self, value: Any, keep_in: Callable[[Any], bool], buffers: Buffers) -> bytes:
        try:
            content = pickle.dumps(value, 5, buffer_callback=keep_in)
            # Another program cannot load functions and classes that a pickle names in __main__.
            if self._same_program or b"__main__" not in content:
                return content
            failed: Optional[Exception] = None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            failed = error
        buffers.clear()
        try:
            import cloudpickle
        except ImportError:
            if failed is not None and "<l" not in str(failed):  # names no <locals> or <lambda>
                raise failed from None
        else:
            return bytes(cloudpickle.dumps(value, 5, buffer_callback=keep_in))
        raise InvalidArgument(
            f"{value!r} has a function or class that is defined in __main__ or within a function, "
            "where workers do not find it; put it into a module, or install the package cloudpickle"
        )


def kind_of(message: Any) -> int:
    """Return the kind of a packed value."""
    kind: int = _HEADER.unpack_from(message)[0]
    return kind


def content_of(message: Any) -> memoryview:
    """Return the pickle of a value that was packed into one message."""
    length = _HEADER.unpack_from(message)[2]
    return memoryview(message)[_HEADER.size : _HEADER.size + length]


def batch_of(tasks: list[bytes]) -> list[Any]:
    """Return one message for several tasks, each of which was packed into one message."""
    content = b"".join(tasks)
    return [_HEADER.pack(BATCH, 0, len(content)) + content]


def tasks_of(batch: memoryview) -> list[tuple[int, memoryview]]:
    """Return the kind and the pickle of each task of a batch."""
    tasks, at = [], 0
    while at < len(batch):
        kind, _, length = _HEADER.unpack_from(batch, at)
        begin, at = at + _HEADER.size, at + _HEADER.size + length
        tasks.append((kind, batch[begin:at]))
    return tasks


class Ledger:
    """A worker's outcomes of a batch, in memory that both sides see. It outlives the worker.

        | tasks begun | tasks ended | record | record | ...

    A record is: length, seconds, packed outcome.

    A resource. Only the worker writes. The other side reads when a message has reported outcomes,
    or when the worker is dead.
    """

    _COUNTS = struct.Struct("<QQ")
    _RECORD = struct.Struct("<Qd")

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._view = memoryview(memory)
        self.restart()

    @classmethod
    def of(cls, comm: Communicator, worker: int) -> Optional[Ledger]:
        """Make the ledger of a pair of ranks. Return None if they are on two hosts. Collective."""
        if len(set(comm.hosts)) > 1:
            return None
        memory = comm.symmetric.empty(_LEDGER_BYTES, "uint8", memory="host")
        return cls(memory if comm.rank == worker else comm.symmetric.peer(memory, worker))

    def restart(self) -> None:
        """Begin the next batch. The master calls it before it sends the batch, the worker
        afterwards.
        """
        self._at = self._COUNTS.size
        self.begun = self.ended = 0
        self._COUNTS.pack_into(self._view, 0, 0, 0)

    def begin_task(self) -> None:
        """Record that the worker begins a task."""
        self.begun += 1
        self._COUNTS.pack_into(self._view, 0, self.begun, self.ended)

    def end_task(self, outcome: bytes, seconds: float) -> None:
        """Record the outcome of the task."""
        begin = self._at + self._RECORD.size
        self._RECORD.pack_into(self._view, self._at, len(outcome), seconds)
        self._at = begin + len(outcome)
        self._view[begin : self._at] = outcome
        self.ended += 1
        self._COUNTS.pack_into(self._view, 0, self.begun, self.ended)

    def has_room(self, outcome: bytes) -> bool:
        """Return False if an outcome is too long for the free space. A placeholder always fits."""
        return self._at + self._RECORD.size + len(outcome) <= _LEDGER_BYTES - _RESERVED_BYTES

    def read(self) -> list[tuple[memoryview, float]]:
        """Return the outcomes written since the last call, with their seconds."""
        self.begun, written = self._COUNTS.unpack_from(self._view)
        found = []
        for _ in range(written - self.ended):
            length, seconds = self._RECORD.unpack_from(self._view, self._at)
            begin = self._at + self._RECORD.size
            self._at = begin + length
            found.append((self._view[begin : self._at], seconds))
        self.ended = written
        return found


def send(comm: Communicator, messages: list[Any], peer: int) -> list[Work]:
    """Send a packed value. Return the pending sends of a long value. A short value is already sent.
    """
    if len(messages) == 1:
        comm.send(messages[0], peer, deadline=_FOREVER)
        return []
    return [comm.send_async(message, peer, deadline=_FOREVER) for message in messages]


class Incoming:
    """Receives the next value from a peer without waiting. A resource; one thread.

    Call `begin`. When `work` has ended, call `advance`, which returns the kind or sets the next
    `work`.
    """

    work: Work

    def __init__(self, comm: Communicator, peer: int) -> None:
        self._comm = comm
        self._peer = peer
        self._opening = np.empty(OPENING_BYTES, np.uint8)
        self._view = self._opening.data

    def begin(self) -> None:
        """Start to receive the next value's first message."""
        self._parts: Optional[list[Any]] = None
        self._works: list[Work] = []
        self.work = self._comm.recv_async(
            self._opening, self._peer, deadline=_FOREVER, allow_shorter=True
        )

    def advance(self) -> Optional[int]:
        """Return the value's kind if the value is complete. Return None if a new `work` must end
        first.

        Raises the error of a receive.
        """
        self.work.synchronize()
        if self._parts is None:
            self._parts = self._read_opening()
            self._works = [
                self._comm.recv_async(part, self._peer, deadline=_FOREVER)
                for part in self._parts
                if part.nbytes and not isinstance(part, memoryview)
            ]
        if self._works:
            self.work = self._works.pop(0)
            return None
        return self._kind

    def _read_opening(self) -> list[Any]:
        self._kind: int
        self._kind, count, length = _HEADER.unpack_from(self._view)
        begin = _HEADER.size + count * _SIZE.size
        sizes = [size for (size,) in _SIZE.iter_unpack(self._view[_HEADER.size : begin])]
        content: Any = self._view[begin : begin + length]
        if begin + length > OPENING_BYTES:
            content = np.empty(length, np.uint8)
        return [content, *(np.empty(size, np.uint8) for size in sizes)]

    def batch(self) -> list[tuple[int, memoryview]]:
        """Return the tasks of the received batch. They are valid until the next `begin`."""
        assert self._parts is not None
        return tasks_of(self._parts[0])

    def parts(self) -> tuple[Any, list[Any]]:
        """Return the pickle of the received value, and its arrays."""
        assert self._parts is not None
        content, *arrays = self._parts
        return content, arrays

    def value(self) -> Any:
        """Return the received value."""
        content, arrays = self.parts()
        return pickle.loads(content, buffers=arrays)

    def next(self) -> int:
        """Wait for the next value, and return its kind.

        The wait consists of short waits. A worker may be idle for long, and one long wait would
        print a warning.
        """
        self.begin()
        while True:
            try:
                self.work.synchronize(_PATIENCE_SECONDS)
            except Error:
                raise
            except TimeoutError:
                continue
            kind = self.advance()
            if kind is not None:
                return kind
