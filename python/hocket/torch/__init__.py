"""hocket as a backend of torch.distributed.

>>> import torch.distributed as dist
>>> import hocket.torch
>>> dist.init_process_group("hocket")

hocket can also serve one kind of tensors beside another backend: ``"cpu:hocket,cuda:nccl"``. The
ranks find each other by torch.distributed's own store, under torchrun, MPI, Slurm or ``hocket
run``.
"""

from __future__ import annotations

import importlib

try:
    import torch.distributed as dist
except ImportError as error:
    raise ImportError(
        f"hocket.torch needs PyTorch, which cannot be imported: {error}. Install it "
        "(pip install torch), or use hocket without it"
    ) from error


if not dist.is_available():
    raise ImportError("this PyTorch was built without torch.distributed")

if not hasattr(dist.AllreduceOptions(), "asyncOp"):  # true if a caller waits
    from torch import __version__

    raise ImportError(
        f"hocket.torch needs PyTorch 2.11 or newer, and this is {__version__}; hocket's own calls take "
        "tensor.numpy() of any"
    )

from ._backend import HocketBackend  # noqa: E402
from ._compiling import keep_out  # noqa: E402
from ._creation import create, register  # noqa: E402
from ._group import HocketGroup  # noqa: E402
from ._rendezvous import HocketStore  # noqa: E402

register()
for _name in (
    "backend batches calls futures group joining spans straight streams texts whole work"
).split():
    keep_out(importlib.import_module(f"{__name__}._{_name}"))

__all__ = ["HocketBackend", "HocketGroup", "HocketStore", "create", "register"]
