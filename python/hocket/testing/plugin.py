"""The plugin for pytest: `@pytest.mark.ranks(1, 2, 4)` and the fixture `comm`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

from .._jobs.crew import Crew
from .._jobs.spawn import dumps
from ._processes import ProcessRun, show_in_test
from ._runs import Ends, Limits, RankFailure, call
from ._threads import ThreadRun

_COUNT = "hocket_rank_count"
_OPTIONS = ("processes", "patience", "timeout", "deadline")
_TEXT = (
    "ranks(n, ..., processes=None, patience=0.5, timeout=60, deadline=None): run the test on so many "
    "ranks, which are threads, or processes where that is said here or by --hocket-processes. "
    "patience: seconds that a rank may do nothing while others wait for it; timeout: seconds for the "
    "whole test; deadline: of calls, by default the timeout"
)


class Communicators:
    """Stands for the fixture `comm` until the test runs on its ranks."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"comm.{name}: a communicator is there in the test alone, once on each rank; fixtures "
            "are made once for all of them"
        )


_COMMUNICATORS = Communicators()
_CREW = pytest.StashKey[Crew]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("hocket")
    group.addoption(
        "--hocket-processes",
        action="store_true",
        help="run the ranks of tests marked with `ranks` as processes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark `ranks`."""
    config.addinivalue_line("markers", _TEXT)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes that were kept for later tests."""
    crew = config.stash.get(_CREW, None)
    if crew is not None:
        crew.close()


@pytest.fixture
def comm(request: pytest.FixtureRequest) -> Any:
    """The communicator of each rank, for a test marked with `ranks`."""
    if request.node.get_closest_marker("ranks") is None:
        pytest.fail("the fixture comm is for tests that are marked, such as by "
                    "@pytest.mark.ranks(1, 2, 4)", pytrace=False)
    return _COMMUNICATORS


@pytest.fixture
def hocket_rank_count(request: pytest.FixtureRequest) -> Any:
    """Return the number of ranks of the test."""
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each number of ranks."""
    mark = metafunc.definition.get_closest_marker("ranks")
    if mark is None:
        return
    for count in mark.args:
        if not isinstance(count, int) or count < 1:
            raise pytest.UsageError(f"ranks({count!r}) on {metafunc.definition.nodeid}: expected numbers "
                                    "from 1 on")
    unknown = set(mark.kwargs) - set(_OPTIONS)
    if unknown or not mark.args:
        raise pytest.UsageError(
            f"ranks on {metafunc.definition.nodeid}: "
            + (f"unknown {', '.join(sorted(unknown))}" if unknown else "no number of ranks")
        )
    if _COUNT not in metafunc.fixturenames:
        metafunc.fixturenames.append(_COUNT)
    ids = [f"{count} rank{'s' if count > 1 else ''}" for count in mark.args]
    metafunc.parametrize(_COUNT, mark.args, indirect=True, ids=ids)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    """Run a marked test on its ranks."""
    __tracebackhide__ = True
    mark = pyfuncitem.get_closest_marker("ranks")
    if mark is None:
        return None
    timeout = float(mark.kwargs.get("timeout", 60))
    limits = Limits(float(mark.kwargs.get("patience", 0.5)), timeout)
    deadline = float(mark.kwargs.get("deadline") or timeout)
    processes = mark.kwargs.get("processes")
    if processes is None:
        processes = pyfuncitem.config.getoption("hocket_processes")
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    count: Any = pyfuncitem.callspec.params[_COUNT]
    run = _run_in_processes if processes else _run_in_threads
    ends = run(pyfuncitem, count, arguments, limits, deadline)
    if ends is not None:
        _raise(ends)
    return True


def _run_in_threads(
    item: pytest.Function, n: int, arguments: dict[str, Any], limits: Limits, deadline: float
) -> Optional[Ends]:
    __tracebackhide__ = True

    def body(each: Any) -> None:
        __tracebackhide__ = True
        each.deadline = deadline
        call(item.obj, {k: each if v is _COMMUNICATORS else v for k, v in arguments.items()})

    return ThreadRun(n, body, limits).run()


def _run_in_processes(
    item: pytest.Function, n: int, arguments: dict[str, Any], limits: Limits, deadline: float
) -> Optional[Ends]:
    from ._member import Spot, run_test

    config = item.config
    spot = Spot(
        str(item.path),
        item.obj.__qualname__,
        str(config.rootpath),
        str(config.inipath) if config.inipath else None,
        config.getoption("importmode"),
        list(sys.path),
        str(Path.cwd()),
    )
    shared = {k: v for k, v in arguments.items() if v is not _COMMUNICATORS}
    shared["communicators"] = [k for k, v in arguments.items() if v is _COMMUNICATORS]
    contents = _pickled(shared)
    if config.stash.get(_CREW, None) is None:
        config.stash[_CREW] = Crew()
    task = pickle.dumps((run_test, (spot, contents, deadline)))
    return ProcessRun(config.stash[_CREW], n, limits, show_in_test).run(task)


def _pickled(arguments: dict[str, Any]) -> bytes:
    for name, value in arguments.items():
        try:
            dumps(value)
        except Exception as error:
            pytest.fail(
                f"the value of the fixture {name} cannot be sent to the ranks, which are processes: "
                f"{type(error).__name__}: {error}",
                pytrace=False,
            )
    return dumps(arguments)


def _raise(ends: Ends) -> None:
    __tracebackhide__ = True
    first = ends.first()
    if first.kind == "skip":
        pytest.skip(first.summary)
    if first.kind == "xfail":
        pytest.xfail(first.summary)
    if first.error is None or isinstance(first.error, (SystemExit, KeyboardInterrupt)):
        raise RankFailure(ends) from first.error
    if isinstance(first.error, (pytest.skip.Exception, pytest.xfail.Exception)):
        raise first.error
    if hasattr(first.error, "add_note"):
        first.error.add_note("\n".join(filter(None, [f"on rank {first.rank} of {ends.size}",
                                                     ends.others()])))
    raise first.error


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    """Report a failure in a rank's process by the text that this process has made of it."""
    outcome: Any = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, RankFailure) and error.__cause__ is None:
        report = outcome.get_result()
        if report.outcome == "failed":
            report.longrepr = _Shown(error)


class _Shown:
    """A failure in the form that pytest prints."""

    def __init__(self, error: RankFailure) -> None:
        self._text = error.text()
        self.reprcrash = _Crash(str(error))

    def toterminal(self, writer: Any) -> None:
        """Write the failure line by line."""
        for line in self._text.splitlines():
            writer.line(line, red=line.startswith("E "))

    def __str__(self) -> str:
        return self._text


class _Crash:
    """A failure in the form of pytest's short summary."""

    def __init__(self, message: str) -> None:
        self.message = message
