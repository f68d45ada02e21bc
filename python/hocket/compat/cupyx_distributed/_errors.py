"""What the face raises: hocket's refusals, which are CuPy's errors too."""

from __future__ import annotations

from hocket.errors import InvalidArgument


class RefusedCall(InvalidArgument, RuntimeError):
    """What CuPy's raises RuntimeError for; the communicator can be used further."""


class RefusedType(InvalidArgument, TypeError):
    """What CuPy's raises TypeError for; the communicator can be used further."""


def as_kind(kind: type[InvalidArgument], error: InvalidArgument) -> InvalidArgument:
    """The same refusal as another class."""
    translated = kind(str(error))
    translated.status = error.status
    return translated
