"""all_reduce, reduce, scan, exscan, reduce_scatter, reproducible_sum against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from helpers import COUNTS, DTYPES, INTEGERS, RANK_COUNTS, SMALL_FLOATS, threads, values

import hocket

FOLDS = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


def expected(n, shape, dtype, op="sum"):
    """Returns the reduction of all ranks' `values`, computed in a wide type and rounded once."""
    wide = np.dtype(dtype)
    if wide in SMALL_FLOATS or wide == np.float16:
        wide = np.dtype("float32")
    parts = [values(rank, shape, dtype).astype(wide) for rank in range(n)]
    if op == "avg":
        total = np.add.reduce(parts).astype("complex128" if wide.kind == "c" else "float64")
        mean = total / n
        return np.trunc(mean).astype(dtype) if wide.kind in "iu" else mean.astype(dtype)
    result = parts[0]
    for part in parts[1:]:
        result = FOLDS[op](result, part)
    return result.astype(dtype)


def same(found, wanted):
    """Equal in shape, dtype and, but for averages' last bit, value."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype.kind in "biu":
        assert np.array_equal(found, wanted)
    else:
        wide = "complex128" if found.dtype.kind == "c" else "float64"
        eps = float(ml_dtypes.finfo(found.dtype).eps) if found.dtype.kind != "c" else 1e-6
        assert np.allclose(found.astype(wide), wanted.astype(wide), rtol=eps, atol=0)


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(n, dtype):
    def body(comm):
        for count in COUNTS:
            x = values(comm.rank, count, dtype)
            keep = x.copy()
            out = np.empty_like(x)
            assert comm.all_reduce(x, out=out) is out
            same(out, expected(n, count, dtype))
            assert np.array_equal(x, keep)
            assert comm.all_reduce(x) is x
            same(x, expected(n, count, dtype))

    threads(n, body)


def meaningful(op, dtype):
    if op in ("band", "bor", "bxor"):
        return dtype == bool or str(dtype) in INTEGERS
    if op in ("min", "max"):
        return dtype.kind != "c"
    return op != "avg" or dtype != bool


@pytest.mark.parametrize("op", [*FOLDS, "avg", "prod"])
def test_every_op(op):
    def body(comm):
        for dtype in DTYPES:
            x = values(comm.rank, 29, dtype)
            if not meaningful(op, dtype):
                with pytest.raises(hocket.InvalidArgument, match=f"{op}|prod"):
                    comm.all_reduce(x, op=op)
                continue
            wanted = expected(3, 29, dtype, "product" if op == "prod" else op)
            same(comm.all_reduce(x, op=op), wanted)

    threads(3, body)


def test_nan_goes_through_min_and_max():
    def body(comm):
        x = np.array([1.0, np.nan if comm.rank == 1 else 2.0, -3.0 - comm.rank])
        assert np.array_equal(comm.all_reduce(x.copy(), op="min"), [1, np.nan, -5], equal_nan=True)
        assert np.array_equal(comm.all_reduce(x.copy(), op="max"), [1, np.nan, -3], equal_nan=True)

    threads(3, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_reduce(n):
    def body(comm):
        for root in range(n):
            x = values(comm.rank, (5, 3), "int32")
            keep = x.copy()
            out = np.zeros_like(x)
            result = comm.reduce(x, out=out, root=root, op="max")
            assert np.array_equal(x, keep)
            if comm.rank == root:
                assert result is out
                same(out, expected(n, (5, 3), "int32", "max"))
            else:
                assert result is None and not out.any()
            result = comm.reduce(x, root=root)
            assert result is (x if comm.rank == root else None)
            if comm.rank == root:
                same(x, expected(n, (5, 3), "int32"))
            assert comm.reduce_async(keep.copy(), root=root).wait() is None or comm.rank == root

    threads(n, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_prefixes_of_every_dtype(n, dtype):
    def body(comm):
        for count in COUNTS:
            x = values(comm.rank, count, dtype)
            keep, untouched = x.copy(), values(9, count, dtype)
            out = untouched.copy()
            assert comm.scan(x, out=out) is out
            same(out, expected(comm.rank + 1, count, dtype))
            before = expected(comm.rank, count, dtype) if comm.rank else untouched
            out = untouched.copy()
            assert comm.exscan(x, out=out) is out
            same(out, before)
            assert np.array_equal(x, keep)
            assert comm.scan(x) is x
            same(x, expected(comm.rank + 1, count, dtype))
            assert comm.exscan(keep) is keep
            same(keep, before if comm.rank else values(0, count, dtype))

    threads(n, body)


@pytest.mark.parametrize("n", [1, 2])
def test_what_rank_0_gives_an_exscan_must_be_as_the_others(n):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="in is float64 and out is float32"):
            comm.exscan(np.arange(4.0), np.zeros(4, "float32"))
        with pytest.raises(hocket.InvalidArgument, match="out has 2 elements, expected 4"):
            comm.exscan(np.arange(4.0), np.zeros(2))

    threads(n, body)


@pytest.mark.parametrize("op", [*FOLDS, "avg"])
def test_prefixes_by_every_op(op):
    def body(comm):
        for dtype in DTYPES:
            if not meaningful(op, dtype):
                with pytest.raises(hocket.InvalidArgument, match=op):
                    comm.scan(values(comm.rank, 29, dtype), op=op)
                continue
            same(comm.scan(values(comm.rank, 29, dtype), op=op), expected(comm.rank + 1, 29, dtype, op))
            found = comm.exscan(values(comm.rank, 29, dtype), op=op)
            same(found, expected(comm.rank, 29, dtype, op) if comm.rank else values(0, 29, dtype))

    threads(3, body)


def test_nan_goes_on_from_its_rank():
    def body(comm):
        x = np.array([1.0, np.nan if comm.rank == 1 else 2.0])
        comes = [np.nan if comm.rank >= 1 else 2.0, np.nan if comm.rank >= 2 else 2.0]
        for op in ("min", "max"):
            assert np.array_equal(comm.scan(x.copy(), op=op), [1, comes[0]], equal_nan=True)
            if comm.rank:
                assert np.array_equal(comm.exscan(x.copy(), op=op), [1, comes[1]], equal_nan=True)
            else:
                comm.exscan(x.copy(), op=op)

    threads(3, body)


def test_prefixes_started_and_prepared():
    def body(comm):
        x, out = np.zeros(7, "int32"), np.zeros(7, "int32")
        upto, before = comm.prepare_scan(x, out), comm.prepare_exscan(x, out)
        for step in range(5):
            x[:] = comm.rank + step
            assert upto() is out and (out == sum(r + step for r in range(comm.rank + 1))).all()
            out[:] = -1
            assert before() is out
            assert (out == (sum(r + step for r in range(comm.rank)) if comm.rank else -1)).all()
        x[:] = 1
        assert comm.scan_async(x, out).wait() is out and (out == comm.rank + 1).all()
        assert comm.exscan_async(x).wait() is x and (x == max(comm.rank, 1)).all()
        with pytest.raises(hocket.InvalidArgument, match="out has 3 elements, expected 7"):
            comm.scan(x, out=np.zeros(3, "int32"))

    threads(4, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_reduce_scatter(n):
    def body(comm):
        x = values(comm.rank, (n, 4, 3), "float32")
        wanted = expected(n, (n, 4, 3), "float32")[comm.rank]
        same(comm.reduce_scatter(x), wanted)
        same(comm.reduce_scatter_async(x).wait(), wanted)
        out = np.empty(12, "float32")
        assert comm.reduce_scatter(x.ravel(), out=out) is out
        same(out, wanted.ravel())
        place = x.copy()
        comm.reduce_scatter(place, out=place[0])
        same(place[0], wanted)
        op = comm.prepare_reduce_scatter(x)
        same(op(), wanted)
        for shape in ((5 * n,), (n,), (5 * n, 3)):  # cut along the first axis, as PyTorch's
            x = values(comm.rank, shape, "float32")
            share = shape[0] // n
            wanted = expected(n, shape, "float32")[comm.rank * share : (comm.rank + 1) * share]
            same(comm.reduce_scatter(x), wanted)
        for wrong in (np.zeros(n * 5 + 1), np.zeros(()))[n == 1 :]:
            with pytest.raises(hocket.InvalidArgument, match="leading axis"):
                comm.reduce_scatter(wrong)

    threads(n, body)


def shards_of(comm, all_shards):
    """This rank's consecutive shards; unevenly many."""
    cuts = [len(all_shards) * r * (r + 1) // (comm.size * (comm.size + 1)) for r in range(comm.size + 1)]
    return all_shards[cuts[comm.rank] : cuts[comm.rank + 1]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_reproducible_sum_has_one_value(dtype):
    random = np.random.default_rng(1)
    shards = (random.standard_normal((12, 101)) * 10.0 ** random.integers(-3, 4, (12, 101))).astype(dtype)

    def body(comm):
        mine = shards_of(comm, shards)
        out = np.empty(101, dtype)
        assert comm.reproducible_sum(mine, out) is out
        mean = comm.reproducible_sum(mine, np.empty(101, dtype), op="avg")
        return out.tobytes(), mean.tobytes()

    outcomes = {result for n in (1, 2, 3, 4, 5) for result in threads(n, body)}
    assert len(outcomes) == 1
    total = np.frombuffer(outcomes.pop()[0], dtype)
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    scale = np.abs(shards.astype(wide)).sum(axis=0)
    assert (np.abs(total - shards.astype(wide).sum(axis=0)) <= 1e-2 * scale + 1e-6).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", ml_dtypes.float8_e5m2])
def test_reproducible_sum_of_what_is_not_finite_has_one_value(dtype):
    some = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.0, -2.0])
    shards = np.random.default_rng(3).choice(some, (7, 50)).astype(dtype)

    def body(comm):
        return comm.reproducible_sum(shards_of(comm, shards), np.empty(50, dtype)).tobytes()

    outcomes = {result for n in (1, 2, 3, 5) for result in threads(n, body)}
    assert len(outcomes) == 1
    total = np.frombuffer(outcomes.pop(), dtype).astype("complex128").real
    assert np.array_equal(np.isnan(total), np.isnan(shards.astype("complex128").real.sum(axis=0)))


