"""Reductions by an operator of one's own, against the same function applied rank by rank."""

import ctypes
import functools
import gc
import time
import weakref

import numpy as np
import pytest
from helpers import DTYPES, RANK_COUNTS, threads, values
from places import PLACES, run_at
from processes import run_job

import hocket
from hocket import Operator

COUNTS = [0, 1, 2, 3, 17, 1000, 300_001]


def half_and_all(a, b):
    """Neither commutative nor associative: any other order gives other numbers."""
    return a * 0.5 + b


HALF_AND_ALL = Operator(half_and_all, commutative=False)


def mine(rank, count):
    return np.arange(count) % 1000 + 1000.0 * (rank + 1) + 1 / (np.arange(count) + 3)


def folded(n, count, function=half_and_all, bring=mine):
    """Returns the reduction over ranks 0 to n - 1."""
    result = bring(0, count)
    for rank in range(1, n):
        result = function(result, bring(rank, count))
    return result


def every_call(comm):
    n, rank = comm.size, comm.rank
    for count in COUNTS:
        wanted = folded(n, count)
        x = mine(rank, count)
        out = np.empty_like(x)
        assert comm.all_reduce(x, out=out, op=HALF_AND_ALL) is out
        assert np.array_equal(out, wanted) and np.array_equal(x, mine(rank, count))
        assert comm.all_reduce(x, op=HALF_AND_ALL) is x
        assert np.array_equal(x, wanted)
        for root in {0, n - 1}:
            x = mine(rank, count)
            found = comm.reduce(x, root=root, op=HALF_AND_ALL)
            assert (found is x and np.array_equal(x, wanted)) if rank == root else found is None
        x = mine(rank, count)
        assert np.array_equal(comm.scan(x, out=out, op=HALF_AND_ALL), folded(rank + 1, count))
        assert comm.exscan(x, op=HALF_AND_ALL) is x
        assert np.array_equal(x, folded(rank, count) if rank else mine(0, count))
        x = mine(rank, count * n).reshape(n, count)
        share = comm.reduce_scatter(x, op=HALF_AND_ALL)
        assert share.shape == (count,)
        assert np.array_equal(share, folded(n, count * n).reshape(n, count)[rank])


def every_dtype(comm):
    def second(a, b):
        return b

    for dtype in DTYPES:
        x = values(comm.rank, 100, dtype)
        comm.all_reduce(x, op=Operator(second))
        assert x.tobytes() == values(comm.size - 1, 100, dtype).tobytes(), dtype


def matrices(comm):
    """Blocks of whole matrices, in order."""

    def bring(rank, count):
        return np.random.default_rng(rank).integers(0, 5, (count, 2, 3, 3))

    seen = []

    def product(a, b):
        seen.append((a.shape, b.shape))
        return a @ b

    for count in [1, 2, 7, 50]:
        x = bring(comm.rank, count)
        wanted = folded(comm.size, count, np.matmul, bring)
        out = np.empty_like(x)
        comm.all_reduce(x, out=out, op=Operator(product, False, rows=True))
        assert np.array_equal(out, wanted)
        comm.all_reduce(x, op=Operator(np.matmul, False, rows=True))
        assert np.array_equal(x, wanted)
    assert all(a == b and a[1:] == (2, 3, 3) for a, b in seen)


def ufuncs(comm):
    x = mine(comm.rank, 1000)
    assert np.array_equal(comm.all_reduce(x, op=Operator(np.hypot)), folded(comm.size, 1000, np.hypot))
    x = (mine(comm.rank, 1000) * 7).astype("int32")
    wanted = folded(comm.size, 1000, np.gcd, lambda rank, count: (mine(rank, count) * 7).astype("int32"))
    assert np.array_equal(comm.all_reduce(x, op=Operator(np.gcd)), wanted)


CFUNC = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


@CFUNC
def half_and_all_of_ctypes(left, right, count, context):
    assert context is None
    of_doubles = ctypes.POINTER(ctypes.c_double)
    a = np.ctypeslib.as_array(ctypes.cast(left, of_doubles), (count,))
    a[:] = half_and_all(a, np.ctypeslib.as_array(ctypes.cast(right, of_doubles), (count,)))


