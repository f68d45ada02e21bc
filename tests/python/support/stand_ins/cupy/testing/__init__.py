"""The part of cupy.testing that CuPy's tests of cupyx.distributed use."""

from numpy.testing import assert_allclose as _assert_allclose
from numpy.testing import assert_array_equal  # noqa: F401

from . import _condition  # noqa: F401
from ._loops import for_all_dtypes, for_dtypes  # noqa: F401


def assert_allclose(actual, desired, rtol=1e-7, atol=0):
    """Raises where the two differ."""
    _assert_allclose(actual, desired, rtol=rtol, atol=atol)


def multi_gpu(count):
    """There are always enough."""
    return lambda test: test
