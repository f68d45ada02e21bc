"""The states of a planned operation of nvmath.distributed: planned, with operands, freed."""

from __future__ import annotations

from typing import ClassVar, TypeVar

_S = TypeVar("_S", bound="Planned")


class Planned:
    """The base of FFT, Matmul and Redistribute: a context manager that frees, and checks of the
    state.
    """

    _name: ClassVar[str]
    _freed_error: ClassVar[type[Exception]]
    #: The part of the message about missing operands that stands between "after the" and "before".
    _released: ClassVar[str] = (
        "operand has been released. Use reset_operand() to provide a new operand"
    )
    _is_freed = False

    def __enter__(self: _S) -> _S:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Release everything. It may be called again."""
        self._is_freed = True

    def _check(self) -> None:
        if self._is_freed:
            raise self._freed_error(
                f"The {self._name} object cannot be used after resources are free'd"
            )

    def _check_execution(self, is_planned: bool, has_operands: bool) -> None:
        self._check()
        if not is_planned:
            raise RuntimeError("Execution cannot be performed before plan() has been called.")
        if not has_operands:
            raise RuntimeError(
                f"Execution cannot be performed after the {self._released} before performing the "
                "execution."
            )