def functions_of_c(comm):
    class Compiled:
        """The interface of a Numba cfunc."""

        address = ctypes.cast(half_and_all_of_ctypes, ctypes.c_void_p).value

    for function in [half_and_all_of_ctypes, Compiled(), Compiled.address]:
        op = Operator(function, dtype="float64")
        x = mine(comm.rank, 10_001)
        assert np.array_equal(comm.all_reduce(x, op=op), folded(comm.size, 10_001))
        assert np.array_equal(comm.scan(mine(comm.rank, 9), op=op), folded(comm.rank + 1, 9))
        with pytest.raises(hocket.InvalidArgument, match="holds float32, and the operator is for float64"):
            comm.all_reduce(np.ones(3, "float32"), op=op)


def refused_on_one(comm):
    """An exception in one rank's function reaches all ranks, and all go on."""
    for failing in {0, comm.size - 1}:
        for count in [3, 1000, 300_001]:
            exscan = comm.exscan
            for call in [comm.all_reduce, comm.reduce, comm.scan, exscan, comm.reduce_scatter]:

                def unlucky(a, b):
                    if comm.rank == failing:
                        raise ZeroDivisionError("no such number: \udcff")
                    return a + b

                x = np.ones((comm.size, count))
                text = f"the operator has failed on rank {failing}: ZeroDivisionError: no such number"
                if comm.size == 1 or (call is exscan and comm.size == 2):
                    call(x, op=Operator(unlucky))  # there is nothing to combine
                    continue
                with pytest.raises(hocket.InvalidArgument, match=text) as caught:
                    call(x, op=Operator(unlucky))
                cause = caught.value.__cause__
                assert isinstance(cause, ZeroDivisionError) == (comm.rank == failing), cause
                x = np.ones(count)
                assert (comm.all_reduce(x, op=Operator(np.add)) == comm.size).all()


def started(comm):
    """Concurrent calls, in the same order on all ranks, beside blocking calls and hocket's own
    operators.
    """
    n, rank = comm.size, comm.rank
    names = ["all_reduce", "reduce", "scan", "exscan", "reduce_scatter"]
    for count in [0, 1, 17, 100_003]:
        works = []
        for name in names:
            x = mine(rank, count * n).reshape(n, count)
            works.append(getattr(comm, name + "_async")(x, op=HALF_AND_ALL))
            works.append(comm.all_reduce_async(np.full(3, rank + 1)))
        last = comm.all_reduce(mine(rank, count), op=HALF_AND_ALL)
        assert np.array_equal(last, folded(n, count))
        results = [work.wait() for work in works]
        assert all((total == n * (n + 1) // 2).all() for total in results[1::2])
        every, one, scan, exscan, share = results[::2]
        wanted = folded(n, count * n).reshape(n, count)
        assert np.array_equal(every, wanted) and np.array_equal(share, wanted[rank])
        assert np.array_equal(one, wanted) if rank == 0 else one is None
        assert np.array_equal(scan, folded(rank + 1, count * n).reshape(n, count))
        before = folded(rank, count * n) if rank else mine(0, count * n)
        assert np.array_equal(exscan.ravel(), before)


def prepared(comm):
    n, rank = comm.size, comm.rank
    x, out = np.empty(1000), np.empty(1000)
    call = comm.prepare_all_reduce(x, out=out, op=HALF_AND_ALL)
    scan = comm.prepare_scan(x, op=Operator(half_and_all_of_ctypes, dtype="float64"))
    for _ in range(3):
        x[:] = mine(rank, 1000)
        assert call() is out and np.array_equal(out, folded(n, 1000))
        out[:] = 0
        assert call.start().wait() is out and np.array_equal(out, folded(n, 1000))
        assert np.array_equal(scan(), folded(rank + 1, 1000))


def refused_under_way(comm):
    """A function that fails ends its own call alone; the cause is reported on the rank where it
    was raised.
    """
    failing = comm.size - 1

    def unlucky(a, b):
        if comm.rank == failing:
            raise ZeroDivisionError("no such number")
        return a + b

    x, y, z = np.ones(1000), np.ones(1000), np.ones(7)
    first = comm.all_reduce_async(x, op=Operator(unlucky))
    second = comm.all_reduce_async(y, op=Operator(np.add))
    third = comm.all_reduce_async(z)
    again = comm.prepare_all_reduce(x, op=Operator(unlucky))
    if comm.size == 1:
        return
    for call in [first.wait, again, again, lambda: again.start().wait()]:
        with pytest.raises(hocket.InvalidArgument, match=f"failed on rank {failing}: ZeroDiv") as caught:
            call()
        assert isinstance(caught.value.__cause__, ZeroDivisionError) == (comm.rank == failing)
    assert isinstance(first.exception, hocket.InvalidArgument)
    assert (second.wait() == comm.size).all() and (third.wait() == comm.size).all()
    # Arguments that are wrong on one rank are refused as in any call.
    odd = np.ones(4 + (comm.rank == 0), "float32")
    with pytest.raises(hocket.InvalidArgument, match="whole number|holds float32|refused"):
        comm.all_reduce_async(odd if comm.rank == 0 else np.ones(4),
                              op=Operator(half_and_all_of_ctypes, dtype="float64")).wait()  # fmt: skip
    assert (comm.all_reduce(np.ones(1)) == comm.size).all()


def awaited(comm):
    import asyncio

    async def main():
        x, y = mine(comm.rank, 100), mine(comm.rank, 9)
        results = await asyncio.gather(comm.all_reduce_async(x, op=HALF_AND_ALL),
                                       comm.scan_async(y, op=HALF_AND_ALL))  # fmt: skip
        assert np.array_equal(results[0], folded(comm.size, 100))
        assert np.array_equal(results[1], folded(comm.rank + 1, 9))

    asyncio.run(main())


def everything(comm):
    parts = [every_call, every_dtype, matrices, ufuncs, functions_of_c, refused_on_one,
             started, prepared, refused_under_way, awaited]  # fmt: skip
    for part in parts:
        part(comm)


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place):
    run_at(place, 3, everything)


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize(
    "body",
    [every_call, every_dtype, matrices, ufuncs, functions_of_c, refused_on_one,
     started, prepared, refused_under_way, awaited],
)
def test_threads(n, body):
    threads(n, body)


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda a, b: a[1:], r"returned an array of shape \(9,\) for two of shape \(10,\)"),
        (lambda a, b: None, r"returned an array of shape \(\) for two"),
        (lambda a, b: 0.0, r"returned an array of shape \(\) for two"),
        (lambda a, b: a + 1j * b, "returned complex128 for float64"),
        (lambda a, b: (a + b).astype(object), "returned object for float64"),
        (lambda a, b: "text", "returned an array of shape"),
        (lambda a: a, "TypeError"),
        (np.frompyfunc(lambda a, b: a, 2, 1), "Cannot cast"),
        (np.bitwise_xor, "TypeError"),
        (lambda a, b: np.divmod(a, b), "returned an array of shape"),
    ],
)
def test_what_is_no_result(function, text):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=text):
            comm.all_reduce(np.ones(20), op=Operator(function))
        assert comm.all_reduce(np.ones(1)) == 2

    threads(2, body)


