"""Tests that may be tried again."""

import functools


def retry(times):
    """Tries a test up to so many times."""

    def decorate(test):
        @functools.wraps(test)
        def run(*args):
            for attempt in range(times):
                try:
                    return test(*args)
                except Exception:
                    if attempt == times - 1:
                        raise

        return run

    return decorate
