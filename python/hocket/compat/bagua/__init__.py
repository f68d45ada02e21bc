"""The face of ``bagua.torch_api``: Bagua's communication over hocket. It needs PyTorch."""

from . import communication, env, tensor
from .communication import *  # noqa: F403
from .communication import __all__ as _calls
from .env import get_local_rank, get_local_size, get_rank, get_world_size

__all__ = [
    *_calls,
    "communication",
    "env",
    "get_local_rank",
    "get_local_size",
    "get_rank",
    "get_world_size",
    "tensor",
]