def test_results_of_the_same_kind():
    def body(comm):
        x = np.full(10, 0.5 + comm.rank, "float32")
        comm.all_reduce(x, op=Operator(lambda a, b: a.astype("float64") + b))
        assert (x == 2).all() and x.dtype == np.float32
        y = np.full((4, 6), comm.rank + 1, "int32", order="F")
        comm.all_reduce(y, op=Operator(lambda a, b: (a * b)[::-1][::-1]))
        assert (y == 2).all()
        z = np.array(3.0 + comm.rank)  # no axis
        assert comm.all_reduce(z, op=Operator(np.subtract)) == -1
        z[...] = 3 + comm.rank
        assert comm.all_reduce(z, op=Operator(lambda a, b: a - b, rows=True)) == -1

    threads(2, body)


def test_what_a_function_may_do_to_its_blocks():
    """It may keep them, and write to them."""
    kept = {0: [], 1: []}

    def body(comm):
        def keeping(a, b):
            kept[comm.rank].append((a, b))
            b += a
            return b

        for _ in range(20):
            x = np.full(2000, comm.rank + 1.0)
            assert (comm.all_reduce(x, op=Operator(keeping)) == 3).all()

    threads(2, body)
    gc.collect()
    for pairs in kept.values():
        assert len(pairs) == 20
        assert all((a == 1).all() and (b == 3).all() for a, b in pairs)


