"""Products of spread matrices, against NumPy's."""


import numpy as np
import pytest
from helpers import threads
from processes import HOSTS, run_job, run_on_hosts

import hocket
from hocket.distribution import BlockCyclic, BlockNonCyclic, ProcessGrid, Slab
from hocket.linalg import Matmul, local_shape, matmul

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
BOUNDS = {"float64": 1e-13, "complex128": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}


def dtype_of(name):
    if name.startswith(("bfloat", "float8")):
        return getattr(pytest.importorskip("ml_dtypes"), name)
    return np.dtype(name)


def drawn(random, n):
    """One of the distributions that programs have; drawn alike on all ranks."""
    high = [p for p in range(1, n + 1) if n % p == 0]
    high = high[random.integers(len(high))]
    grid = ProcessGrid((high, n // high), ("row", "column")[random.integers(2)],
                       None if random.integers(2) else
                       random.permutation(n).reshape(high, n // high))
    blocks = BlockCyclic(grid, random.integers(1, 6, 2).tolist(),
                         [int(random.integers(places)) for places in grid.shape])
    return [Slab(0), Slab(1), BlockNonCyclic(grid), blocks, blocks, "replicated"][random.integers(6)]


def part_of(whole, spread, rank, n):
    """Returns a rank's part, by NumPy's indices."""
    if isinstance(spread, str):
        return whole
    if isinstance(spread, Slab):
        return whole[tuple(map(slice, *spread.box(whole.shape, rank, n)))]
    if isinstance(spread, BlockNonCyclic):
        spread = spread.bound(whole.shape)
    return whole[np.ix_(*spread.indices(whole.shape, rank))]


def after(op, x):
    return {"none": x, "transpose": x.T, "conjugate": x.conj().T}[op]


def numbers(random, shape, dtype):
    x = random.normal(size=shape)
    return (x + 1j * random.normal(size=shape) if "complex" in dtype else x).astype(dtype_of(dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("library", ["none", ""])
@pytest.mark.parametrize("form", ["cheapest", "gathered", "reduced"])
def test_as_numpy_does(n, library, form, monkeypatch):
    monkeypatch.setenv("HOCKET_BLAS_LIBRARY", library)

    def body(comm):
        random = np.random.default_rng(n)  # the same on all ranks
        for i in range(18):
            dtype = DTYPES[i % 6]
            out_dtype = "float32" if dtype == "bfloat16" else dtype
            m, n_, k = (int(v) for v in random.integers(0, 30, 3))
            ops = [("none", "transpose", "conjugate")[random.integers(3)] for _ in range(2)]
            order = "".join("CF"[random.integers(2)] for _ in range(3))
            spreads = [drawn(random, n) for _ in range(3)]
            a = numbers(random, (m, k) if ops[0] == "none" else (k, m), dtype)
            b = numbers(random, (k, n_) if ops[1] == "none" else (n_, k), dtype)
            c = numbers(random, (m, n_), out_dtype)
            alpha, beta = 0.5, 2.0
            if "complex" in dtype:
                alpha, beta = 0.5 - 1j, 2j
            wide = "complex128" if "complex" in dtype else "float64"
            want = alpha * (after(ops[0], a).astype(wide) @ after(ops[1], b).astype(wide))
            mine = [np.array(part_of(x, spread, comm.rank, n), order=letter)
                    for x, spread, letter in zip((a, b, c), spreads, order)]
            plan = Matmul(comm, (m, n_, k), *spreads, *ops, dtype, out_dtype, order, form)
            assert [x.shape for x in mine] == plan.shapes
            for added in (None, mine[2]):
                whole = want if added is None else want + beta * c.astype(wide)
                scale = None if added is None else beta
                got = plan(mine[0], mine[1], added, alpha=alpha, beta=scale)
                exact = part_of(whole, spreads[2], comm.rank, n)
                assert got.shape == exact.shape and got.dtype == dtype_of(out_dtype)
                bound = BOUNDS.get(out_dtype, 2e-5) * (np.abs(want).max(initial=0) + 10)
                assert np.abs(got.astype(wide) - exact).max(initial=0) <= bound
            assert plan(mine[0], mine[1], mine[2], mine[2], alpha, beta) is mine[2]
            assert np.array_equal(mine[2], got)

    threads(n, body)


LARGEST = {"float8_e4m3fn": 448, "float8_e5m2": 57344}


def rounded(values, dtype):
    """Rounds to a dtype: a value too large for 8 bits becomes the largest number."""
    largest = LARGEST.get(dtype, np.inf)
    return np.clip(values, -largest, largest).astype("float32").astype(dtype_of(dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("form", ["cheapest", "gathered", "reduced"])
def test_eight_bits(n, form):
    """Sums of small whole numbers are exact, so that a result's one rounding is all there is."""
    kinds = ("float8_e4m3fn", "float8_e5m2")

    def body(comm):
        random = np.random.default_rng(n)
        for i in range(10):
            dtype, dtype_b = kinds[i % 2], kinds[i // 2 % 2]
            out_dtype = ("float32", *kinds, "float16", "bfloat16")[i % 5]
            m, n_, k = (int(v) for v in random.integers(0, 30, 3))
            ops = [("none", "transpose", "conjugate")[random.integers(3)] for _ in range(2)]
            order = "".join("CF"[random.integers(2)] for _ in range(3))
            spreads = [drawn(random, n) for _ in range(3)]
            shapes = (m, k) if ops[0] == "none" else (k, m), (k, n_) if ops[1] == "none" else (n_, k)
            wide = [random.integers(-4, 5, shape) for shape in (*shapes, (m, n_))]
            a, b, c = (x.astype(dtype_of(d)) for x, d in zip(wide, (dtype, dtype_b, out_dtype)))
            mine = [np.array(part_of(x, spread, comm.rank, n), order=letter)
                    for x, spread, letter in zip((a, b, c), spreads, order)]
            plan = Matmul(comm, (m, n_, k), *spreads, *ops, dtype, out_dtype, order, form,
                          dtype_b=dtype_b)
            for alpha, beta in ((0.25, -2.0), (400.0, 0.5)):
                for added in (None, mine[2]):
                    whole = alpha * (after(ops[0], wide[0]) @ after(ops[1], wide[1]))
                    whole = whole if added is None else whole + beta * wide[2]
                    scale = None if added is None else beta
                    got = plan(mine[0], mine[1], added, alpha=alpha, beta=scale)
                    want = rounded(part_of(whole, spreads[2], comm.rank, n), out_dtype)
                    assert got.dtype == want.dtype and np.array_equal(got, want), (i, out_dtype)

    threads(n, body)


def test_eight_bits_that_are_no_numbers():
    e4m3, e5m2 = dtype_of("float8_e4m3fn"), dtype_of("float8_e5m2")

    def body(comm):
        a = np.array([[np.nan, 448], [2.0 ** -9, -448]], e4m3)
        eye = np.eye(2).astype(e5m2)
        for dtype in ("float32", "float8_e4m3fn", "float8_e5m2"):
            got = matmul(comm, a, eye, "replicated", "replicated", "replicated", out_dtype=dtype)
            assert got.dtype == dtype_of(dtype) and np.isnan(got[0].astype("float32")).all()
            assert got[1].tolist() == [2.0 ** -9, -448]
        inf = np.array([[np.inf]], e5m2)
        one = np.ones((1, 1), e4m3)
        for dtype, largest in LARGEST.items():
            got = matmul(comm, one, inf, "replicated", "replicated", "replicated", out_dtype=dtype)
            assert got.item() == largest

    threads(2, body)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_once(n):
    def body(comm):
        random = np.random.default_rng(3)
        a, b = random.normal(size=(7, 9)), random.normal(size=(9, 5))
        rows = Slab(0)
        mine = [part_of(x, rows, comm.rank, n) for x in (a, b)]
        assert np.allclose(matmul(comm, *mine), part_of(a @ b, rows, comm.rank, n))
        assert np.allclose(matmul(comm, mine[0], mine[0], op_a="conjugate", spread_out="replicated"),
                           a.T @ a)
        blocks = BlockCyclic(ProcessGrid((n // (n // 2 or 1), n // 2 or 1)), (2, 2))
        x = np.asfortranarray(part_of(a, blocks, comm.rank, n))
        got = matmul(comm, x, x, blocks, blocks, blocks, op_b="transpose", order="F")
        assert got.flags.f_contiguous
        assert np.allclose(got, part_of(a @ a.T, blocks, comm.rank, n))
        with pytest.raises(hocket.InvalidArgument, match=r"op\(a\) is 7 x 9, and op\(b\) 7 x 9"):
            matmul(comm, mine[0], mine[0])

    threads(n, body)


def test_blocks_longer_than_the_matrix():
    """Also so long that a block has more elements than can be counted."""
    def body(comm):
        for block in ((1, 10**6), (1 << 62, 1 << 62)):
            whole = BlockCyclic(ProcessGrid((1, 2)), block)
            product = Matmul(comm, (5, 7, 6), whole, whole, whole)
            assert product.shapes[0] == ((5, 6) if comm.rank == 0 else (5, 0))
            got = product(np.ones(product.shapes[0]), np.ones(product.shapes[1]))
            assert (got == 6).all() and got.shape == ((5, 7) if comm.rank == 0 else (5, 0))

    threads(2, body)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_torch(dtype):
    torch = pytest.importorskip("torch")

    def body(comm):
        random = np.random.default_rng(3)
        kind = getattr(torch, dtype)
        a, b = (torch.from_numpy(random.integers(-3, 4, size=s)).to(kind) for s in ((8, 6), (6, 4)))
        rows = slice(4 * comm.rank, 4 * comm.rank + 4), slice(3 * comm.rank, 3 * comm.rank + 3)
        got = matmul(comm, a[rows[0]], b[rows[1]])
        assert got.dtype == kind and torch.equal(got, (a @ b)[rows[0]])

    threads(2, body)


def test_refusals_reach_all():
    def body(comm):
        rows = Slab(0)
        for wrong, say in (
            ({"op_a": "invert"}, "op_a is 'invert', expected one of none, transpose, conjugate"),
            ({"dtype": "int32"}, "dtype is int32, expected one of float8_e4m3fn"),
            ({"form": "large"}, "form is 'large'"),
            ({"order": "CB"}, "order is 'CB'"),
            ({"op_b": "transpose"}, "rank 1 gives another op of B than rank 0"),
            ({"order": "F"}, "rank 1 gives another memory order of A than rank 0"),
            ({"out_dtype": "float32"}, "D is float32, expected float64 of factors that are float64"),
            ({"dtype": "float8_e5m2", "out_dtype": "float64"}, "D is float64, expected float8_e4m3, "),
            ({"dtype": "float8_e4m3fn", "dtype_b": "float16"}, "B is float16, expected float8_e4m3"),
            ({"dtype_b": "float32"}, "B is float32, expected float64, as A is: only float8_e4m3 and"),
            ({"form": "reduced"}, "rank 1 gives another form than rank 0"),
        ):
            with pytest.raises(hocket.InvalidArgument, match=say):
                Matmul(comm, (4, 4, 4), rows, rows, rows, **(wrong if comm.rank == 1 else {}))
        for wrong, say in (
            (BlockCyclic(ProcessGrid((3, 1)), (1, 1)), r"the grid of b has shape \(3, 1\)"),
            (Slab(2), "the slabs' axis of b is 2"),
            (7, "b is spread as 7, expected"),
            (Slab(1), "rank 1 gives another distribution of B than rank 0"),
        ):
            with pytest.raises(hocket.InvalidArgument, match=say):
                Matmul(comm, (4, 4, 4), rows, wrong if comm.rank == 1 else rows, rows)
        plan = Matmul(comm, (4, 4, 4), rows, rows, rows)
        x = np.ones((2, 4))
        for wrong, say in (
            ((x[:1], x), r"a has shape \(1, 4\) and dtype float64, expected \(2, 4\) and float64"),
            ((x, x.astype("float32")), "b has shape .* and dtype float32"),
            ((x, np.asfortranarray(x)), 'b does not lie in order "C" without gaps'),
            ((x, 3), "b is an int, expected an array"),
            ((x, x, None, x), "d overlaps a or b"),
            ((x, x, None, None, "two"), "alpha is 'two', expected a number"),
            ((x, x, None, None, 1j), "alpha is complex, and the matrices are float64"),
        ):
            with pytest.raises(hocket.InvalidArgument, match=say):
                plan(*(wrong if comm.rank == 0 else (x, x)))
        assert np.array_equal(plan(x, x), np.full((2, 4), 4.0))

    threads(2, body)


def test_shapes_of_parts():
    grid = ProcessGrid((2, 2))
    assert local_shape(Slab(1), (5, 7), 0, 2) == (5, 4)
    assert local_shape(BlockNonCyclic(grid), (5, 7), 3, 4) == (2, 3)
    assert local_shape(BlockCyclic(grid, (2, 2)), (5, 7), 3, 4) == (2, 3)
    assert local_shape("replicated", (5, 7), 1, 2) == (5, 7)
    with pytest.raises(hocket.InvalidArgument, match="whole is"):
        local_shape(Slab(0), (5,), 0, 1)


PROGRAM = """
import sys, os, signal, time
if "HOCKET_TEST_HOSTS" in os.environ:
    hosts = int(os.environ["HOCKET_TEST_HOSTS"])
    os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import numpy as np
import hocket
from hocket.distribution import BlockCyclic, ProcessGrid, Slab
from hocket.linalg import Matmul

comm = hocket.init()
assert len(set(comm.hosts)) == int(os.environ.get("HOCKET_TEST_HOSTS", 1))
random = np.random.default_rng(1)
n = 700
a, b = random.normal(size=(n, n)), random.normal(size=(n, n))
blocks = BlockCyclic(ProcessGrid((2, comm.size // 2) if comm.size % 2 == 0 else (1, comm.size)),
                     (64, 64))
mine = lambda x: np.ascontiguousarray(x[np.ix_(*blocks.indices(x.shape, comm.rank))])
rows = Slab(0).box(a.shape, comm.rank, comm.size)
of_rows = slice(rows.lower[0], rows.upper[0])
plans = [Matmul(comm, (n, n, n), blocks, blocks, blocks, form=form)
         for form in ("gathered", "reduced")]
across = Matmul(comm, (n, n, n), Slab(0), blocks, Slab(0), op_b="transpose")
for _ in range(2):
    for plan in plans:
        assert np.allclose(plan(mine(a), mine(b)), mine(a @ b))
    assert np.allclose(across(a[of_rows], mine(b)), (a @ b.T)[of_rows])
if "die" in sys.argv:
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            plans[0](mine(a), mine(b))
    except hocket.PeerDied as error:
        print("told of rank", error.rank, flush=True)
        del plan, plans, across
        sys.exit(0)
if "late" in sys.argv:
    quick = Matmul(comm, (n, n, n), blocks, blocks, blocks, deadline=1)
    if comm.rank == 1:
        time.sleep(4)
    try:
        quick(mine(a), mine(b))
    except hocket.DeadlineExceeded:
        print("too late", flush=True)
        sys.exit(0)
print("right", comm.rank, flush=True)
"""


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("hosts", HOSTS)
def test_processes(n, hosts):
    run_on_hosts(n, hosts, "-c", PROGRAM)


def test_a_rank_dies():
    done = run_job(3, "-c", PROGRAM, "die", before=["--keep-going"])
    assert done.stdout.count("told of rank 1") == 2, done.stdout


def test_a_rank_is_late():
    done = run_job(2, "-c", PROGRAM, "late", before=["--keep-going"])
    assert done.stdout.count("too late") == 2, done.stdout
