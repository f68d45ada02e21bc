"""Tests that are run for each of several dtypes."""

import numpy


def for_dtypes(dtypes, name="dtype"):
    """Calls the test with each dtype in turn."""

    def decorate(test):
        def run(self):
            for dtype in dtypes:
                test(self, **{name: numpy.dtype(dtype).type})

        run.__name__ = test.__name__
        return run

    return decorate


def for_all_dtypes(name="dtype", no_bool=False):
    """Calls the test with each dtype that CuPy has."""
    return for_dtypes("bhilqBHILQefdFD" + ("" if no_bool else "?"), name)
