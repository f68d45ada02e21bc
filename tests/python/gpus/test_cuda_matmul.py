"""Products of matrices in GPUs' memory, by a cuBLAS that is none: on GPUs that are none."""

import pytest
from gpu_ranks import FAKE, run_ranks

CUBLAS = FAKE.parent / "fake_cublas/libcublas.so.13"
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")

PRODUCTS = """
from hocket.distribution import BlockCyclic, ProcessGrid, Slab
from hocket.linalg import Matmul

comm, driver = start(rank)
n, gpu = comm.size, rank
random = np.random.default_rng(5)
def put(values):
    array = Array(driver, values)
    array.dtype = array.host.dtype
    kept.append(array)
    return array
def part(whole, spread):
    if isinstance(spread, Slab):
        return whole[tuple(map(slice, *spread.box(whole.shape, rank, n)))]
    return whole[np.ix_(*spread.indices(whole.shape, rank))]
blocks = BlockCyclic(ProcessGrid((1, n)), (3, 2))
for dtype in ("float32", "float64", "complex64", "complex128", "float16"):
    a, b, c = (random.integers(-3, 4, shape).astype(dtype) for shape in ((9, 7), (7, 10), (9, 10)))
    product = Matmul(comm, (9, 10, 7), blocks, Slab(0), Slab(1), dtype=dtype, gpu=gpu)
    assert product.library == "cuBLAS 13.1.0", product.library
    out = put(part(0 * c, Slab(1)))
    for times in (1, 2):
        product(put(part(times * a, blocks)), put(part(b, Slab(0))), put(part(c, Slab(1))), out,
                alpha=2, beta=-1)
        driver.synchronize(1)
        wanted = 2 * times * (a.astype(np.result_type(dtype, "float64")) @ b) - c
        assert np.array_equal(out.host, part(wanted.astype(dtype), Slab(1))), dtype
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_products(n, monkeypatch):
    monkeypatch.setenv("HOCKET_CUBLAS_LIBRARY", str(CUBLAS))
    ends = run_ranks(PRODUCTS, n)
    assert ends == [(0, "")] * n, ends


@pytest.mark.parametrize("late", ["b", "c"])
def test_a_product_comes_after_the_work_on_its_arrays(late, monkeypatch):
    monkeypatch.setenv("HOCKET_CUBLAS_LIBRARY", str(CUBLAS))
    ends = run_ranks(f"late = {late!r}" + """
import threading
from hocket.distribution import Slab
from hocket.linalg import Matmul

comm, driver = start(rank)
stream = driver.stream()
arrays = {name: Array(driver, np.ones((3, 3)), stream=stream if name == late else 1) for name in "abc"}
out = Array(driver, np.zeros((3, 3)))
for array in [*arrays.values(), out]:
    array.dtype = array.host.dtype
kept.extend([*arrays.values(), out])
product = Matmul(comm, (3, 3, 3), Slab(0), Slab(0), Slab(0), dtype="float64", gpu=rank)
go = driver.fill_later(arrays[late].address, np.full((3, 3), 5.0), stream)
threading.Timer(0.5, go).start()
product(arrays["a"], arrays["b"], arrays["c"], out, alpha=1, beta=1)
driver.synchronize(1)
assert (out.host == (16 if late == "b" else 8)).all(), out.host
""", 1)
    assert ends == [(0, "")], ends


def test_without_cublas_all_are_told(monkeypatch):
    monkeypatch.setenv("HOCKET_CUBLAS_LIBRARY", "/nowhere/libcublas.so.13")
    ends = run_ranks("""
from hocket.distribution import Slab
from hocket.linalg import Matmul

comm, driver = start(rank)
try:
    Matmul(comm, (4, 4, 4), Slab(0), Slab(0), Slab(0), gpu=rank)
except hocket.InvalidArgument as error:
    assert "are multiplied by cuBLAS" in str(error) and "/nowhere" in str(error), error
else:
    raise AssertionError("no error")
comm.barrier()
""", 2)
    assert ends == [(0, "")] * 2, ends
