"""Symmetric memory of GPUs whose collectives the host carries: on GPUs that are none."""

import pytest
from gpu_ranks import FAKE, run_ranks

pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")

SYMMETRIC = """
comm, driver = start(rank)
def empty(count):
    array = comm.symmetric.empty(count, "float32", memory="cuda")
    kept.append(array)
    host = np.frombuffer((ctypes.c_char * array.nbytes).from_address(array.data_ptr), "float32")
    return array, host
def values(rank, count):
    return (np.arange(count) % 1000 + 1000 * rank).astype("float32")
n = comm.size
for count in (1, 1000, 40_000):
    array, x = empty(n * count)
    x[:] = values(rank, n * count)
    comm.all_reduce(array)
    driver.synchronize()
    assert np.array_equal(x, sum(values(q, n * count) for q in range(n))), (count, x)
    x[:] = values(rank, n * count)
    comm.broadcast(array, root=1)
    driver.synchronize()
    assert np.array_equal(x, values(1, n * count)), (count, x)
    x[:] = values(rank, n * count)
    other, y = empty(n * count)
    comm.all_to_all(array, out=other)
    driver.synchronize()
    share = [values(q, n * count)[rank * count:][:count] for q in range(n)]
    assert np.array_equal(y, np.concatenate(share)), (count, y)
    comm.all_gather(Array(driver, values(rank, count)), out=other)
    driver.synchronize()
    assert np.array_equal(y, np.concatenate([values(q, count) for q in range(n)])), (count, y)
"""


@pytest.mark.parametrize("n", [2, 3])
def test_collectives_on_it_are_right_and_harm_nothing(n):
    ends = run_ranks("import ctypes" + SYMMETRIC + """
comm = comm.rebuild(timeout=30)
x = Array(driver, np.ones(5))
comm.all_reduce(x)
driver.synchronize()
assert x.host[0] == n
""", n)
    assert ends == [(0, "")] * n, ends
