"""CuPy's names on NumPy: a stand-in for tests on machines without a GPU."""

import importlib

from numpy import *  # noqa: F403
from numpy import ndarray  # noqa: F401

from . import cuda  # noqa: F401

testing = importlib.import_module("cupy.testing")  # replaces NumPy's, which the star import brought

is_stand_in = True


def asnumpy(array):
    """The same array: it is in host memory already."""
    return array


def get_array_module(*_):
    """This module."""
    import cupy

    return cupy
