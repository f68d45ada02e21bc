"""hocket's MPI libraries, for unchanged programs that call MPI.

``hocket run --mpi`` makes mpi4py, JAX and the system's loader find these libraries. Call `library`
in a program that is started otherwise, or that loads an MPI library itself.
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
    """Return the path of hocket's MPI library for one of MPI's binary interfaces.

    Parameters
    ----------
    interface : {"mpich", "standard", "mpitrampoline"}
        ``"mpich"`` is ``libmpi.so.12``; mpi4py's wheel has a module for it. ``"standard"`` is
        ``libmpi_abi.so.1`` of MPI 5.0. ``"mpitrampoline"`` is the library for JAX's variable
        ``MPITRAMPOLINE_LIB``.

    Raises
    ------
    ValueError
        `interface` is none of these.
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
