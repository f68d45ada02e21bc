"""The face of ``cupyx.distributed``: one communicator for each GPU's or CPU's process, over hocket.
"""

from ._init import init_process_group
from ._nccl_comm import NCCLBackend

__all__ = ["NCCLBackend", "init_process_group"]
