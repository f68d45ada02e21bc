"""The part of cuda.core that nvmath-python's tests use."""

from . import system  # noqa: F401
