"""Messages between the two sides of `hocket.futures`: a value, and the arrays in it.

A value is pickled, but its arrays of some length are not: pickle (protocol 5) leaves them out, and
they travel as messages of their own, from where they lie into new memory.

    opening, 4096 bytes at most             then, as far as there are any
    | kind, counts | sizes | the pickle |   | a longer pickle | array | array | ...
"""

from __future__ import annotations

import io
import pickle
import struct
import types
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from ._hocket import Communicator, Work
from .errors import Error, InvalidArgument

# From the one that hands out to a worker.
TASK, MAP, FUNCTION, STOP = range(4)
# From a worker. It is ready when its initializer has returned.
READY, RESULT, FAILURE, BYE = range(4)

OPENING_BYTES = 4096
# Shorter arrays are copied into the pickle.
_LEAST_APART = 2048
_MOST_APART = 256
_FOREVER = float("inf")
_PATIENCE_SECONDS = 0.2
_HEADER = struct.Struct("<IIQ")  # kind, number of arrays, length of the pickle
_SIZE = struct.Struct("<Q")

Buffers = list[pickle.PickleBuffer]


class _ByValue(Exception):
    """A function or class that the other side cannot find by its name."""


class _ForStrangers(pickle.Pickler):
    """Pickle for processes that run another program. Refuses what they cannot import."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and (
            value.__module__ == "__main__" or "<" in value.__qualname__
        ):
            raise _ByValue
        return NotImplemented


class Packer:
    """Turns values into messages. A value; any thread.

    Parameters
    ----------
    same_program : bool
        True if both sides run the same program, so that functions of ``__main__`` are found there.
    """

    def __init__(self, same_program: bool) -> None:
        self._same_program = same_program

    def pack(self, kind: int, value: Any) -> list[Any]:
        """The messages that carry the value."""
        buffers: Buffers = []

        def keep_in(buffer: pickle.PickleBuffer) -> bool:
            if len(buffers) >= _MOST_APART or buffer.raw().nbytes < _LEAST_APART:
                return True
            buffers.append(buffer)
            return False

        content = self._pickled(value, keep_in, buffers)
        sizes = b"".join(_SIZE.pack(buffer.raw().nbytes) for buffer in buffers)
        opening = _HEADER.pack(kind, len(buffers), len(content)) + sizes
        if len(opening) + len(content) <= OPENING_BYTES:
            return [opening + content, *(buffer.raw() for buffer in buffers)]
        return [opening, content, *(buffer.raw() for buffer in buffers)]

    def bytes_of(self, value: Any) -> bytes:
        """The value in one piece, for `pickle.loads`."""
        return self._pickled(value, lambda _: True, [])

    def _pickled(self, value: Any, keep_in: Callable[[Any], bool], buffers: Buffers) -> bytes:
        try:
            if self._same_program:
                return pickle.dumps(value, 5, buffer_callback=keep_in)
            content = io.BytesIO()
            _ForStrangers(content, 5, buffer_callback=keep_in).dump(value)
            return content.getvalue()
        except (_ByValue, pickle.PicklingError, AttributeError, TypeError) as error:
            buffers.clear()
            try:
                import cloudpickle
            except ImportError:
                if not isinstance(error, _ByValue):
                    raise
            else:
                return bytes(cloudpickle.dumps(value, 5, buffer_callback=keep_in))
        raise InvalidArgument(
            f"{value!r} has a function or class that is defined in __main__ or within a function, "
            "where workers do not find it; put it into a module, or install the package cloudpickle"
        )


def send(comm: Communicator, messages: list[Any], peer: int) -> list[Work]:
    """Send a packed value. A short one has left afterwards; of a longer one, Works are returned."""
    if len(messages) == 1:
        comm.send(messages[0], peer, deadline=_FOREVER)
        return []
    return [comm.send_async(message, peer, deadline=_FOREVER) for message in messages]


class Incoming:
    """The value that comes next from a peer, without waiting. A resource; one thread.

    Call `begin`. When `work` has ended, `advance` returns the kind, or starts the next part.
    """

    work: Work

    def __init__(self, comm: Communicator, peer: int) -> None:
        self._comm = comm
        self._peer = peer
        self._opening = np.empty(OPENING_BYTES, np.uint8)
        self._view = memoryview(self._opening)

    def begin(self) -> None:
        """Receive the first message."""
        self._parts: Optional[list[Any]] = None
        self._works: list[Work] = []
        self.work = self._comm.recv_async(
            self._opening, self._peer, deadline=_FOREVER, allow_shorter=True
        )

    def advance(self) -> Optional[int]:
        """The value's kind, once it is complete; None if `work` is another one to wait for.

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
        self._kind, count, length = _HEADER.unpack_from(self._view)
        begin = _HEADER.size + count * _SIZE.size
        sizes = [size for (size,) in _SIZE.iter_unpack(self._view[_HEADER.size : begin])]
        content: Any = self._view[begin : begin + length]
        if begin + length > OPENING_BYTES:
            content = np.empty(length, np.uint8)
        return [content, *(np.empty(size, np.uint8) for size in sizes)]

    def value(self) -> Any:
        """The value that has come."""
        assert self._parts is not None
        content, *arrays = self._parts
        return pickle.loads(content, buffers=arrays)

    def next(self) -> int:
        """Wait for the next value; return its kind.

        The wait is made of short ones: a worker may be idle for long, which is no reason for a
        warning.
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
