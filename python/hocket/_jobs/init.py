"""`hocket.init`: a process joins its job."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Optional, Union

from .._calls.types import Timeout
from .._hocket import Communicator
from .._hocket import init as _init
from ..bootstrap import Bootstrap
from .child import mark, refuse_child


def init(
    rank: Optional[int] = None,
    size: Optional[int] = None,
    address: Optional[str] = None,
    key: Optional[Union[bytes, str, PathLike[str]]] = None,
    timeout: Timeout = None,
    deadline: Timeout = None,
    engines: Optional[Iterable[str]] = None,
    bootstrap: Optional[Bootstrap] = None,
    mpi: Any = None,
    name: str = "world",
    join: Optional[str] = None,
) -> Communicator:
    """Join the job that this process was started in, or make a world of one.

    Under ``hocket run``, torchrun, Open MPI, MPICH or Slurm no argument is needed. Arguments take
    precedence over the environment.

    Parameters
    ----------
    rank, size : int, optional
        This process's number, from 0, and how many there are.
    address : str, optional
        The meeting point of the ranks: "host:port" of rank 0, or "unix:NAME".
    key : bytes or path, optional
        The job's secret: 32 bytes, or a file made by ``hocket key FILE``.
    timeout : float or datetime.timedelta, optional
        Seconds for all ranks to come; 300 by default.
    deadline : float or datetime.timedelta, optional
        Default limit of a call in seconds; HOCKET_DEADLINE or 300 by default.
    engines : iterable of str, optional
        Names of engines, best first; by default all there are.
    bootstrap : Bootstrap, optional
        A process group of your own to join by, instead of what the environment says. It is used for
        setting up alone.
    mpi : mpi4py.MPI.Intracomm, optional
        A communicator of mpi4py to join by: its ranks become the world's.
    name : str, optional
        The communicator's name in messages.
    join : str, optional
        A running job that takes this process in by `Communicator.admit`: its name, as in ``hocket
        top``, if it is on this host and of this user, or the address of its door. HOCKET_JOIN by
        default. The job gives rank and size; `timeout` limits the wait.

    Returns
    -------
    Communicator
        All ranks. Lives as long as something refers to it; ``close()`` ends it earlier.

    Raises
    ------
    RendezvousError
        Ranks are missing, the key is wrong, a rank is claimed twice, ...: the message says which.
    InvalidArgument
        Options contradict each other or the environment.
    """
    if bootstrap is not None or mpi is not None:
        return _init(rank, size, address, key, timeout, deadline, engines, bootstrap, mpi, name)
    if join is not None:
        return _init(rank, size, address, key, timeout, deadline, engines, None, None, name, join)
    place = refuse_child(rank, size, address)
    comm = _init(rank, size, address, key, timeout, deadline, engines, bootstrap, mpi, name)
    mark(comm.rank, comm.size, place)
    return comm
