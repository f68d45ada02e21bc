"""The exceptions of hocket.

Every message says what happened, which rank it concerns, and what to try. ``status`` has the same
facts as fields. The names are those of the C++ interface. All classes derive from RuntimeError,
like the errors of PyTorch and other packages. If Python has an exception of the same meaning, the
class also derives from that one, so that ``except TimeoutError`` and the like work.
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

    #: The rank in the communicator; -1 if it is unknown.
    rank: int
    #: The number of the call in that communicator, from 1; 0 if the rank has made no call yet.
    sequence: int
    #: For example ``"all_reduce #17 sum float32[1024]"``.
    call: str


@dataclass(frozen=True)
class Status:
    """The facts behind a message, as fields. A fact that is unknown is empty, 0 or -1."""

    #: "invalid_argument", "peer_died", "deadline_exceeded", "deadlock", "mismatch", "aborted", "rendezvous",
    #: "system" or "device".
    code: str
    message: str
    communicator: str = ""
    sequence: int = 0
    operation: str = ""
    #: The rank that reports.
    rank: int = -1
    #: The rank that caused the error.
    peer: int = -1
    host: str = ""
    #: The message of a refused argument, without the name of the call.
    reason: str = ""


class Error(RuntimeError):
    """The base of all exceptions of hocket.

    Attributes
    ----------
    status : Status or None
        The facts behind the message; None if Python code raised the error.
    """

    status: Optional[Status] = None


class InvalidArgument(Error, ValueError):
    """An argument was refused, on this rank or on another one, which the message names.

    The call has had no effect, and the communicator stays usable.
    """


class PeerDied(Error, ConnectionError):
    """A rank's process ended while a call needed it.

    Attributes
    ----------
    rank : int
        The dead rank's number in the communicator.
    pid : int
        The pid of its process on its host.
    signal : int
        The signal that killed the process; 0 if no signal did, or if the cause is not known yet.
    """

    rank: int = -1
    pid: int = -1
    signal: int = 0


class DeadlineExceeded(Error, TimeoutError):
    """A call did not finish before its deadline.

    Attributes
    ----------
    missing : tuple of int
        The ranks that had not arrived at the call.
    calls : tuple of RankCall
        The last known call of each missing rank.
    """

    missing: tuple[int, ...] = ()
    calls: tuple[RankCall, ...] = ()


class DeadlockError(DeadlineExceeded):
    """Ranks of one host wait for each other in blocking calls, so that none of the calls can end.

    This error is raised a few tenths of a second after the deadlock begins, long before any
    deadline. ``missing`` has the ranks that wait, and ``calls`` has the last known call of each of
    them.
    """


class Mismatch(Error):
    """Ranks of one communicator made different calls.

    Attributes
    ----------
    calls : tuple of RankCall
        The calls that differ. Of the ranks that made the same call, only the first is listed.
    """

    calls: tuple[RankCall, ...] = ()


class Aborted(Error):
    """A rank called ``abort()`` or ``rebuild()``, or gave a call up.

    A rank gives a call up by Ctrl-C, by dropping a pending `Work`, or by closing a communicator
    with pending calls.
    """


class RendezvousError(Error, ConnectionError):
    """The ranks could not find, reach or trust each other."""


class SystemError_(Error, OSError):
    """The operating system refused a service that hocket needs.

    Attributes
    ----------
    error_number : int
        The system's error number, which ``errno`` has, too.
    """

    error_number: int = 0


class DeviceError(Error):
    """A GPU, its driver or one of its libraries is missing, refused or failed."""
