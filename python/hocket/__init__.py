"""hocket: collective communication for arrays.

>>> import hocket, numpy as np
>>> comm = hocket.init()                # under `hocket run -n 4 -- python program.py`
>>> x = np.full(1024, comm.rank, "float32")
>>> comm.all_reduce(x)                  # in place, sum
"""

from ._jobs.interpreter import require_main as _require_main

_require_main()
try:
    from . import _hocket as _hocket
except ImportError as _error:
    # If Ctrl-C or another exception has ended the module's import, raises it instead of
    # ImportError.
    if _error.__cause__ is None or isinstance(_error.__cause__, Exception):
        raise
    raise _error.__cause__ from None

from ._calls.copies import prepare as _prepare_copies
from ._calls.types import Envelope, Received
from ._hocket import (
    Communicator,
    Context,
    GpuArray,
    Prepared,
    Store,
    StoreServer,
    SymmetricMemory,
    Work,
    connect_store,
)
from ._jobs.hand_over import hand_over
from ._jobs.init import init
from ._jobs.notebook import load_ipython_extension
from ._jobs.place import prepare as _prepare_place
from ._jobs.spawn import spawn
from ._jobs.stop import StopRequest
from ._jobs.threads import run_threads
from ._waiting.works import wait_all, wait_any, wait_some
from .bootstrap import Bootstrap, MPIBootstrap, TorchBootstrap
from .cluster import Cluster
from .errors import (
    Aborted,
    DeadlineExceeded,
    DeadlockError,
    DeviceError,
    Error,
    InvalidArgument,
    Mismatch,
    PeerDied,
    RankCall,
    RendezvousError,
    Status,
    SystemError_,
)
from .grid import NULL_RANK, Grid
from .operators import Operator
from .pool import DevicePool, PoolWorker

_prepare_place()
_prepare_copies()

__version__ = "0.1.0"

#: `source` of a receive that accepts a message from any rank.
ANY_SOURCE = -1
#: `tag` of a receive or a probe that accepts any tag.
ANY_TAG = -1

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "Aborted",
    "Bootstrap",
    "Cluster",
    "Communicator",
    "Context",
    "DeadlineExceeded",
    "DeviceError",
    "DevicePool",
    "Envelope",
    "Error",
    "GpuArray",
    "Grid",
    "InvalidArgument",
    "MPIBootstrap",
    "NULL_RANK",
    "DeadlockError",
    "Mismatch",
    "Operator",
    "PeerDied",
    "PoolWorker",
    "Prepared",
    "RankCall",
    "Received",
    "RendezvousError",
    "Status",
    "StopRequest",
    "Store",
    "StoreServer",
    "SymmetricMemory",
    "SystemError_",
    "TorchBootstrap",
    "Work",
    "connect_store",
    "hand_over",
    "init",
    "load_ipython_extension",
    "run_threads",
    "spawn",
    "wait_all",
    "wait_any",
    "wait_some",
]
