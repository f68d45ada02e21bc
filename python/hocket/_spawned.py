"""One rank of `hocket.spawn`: ``python -m hocket._spawned FOLDER``."""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import hocket
from hocket._spawn import Failure


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: the rank may be ended at any time."""
    partial = path.with_suffix(".partial")
    partial.write_bytes(content)
    partial.rename(path)


def _dumps(value: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    return bytes(cloudpickle.dumps(value))


def _failure(rank: int, when: int, error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    summary = f"{type(error).__name__}: {error}"
    try:
        content = _dumps(Failure(rank, when, error, summary, text))
        pickle.loads(content)  # some exceptions can be written, but not read
        return content
    except Exception:
        return pickle.dumps(Failure(rank, when, None, summary, text))


def main(folder: Path) -> None:
    """Run the task of `folder` and leave what came of it there."""
    paths, task = pickle.loads((folder / "task").read_bytes())
    sys.path[:] = paths
    with hocket.init() as comm:
        rank = comm.rank
        try:
            fn, args = pickle.loads(task)
            result = _dumps(fn(comm, *args))
            comm.close()  # which raises what has become of its last calls on a GPU
        except BaseException as error:
            when = time.monotonic_ns()
            _write(folder / f"failure-{rank}", _failure(rank, when, error))
            sys.exit(1)
        _write(folder / f"result-{rank}", result)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