def test_coalesced():
    def body(comm):
        arrays = [values(comm.rank, 5, "int16"), values(comm.rank, (2, 3), "float64"), np.array(comm.rank)]
        assert comm.all_reduce_coalesced(arrays) is arrays
        same(arrays[0], expected(3, 5, "int16"))
        same(arrays[1], expected(3, (2, 3), "float64"))
        assert arrays[2] == 3
        sent = [values(comm.rank, 4, "uint8"), values(comm.rank, 9, "float32")]
        comm.broadcast_coalesced(sent, root=2)
        assert np.array_equal(sent[1], values(2, 9, "float32"))
        gathered = comm.all_gather_coalesced([values(comm.rank, 4), values(comm.rank, (2, 2), "int8")])
        assert gathered[0].shape == (3, 4) and gathered[1].shape == (3, 2, 2)
        for rank in range(3):
            assert np.array_equal(gathered[1][rank], values(rank, (2, 2), "int8"))
        out = [np.empty(2, "int32"), np.empty(1, "float64")]
        comm.reduce_scatter_coalesced([values(comm.rank, 6, "int32"), values(comm.rank, 3)], out)
        same(out[0], expected(3, 6, "int32").reshape(3, 2)[comm.rank])
        same(out[1], expected(3, 3, "float64")[comm.rank : comm.rank + 1])

    threads(3, body)


