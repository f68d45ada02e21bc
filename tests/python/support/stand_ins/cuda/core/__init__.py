"""What nvmath-python's tests ask of cuda.core."""

from . import system  # noqa: F401
