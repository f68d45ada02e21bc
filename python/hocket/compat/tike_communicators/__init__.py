"""tike.communicators over hocket: its names, its behaviour, on NumPy too.

If CuPy has GPUs, workers are GPUs and arrays CuPy's. If not, workers are virtual, with their own
copies in host memory, and arrays are NumPy's.
"""

from .comm import *
from .mpi import *
from .pool import *
from .stream import *
