"""DDP's `join`, whose code in C++ keeps the handle of a call that Python has given it.

A handle that is written in Python is, once Python has dropped it, one of PyTorch's own class, whose
`wait` never returns. PyTorch keeps handles of other calls alive, but not this one.
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
    """PyTorch's, but that the handle lives until the reducer gets another one, or goes."""
    _kept[reducer] = work
    _theirs(reducer, work, *rest, **named)


def install() -> None:
    """Puts it into PyTorch's place."""
    Reducer._set_forward_pass_work_handle = set_forward_pass_work_handle  # type: ignore[assignment, method-assign, unused-ignore]
