"""The tasks of bench/futures.py."""

import time


def square(x):
    return x * x


def add_one(x):
    x = x + 1
    return x


def work(milliseconds):
    """Computes for `milliseconds` of wall-clock time."""
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        pass
    return milliseconds
