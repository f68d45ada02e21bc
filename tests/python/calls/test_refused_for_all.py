"""One rank's arguments are refused: all ranks of the call hear of it, and go on together.

Every collective of the package, with whatever can be wrong with its arguments, on one rank alone.
"""

import inspect
import re

import numpy as np
import pytest
from helpers import threads

import hocket
from hocket import distribution, fft, linalg, sparse
from hocket._calls.keywords import names_of

RANKS = 3
#: Calls of one rank: no other rank waits for it in these.
ALONE = {
    "abort", "allow_pickle", "audit", "close", "deadline", "door", "dump", "epoch", "exchange", "grid", "hosts",
    "is_member", "last_calls", "name", "newcomers", "probe", "probe_now", "rank", "receives", "recent_calls",
    "recv", "recv_async", "recv_object", "recv_object_async", "refuse", "send", "send_async", "send_object",
    "send_object_async", "send_recv", "size",
    "status", "world_ranks",
}  # fmt: skip
#: Methods without arguments, and methods that are not a single call.
OTHERS = {"admit", "inter_node", "intra_node", "symmetric", "rebuild"}

TWO = [2] * RANKS
LARGE = 2**40

# Arguments that fit, by name, on all ranks.
REGULAR = {
    "all_reduce": lambda c: {"x": np.ones(6)},
    "reduce": lambda c: {"x": np.ones(6)},
    "scan": lambda c: {"x": np.ones(6)},
    "exscan": lambda c: {"x": np.ones(6)},
    "reduce_scatter": lambda c: {"x": np.ones((RANKS, 2))},
    "broadcast": lambda c: {"x": np.ones(6)},
    "all_gather": lambda c: {"x": np.ones(2)},
    "gather": lambda c: {"x": np.ones(2)},
    "scatter": lambda c: {"x": np.ones((RANKS, 2)) if c.rank == 0 else None, "out": np.ones(2)},
    "all_to_all": lambda c: {"x": np.ones((RANKS, 2))},
    "barrier": lambda c: {},
}
IN_PARTS = {
    "all_gather_v": lambda c: {"x": np.ones(2), "counts": TWO},
    "gather_v": lambda c: {"x": np.ones(2), "counts": TWO},
    "scatter_v": lambda c: {"x": np.ones(6), "counts": TWO, "out": np.ones(2)},
    "all_to_all_v": lambda c: {"x": np.ones(6), "counts": TWO, "out_counts": TWO},
    "reduce_scatter_v": lambda c: {"x": np.ones(6), "counts": TWO},
}
EXTREMES = {
    "argmin": lambda c: {"x": np.ones(6), "index": np.arange(6)},
    "argmax": lambda c: {"x": np.ones(6)},
}
OBJECTS = {
    "broadcast_object": lambda c: {"obj": [1, "two"]},
    "gather_object": lambda c: {"obj": c.rank},
    "all_gather_object": lambda c: {"obj": c.rank},
    "scatter_object": lambda c: {"objects": [1, 2, 3] if c.rank == 0 else None},
}
BLOCKING_ALONE = {
    "reproducible_sum": lambda c: {"shards": np.ones((1, 4)), "out": np.ones(4)},
    "all_reduce_coalesced": lambda c: {"arrays": [np.ones(2), np.ones(3)]},
    "broadcast_coalesced": lambda c: {"arrays": [np.ones(2), np.ones(3)]},
    "all_gather_coalesced": lambda c: {"arrays": [np.ones(2), np.ones(3)]},
    "reduce_scatter_coalesced": lambda c: {"arrays": [np.ones(6)], "out": [np.ones(2)]},
    "compressed_all_reduce": lambda c: {"x": np.ones(8, "float32")},
    "hierarchical_all_reduce": lambda c: {"x": np.ones(8, "float32")},
    "new_group": lambda c: {"ranks": range(c.size)},
    "split": lambda c: {"color": 0},
    "duplicate": lambda c: {},
}
METHODS = {
    **REGULAR,
    **{f"{name}_async": good for name, good in REGULAR.items()},
    **{f"prepare_{name}": good for name, good in REGULAR.items() if name != "barrier"},
    **IN_PARTS,
    **{f"{name}_async": good for name, good in IN_PARTS.items()},
    **OBJECTS,
    **{f"{name}_async": good for name, good in OBJECTS.items()},
    **EXTREMES,
    **{f"{name}_async": good for name, good in EXTREMES.items()},
    **{f"prepare_{name}": good for name, good in EXTREMES.items()},
    **BLOCKING_ALONE,
}


