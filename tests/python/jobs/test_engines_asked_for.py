"""Any combination of engines, by any of their names: right results, and a good end."""

import ctypes.util

import pytest
from processes import run_job

PROGRAM = """
import os, sys
names, hosts = sys.argv[1].split("+"), int(sys.argv[2])
os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import numpy as np
import hocket

comm = hocket.init(engines=names)
comm.deadline = 20
n, rank = comm.size, comm.rank
assert (comm.all_reduce(np.ones(3)) == n).all()
x = comm.all_reduce(np.arange(100_000.0) + rank)
assert (x == n * np.arange(100_000.0) + n * (n - 1) / 2).all()
got = np.empty(4)
comm.send_recv(np.full(4, float(rank)), (rank + 1) % n, out=got, source=(rank - 1) % n)
assert (got == (rank - 1) % n).all()
if hosts == 1 and "shm" in names:
    array = comm.symmetric.empty(100)
    np.asarray(array)[:] = 1
    comm.all_reduce(array)
    assert (np.asarray(array) == n).all()
half = comm.split(rank % 2)
assert half.all_reduce(np.ones(1))[0] == half.size
print("right")
"""
NAMES = ["shm", "shm+shm", "algorithm", "shm+algorithm", "peer", "nccl+shm"]
WITH_UCX = ["ucx", "shm+ucx", "ucx+shm", "algorithm+ucx", "peer+ucx", "nccl+shm+ucx"]


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("names", NAMES + WITH_UCX)
def test_calls_are_right_and_the_job_ends_well(names, hosts):
    if not ctypes.util.find_library("ucp") and (hosts > 1 or names in WITH_UCX):
        pytest.skip("there is no UCX here (libucp)")
    for n in (1, 3) if hosts == 1 else (3,):
        job = run_job(n, "-c", PROGRAM, names, str(hosts))
        assert job.returncode == 0 and job.stdout.count("right") == n, job.stdout
