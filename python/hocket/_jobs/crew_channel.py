"""Messages between a crew's members and the process that started them, over a pair of sockets.

    | length of the content, 8 bytes, big-endian | content |
"""

from __future__ import annotations

import collections
import socket
import struct
from typing import Optional

_LENGTH = struct.Struct("!Q")


class Channel:
    """The member's end of a channel. Its calls block. A resource; one thread sends, and one thread
    receives.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def send(self, message: bytes) -> None:
        """Send a message. Return when the system has taken all bytes of it."""
        self._socket.sendall(_LENGTH.pack(len(message)))
        self._socket.sendall(message)

    def receive(self) -> bytes:
        """Return the next message. Raise EOFError if the other end is closed."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return bytes(self._read(length))

    def _read(self, length: int) -> bytearray:
        content = bytearray(length)
        view, filled = memoryview(content), 0
        while filled < length:
            count = self._socket.recv_into(view[filled:])
            if count == 0:
                raise EOFError
            filled += count
        return content


class QueuingChannel:
    """The starter's end of a channel. No call blocks, because a member may be stopped at any point.

    A resource: `close` ends it. For one thread.
    """

    def __init__(self, ours: socket.socket) -> None:
        ours.setblocking(False)
        self._socket = ours
        self._unsent: collections.deque[memoryview] = collections.deque()
        self._incoming = bytearray(_LENGTH.size)
        self._filled = 0
        self._is_length = True

    def fileno(self) -> int:
        """Return the socket's descriptor, for polling."""
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        """True if bytes are left that `flush` sends when the socket can take more."""
        return bool(self._unsent)

    def send(self, message: bytes) -> None:
        """Send as many bytes as the socket takes now; `flush` sends the rest. Raise OSError if the
        other end is closed.
        """
        self._unsent.append(memoryview(_LENGTH.pack(len(message))))
        self._unsent.append(memoryview(message))
        self.flush()

    def flush(self) -> None:
        """Send as many bytes as the socket takes now. If the other end is closed, empty the queue
        and raise OSError.
        """
        try:
            while self._unsent:
                part = self._unsent[0]
                count = self._socket.send(part) if len(part) > 0 else 0
                if count == len(part):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = part[count:]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()
            raise

    def receive(self) -> Optional[bytes]:
        """Return the next message, or None if it is not complete. Raise EOFError if the other end
        is closed.
        """
        while True:
            while self._filled < len(self._incoming):
                try:
                    count = self._socket.recv_into(memoryview(self._incoming)[self._filled :])
                except BlockingIOError:
                    return None
                if count == 0:
                    raise EOFError
                self._filled += count
            content = bytes(self._incoming)
            length = _LENGTH.unpack(content)[0] if self._is_length else _LENGTH.size
            self._incoming, self._filled = bytearray(length), 0
            self._is_length = not self._is_length
            if self._is_length:
                return content

    def close(self) -> None:
        """Close the socket. It may be called again."""
        self._socket.close()
