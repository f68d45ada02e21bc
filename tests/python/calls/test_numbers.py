"""Numbers in place of arrays: calls return numbers for them. Errors name the given argument."""

import inspect

import ml_dtypes
import numpy as np
import pytest
from helpers import threads

import hocket

NUMBERS = [
    True,
    3,
    -(2**62) // 2,
    1.5,
    2 - 1j,
    np.float32(1.5),
    np.float64(2.5),
    np.int8(3),
    np.uint64(2**62),
    np.bool_(True),
    np.complex64(1j),
    ml_dtypes.bfloat16(1.5),
    np.arange(5.0).sum(),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__} {n}")
def test_a_number_comes_back_as_a_number(number):
    def body(comm):
        twice = number if isinstance(number, (bool, np.bool_)) else type(number)(number + number)
        calls = {
            "all_reduce": (comm.all_reduce(number), twice),
            "all_reduce_async": (comm.all_reduce_async(number).wait(), twice),
            "broadcast": (comm.broadcast(number if comm.rank == 1 else type(number)(0), root=1), number),
            "scan": (comm.scan(number), twice if comm.rank else number),
            "exscan": (comm.exscan(number), number),
            "reduce": (comm.reduce(number, root=1), twice if comm.rank == 1 else None),
        }
        for name, (found, wanted) in calls.items():
            assert type(found) is type(wanted) and found == wanted, name
        gathered = comm.all_gather(number)
        assert gathered.shape == (2,) and (gathered == number).all()
        out = np.zeros(1, gathered.dtype)
        assert comm.all_reduce(number, out=out) is out and out[0] == twice
        if comm.rank == 0:
            comm.send(number, 1)
        else:
            comm.recv(out, 0)
            assert out[0] == number

    threads(2, body)


@pytest.mark.parametrize("op", ["min", "max", "avg", "product"])
def test_with_other_operators(op):
    def body(comm):
        assert comm.all_reduce(comm.rank + 2, op=op) == {"min": 2, "max": 3, "avg": 2, "product": 6}[op]
        assert comm.all_reduce(comm.rank + 2, op=hocket.Operator(np.maximum)) == 3

    threads(2, body)


# By what it says: calls of one rank.
WORDS = {
    r"op is a numpy\.ufunc; .* hocket\.Operator\(op\)": lambda c: c.all_reduce(np.ones(2), op=np.maximum),
    r"op is a function; .* hocket\.Operator\(op\)": lambda c: c.reduce(np.ones(2), op=lambda a, b: a),
    r"op is an int; give a name: .*\"bxor\"$": lambda c: c.all_reduce(np.ones(2), op=3),
    r"op is None; give a name": lambda c: c.all_reduce(np.ones(2), op=None),
    r"out is an int; where the root is meant, give root=0$": lambda c: c.gather(np.ones(2), 0),
    r"out is an int; where the root is meant, give root=1$": lambda c: c.reduce(np.ones(2), 1),
    r"out is an int; where the root is meant, give root=2$": lambda c: c.scatter(np.ones(1), 2),
    r"out is a numpy\.float64, a number, which cannot be written": lambda c: c.all_reduce(np.ones(1), np.float64(1)),
    r"out is a float, a number, which cannot be written": lambda c: c.all_reduce(np.ones(1), 1.0),
    r"x is an int, which never changes, and a prepared call": lambda c: c.prepare_all_reduce(3),
    r"x is None, not an array": lambda c: c.all_reduce(None),
    r"x is a list, not an array": lambda c: c.all_reduce([1]),
    r"root is None; give a whole number": lambda c: c.broadcast(np.ones(1), root=None),
    r"tag is a numpy\.ndarray": lambda c: c.send(np.ones(1), 0, tag=np.ones(2)),
    r"arrays is None": lambda c: c.all_reduce_coalesced(None),
    r"compressed is an int": lambda c: c.hierarchical_all_reduce(np.ones(2), compressed=2),
    r"out is missing, the array for the sum": lambda c: c.reproducible_sum(np.ones(2)),
}


@pytest.mark.parametrize("words", WORDS)
def test_messages_name_what_was_given(words):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=words):
            WORDS[words](comm)
        assert comm.all_reduce(1) == comm.size

    threads(1, body)


def test_the_mends_work():
    def body(comm):
        x = np.array([1.0, 5.0]) * (comm.rank + 1)
        assert comm.all_reduce(x, op=hocket.Operator(np.maximum)).tolist() == [2, 10]
        found = comm.gather(np.array(comm.rank), root=0)
        assert comm.rank == 1 or found.tolist() == [0, 1]
        summed = comm.prepare_all_reduce(np.array([3]))
        assert summed().tolist() == [6]

    threads(2, body)


def test_signatures():
    """Signatures of all public functions and methods, bound or not."""
    signature = inspect.signature(hocket.Communicator.all_reduce)
    assert list(signature.parameters) == ["self", "x", "out", "op", "deadline", "stream"]
    assert signature.parameters["op"].default == "sum"
    for owner in (hocket.Communicator, hocket.Work, hocket.Prepared, hocket.SymmetricMemory, hocket):
        for name, thing in vars(owner).items():
            if name.startswith("_") or not callable(thing) or inspect.isclass(thing):
                continue
            assert inspect.signature(thing) is not None, (owner, name)

    def body(comm):
        assert "self" not in inspect.signature(comm.gather).parameters
        assert inspect.signature(comm.scatter_v).bind([1], None, [1]).arguments["counts"] == [1]
        order = [name for name in inspect.signature(comm.gather_v).parameters]
        assert order == list(inspect.signature(comm.scatter_v).parameters)

    threads(1, body)


def test_pickle_for_a_whole_communicator():
    def body(comm):
        assert comm.allow_pickle is False
        with pytest.raises(hocket.InvalidArgument, match="holds a set"):
            comm.all_gather_object({1})
        comm.allow_pickle = True
        assert comm.all_gather_object({comm.rank}) == [{0}, {1}]
        assert comm.broadcast_object({5} if comm.rank == 0 else None) == {5}
        assert comm.duplicate().all_gather_object({1}) == [{1}, {1}]
        with pytest.raises(hocket.InvalidArgument, match="holds a set"):
            comm.all_gather_object({1}, allow_pickle=False)
        with pytest.raises(hocket.InvalidArgument, match="allow_pickle is an int"):
            comm.allow_pickle = 1
        if comm.rank == 0:
            comm.send_object({7}, 1)
        else:
            assert comm.recv_object(0).object == {7}

    threads(2, body)


def test_receives_have_a_deadline():
    import asyncio

    async def receive(comm):
        async for x, _ in comm.receives(1, deadline=0.2):
            raise AssertionError(x)

    def body(comm):
        with pytest.raises(hocket.DeadlineExceeded):
            asyncio.run(receive(comm))

    threads(1, body)
