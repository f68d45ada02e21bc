"""Starts ranks as new processes of this host."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from .._command import find_command
from ..errors import InvalidArgument
from .ending import summary_of
from .job import number_of_ranks, require_function

T = TypeVar("T")


class Failure(NamedTuple):
    """The failure of one rank."""

    rank: int
    when: int  # time.monotonic_ns(): one clock for all processes of a host
    error: Optional[BaseException]  # None if the exception cannot be pickled
    summary: str
    traceback: str


def dumps(value: Any) -> bytes:
    """Pickle a value, by cloudpickle if that is installed."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    return bytes(cloudpickle.dumps(value))


class _ForOthers(pickle.Pickler):
    """Pickles for new processes. Refuses functions and classes that pickle stores by name, if the
    new processes cannot import that name.
    """

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, (type, types.FunctionType)):
            return NotImplemented
        where = "in __main__" if value.__module__ == "__main__" else "within a function"
        if where == "in __main__" or "<" in value.__qualname__:
            raise InvalidArgument(
                f"{value!r} is defined {where}, where other processes do not find it; put it into a "
                "module, or install the package cloudpickle (also as hocket[notebooks])"
            )
        return NotImplemented


def dumps_for_others(value: Any) -> bytes:
    """Pickle a value for new processes, by cloudpickle if that is installed; see `_ForOthers`."""
    try:
        import cloudpickle
    except ImportError:
        content = io.BytesIO()
        _ForOthers(content).dump(value)
        return content.getvalue()
    return bytes(cloudpickle.dumps(value))


def failure_of(rank: int, when: int, error: BaseException) -> bytes:
    """Return a pickled `Failure`, without the exception if that cannot be pickled."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    summary = summary_of(error)
    try:
        content = dumps(Failure(rank, when, error, summary, text))
        pickle.loads(content)  # some exceptions can be pickled, but not unpickled
        return content
    except Exception:
        return pickle.dumps(Failure(rank, when, None, summary, text))


class RankError(Exception):
    """A rank's traceback, as the cause of the exception that `spawn` raises."""


def spawn(fn: Callable[..., T], n: int, *args: Any) -> list[T]:
    """Run ``fn(comm, *args)`` on `n` ranks that are new processes of this host.

    It is made for tests, notebooks, and programs that ``hocket run`` did not start.

    Parameters
    ----------
    fn : callable
        Called in each process with that process's communicator. Functions of notebooks and of
        ``__main__`` need the package cloudpickle; functions of modules do not need it.
    n : int
        Number of processes.
    *args
        Passed to `fn`; they are pickled.

    Returns
    -------
    list
        Each rank's return value, in order of the ranks. The values are pickled on the way.

    Raises
    ------
    Exception
        The first exception of any rank, with that rank's traceback as its cause. The other ranks
        are ended.
    """
    require_function("hocket.spawn", fn, n)
    n = number_of_ranks("hocket.spawn", n)
    with tempfile.TemporaryDirectory(prefix="hocket-spawn-") as folder:
        here = Path(folder)
        # The new processes must also find modules that only this process can import.
        task = pickle.dumps((list(sys.path), dumps_for_others((fn, args))))
        (here / "task").write_bytes(task)
        returncode, output = _run(here, n)
        failures = [pickle.loads(path.read_bytes()) for path in here.glob("failure-*")]
        if failures:
            raise_failure("hocket.spawn: ", min(failures, key=lambda failure: failure.when))
        results = [here / f"result-{rank}" for rank in range(n)]
        missing = [rank for rank, path in enumerate(results) if not path.exists()]
        if returncode != 0 or missing:
            some = f"ranks {missing}" if len(missing) < 9 else f"{len(missing)} of {n} ranks"
            who = f"{some} ended before fn had returned; " if missing else ""
            raise RuntimeError(f"hocket.spawn: {who}the job ended with code {returncode}\n{output}")
        return [pickle.loads(path.read_bytes()) for path in results]


def _run(folder: Path, n: int) -> tuple[int, str]:
    """Run the ranks to their end. Show their output, and return the exit code and the last lines.
    """
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [find_command(), "run", "-n", str(n), "--"]
    command += [sys.executable, "-m", "hocket._jobs.spawned", str(folder)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:  # notebooks show sys.stdout alone
            lines = [*lines[-49:], line]
            sys.stdout.write(line)
        return process.wait(), "".join(lines)
    except BaseException:
        process.terminate()
        process.wait()
        raise


def raise_failure(who: str, failure: Failure) -> None:
    """Raise the failure in the caller. A rank's SystemExit is raised as RuntimeError, so it does
    not end the caller.
    """
    account = RankError(f"rank {failure.rank} failed:\n{failure.traceback}")
    if failure.error is None:
        raise RuntimeError(f"{who}rank {failure.rank}: {failure.summary}") from account
    if isinstance(failure.error, SystemExit):
        raise RuntimeError(
            f"{who}rank {failure.rank} ended before its function had returned: {failure.summary}"
        ) from account
    raise failure.error from account