def test_what_is_refused():
    def body(comm):
        x = np.ones(4)
        with pytest.raises(hocket.InvalidArgument, match="and no other call"):
            comm.reduce_scatter_v(x, counts=[2, 2], op=HALF_AND_ALL if comm.rank else "sum")
        fortran = np.ones((4, 4), order="F")
        with pytest.raises(hocket.InvalidArgument, match="Fortran order"):
            comm.all_reduce(fortran, op=Operator(np.add, rows=True))
        with pytest.raises(hocket.Mismatch, match="all_reduce #.* by an operator"):
            comm.all_reduce(x, op=HALF_AND_ALL if comm.rank else "sum")

    threads(2, body)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (dict(function=None), "function is None"),
        (dict(function="sum"), "function is a str"),
        (dict(function=True), "function is a bool"),
        (dict(function=0, dtype="float64"), "NULL"),
        (dict(function=-5, dtype="float64"), "NULL"),
        (dict(function=2**64, dtype="float64"), "NULL"),
        (dict(function=CFUNC(0), dtype="float64"), "NULL"),
        (dict(function=3), "0x3, an address at which there is no code"),
        (dict(function=3, dtype="float64"), "0x3, an address at which there is no code"),
        (dict(function=np.ones(9).ctypes.data, dtype="float64"), "at which there is no code"),
        (dict(function=2**63, dtype="float64"), "at which there is no code"),
        (dict(function=half_and_all_of_ctypes), "dtype is missing"),
        (dict(function=np.sin), "numpy.sin, of 1 array with 1 result; give a function of two arrays"),
        (dict(function=np.divmod), "numpy.divmod, of 2 arrays with 2 results"),
    ],
)
def test_what_is_no_operator(arguments, text):
    with pytest.raises(hocket.InvalidArgument, match=text):
        Operator(**arguments)


def add(a, b):
    return a + b


# Operators of rank 0 and of rank 1, which are different ones.
DIFFERENT = {
    "ufuncs": (lambda: Operator(np.maximum), lambda: Operator(np.add)),
    "functions": (lambda: Operator(half_and_all), lambda: Operator(add)),
    "a ufunc and a function": (lambda: Operator(np.add), lambda: Operator(half_and_all)),
    "a function of C and one of Python": (
        lambda: Operator(half_and_all_of_ctypes, dtype="float64"), lambda: Operator(half_and_all, dtype="float64")),
    "commutative": (lambda: Operator(add), lambda: Operator(add, commutative=False)),
    "dtype": (lambda: Operator(add, dtype="float64"), lambda: Operator(add)),
    "rows": (lambda: Operator(add, rows=True), lambda: Operator(add)),
    "partial": (lambda: Operator(functools.partial(add)), lambda: Operator(functools.partial(half_and_all))),
}


@pytest.mark.parametrize("call", ["all_reduce", "scan", "reduce", "reduce_scatter", "exscan", "prepare_all_reduce"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_ranks_with_different_operators(name, call):
    def body(comm):
        op = DIFFERENT[name][comm.rank]()
        with pytest.raises(hocket.Mismatch, match="with another operator"):
            made = getattr(comm, call)(np.full(2, comm.rank + 1.0), op=op)
            if call.startswith("prepare"):
                made()

    threads(2, body)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Operator(lambda a, b: a + b),
        lambda: Operator(functools.partial(add)),
        lambda: Operator(np.add, dtype="float64"),
        lambda: Operator(CFUNC(half_and_all_of_ctypes), dtype="float64"),
        lambda: Operator(type("Own", (), {"__call__": lambda self, a, b: a + b})()),
    ],
)
def test_ranks_that_each_make_the_same_operator(make):
    def body(comm):
        op = make()
        x = np.full(3, comm.rank + 1.0)
        comm.all_reduce(x, op=op)
        return x.tolist()

    one, other = threads(2, body)
    assert one == other


def test_an_operator_tells_what_it_is():
    op = Operator(np.hypot, False, dtype="float32", rows=True)
    assert (op.commutative, op.dtype, op.rows) == (False, "float32", True)
    assert repr(op) == "hocket.Operator(<ufunc 'hypot'>)"
    with pytest.raises(hocket.InvalidArgument, match="dtype"):
        hocket.run_threads(
            lambda comm: comm.all_reduce(np.ones(3), op=Operator(np.add, dtype="float7")), 2
        )


def test_nothing_is_kept():
    class Function:
        def __call__(self, a, b):
            return a + b

    function = Function()
    gone = weakref.ref(function)

    def body(comm, op):
        comm.all_reduce(np.ones(10), op=op)

    threads(2, body, Operator(function))
    del function
    gc.collect()
    assert gone() is None


def test_calls_within_an_operator():
    """Other communicators can be used, as from anywhere."""

    def body(comm):
        other = comm.duplicate()

        def summed(a, b):
            other.all_reduce(np.ones(3))  # on every rank once: there are two ranks
            return a + b

        assert (comm.all_reduce(np.ones(10), op=Operator(summed)) == 2).all()

    threads(2, body)


