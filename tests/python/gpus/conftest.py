"""Many of these tests let ranks wait for each other on purpose, until something else ends them."""

import os

import pytest


@pytest.fixture(autouse=True, scope="module")
def deadlocks_last(alone):
    os.environ["HOCKET_DEADLOCK_AFTER"] = "0"
    yield
    os.environ.pop("HOCKET_DEADLOCK_AFTER", None)
