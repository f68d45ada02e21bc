"""Collectives on sparse arrays, and the face of cupyx.distributed on them."""

import functools
import threading

import numpy as np
import pytest
from cupyx_ranks import raised, ranks
from helpers import threads

import hocket

sp = pytest.importorskip("scipy.sparse")

from hocket import sparse  # noqa: E402
from hocket.compat.cupyx_distributed._sparse import SparseCalls  # noqa: E402

FORMATS = ["csr", "csc", "coo"]
DTYPES = ["bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "complex128"]


def make(rank, place=0, form="csr", dtype="float64", array=True, shape=(5, 5), index="int32"):
    """Whole numbers that differ by rank and place, as many as the rank and the place say."""
    generator = np.random.default_rng(100 * rank + place)
    dense = generator.integers(1, 4, shape) * (generator.random(shape) < 0.2 + 0.1 * rank)
    made = getattr(sp, f"{form}_{'array' if array else 'matrix'}")(dense.astype(dtype))
    for name in ("indices", "indptr"):
        if hasattr(made, name):
            setattr(made, name, getattr(made, name).astype(index))
    return made


def agree(got, wanted):
    assert got.format == wanted.format and got.dtype == wanted.dtype, (got, wanted)
    assert isinstance(got, sp.sparray) == isinstance(wanted, sp.sparray)
    assert got.shape == wanted.shape
    assert np.array_equal(got.toarray(), wanted.toarray()), f"{got}\nis not\n{wanted}"


def total(parts, op):
    return functools.reduce((lambda a, b: a + b) if op == "sum" else (lambda a, b: a * b), parts)


def every_call(comm, form, dtype, array):
    n, rank = comm.size, comm.rank
    one = functools.partial(make, form=form, dtype=dtype, array=array)
    mine, all_ = one(rank), [one(r) for r in range(n)]
    lists = [[one(r, place) for place in range(n)] for r in range(n)]
    for root in range(n):
        agree(sparse.broadcast(comm, mine, root), all_[root])
        gathered = sparse.gather(comm, mine, root)
        assert (gathered is None) == (rank != root)
        for got, wanted in zip(gathered or [], all_):
            agree(got, wanted)
        got = sparse.scatter(comm, lists[rank] if rank == root else None, root)
        agree(got, lists[root][rank])
        for op in ("sum", "prod"):
            reduced = sparse.reduce(comm, mine, op, root)
            assert (reduced is None) == (rank != root)
            if rank == root:
                order = [all_[root], *(a for r, a in enumerate(all_) if r != root)]
                agree(reduced, total(order, op).asformat(form))
    for got, wanted in zip(sparse.all_gather(comm, mine), all_):
        agree(got, wanted)
    for got, wanted in zip(sparse.all_to_all(comm, lists[rank]), [a[rank] for a in lists]):
        agree(got, wanted)
    for op in ("sum", "prod"):
        agree(sparse.all_reduce(comm, mine, op), total(all_, op).asformat(form))
        got = sparse.reduce_scatter(comm, lists[rank], op)
        agree(got, total([a[rank] for a in lists], op).asformat(form))
    peer = rank ^ 1
    if peer < n:
        agree(sparse.send_recv(comm, mine, peer, 3), all_[peer])
        if rank < peer:
            sparse.send(comm, mine, peer)
        else:
            agree(sparse.recv(comm, peer), all_[peer])
    return True


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("form", FORMATS)
def test_every_call(n, form):
    for array in (True, False):
        assert threads(n, every_call, form, "float64", array) == [True] * n


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    assert threads(2, every_call, "csr", dtype, False) == [True] * 2


def mixed(comm):
    """Ranks that differ in element type, width of indices, shape and format."""
    kinds = [dict(dtype="float32", index="int64"), dict(form="coo", shape=(2, 7)),
             dict(form="csc", dtype="int16", shape=(0, 3), array=False)]
    all_ = [make(r, **kinds[r]) for r in range(3)]
    for got, wanted in zip(sparse.all_gather(comm, all_[comm.rank]), all_):
        agree(got, wanted)
        if got.format == "csr":
            assert got.indices.dtype == "int64" and got.indptr.dtype == "int64"
    agree(sparse.broadcast(comm, all_[comm.rank], 0), all_[0])
    widths = make(comm.rank, index="int64" if comm.rank == 1 else "int32")
    agree(sparse.all_reduce(comm, widths), total([make(r) for r in range(3)], "sum"))
    return True


def test_ranks_may_differ_in_all_but_what_is_added():
    assert threads(3, mixed) == [True] * 3


def duplicates(comm):
    twice = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    got = sparse.all_gather(comm, twice)
    assert twice.nnz == 2  # the argument is left alone
    return [(a.nnz, a.toarray()[0, 1]) for a in got]


def test_duplicates_of_coo_are_added():
    assert threads(2, duplicates) == [[(1, 3.0)] * 2] * 2


def refusals(comm):
    good = make(comm.rank)
    bad_here = comm.rank == 1
    texts = [
        raised(sparse.all_gather, comm, np.zeros((2, 2)) if bad_here else good),
        raised(sparse.all_gather, comm, good.tolil() if bad_here else good),
        raised(sparse.all_reduce, comm, good, "max" if bad_here else "sum"),
        raised(sparse.all_to_all, comm, [good] * (3 if bad_here else 2)),
        raised(sparse.scatter, comm, [good] * 3, 0),
        raised(sparse.scatter, comm, good, 0),
        raised(sparse.all_reduce, comm, make(0, shape=(5, 4 if bad_here else 5))),
        raised(sparse.all_reduce, comm, make(0, shape=(4, 5), array=False), "prod"),
        raised(sparse.reduce_scatter, comm, [good, make(0, shape=(5, 5 + comm.rank))]),
    ]
    agree(sparse.all_reduce(comm, good), total([make(0), make(1)], "sum"))
    return texts


def test_indices_that_lie_outside_are_found_where_they_are():
    """SciPy makes such arrays without a word; adding one would end the rank that adds."""

    def off(form, **parts):
        array = make(0, form=form)
        for name, (place, value) in parts.items():
            getattr(array, name)[place] = value
        return array

    wrong = [
        (off("csr", indices=(0, 5)), "array.indices has 5, and the axis goes from 0 to 4"),
        (off("csc", indices=(1, -1)), "array.indices has -1"),
        (off("coo", row=(0, 9)), "array.row has 9"),
        (off("coo", col=(0, -3)), "array.col has -3"),
        (off("csr", indptr=(1, 10**6)), "array.indptr does not count"),
        (off("csc", indptr=(0, 1)), "array.indptr does not count"),
    ]

    def body(comm):
        for array, words in wrong:
            with pytest.raises(hocket.InvalidArgument, match=words):
                sparse.all_reduce(comm, make(0) if comm.rank == 0 else array)
        agree(sparse.all_reduce(comm, make(0)), make(0) + make(0))

    threads(2, body)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_a_sum_takes_memory_for_the_entries_alone(dtype):
    def make_huge(rank):
        rows, columns = [2**49, 3, 3, 2**49], [1, 2**49, rank, 1]
        return sp.coo_array((np.array([1, 2, 3, 4], dtype), (rows, columns)), shape=(2**50, 2**50))

    def folded(array):
        array.sum_duplicates()
        assert array.format == "coo" and array.shape == (2**50, 2**50) and array.dtype == dtype
        return dict(zip(zip(array.row.tolist(), array.col.tolist()), array.data.tolist()))

    def body(comm):
        own, n = make_huge(comm.rank), comm.size
        ones = {(2**49, 1): 5 * n, (3, 2**49): 2 * n} | {(3, rank): 3 for rank in range(n)}
        if dtype == "bool":
            ones = dict.fromkeys(ones, True)
        assert folded(sparse.all_reduce(comm, own)) == ones
        assert own.nnz == 4  # the argument is left alone
        rooted = sparse.reduce(comm, own, root=n - 1)
        assert (rooted is None) == (comm.rank != n - 1)
        assert rooted is None or folded(rooted) == ones
        assert folded(sparse.reduce_scatter(comm, [own] * n)) == ones

    threads(3, body)


def test_a_product_that_has_no_room_is_heard_of_on_all_ranks():
    """SciPy multiplies COO by way of CSR, which has a number for each row."""
    huge = sp.coo_array(([1.0], ([3], [4])), shape=(2**50, 2**50))

    def body(comm):
        with pytest.raises(MemoryError if comm.rank == 0 else hocket.InvalidArgument) as caught:
            sparse.all_reduce(comm, huge, "prod")
        agree(sparse.all_reduce(comm, make(0)), make(0) + make(0))
        return str(caught.value)

    assert "rank 0 refused" in threads(2, body)[1]


def test_bad_arguments_are_heard_of_on_all_ranks():
    words = ["expected a sparse array", "in the format 'lil'", "op is 'max'",
             "arrays has 3 entries, expected 2", "arrays has 3 entries, expected 2", "",
             "shape (5, 4) on rank 1, expected shape (5, 5)",
             "shape (4, 5) on rank 1, expected 5 rows", "shape (5, 6) on rank 1"]
    for texts in threads(2, refusals):
        for text, word in zip(texts, words):
            assert text != "nothing" and word in text, (text, word)
    assert texts[0].startswith("TypeError") and texts[1].startswith("TypeError")


# --- The face -----------------------------------------------------------------------------------
def placeholder(form="csr", array=False):
    return getattr(sp, f"{form}_{'array' if array else 'matrix'}")((0, 0), dtype="float32")


def through_the_face(comm, form):
    n, rank = 3, comm.rank
    one = functools.partial(make, form=form, array=False)
    all_ = [one(r) for r in range(n)]
    lists = [[one(r, place) for place in range(n)] for r in range(n)]
    out = placeholder(form)
    comm.all_reduce(all_[rank], out)
    agree(out, total(all_, "sum").asformat(form))
    out = placeholder(form)
    comm.reduce(all_[rank], out, 1, "prod")
    if rank == 1:
        agree(out, total([all_[1], all_[0], all_[2]], "prod").asformat(form))
    out = all_[rank] if rank == 2 else placeholder(form)
    comm.broadcast(out, 2)
    agree(out, all_[2])
    out = placeholder(form)
    comm.reduce_scatter(lists[rank], out, n)
    agree(out, total([a[rank] for a in lists], "sum").asformat(form))
    outs = []
    comm.all_gather(all_[rank], outs, 0)
    comm.all_gather(all_[rank], outs, 0)  # lists are appended to
    for got, wanted in zip(outs, all_ + all_):
        agree(got, wanted)
    outs = []
    comm.gather(all_[rank], outs, 1)
    assert len(outs) == (n if rank == 1 else 0)
    out = placeholder(form)
    comm.scatter(lists[rank] if rank == 1 else None, out, 1)
    agree(out, lists[1][rank])
    outs = []
    comm.all_to_all(lists[rank], outs)
    for got, wanted in zip(outs, [a[rank] for a in lists]):
        agree(got, wanted)
    out = placeholder(form)
    if rank == 0:
        comm.send(all_[0], 1)
        comm.send_recv(all_[0], out, 1)
        agree(out, all_[1])
    if rank == 1:
        comm.recv(out, 0)
        agree(out, all_[0])
        comm.send_recv(all_[1], out, 0)
        agree(out, all_[0])
    assert (out @ np.ones(5)).shape == (5,) if rank < 2 else True  # a working matrix of SciPy
    return True


@pytest.mark.parametrize("form", FORMATS)
def test_through_the_face(form):
    assert ranks(3, through_the_face, form) == [True] * 3


def test_a_placeholder_keeps_its_format():
    def calls(comm):
        out = placeholder("coo")
        SparseCalls(comm).all_reduce(make(comm.rank, array=False), out, "sum", None)
        agree(out, total([make(r, array=False) for r in range(2)], "sum").tocoo())

    hocket.run_threads(calls, 2)


def refused_by_the_face(comm):
    good = make(0, array=False)
    out = placeholder()
    return [
        raised(comm.all_to_all, [good] * 3, []),
        raised(comm.all_reduce, good, out, "max"),
        raised(comm.all_reduce, good.tolil(), out),
    ]


def test_the_face_raises_what_cupy_raises():
    for texts in ranks(2, refused_by_the_face):
        assert "RuntimeError" in texts[0] and "ValueError" in texts[1], texts
        assert texts[2].startswith("TypeError"), texts


def broken_inside():
    """A matrix that passes SciPy's checks, but whose contents do not fit its description."""
    array = make(1)
    array.indptr = array.indptr[:-1].copy()
    return array


def test_an_array_broken_inside_is_heard_of_on_all_ranks():
    """Any next call of the rank that refuses works: the others have left the refused one."""
    calls = [
        lambda comm, array: sparse.broadcast(comm, array, 2),
        lambda comm, array: sparse.gather(comm, array, 0),
        lambda comm, array: sparse.all_gather(comm, array),
        lambda comm, array: sparse.scatter(comm, [array] * 3, 2),
        lambda comm, array: sparse.all_to_all(comm, [array] * 3),
        lambda comm, array: sparse.reduce(comm, array, "sum", 0),
        lambda comm, array: sparse.all_reduce(comm, array),
        lambda comm, array: sparse.reduce_scatter(comm, [array] * 3),
    ]

    def body(comm):
        for call in calls:
            with pytest.raises(ValueError) as caught:
                call(comm, broken_inside() if comm.rank == 2 else make(1))
            assert comm.rank == 2 or "rank 2 refused" in str(caught.value), caught.value
            assert comm.all_reduce(np.array(comm.rank)) == 3

    threads(3, body)


def test_memory_that_one_rank_does_not_get_is_heard_of_on_all_ranks(monkeypatch):
    """At each place where contents are packed or given room."""
    calls = [
        lambda comm: sparse.broadcast(comm, make(1), 2),
        lambda comm: sparse.all_gather(comm, make(1)),
        lambda comm: sparse.scatter(comm, [make(1)] * 3, 2),
        lambda comm: sparse.all_to_all(comm, [make(1)] * 3),
        lambda comm: sparse.all_reduce(comm, make(1)),
        lambda comm: sparse.reduce_scatter(comm, [make(1)] * 3),
    ]
    victim = threading.local()
    kind_of = sparse.kind_of

    class NoMemory:
        def __getattr__(self, name):
            return getattr(np, name)

        def empty(self, *_):
            raise MemoryError("none left")

    def kind(array, name):
        found = kind_of(array, name)
        return found._replace(xp=NoMemory()) if getattr(victim, "here", False) else found

    monkeypatch.setattr(sparse, "kind_of", kind)

    def body(comm):
        for call in calls:
            victim.here = comm.rank == 2
            with pytest.raises(MemoryError if victim.here else hocket.InvalidArgument) as caught:
                call(comm)
            victim.here = False
            assert comm.rank == 2 or "rank 2 refused" in str(caught.value), caught.value
            assert comm.all_reduce(np.array(comm.rank)) == 3

    threads(3, body)


def test_a_matrix_of_any_rank_is_received_whole():
    """Both ranks have sent their descriptions before rank 0 receives one."""

    def body(comm):
        if comm.rank > 0:
            sparse.send(comm, sp.csr_array(np.eye(3) * (comm.rank + 1)), 0, comm.rank)
            return
        for rank in (1, 2):
            comm.probe(rank, rank)
        found = [sparse.recv(comm, hocket.ANY_SOURCE, hocket.ANY_TAG) for _ in range(2)]
        assert sorted(matrix[0, 0] for matrix in found) == [2, 3]
        assert all(matrix.nnz == 3 for matrix in found)

    threads(3, body)
