"""MPI over hocket, for programs that call MPI as they are.

``hocket run --mpi`` lets mpi4py, JAX and the system's loader find these libraries. `library` is for
a program that is started otherwise, or that loads one by itself.
"""

from __future__ import annotations

from pathlib import Path

from ._command import find_command

__all__ = ["library"]

_NAMES = {
    "mpich": "libmpi.so.12",
    "standard": "libmpi_abi.so.1",
    "mpitrampoline": "libhocket_mpiwrapper.so",
}


def library(interface: str = "mpich") -> str:
    """The path of hocket's MPI library with a binary interface.

    Parameters
    ----------
    interface : {"mpich", "standard", "mpitrampoline"}
        ``"mpich"`` is ``libmpi.so.12``, for which mpi4py's wheel has a module. ``"standard"`` is
        ``libmpi_abi.so.1`` of MPI 5.0. ``"mpitrampoline"`` is what JAX takes as
        ``MPITRAMPOLINE_LIB``.

    Raises
    ------
    ValueError
        For another interface.
    FileNotFoundError
        This hocket was built without its MPI (``-DHOCKET_MPI_FACE=OFF``).
    """
    if interface not in _NAMES:
        known = ", ".join(repr(name) for name in _NAMES)
        raise ValueError(f"interface is {interface!r}, and must be one of {known}")
    prefix = Path(find_command()).resolve().parent.parent
    for folder in ("lib", "lib64", "lib/*-linux-gnu"):
        for found in prefix.glob(f"{folder}/hocket-mpi/{_NAMES[interface]}"):
            return str(found)
    raise FileNotFoundError(
        f"this hocket was built without its MPI: {prefix / 'lib/hocket-mpi'} is not there"
    )
