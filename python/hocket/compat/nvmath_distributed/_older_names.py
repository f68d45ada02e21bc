"""Supports names that parameters had in an older release."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def also_by(**newer: str) -> Callable[[Class], Class]:
    """Make a class accept parameters by older names, too: ``older="newer"``. Its signature has the
    newer names.
    """

    def decorate(cls: Class) -> Class:
        init: Any = getattr(cls, "__init__")  # noqa: B009

        @functools.wraps(init)
        def either(self: Any, *args: Any, **given: Any) -> None:
            for old, new in newer.items():
                if old in given:
                    if new in given:
                        raise TypeError(
                            f"{cls.__name__}() got {new} and {old}, its older name; give one of them"
                        )
                    given[new] = given.pop(old)
            init(self, *args, **given)

        type.__setattr__(cls, "__init__", either)
        return cls

    return decorate
