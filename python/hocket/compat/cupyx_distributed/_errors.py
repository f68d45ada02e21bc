"""Errors of the face: hocket's refusals, which also derive from the types of CuPy's errors."""

from __future__ import annotations

from hocket.errors import InvalidArgument


class RefusedCall(InvalidArgument, RuntimeError):
    """A refusal for which CuPy raises RuntimeError. The communicator stays usable."""


class RefusedType(InvalidArgument, TypeError):
    """A refusal for which CuPy raises TypeError. The communicator stays usable."""


def as_kind(kind: type[InvalidArgument], error: InvalidArgument) -> InvalidArgument:
    """Return the same refusal as an error of class `kind`."""
    translated = kind(str(error))
    translated.status = error.status
    return translated
