"""Fixtures of all tests: a watchdog for each, and ranks that are threads."""

import faulthandler
import os
import signal
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WATCHDOG_SECONDS = 60

pytest_plugins = ["hocket.testing.plugin"]

# Modules that tests share, and programs that they start.
sys.path.insert(0, str(HERE / "support"))


def pytest_addoption(parser):
    parser.addoption("--faults", type=int, default=40, help="how many random faults to inject")
    parser.addoption("--faults-log", help="a file that gets a line for each of them")


def pytest_configure(config):
    config.addinivalue_line("markers", "watchdog(seconds): another limit for a test that computes")


@pytest.fixture(autouse=True)
def watchdog(request):
    """No test hangs: first it is interrupted, and where that does not help, the run is ended."""
    marker = request.node.get_closest_marker("watchdog")
    seconds = marker.args[0] if marker else WATCHDOG_SECONDS

    def ring(*_):
        raise TimeoutError(f"watchdog: the test took more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(seconds + 15, exit=True)
    yield
    signal.alarm(0)
    faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Restores the default handlers of Ctrl-C and hangup. A shell starts background processes
    with Ctrl-C ignored, and nohup ignores a hangup. All processes that these start inherit
    this, except for signals with a handler.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(autouse=True, scope="session")
def alone():
    """The tests themselves are no job's ranks, wherever they are started."""
    for variable in [name for name in os.environ if name.startswith("HOCKET_")]:
        del os.environ[variable]


@pytest.fixture(autouse=True, scope="module")
def deadlocks_last(request, alone):
    """Lets ranks wait for each other until something else ends them, as many of these tests do."""
    if request.path.parent.name not in ("jobs", "gpus"):
        yield
        return
    os.environ["HOCKET_DEADLOCK_AFTER"] = "0"
    yield
    os.environ.pop("HOCKET_DEADLOCK_AFTER", None)
