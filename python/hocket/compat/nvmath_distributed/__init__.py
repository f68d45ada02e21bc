"""nvmath.distributed over hocket: on GPUs, and with device_id "cpu" in host memory.

The names, signatures and messages are those of the release `FOLLOWS`. Names of 0.9 work, too.
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