def matrix():
    return pytest.importorskip("scipy.sparse").csr_matrix(np.eye(3))


def mine(c):
    return distribution.Slab(0).box((6, 4), c.rank, c.size)


BY_ROWS = distribution.Slab(0)
MATRICES = {"all_reduce", "all_gather", "broadcast", "reduce", "gather"}
FUNCTIONS = {
    **{(sparse, name): lambda c: {"comm": c, "array": matrix()} for name in sorted(MATRICES)},
    **{
        (sparse, name): lambda c: {"comm": c, "arrays": [matrix()] * RANKS}
        for name in ("all_to_all", "reduce_scatter", "scatter")
    },
    (distribution, "redistribute"): lambda c: {
        "comm": c, "x": np.ones(mine(c).shape), "source": mine(c), "target": mine(c)
    },
    (distribution, "Redistribution"): lambda c: {
        "comm": c, "source": mine(c), "target": mine(c)
    },
    (fft, "FFT"): lambda c: {"comm": c, "shape": (6, 4), "source": mine(c)},
    **{
        (fft, name): lambda c: {"comm": c, "x": np.ones(mine(c).shape, "complex128"),
                                "source": mine(c)}
        for name in ("fft", "ifft")
    },
    (linalg, "Matmul"): lambda c: {
        "comm": c, "size": (6, 3, 6), "a": BY_ROWS, "b": BY_ROWS, "d": BY_ROWS
    },
    (linalg, "matmul"): lambda c: {"comm": c, "a": np.ones((2, 6)), "b": np.ones((2, 3))},
    (fft, "rfft"): lambda c: {"comm": c, "x": np.ones(mine(c).shape), "source": mine(c)},
}  # fmt: skip


class Odd:
    """No array, and nothing that it is asked for."""


def read_only():
    x = np.ones(6)
    x.flags.writeable = False
    return x


# Wrong arguments for every call, by the name of the argument.
WRONG = {
    "x": [lambda: "text", Odd, lambda: np.array(["a"]), lambda: np.ones((6, 6))[:, ::2]],
    "out": [lambda: np.ones(5), lambda: np.ones(2, "int8"), lambda: "text", read_only],
    "index": [lambda: np.arange(5), lambda: np.ones(6), lambda: "text", Odd],
    "shards": [lambda: np.ones((1, 5)), Odd],
    "op": [lambda: "median", lambda: None, lambda: "band"],  # no bitwise and of floats
    "root": [lambda: RANKS, lambda: -1, lambda: LARGE, lambda: "0", lambda: 0.5, lambda: None],
    "deadline": [lambda: "soon", lambda: -1.0, lambda: float("nan"), Odd],
    "stream": [lambda: "first", lambda: -7],
    "counts": [lambda: [2], lambda: [2] * 5, lambda: [2.0] * 3, lambda: [-1, 2, 2],
               lambda: [LARGE] * 3, lambda: 2, lambda: "222"],
    "out_counts": [lambda: [2], lambda: [2, 2, -2], lambda: [LARGE] * 3, lambda: 2],
    "arrays": [lambda: None, lambda: [Odd()], lambda: 3],
    "array": [Odd, lambda: np.eye(3)],
    "obj": [Odd, lambda: [[Odd()]], lambda: "\udcff"],
    "objects": [lambda: [1], lambda: [1, 2, Odd()], lambda: 5],
    "allow_pickle": [lambda: "yes"],
    "compressed": [lambda: 2],
    "ranks": [lambda: [0, 0], lambda: [RANKS], lambda: [0.5], lambda: 7, lambda: "01"],
    "color": [lambda: "red", lambda: LARGE],
    "key": [lambda: "first", lambda: 0.5],
    "source": [lambda: 3, lambda: ((0,), (-1,)), lambda: Odd()],
    "target": [lambda: 3, lambda: ((5, 5), (1, 1))],
    "order": [lambda: "Z"],
    "shape": [lambda: (-1, 2), lambda: "x", lambda: (), lambda: (2**70, 4)],
    "kind": [lambda: "r2r"],
    "norm": [lambda: "some"],
    "planning": [lambda: "slow"],
    "dtype": [lambda: "int8", Odd],
    "axes": [lambda: 9, lambda: -1, lambda: "two", lambda: 0.5],
    "gpu": [lambda: "first", lambda: -1, lambda: LARGE],
    "size": [lambda: (6, 3), lambda: (2**70, 3, 6), lambda: (6, -3, 6), lambda: "x"],
    "a": [Odd, lambda: np.ones(3), lambda: "rows"],
    "b": [Odd, lambda: np.ones(3), lambda: "rows"],
    "c": [Odd, lambda: np.ones((7, 7))],
    "d": [Odd, lambda: "rows"],
    "op_a": [lambda: "twice"],
    "op_b": [lambda: "twice"],
    "alpha": [lambda: "one"],
    "beta": [lambda: "none", lambda: 2.0],  # there is no c
    "form": [lambda: "fast"],
    "out_dtype": [lambda: "int8"],
    "dtype_b": [lambda: "int8", lambda: "float32", Odd],
    "spread_a": [Odd, lambda: "rows", lambda: distribution.Slab(2)],
    "spread_b": [Odd, lambda: "rows"],
    "spread_out": [Odd, lambda: "rows"],
    "memory": [lambda: "tape", lambda: 5],
    "heap": [lambda: "none"],
}  # fmt: skip

