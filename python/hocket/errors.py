"""The exceptions of hocket.

Every message says what happened, which rank it concerns, and what to try; ``status`` carries the
same as fields. The names are those of the C++ interface. All are RuntimeErrors, as PyTorch and
others raise. If Python has an exception of the same meaning, the class derives from it too, so
``except TimeoutError`` and the like work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional

__all__ = [
    "Aborted",
    "DeadlineExceeded",
    "DeviceError",
    "Error",
    "InvalidArgument",
    "DeadlockError",
    "Mismatch",
    "PeerDied",
    "RankCall",
    "RendezvousError",
    "Status",
    "SystemError_",
]


class RankCall(NamedTuple):
    """The last known call of one rank."""

    #: The rank in the communicator, -1 where unknown.
    rank: int
    #: The number of the call on that communicator, from 1; 0 where there was none yet.
    sequence: int
    #: For example ``"all_reduce #17 sum float32[1024]"``.
    call: str


@dataclass(frozen=True)
class Status:
    """The fields behind a message. Absent facts are empty or -1."""

    #: "invalid_argument", "peer_died", "deadline_exceeded", "deadlock", "mismatch", "aborted", "rendezvous",
    #: "system" or "device".
    code: str
    message: str
    communicator: str = ""
    sequence: int = 0
    operation: str = ""
    #: The rank that reports.
    rank: int = -1
    #: The rank that caused it.
    peer: int = -1
    host: str = ""


class Error(RuntimeError):
    """The base of all exceptions of hocket.

    Attributes
    ----------
    status : Status or None
        The fields behind the message; None if Python code made the error.
    """

    status: Optional[Status] = None


class InvalidArgument(Error, ValueError):
    """An argument was refused, on this rank or on another (then the message names it).

    The call has had no effect, and the communicator can be used further.
    """


class PeerDied(Error, ConnectionError):
    """A rank's process ended while a call needed it.

    Attributes
    ----------
    rank : int
        The dead rank, in the communicator.
    pid : int
        Its process on its host.
    signal : int
        The signal that killed it; 0 if it ended by itself, or if that is not known yet.
    """

    rank: int = -1
    pid: int = -1
    signal: int = 0


class DeadlineExceeded(Error, TimeoutError):
    """A call did not finish before its deadline.

    Attributes
    ----------
    missing : tuple of int
        The ranks that had not arrived.
    calls : tuple of RankCall
        The last known call of each missing rank.
    """

    missing: tuple[int, ...] = ()
    calls: tuple[RankCall, ...] = ()


class DeadlockError(DeadlineExceeded):
    """Ranks of one host wait for each other in blocking calls, and none of these can end.

    No deadline would have helped, so that this comes before one, within some tenths of a second.
    ``missing`` has the ranks that wait, ``calls`` what they were last seen doing.
    """


class Mismatch(Error):
    """Ranks of one communicator made different calls.

    Attributes
    ----------
    calls : tuple of RankCall
        The calls that disagree: the first rank of each kind.
    """

    calls: tuple[RankCall, ...] = ()


class Aborted(Error):
    """A rank called ``abort()`` or ``rebuild()``, or gave a call up.

    A rank gives a call up by Ctrl-C, by dropping a pending `Work`, or by closing a communicator
    with calls under way.
    """


class RendezvousError(Error, ConnectionError):
    """The ranks could not find, reach or trust each other."""


class SystemError_(Error, OSError):
    """The operating system refused a service that hocket needs.

    Attributes
    ----------
    error_number : int
        The system's number of the error, also as ``errno``.
    """

    error_number: int = 0


class DeviceError(Error):
    """A GPU, its driver or one of its libraries is missing, refused or failed."""
