"""`hocket.init`, by which a process joins its job."""

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
    """Join the job in which this process was started, or make a world of one rank.

    Under ``hocket run``, torchrun, Open MPI, MPICH or Slurm no argument is needed. Arguments take
    precedence over the environment.

    Parameters
    ----------
    rank, size : int, optional
        This process's number, from 0, and the number of processes.
    address : str, optional
        The meeting point of the ranks: "host:port" of rank 0, or "unix:NAME".
    key : bytes or path, optional
        The job's secret: 32 bytes, or a file made by ``hocket key FILE``.
    timeout : float or datetime.timedelta, optional
        Seconds in which all ranks must come; 300 by default.
    deadline : float or datetime.timedelta, optional
        Default time limit of a call in seconds; by default HOCKET_DEADLINE, or 300.
    engines : iterable of str, optional
        Names of engines, best first; by default all engines of this build.
    bootstrap : Bootstrap, optional
        A process group of the program, by which the ranks join instead of by the environment. It is
        used only while the world is set up.
    mpi : mpi4py.MPI.Intracomm, optional
        A communicator of mpi4py by which the ranks join. Its ranks become the world's ranks.
    name : str, optional
        The communicator's name in messages.
    join : str, optional
        A running job, which takes this process in by `Communicator.admit`. Give the address of its
        door, or its name as in ``hocket top`` if the job is on this host and of this user. By
        default HOCKET_JOIN. The job gives this process its rank and size; `timeout` limits the
        wait.

    Returns
    -------
    Communicator
        The communicator of all ranks. It lives until nothing refers to it; ``close()`` ends it
        earlier.

    Raises
    ------
    RendezvousError
        For example, ranks are missing, the key is wrong, or two processes claim one rank. The
        message says which.
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
