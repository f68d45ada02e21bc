"""State that one rank hands over to others."""

import threading
from collections import OrderedDict

import numpy as np
import pytest
from helpers import threads

import hocket

LONG = np.arange(100_000, dtype="float64")
STATES = {
    "an array": LONG,
    "a tree": {
        "weights": [LONG.astype("float32"), {"bias": LONG[:3]}],
        ("a", 1): (LONG.astype("int16"), "text", None, 2.5),
        "few": np.float32(3),
    },
    "in order": OrderedDict(b=LONG, a=1),
    "columns": np.asfortranarray(LONG.reshape(100, 1000)),
    "every second": LONG[::2],
    "nothing": None,
    "tags": ("numpy", "<f8", (3,)),
    "complex": LONG.astype("complex64").reshape(10, 20, 500),
}


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    return a == b


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("root, to", [(0, None), (2, None), (1, [0]), (1, (0, 2)), (2, [])])
def test_the_state_arrives(name, root, to):
    def body(comm):
        mine = STATES[name] if comm.rank == root else "mine"
        got = hocket.hand_over(comm, mine, root=root, to=to)
        receives = to is None or comm.rank in to or comm.rank == root
        assert same(got, STATES[name] if receives else "mine"), got

    threads(3, body)


def test_progress_is_told_in_bytes(monkeypatch):
    monkeypatch.setattr("hocket._jobs.hand_over._PIECE_BYTES", 300_000)

    def body(comm):
        told = []
        state = [LONG, LONG.astype("int8")]
        hocket.hand_over(comm, state, root=0, progress=lambda done, of: told.append((done, of)))
        assert told == [(300_000, 900_000), (600_000, 900_000), (800_000, 900_000),
                        (900_000, 900_000)]

    threads(2, body)


def test_tensors_arrive_as_tensors():
    torch = pytest.importorskip("torch")

    def body(comm):
        model = {"w": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3, dtype=torch.int64)}
        got = hocket.hand_over(comm, model if comm.rank == 0 else None, root=0)
        assert torch.equal(got["w"], model["w"]) and torch.equal(got["n"], model["n"])

    threads(2, body)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"root": 2}, "root is 2"),
        ({"root": 0, "to": [5]}, "to has rank 5"),
        ({"root": 0, "to": 1}, "to is"),
        ({"root": "0"}, "str"),
    ],
)
def test_a_refused_argument_is_told_to_all(arguments, words):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=words):
            hocket.hand_over(comm, 1, **(arguments if comm.rank == 0 else {"root": 0}))
        assert comm.all_reduce(np.array(1)) == 2

    threads(2, body)


def test_what_cannot_travel_is_refused_on_all():
    def body(comm):
        with pytest.raises((hocket.InvalidArgument, TypeError)):
            hocket.hand_over(comm, {"f": body} if comm.rank == 0 else None, root=0)
        assert comm.all_reduce(np.array(1)) == 2

    threads(2, body)


def test_a_state_that_cannot_be_described_is_refused_on_all():
    def body(comm):
        state = []
        state.append(state)
        error = RecursionError if comm.rank == 0 else hocket.InvalidArgument
        with pytest.raises(error, match="recursion"):
            hocket.hand_over(comm, state if comm.rank == 0 else None, root=0)
        assert comm.all_reduce(np.array(1)) == 2

    threads(2, body)


def test_a_rank_without_memory_for_the_state_is_told_to_all(monkeypatch):
    full = threading.local()

    def empty(*arguments):
        if getattr(full, "is_so", False):
            raise MemoryError("no memory")
        return allocate(*arguments)

    allocate = hocket._jobs.hand_over._allocate
    monkeypatch.setattr("hocket._jobs.hand_over._allocate", empty)

    def body(comm):
        full.is_so = comm.rank == 2
        error = MemoryError if comm.rank == 2 else hocket.InvalidArgument
        with pytest.raises(error, match="no memory"):
            hocket.hand_over(comm, LONG if comm.rank == 0 else None, root=0)
        assert comm.all_reduce(np.array(1)) == 3

    threads(3, body)


def test_an_error_of_progress_is_raised_when_all_have_the_state(monkeypatch):
    monkeypatch.setattr("hocket._jobs.hand_over._PIECE_BYTES", 300_000)

    def body(comm):
        told = []

        def progress(*bytes_done):
            told.append(bytes_done)
            if comm.rank == 1:
                raise KeyError("no window to draw in")

        if comm.rank == 1:
            with pytest.raises(KeyError, match="no window"):
                hocket.hand_over(comm, root=0, progress=progress)
            assert told == [(300_000, 800_000)]
        else:
            state = LONG if comm.rank == 0 else None
            assert same(hocket.hand_over(comm, state, root=0, progress=progress), LONG)
            assert len(told) == 3
        assert comm.all_reduce(np.array(1)) == 3

    threads(3, body)
