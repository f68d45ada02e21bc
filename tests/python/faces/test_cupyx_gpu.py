"""The face of cupyx.distributed on arrays of GPUs that are none: the fake driver's."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import BUILD, with_package

FAKE = BUILD / "fake_cuda"
SUPPORT = Path(__file__).parents[1] / "support"


ON_THE_FAKE_DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver
from hocket.compat.cupyx_distributed import NCCLBackend

class Flags:
    c_contiguous = f_contiguous = True

class LikeCuPy(Array):
    flags = Flags()
    size = property(lambda self: self.host.size)
    dtype = property(lambda self: self.host.dtype)

class Stream:
    def __init__(self, ptr): self.ptr = ptr

driver = Driver()

def body(comm):
    driver.use(comm.rank)
    face, rank = NCCLBackend.over(comm), comm.rank
    stream = Stream(driver.stream())
    mine = np.arange(6.0) + 10 * rank
    other = np.arange(6.0) + 10 * (1 - rank)
    total = 2 * np.arange(6.0) + 10
    def array(values): return LikeCuPy(driver, values)
    def check(got, wanted, what):
        driver.synchronize(stream.ptr)
        assert np.array_equal(got.host, wanted), (what, got.host, wanted)
    out = array(np.zeros(6))
    assert face.all_reduce(array(mine), out, "sum", stream) is None
    check(out, total, "all_reduce")
    face.all_reduce(array(mine), out, "max", stream)
    check(out, np.arange(6.0) + 10, "max")
    face.reduce(array(mine), out if rank == 1 else None, 1, "sum", stream)
    if rank == 1:
        check(out, total, "reduce")
    x = array(mine)
    face.broadcast(x, 1, stream)
    check(x, np.arange(6.0) + 10, "broadcast")
    table = array(np.zeros((2, 6)))
    face.all_gather(array(mine), table, 6, stream)
    check(table, np.stack([np.arange(6.0), np.arange(6.0) + 10]), "all_gather")
    share = array(np.zeros(3))
    face.reduce_scatter(array(mine), share, 3, "sum", stream)
    check(share, total[3 * rank : 3 * rank + 3], "reduce_scatter")
    pairs = np.arange(12.0).reshape(2, 6) + 100 * rank
    face.all_to_all(array(pairs), table, stream)
    check(table, np.stack([np.arange(6.0) + 6 * rank + 100 * r for r in range(2)]), "all_to_all")
    face.scatter(array(pairs), out, 0, stream)
    check(out, np.arange(6.0) + 6 * rank, "scatter")
    face.gather(array(mine), table if rank == 0 else None, 0, stream)
    if rank == 0:
        check(table, np.stack([mine, other]), "gather")
    face.barrier()
    try:
        face.all_reduce(array(mine), array(np.zeros(5)))
    except ValueError as error:
        assert "5" in str(error)
    else:
        raise AssertionError("5 elements for 6")

hocket.run_threads(body, 2)
"""


@pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")
def test_cupyx_on_the_fake_driver():
    environment = with_package(LD_LIBRARY_PATH=str(FAKE), HOCKET_NCCL_LIBRARY="none")
    done = subprocess.run([sys.executable, "-c", ON_THE_FAKE_DRIVER, str(SUPPORT)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50)
    assert done.returncode == 0, done.stdout
