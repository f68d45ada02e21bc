"""DDP's `join` over hocket: keeps alive the handle of the call that `join` waits for.

DDP's C++ code keeps a handle that Python has returned. When Python drops a handle that is written
in Python, the handle turns into one of PyTorch's own class, whose `wait` never returns. PyTorch
keeps the handles of other calls alive, but not this one.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from torch._C._distributed_c10d import Reducer

_theirs: Any = Reducer._set_forward_pass_work_handle
_kept: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@functools.wraps(_theirs)
def set_forward_pass_work_handle(reducer: Any, work: Any, *rest: Any, **named: Any) -> None:
    """Do the same as PyTorch's method, except that the handle lives until the reducer gets another
    handle, or ends.
    """
    _kept[reducer] = work
    _theirs(reducer, work, *rest, **named)


def install() -> None:
    """Replace PyTorch's method."""
    Reducer._set_forward_pass_work_handle = set_forward_pass_work_handle  # type: ignore[assignment, method-assign, unused-ignore]
