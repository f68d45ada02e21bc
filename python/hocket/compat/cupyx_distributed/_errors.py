"""Errors of the face: hocket's refusals, which derive from CuPy's error types too."""

from __future__ import annotations

from hocket.errors import InvalidArgument


class RefusedCall(InvalidArgument, RuntimeError):
    """A refusal for which CuPy raises RuntimeError; the communicator can be used further."""


class RefusedType(InvalidArgument, TypeError):
    """A refusal for which CuPy raises TypeError; the communicator can be used further."""


def as_kind(kind: type[InvalidArgument], error: InvalidArgument) -> InvalidArgument:
    """The same refusal as another class."""
    translated = kind(str(error))
    translated.status = error.status
    return translated
