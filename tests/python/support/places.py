"""Runs one function of a test file in all places: as threads, as processes of one host, of two
pretended hosts, and over an MPI.

`python places.py HOSTS ENGINES FILE FUNCTION` is one rank of it."""

import importlib
import os
import sys
from pathlib import Path

from helpers import threads
from processes import run_job, run_over_mpi

import hocket

PLACES = ["threads", "processes", "hosts", "mpi"]


def run_at(place, n, function, timeout=50):
    """`function(comm)` on `n` ranks at `place`; it lies at the top of a test file."""
    if place == "threads":
        threads(n, function)
        return
    arguments = [sys.modules[function.__module__].__file__, function.__name__]
    if place == "mpi":
        output = run_over_mpi("openmpi", n, __file__, 0, "mpi", *arguments, timeout=timeout)
    else:
        job = run_job(n, __file__, 2 if place == "hosts" else 1, "", *arguments, timeout=timeout)
        output = job.stdout
        assert job.returncode == 0, output
    for rank in range(n):
        assert f"rank {rank} is done" in output, output


def main(hosts, engines, file, function):
    if int(hosts) > 1:
        os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % int(hosts)}/"
    comm = hocket.init(engines=engines.split() or None)
    assert int(hosts) in (0, len(set(comm.hosts))), comm.hosts
    sys.path.insert(0, str(Path(file).parent))
    getattr(importlib.import_module(Path(file).stem), function)(comm)
    comm.barrier()
    print(f"rank {comm.rank} is done\n", end="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
