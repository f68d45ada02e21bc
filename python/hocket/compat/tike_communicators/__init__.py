"""tike.communicators over hocket: its names, its behaviour, on NumPy too.

Where CuPy has GPUs, workers are GPUs and arrays CuPy's. Elsewhere workers are virtual, with copies
of their own in host memory, and arrays NumPy's.
"""

from .comm import *
from .mpi import *
from .pool import *
from .stream import *
