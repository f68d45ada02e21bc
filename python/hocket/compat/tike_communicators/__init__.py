"""tike.communicators over hocket: its names and its behaviour, also with NumPy.

If CuPy has GPUs, workers are GPUs, and arrays are CuPy's. If it has none, workers are virtual: each
has its own copies in host memory, and arrays are NumPy's.
"""

from .comm import *
from .mpi import *
from .pool import *
from .stream import *
