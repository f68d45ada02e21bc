"""nvmath.distributed over hocket: on GPUs, and in host memory with device_id "cpu"."""

from . import distribution, fft, linalg, reshape
from ._runtime import DistributedContext, finalize, get_context, initialize
from ._symmetric import allocate_symmetric_memory, free_symmetric_memory
from .process_group import HocketProcessGroup, MPIProcessGroup, ProcessGroup, TorchProcessGroup

__all__ = [
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
