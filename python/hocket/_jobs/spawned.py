"""One rank of `hocket.spawn`: ``python -m hocket._jobs.spawned FOLDER``."""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

import hocket
from hocket._jobs.forked import children_end_here
from hocket._jobs.spawn import dumps, failure_of


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, because this process may be ended at any time."""
    partial = path.with_suffix(".partial")
    partial.write_bytes(content)
    partial.rename(path)


def main(folder: Path) -> None:
    """Run the task in `folder`, and write its result or its failure there."""
    paths, task = pickle.loads((folder / "task").read_bytes())
    sys.path[:] = paths
    with hocket.init() as comm:
        rank = comm.rank
        try:
            fn, args = pickle.loads(task)
            with children_end_here():
                result = dumps(fn(comm, *args))
            comm.close()  # raises errors of this rank's last calls on a GPU
        except BaseException as error:
            when = time.monotonic_ns()
            _write(folder / f"failure-{rank}", failure_of(rank, when, error))
            sys.exit(1)
        _write(folder / f"result-{rank}", result)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
