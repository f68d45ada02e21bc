"""Keeps torch.compile out of hocket's code.

torch.compile never looks into PyTorch's own backends, which are C++. A compiled module makes calls
as it runs, such as DDP's broadcast of its buffers. Without this, torch.compile would try to compile
hocket's code there, and fail.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch


def keep_out(module: Any) -> None:
    """Run the functions of `module`, and all that they call, uncompiled.

    Uses the C interface: `torch.compiler.disable` would import the compiler, which takes seconds.
    """
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if not hasattr(frames, "set_code_exec_strategy"):
        return  # another version of PyTorch, with another interface
    skip = frames._FrameAction.SKIP
    strategy = frames._FrameExecStrategy(skip, skip)
    for code in _codes(module):
        frames.set_code_exec_strategy(code, strategy)


def _codes(module: Any) -> Iterator[types.CodeType]:
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        for member in vars(thing).values() if isinstance(thing, type) else [thing]:
            member = member.fget if isinstance(member, property) else member
            member = getattr(member, "__func__", member)  # class and static methods
            if isinstance(member, types.FunctionType):
                yield member.__code__
