"""nvmath 1.0's module of the direct solver, which hocket does not have."""

from typing import NoReturn

from ._refused import refuse

__all__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    refuse("nvmath.distributed.linalg.generic", name)
