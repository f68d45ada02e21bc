"""Objects by the safe codec, and by pickle only where it is asked for."""

import collections
import datetime
import math
import mmap
import resource

import ml_dtypes
import numpy as np
import pytest
from helpers import DTYPES, threads, values
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket


def tree(rank):
    """Something of every kind, different on every rank."""
    return {
        "none": None,
        "truth": rank % 2 == 0,
        "numbers": [rank, -rank, 2**63 - 1, -(2**63), 2**64 + rank, -(10**40) - rank, 0.5 + rank, 2j],
        "text": "häß " * rank,
        b"bytes": bytes([rank, 0, 255]),
        ("a", 1): (rank, [(), {}]),
        3: {"deep": [[[rank]]]},
    }


@pytest.mark.parametrize("n", [1, 3])
def test_all_calls(n):
    def body(comm):
        rank = comm.rank
        assert comm.all_gather_object(tree(rank)) == [tree(r) for r in range(n)]
        for root in range(n):
            assert comm.broadcast_object(tree(rank) if rank == root else None, root=root) == tree(root)
            gathered = comm.gather_object(tree(rank), root=root)
            assert gathered == ([tree(r) for r in range(n)] if rank == root else None)
            objects = [tree(r + root) for r in range(n)] if rank == root else None
            assert comm.scatter_object(objects, root=root) == tree(rank + root)

    threads(n, body)


@pytest.mark.parametrize("n", [2, 3])
def test_from_rank_to_rank(n):
    def body(comm):
        large = {"x": np.arange(100_000.0) + comm.rank}
        for tag, sent in enumerate([None, tree(comm.rank), large]):
            to = (comm.rank + 1) % n
            before = (comm.rank - 1) % n
            if comm.rank == 0:
                comm.send_object(sent, to, tag=tag)
            found, source, came = comm.recv_object(tag=tag)
            if comm.rank != 0:
                comm.send_object(sent, to, tag=tag)
            assert (source, came) == (before, tag)
            if tag == 2:
                np.testing.assert_array_equal(found["x"], large["x"] - comm.rank + before)
            else:
                assert found == [None, tree(before)][tag]

    threads(n, body)


def test_pickled_from_rank_to_rank():
    today = datetime.date(2020, 2, 3)

    def body(comm):
        if comm.rank == 0:
            with pytest.raises(hocket.InvalidArgument, match="holds a date"):
                comm.send_object(today, 1)
            comm.send_object(today, 1, allow_pickle=True)
            comm.send_object(today, 1, allow_pickle=True)
            with pytest.raises(hocket.InvalidArgument, match="destination"):
                comm.send_object(1, 2)
            comm.send(np.zeros(256, np.uint8), 1)
        else:
            with pytest.raises(hocket.InvalidArgument, match="allow_pickle=True"):
                comm.recv_object(0)
            assert comm.recv_object(0, allow_pickle=True).object == today
            with pytest.raises(hocket.InvalidArgument, match="received by recv"):
                comm.recv_object(0)

    threads(2, body)


def test_an_object_that_nobody_sends():
    def body(comm):
        with pytest.raises(hocket.DeadlineExceeded, match="recv"):
            comm.recv_object(1 - comm.rank, deadline=0.1)

    threads(2, body)


def test_types_survive():
    def body(comm):
        found = comm.all_gather_object([True, 1, 1.0, (1,), [1], b"1", "1"])[1]
        assert [type(value) for value in found] == [bool, int, float, tuple, list, bytes, str]
        assert math.isnan(comm.all_gather_object(math.nan)[0])

    threads(2, body)


def test_arrays():
    def body(comm):
        sent = {
            "matrix": values(comm.rank, (2, 3), "float32"),
            "fortran": np.asfortranarray(values(comm.rank, (3, 4))),
            "strided": np.arange(10)[::3],
            "half": values(comm.rank, 4, ml_dtypes.bfloat16),
            "zero_d": np.array(comm.rank),
            "empty": np.zeros((0, 5), "int8"),
        }
        for rank, found in enumerate(comm.all_gather_object(sent)):
            for name, array in sent.items():
                assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert np.array_equal(found["matrix"], values(rank, (2, 3), "float32"))
            assert np.array_equal(found["fortran"], values(rank, (3, 4)))
            assert np.array_equal(found["strided"], [0, 3, 6, 9])
            assert found["zero_d"] == rank
            found["matrix"] += 1  # one's own to write to

    threads(2, body)


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("thing", [datetime.date(2026, 1, 2), {1, 2}, Point(1, 2), object])
def test_pickle_only_where_asked_for(thing):
    def body(comm):
        mine = thing if comm.rank == 1 else 5
        with pytest.raises(hocket.InvalidArgument, match="allow_pickle=True|rank 1"):
            comm.all_gather_object([mine])
        assert comm.all_gather_object([mine], allow_pickle=True) == [[5], [thing]]
        assert comm.broadcast_object(mine, root=1, allow_pickle=True) == thing

    threads(2, body)


def test_pickle_is_not_read_unasked():
    def body(comm):
        if comm.rank == 0:
            comm.broadcast_object({1, 2}, allow_pickle=True)
        else:
            with pytest.raises(hocket.InvalidArgument, match="allow_pickle=True"):
                comm.broadcast_object()
        comm.barrier()

    threads(2, body)


