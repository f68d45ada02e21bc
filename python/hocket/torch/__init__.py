"""hocket as a backend of torch.distributed.

>>> import torch.distributed as dist
>>> import hocket.torch
>>> dist.init_process_group("hocket")

hocket can also carry the tensors of one kind of device beside another backend:
``"cpu:hocket,cuda:nccl"``. The ranks find each other by torch.distributed's own store, under
torchrun, MPI, Slurm or ``hocket run``.
"""

from __future__ import annotations

import importlib

try:
    import torch.distributed as dist
except ImportError as _error:
    raise ImportError(
        f"hocket.torch needs PyTorch, which cannot be imported: {_error}. Install it "
        "(pip install torch), or use hocket without it"
    ) from _error


if not dist.is_available():
    raise ImportError("this PyTorch was built without torch.distributed")

if not hasattr(dist.AllreduceOptions(), "asyncOp"):  # tells whether the caller waits for the call
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
    "backend backend_as_group batches calls error_texts fast_path futures group joining "
    "profiler_spans streams work"
).split():
    keep_out(importlib.import_module(f"{__name__}._{_name}"))

__all__ = ["HocketBackend", "HocketGroup", "HocketStore", "create", "register"]
