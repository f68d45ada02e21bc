"""The code of a test run that a rank's process executes; see `ProcessRun`."""

from __future__ import annotations

import glob
import inspect
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest

import hocket
from hocket import testing
from hocket._jobs.crew_member import Member

from ._runs import call, now, summary_of


class Spot(NamedTuple):
    """The place of a test, for a process that has not imported it yet."""

    file: str
    qualified_name: str
    root: str
    ini: Optional[str]
    import_mode: str
    paths: list[str]
    directory: str


class Modules:
    """The test modules of this process. Their `assert` statements are rewritten as pytest does it.
    """

    def __init__(self) -> None:
        self._config: Any = None
        self._modules: dict[str, Any] = {}

    def find(self, spot: Spot) -> Any:
        """Return the test's function. If it belongs to a class, return a bound method of a new
        object.
        """
        sys.path[:] = spot.paths
        os.chdir(spot.directory)
        self._configure(spot)
        if spot.file not in self._modules:
            self._modules[spot.file] = self._import(spot)
        found: Any = self._modules[spot.file]
        for name in spot.qualified_name.split("."):
            if inspect.isclass(found):
                found = found()
            found = getattr(found, name)
        return found

    def _configure(self, spot: Spot) -> None:
        if self._config is not None:
            return
        from _pytest.assertion import util
        from _pytest.config import _prepareconfig

        arguments = [spot.file, "--rootdir", spot.root, "-p", "no:cacheprovider", "--capture=no"]
        if spot.ini is not None:
            arguments += ["-c", spot.ini]
        os.environ.pop("PYTEST_ADDOPTS", None)
        self._config = config = _prepareconfig([*arguments, "-p", "hocket.testing.plugin"], None)

        def compare(operator: str, left: Any, right: Any) -> Optional[str]:
            for lines in config.hook.pytest_assertrepr_compare(
                config=config, op=operator, left=left, right=right
            ):
                if lines:
                    text = "\n~".join(line.replace("\n", "\\n") for line in lines)
                    return text.replace("%", "%%")
            return None

        util._reprcompare = compare
        util._config = config

    def _import(self, spot: Spot) -> Any:
        from _pytest.assertion.rewrite import assertstate_key
        from _pytest.pathlib import import_path

        # The file counts as a test file, no matter its name: the user may have named it on the
        # command line.
        self._config.stash[assertstate_key].hook.fnpats.append(glob.escape(spot.file))
        options: dict[str, Any] = {"mode": spot.import_mode, "root": Path(spot.root)}
        if "consider_namespace_packages" in inspect.signature(import_path).parameters:
            options["consider_namespace_packages"] = self._config.getini(
                "consider_namespace_packages"
            )
        return import_path(Path(spot.file), **options)


def run_test(
    member: Member, rank: int, size: int, address: str, spot: Spot, contents: bytes, deadline: float
) -> Optional[tuple[float, None, str, str, str]]:
    """Run a test as one of its ranks. Return the fields of an `End`, or None if it succeeded."""
    modules = member.kept.setdefault("modules", Modules())
    try:
        with injecting(member), member.interruptible():
            function = modules.find(spot)
            member.comm = comm = hocket.init(
                rank=rank, size=size, address=address, timeout=30, deadline=deadline
            )
            arguments = pickle.loads(contents)
            names = arguments.pop("communicators")
            call(function, {**arguments, **dict.fromkeys(names, comm)})
            comm.close()
        return None
    except BaseException as error:
        end = _describe(error, spot)
        if member.comm is not None:
            _abort(member.comm, f"the test has failed on rank {rank}: {end[2]}")
        return end
    finally:
        member.comm = None


def _abort(comm: hocket.Communicator, reason: str) -> None:
    try:
        comm.abort(reason)
        comm.close()
    except hocket.Error:
        pass


def _describe(error: BaseException, spot: Spot) -> tuple[float, None, str, str, str]:
    when = now()
    if isinstance(error, pytest.skip.Exception):
        return when, None, str(error), "", "skip"
    if isinstance(error, pytest.xfail.Exception):
        return when, None, str(error), "", "xfail"
    info: Any = pytest.ExceptionInfo.from_exception(error)
    inside = info.traceback.cut(path=Path(spot.file))
    info.traceback = inside or info.traceback
    shown = str(info.getrepr(style="long"))
    return when, None, summary_of(error), f"    {shown.lstrip()}\n", "error"


@contextmanager
def injecting(member: Member) -> Iterator[None]:
    """Make a context in which `hocket.testing.kill` and the like ask the process that runs the
    test.
    """

    def inject(what: str, rank: int, seconds: float, after: float) -> None:
        if not member.ask(what, rank, float(seconds), float(after)):
            raise hocket.InvalidArgument(f"hocket.testing.{what}: rank is {rank}, and there is none")

    testing._injectors.append(inject)
    try:
        yield
    finally:
        testing._injectors.pop()