OWN_CALLS = {
    "all_reduce": lambda comm, x, op: comm.all_reduce(x, op=op),
    "reduce": lambda comm, x, op: comm.reduce(x, root=1, op=op),
    "scan": lambda comm, x, op: comm.scan(x, op=op),
    "exscan": lambda comm, x, op: comm.exscan(x, op=op),
    "reduce_scatter": lambda comm, x, op: comm.reduce_scatter(x, op=op),
    "async": lambda comm, x, op: comm.all_reduce_async(x, op=op).wait(),
    "async, behind another": lambda comm, x, op: (
        comm.barrier_async(), comm.all_reduce_async(x, op=op).wait()),
    "prepared": lambda comm, x, op: comm.prepare_all_reduce(x, op=op)(),
}


@pytest.mark.parametrize("slow_ranks", [(0,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("call", OWN_CALLS)
def test_the_deadline_counts_an_operators_time_on_every_rank(call, slow_ranks):
    """No rank gets a result of a call that has ended for the others, or for itself."""

    def body(comm):
        def slow(a, b):
            if comm.rank in slow_ranks:
                time.sleep(0.2)
            return a + b

        comm.deadline = 0.1
        for _ in range(2):  # the communicator has ended
            with pytest.raises(hocket.DeadlineExceeded):
                OWN_CALLS[call](comm, np.ones(12), Operator(slow))

    threads(3, body)


def test_the_deadline_tells_that_the_operators_function_may_be_slow():
    def body(comm):
        def slow(a, b):
            if comm.rank == 1:
                time.sleep(1.5)
            return a + b

        comm.barrier()  # so that no rank comes late
        with pytest.raises(hocket.DeadlineExceeded, match="every rank had come.*operator's function"):
            comm.all_reduce(np.ones(12), op=Operator(slow), deadline=1.0)

    threads(2, body)


def test_an_operator_in_time_may_take_long():
    def body(comm):
        def slow(a, b):
            time.sleep(0.2)
            return a + b

        assert (comm.all_reduce(np.ones(10), op=Operator(slow), deadline=30) == 2).all()

    threads(2, body)


INTERRUPTED = """
import os, signal, sys, time
import numpy as np
import hocket
comm = hocket.init()

def endless(a, b):
    if comm.rank == 1:
        print("working", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return a + b

try:
    comm.all_reduce(np.ones(10), op=hocket.Operator(endless), deadline=40)
except KeyboardInterrupt:
    assert comm.rank == 1
except hocket.InvalidArgument as error:
    assert comm.rank != 1 and "failed on rank 1: KeyboardInterrupt" in str(error), error
assert comm.all_reduce(np.ones(1)) == comm.size
print(f"rank {comm.rank} went on\\n", end="", flush=True)
"""


def test_ctrl_c_within_an_operator():
    job = run_job(3, "-c", INTERRUPTED)
    assert job.returncode == 0, job.stdout
    for rank in range(3):
        assert f"rank {rank} went on" in job.stdout, job.stdout


DEATH = """
import os, signal
import numpy as np
import hocket
comm = hocket.init()

def deadly(a, b):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return a + b

try:
    comm.all_reduce(np.ones(10), op=hocket.Operator(deadly), deadline=40)
except hocket.PeerDied as error:
    assert error.rank == 1, error
    print(f"rank {comm.rank} was told\\n", end="", flush=True)
"""


def test_a_death_within_an_operator():
    job = run_job(3, "-c", DEATH)
    for rank in (0, 2):
        assert f"rank {rank} was told" in job.stdout, job.stdout


def test_numba():
    numba = pytest.importorskip("numba")
    types = numba.types

    @numba.cfunc(types.void(types.CPointer(types.float64), types.CPointer(types.float64), types.uintp, types.voidptr))
    def function(left, right, count, context):
        for i in range(count):
            left[i] = left[i] * 0.5 + right[i]

    def body(comm):
        x = mine(comm.rank, 1000)
        comm.all_reduce(x, op=Operator(function, dtype="float64"))
        assert np.allclose(x, folded(comm.size, 1000), rtol=1e-15)

    threads(3, body)


def test_a_work_that_is_dropped():
    """The call is abandoned, and the function with it, also while a thread runs it."""

    def body(comm):
        def slow(a, b):
            time.sleep(0.2)
            return a + b

        work = comm.all_reduce_async(np.ones(10), op=Operator(slow))
        time.sleep(0.1)  # a thread of hocket's may be in the function, which wants the GIL
        del work
        gc.collect()
        try:
            comm.barrier()
        except hocket.Aborted:
            pass  # unless all had come to the end

    threads(2, body)
