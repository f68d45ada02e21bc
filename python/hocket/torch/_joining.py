"""DDP's `join`, whose C++ code keeps the handle of a call that Python has returned.

A handle written in Python turns into one of PyTorch's own class when Python drops it, and its
`wait` then never returns. PyTorch keeps handles of other calls alive, but not this one.
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
    """PyTorch's method, except that the handle lives until the reducer gets another one, or
    ends.
    """
    _kept[reducer] = work
    _theirs(reducer, work, *rest, **named)


def install() -> None:
    """Replace PyTorch's method."""
    Reducer._set_forward_pass_work_handle = set_forward_pass_work_handle  # type: ignore[assignment, method-assign, unused-ignore]
