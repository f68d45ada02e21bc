"""Runs one function of a test file in all places: as threads, as processes of one host, of two
pretended hosts, and over an MPI.

`python places.py HOSTS ENGINES FILE FUNCTION` is one rank of it."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import run_job, threads

import hocket

PLACES = ["threads", "processes", "hosts", "mpi"]


def run_at(place, n, function, timeout=50):
    """`function(comm)` on `n` ranks at `place`; it lies at the top of a test file."""
    if place == "threads":
        threads(n, function)
        return
    arguments = [sys.modules[function.__module__].__file__, function.__name__]
    if place == "mpi":
        output = run_over_mpi(n, arguments, timeout)
    else:
        job = run_job(n, __file__, 2 if place == "hosts" else 1, "", *arguments, timeout=timeout)
        output = job.stdout
        assert job.returncode == 0, output
    for rank in range(n):
        assert f"rank {rank} is done" in output, output


def run_over_mpi(n, arguments, timeout):
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        pytest.skip("mpirun.openmpi is not installed")
    job = subprocess.run(
        [mpirun, "-n", str(n), "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated",
         sys.executable, __file__, "0", "mpi", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(hocket.__file__).parent.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )  # fmt: skip
    assert job.returncode == 0, job.stdout
    return job.stdout


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
