"""Keeps torch.compile out of hocket's code.

torch.compile does not compile PyTorch's own backends, because they are C++. A compiled module makes
calls while it runs, such as DDP's broadcast of its buffers. Without this module, torch.compile
would try to compile hocket's code in these calls, and fail.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch


def keep_out(module: Any) -> None:
    """Run the functions of `module`, and all functions that they call, uncompiled.

    This uses the C interface, because `torch.compiler.disable` would import the compiler, which
    takes seconds.
    """
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if not hasattr(frames, "set_code_exec_strategy"):
        return  # this version of PyTorch has another interface
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