# Some calls have another name in refusals.
SAID = {"duplicate": "new_group", "FFT": "fft", "ifft": "fft", "rfft": "fft", "Matmul": "matmul"}

# A rank that has given its data, or needs none, may end the call before a refusal comes.
MAY_BE_THROUGH = {"broadcast", "broadcast_coalesced", "reduce", "gather", "gather_v", "scatter",
                  "scatter_v", "scan", "exscan"}  # fmt: skip
# Arguments that are not refused: right for the rank, but different from other ranks'; or right for
# all.
FINE = {
    "scatter": {"out 0", "out 1"},
    "scatter_v": {"out 0", "out 1"},
    "empty": {"shape 2", "dtype 0"},
}


def wrong_calls(function, good):
    """Calls that do not fit, as (what is wrong, call of a communicator)."""
    names = names_of(function) if hasattr(function, "__nb_signature__") else [
        name for name in inspect.signature(function).parameters
    ]

    def replaced(name, make):
        return lambda call, c: call(**{**good(c), name: make()})

    yield "a keyword", lambda call, c: call(**good(c), nonsense=1)
    yield "too many", lambda call, c: call(*[*good(c).values()][:1], *[None] * 20)
    if "deadline" in names:
        yield "two words", lambda call, c: call(**good(c), deadline=20, timeout=20)
    for name in names:
        if name in ("comm", "like", "self", "direction"):
            continue
        for number, make in enumerate(WRONG[name]):
            yield f"{name} {number}", replaced(name, make)


def ended(result):
    """Returns the result of a call, once it is done."""
    if isinstance(result, hocket.Prepared):
        return result()
    return result.wait() if isinstance(result, hocket.Work) else result