def test_what_cannot_be_sent():
    def body(comm):
        loop = []
        loop.append(loop)
        for bad, words in ((loop, "within itself"), ("\ud800", "surrogates")):
            with pytest.raises(hocket.InvalidArgument, match=words):
                comm.all_gather_object(bad)
        with pytest.raises(hocket.InvalidArgument):
            comm.scatter_object([1], root=0)
        assert comm.all_gather_object(comm.rank) == [0, 1]

    threads(2, body)


keys = st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5))
leaves = st.one_of(st.none(), keys, st.floats(allow_nan=False), st.complex_numbers(allow_nan=False))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=20,
)


def alike(a, b):
    """Equal, and of the same types all through."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return all(map(alike, a.keys(), b.keys())) and all(map(alike, a.values(), b.values()))
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b


def scalars_of(dtype):
    width = np.dtype(dtype).itemsize
    if dtype == bool:
        return st.booleans().map(np.bool_)
    made = st.binary(min_size=width, max_size=width).map(lambda raw: np.frombuffer(raw, dtype)[0])
    return made.filter(lambda number: number == number)  # NumPy does not keep every NaN's bits


scalars = st.sampled_from([np.dtype(d) for d in DTYPES]).flatmap(scalars_of)
arrays = st.tuples(scalars, st.lists(st.integers(0, 3), max_size=3)).map(
    lambda made: np.full(made[1], made[0], made[0].dtype)
)
sendable = st.recursive(
    st.one_of(leaves, scalars, arrays, st.binary(max_size=5).map(bytearray)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_what_comes_is_what_was_sent_on_every_rank(allow_pickle):
    """In value and in type, the root's own included, in all four calls."""
    examples = []

    @settings(max_examples=200, deadline=None, database=None)
    @given(sendable)
    def collect(value):
        examples.append(value)

    collect()

    def body(comm):
        for value in examples:
            options = {"allow_pickle": allow_pickle}
            for found in (
                comm.broadcast_object(value if comm.rank == 1 else None, 1, **options),
                *comm.all_gather_object(value, **options),
                *(comm.gather_object(value, 1, **options) or [value]),
                comm.scatter_object([value] * 2 if comm.rank == 1 else None, 1, **options),
            ):
                assert alike(found, value), (found, value)

    threads(2, body)


@pytest.mark.parametrize("refuser", [0, 1, 2])
def test_a_refusal_leaves_all_at_the_same_call(refuser):
    """The root does not go on to the bytes of what others have refused before the sizes."""
    calls = [
        lambda comm, bad: comm.broadcast_object([1], root=0, timeout="soon" if bad else 20),
        lambda comm, bad: comm.gather_object([1], root=0, timeout="soon" if bad else 20),
        lambda comm, bad: comm.all_gather_object([1], timeout="soon" if bad else 20),
        lambda comm, bad: comm.scatter_object([1, 2, 3], root=0, timeout="soon" if bad else 20),
    ]

    def body(comm):
        for call in calls:
            with pytest.raises(hocket.InvalidArgument):
                call(comm, comm.rank == refuser)
            assert comm.all_reduce(np.array(comm.rank)) == 3

    threads(3, body)


def test_objects_beyond_one_ranks_memory_are_heard_of_on_all_ranks():
    """60 MB, where one rank may take less than 50 MB more than it has."""
    for name in ("broadcast_object", "gather_object", "all_gather_object", "scatter_object"):
        kinds = hocket.spawn(without_memory, 3, name)
        assert kinds[1] == "MemoryError", (name, kinds)
        # A root may have given its part before.
        assert {kinds[0], kinds[2]} <= {"InvalidArgument", "none"}, (name, kinds)
        # In a scatter no rank needs rank 1.
        assert name == "scatter_object" or "InvalidArgument" in kinds, (name, kinds)


def leave_less_than(size, hard):
    """Limits the address space so that no mapping of `size` bytes fits.

    A thread that starts maps 64 MiB more than it keeps. A limit read in that moment is too high.
    """
    while True:
        with open("/proc/self/statm") as pages:
            now = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + size * 4 // 5, hard))
        try:
            mmap.mmap(-1, size).close()
        except (OSError, MemoryError):
            return


def without_memory(comm, name):
    large = bytes(60_000_000)
    gives = {
        "broadcast_object": lambda: comm.broadcast_object(large, root=0, timeout=30),
        "gather_object": lambda: comm.gather_object(large, root=1, timeout=30),
        "all_gather_object": lambda: comm.all_gather_object(large, timeout=30),
        "scatter_object": lambda: comm.scatter_object([large] * 3, root=0, timeout=30),
    }
    comm.barrier()
    before = resource.getrlimit(resource.RLIMIT_AS)
    if comm.rank == 1:
        leave_less_than(50_000_000, before[1])
    kind = "none"
    try:
        gives[name]()
    except (MemoryError, hocket.Error) as error:
        kind = type(error).__name__
        assert comm.rank == 1 or "rank 1 refused" in str(error), error
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert comm.all_reduce(np.array(comm.rank)) == 3
    return kind


def test_a_plain_object_stays_itself_at_the_root():
    def body(comm):
        plain = {"a": np.ones(2)}
        found = comm.broadcast_object(plain if comm.rank == 1 else None, 1)
        assert (found is plain) == (comm.rank == 1)

    threads(2, body)
