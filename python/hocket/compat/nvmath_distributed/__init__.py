"""nvmath.distributed over hocket: on GPUs, and in host memory with device_id "cpu".

Its names, signatures and messages are those of the release `FOLLOWS`; names of 0.9 work beside them.
"""

from . import distribution, fft, linalg, reshape
from ._runtime import DistributedContext, finalize, get_context, initialize
from ._symmetric import allocate_symmetric_memory, free_symmetric_memory
from .process_group import HocketProcessGroup, MPIProcessGroup, ProcessGroup, TorchProcessGroup

#: The release of nvmath-python that the face follows.
FOLLOWS = "1.0.0"

__all__ = [
    "FOLLOWS",
    "DistributedContext",
    "HocketProcessGroup",
    "MPIProcessGroup",
    "ProcessGroup",
    "TorchProcessGroup",
    "allocate_symmetric_memory",
    "distribution",
    "fft",
    "finalize",
    "free_symmetric_memory",
    "get_context",
    "initialize",
    "linalg",
    "reshape",
]
