"""Calls in CUDA graphs, on GPUs that are none and by an NCCL that is none."""

from pathlib import Path

import pytest
from processes import BUILD, run_job

SUPPORT = Path(__file__).parents[1] / "support"
NCCL = BUILD / "fake_nccl" / "libnccl.so.2"
pytestmark = pytest.mark.skipif(not NCCL.exists(), reason="this build has no fake NCCL")

PRELUDE = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver
driver = Driver()
comm = hocket.init(engines=["nccl"])
driver.use(comm.rank)
stream = driver.stream()
x = Array(driver, np.full(1000, comm.rank + 1.0))
out = Array(driver, np.zeros(1000))
comm.all_reduce(x, out=out, stream=stream)
driver.synchronize(stream)
with driver.graph(stream) as play:
    comm.all_reduce(x, out=out, stream=stream)
comm.barrier()
for i in range(5):
    x.host[:] = comm.rank + i
    play[0]()
    driver.synchronize(stream)
    assert (out.host == sum(range(comm.size)) + i * comm.size).all(), out.host
comm.barrier()
"""


def run(n, program):
    """Every survivor's "done"; who is killed says nothing."""
    job = run_job(n, "-c", PRELUDE + program + "print('done', comm.rank, flush=True)", SUPPORT,
                  before=("--keep-going",),
                  env={"LD_LIBRARY_PATH": str(BUILD / "fake_cuda"), "HOCKET_NCCL_LIBRARY": str(NCCL)})
    return job


def test_graphs_are_played_again():
    job = run(3, "")
    assert job.returncode == 0 and job.stdout.count("done") == 3, job.stdout


def test_a_death_ends_replays_and_is_told_of():
    """The stream goes on by itself. The next call of hocket raises, as the result is invalid."""
    job = run(3, """
if comm.rank == 2:
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
play[0]()
driver.synchronize(stream)  # waits for rank 2, who never comes
for ask in (lambda: comm.barrier_async(stream=stream).synchronize(timeout=20),
            lambda: comm.all_reduce(x, stream=stream), comm.barrier):
    try:
        ask()
    except hocket.PeerDied as error:
        assert "rank 2" in str(error), error
    else:
        raise SystemExit("no error")
comm = comm.rebuild(timeout=30)
comm.all_reduce(x, out=out, stream=stream)
driver.synchronize(stream)
assert (out.host == 2 * 4 + 1).all(), out.host
""")
    assert job.stdout.count("done") == 2, job.stdout