def outcome(call):
    try:
        ended(call())
    except (hocket.InvalidArgument, TypeError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "right"


def assert_names(call, text):
    """A refusal names the call that was made, or none."""
    named = re.search(r"refused ([\w.]+) #", text)
    right = ("call", call, SAID.get(call), f"sparse.{call}")
    assert not named or named[1] in right, f"{call}: {text}"


def refuse_all(find, name, good, function):
    """Makes every wrong call on rank 0 and on rank 1; `find`: the call of a communicator."""
    plain = name.removeprefix("prepare_").removesuffix("_async")
    may_be_through = plain in MAY_BE_THROUGH

    def body(comm):
        comm.deadline = 20
        seen = []
        for what, call in wrong_calls(function, good):
            if what in FINE.get(plain, ()):
                continue
            refused = False
            for culprit in (0, 1):
                if comm.rank == culprit:
                    own = outcome(lambda: call(find(comm), comm))
                else:
                    own = outcome(lambda: find(comm)(**good(comm)))
                all_of_them = comm.all_gather_object(own)
                by = all_of_them[culprit]
                for rank, came in enumerate(all_of_them):
                    where = f"{name}, {what} on rank {culprit}: {all_of_them}"
                    if by == "right":
                        assert came == "right", where
                    elif rank != culprit and not (came == "right" and may_be_through):
                        assert came.startswith("InvalidArgument: "), where
                        assert f"rank {culprit} refused" in came or came == by, where
                        assert_names(plain, came)
                refused |= by != "right"
                assert comm.all_reduce(np.ones(1))[0] == RANKS
            seen.append((what, refused))
        return seen

    for seen in threads(RANKS, body):
        assert [what for what, refused in seen if not refused] == []


@pytest.mark.parametrize("name", METHODS)
def test_of_a_communicator(name):
    function = getattr(hocket.Communicator, name)
    refuse_all(lambda c: getattr(c, name), name, METHODS[name], function)


def test_of_a_communicator_whose_hosts_have_groups():
    name = "hierarchical_all_reduce"
    refuse_all(
        lambda c: (c.intra_node, c.inter_node) and getattr(c, name),
        name,
        METHODS[name],
        getattr(hocket.Communicator, name),
    )


def test_all_methods_are_looked_at():
    known = {*METHODS, *ALONE, *OTHERS}
    assert {name for name in dir(hocket.Communicator) if not name.startswith("_")} == known


@pytest.mark.parametrize("where, name", FUNCTIONS)
def test_of_a_module(where, name):
    function = getattr(where, name)
    refuse_all(lambda c: function, name, FUNCTIONS[where, name], function)


def test_all_functions_are_looked_at():
    known = {(where.__name__, name) for where, name in FUNCTIONS}
    known |= {("hocket.sparse", name) for name in ("assign", "holds_sparse", "recv", "send",
                                                   "send_recv")}  # fmt: skip
    known |= {("hocket.distribution", name) for name in ("BlockCyclic", "BlockNonCyclic", "Box",
                                                         "ProcessGrid", "Slab")}  # fmt: skip
    known |= {("hocket.fft", name) for name in ("gpu_of", "irfft", "spectrum_of")}
    known |= {("hocket.linalg", "local_shape")}
    for where in (sparse, distribution, fft, linalg):
        assert {(where.__name__, name) for name in where.__all__} <= known


def test_of_symmetric_arrays():
    refuse_all(
        lambda c: c.symmetric.empty,
        "empty",
        lambda c: {"shape": (2, 3)},
        hocket.SymmetricMemory.empty,
    )


def test_of_plans_that_are_called():
    def transform(c):
        return fft.FFT(c, (6, 4), mine(c))

    def move(c):
        return distribution.Redistribution(c, mine(c), mine(c))

    def part(dtype):
        return lambda c: {"x": np.ones(mine(c).shape, dtype)}

    def product(c):
        return linalg.Matmul(c, (6, 3, 6), BY_ROWS, BY_ROWS, BY_ROWS)

    def parts(c):
        return {"a": np.ones((2, 6)), "b": np.ones((2, 3))}

    for make, own, good in (
        (transform, fft.FFT, part(complex)),
        (move, distribution.Redistribution, part(float)),
        (product, linalg.Matmul, parts),
    ):
        plans = {}
        refuse_all(
            lambda c, make=make, plans=plans: plans.setdefault(c.rank, None) or plans.update(
                {c.rank: make(c)}
            ) or plans[c.rank],
            own.__name__,
            good,
            own.__call__,
        )


@pytest.mark.parametrize("start", ["__call__", "start"])
@pytest.mark.parametrize("name", ["all_reduce", "argmin"])
def test_of_prepared_calls(name, start):
    prepared = {}

    def find(c):
        if c.rank not in prepared:
            prepared[c.rank] = getattr(c, f"prepare_{name}")(np.ones(6))
        return getattr(prepared[c.rank], start) if start == "start" else prepared[c.rank]

    refuse_all(find, f"{name}.{start}", lambda c: {}, getattr(hocket.Prepared, start))