@pytest.mark.parametrize("count", [8, 100_000])
def test_coalesced_arrays_lie_apart(count):
    """The result of two overlapping arrays would depend on their sizes."""

    def body(comm):
        x = np.ones(4 * count)
        with pytest.raises(hocket.InvalidArgument, match=r"arrays\[[01]\] and arrays\[[01]\] overlap"):
            comm.all_reduce_coalesced([x[:count], x[count // 2 : count + 1]])
        with pytest.raises(hocket.InvalidArgument, match="give each array once"):
            comm.all_reduce_coalesced([x, x])
        parts = [x[i * count : (i + 1) * count] for i in range(4)]
        with pytest.raises(hocket.InvalidArgument, match=r"(in\[1\]|out\[0\]) and .* overlap"):
            comm.all_gather_coalesced([parts[3], parts[0]], [x[: 2 * count], np.ones(2 * count)])
        comm.broadcast_coalesced([x, x])  # the same on all, whichever comes last
        comm.all_reduce_coalesced(parts[::-1])
        assert (x == 2).all()

    threads(2, body)


def test_prepared():
    def body(comm):
        x, out = np.zeros(50, "float32"), np.zeros(50, "float32")
        op = comm.prepare_all_reduce(x, out)
        for step in range(20):
            x[:] = values(comm.rank + step, 50, "float32")
            assert op() is out
            assert np.array_equal(out, sum(values(r + step, 50, "float32") for r in range(3)))
        assert op.start().wait() is out
        y = np.full(4, float(comm.rank))
        assert comm.prepare_broadcast(y, root=1)() is y and (y == 1).all()

    threads(3, body)
