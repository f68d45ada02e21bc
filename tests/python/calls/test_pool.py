"""Pools of workers, of the host."""

import gc
import os
import signal
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest
from helpers import threads, values
from processes import free_address, outputs_of, run_job, start, with_package

import hocket

SIZES = [1, 2, 3, 4, 7]


@pytest.fixture(params=SIZES)
def pool(request):
    with hocket.DevicePool(request.param) as made:
        yield made


def arrays_of(pool, shape=(3, 5), dtype="float64"):
    return [values(i, shape, dtype) for i in range(pool.size)]


def test_workers_are_threads_of_their_own(pool):
    def who(worker):
        return worker.index, worker.size, worker.device, threading.get_ident()

    found = pool.run(who)
    assert [entry[:3] for entry in found] == [(i, pool.size, None) for i in range(pool.size)]
    assert len({entry[3] for entry in found} | {threading.get_ident()}) == pool.size + 1
    assert len(pool) == pool.size and pool.devices == () and pool.streams == []


def test_what_is_kept_by_thread_is_kept():
    local = threading.local()

    def count():
        local.calls = getattr(local, "calls", 0) + 1
        return local.calls

    with hocket.DevicePool(2) as pool:
        assert [pool.map(count) for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_map_shares_items_out(pool):
    def power(base, exponent, add=0):
        return base**exponent + add

    for count in (0, 1, pool.size, 3 * pool.size + 1):
        bases = range(count)
        assert pool.map(power, bases, [2] * count, add=1) == [b * b + 1 for b in bases]
    assert pool.map(lambda: 5) == [5] * pool.size
    names = pool.map(lambda _: threading.get_ident(), range(2), workers=[pool.size - 1])
    assert len(set(names)) == 1


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without a GIL those that have begun draw at the same time",
)
def test_workers_begin_in_their_order(pool):
    generator = np.random.default_rng(5)
    wanted = list(np.random.default_rng(5).integers(0, 1 << 40, 50 * pool.size))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(30)  # who has begun draws, however late others find this machine
    gc.collect()
    gc.disable()  # else a worker that collects others' garbage may let the next one overtake it
    try:
        drawn = [pool.map(lambda: int(generator.integers(0, 1 << 40))) for _ in range(25)]
        drawn += [pool.run(lambda worker: int(generator.integers(0, 1 << 40))) for _ in range(25)]
    finally:
        gc.enable()
        sys.setswitchinterval(interval)
    assert [number for call in drawn for number in call] == wanted
    # A subset begins in the order that it is given in.
    seen = []
    pool.map(seen.append, range(pool.size), workers=list(reversed(range(pool.size))))
    assert seen == list(range(pool.size))


def test_an_error_lets_the_next_worker_begin(pool):
    begun = []

    def fails(worker):
        begun.append(worker.index)
        raise KeyError(worker.index)

    with pytest.raises(KeyError):
        pool.run(fails)
    assert sorted(begun) == list(range(pool.size))
    assert pool.map(lambda: 1) == [1] * pool.size


def test_copies_are_real(pool):
    x = np.arange(12.0).reshape(3, 4)
    copies = pool.broadcast(x)
    addresses = {copy.__array_interface__["data"][0] for copy in [x, *copies]}
    assert len(addresses) == pool.size + 1
    for copy in copies:
        assert np.array_equal(copy, x)
    turned = pool.broadcast(x.T)  # not contiguous
    assert all(np.array_equal(copy, x.T) for copy in turned)
    scalars = pool.broadcast(np.float32(3))
    assert all(copy.shape == () and copy == 3 for copy in scalars)


def test_distribute(pool):
    source = [(i * 2 + 1) % 3 for i in range(pool.size)]
    arrays = [values(i, (i + 1, 2), "int32") for i in range(3)]
    for which, copy in zip(source, pool.distribute(arrays, source)):
        assert np.array_equal(copy, arrays[which]) and copy.dtype == "int32"


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_and_gather(pool, axis):
    x = values(0, (5, 8, 9), "complex64")
    parts = pool.scatter(x, axis=axis)
    for part, wanted in zip(parts, np.array_split(x, pool.size, axis=axis)):
        assert np.array_equal(part, wanted)
    assert np.array_equal(pool.gather(parts, axis=axis), x)
    assert np.array_equal(pool.gather(parts, worker=None, axis=axis), x)
    for whole in pool.all_gather(parts, axis=axis):
        assert np.array_equal(whole, x)


def test_gather_stacks_without_an_axis(pool):
    arrays = [np.array(float(i)) for i in range(pool.size)]
    assert np.array_equal(pool.gather(arrays, axis=None), np.arange(float(pool.size)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "float16", "bool"])
@pytest.mark.parametrize("op", ["sum", "max", "product"])
def test_reductions(pool, op, dtype):
    if op == "max" and dtype == "complex128":
        pytest.skip("complex numbers have no order")
    arrays = arrays_of(pool, (7, 11), dtype)
    ufunc = {"sum": np.add, "max": np.maximum, "product": np.multiply}[op]
    wanted = arrays[0].copy()
    for x in arrays[1:]:
        wanted = ufunc(wanted, x)
    assert np.array_equal(pool.reduce(arrays, op), wanted)
    out = [np.empty_like(x) for x in arrays]
    assert pool.all_reduce(arrays, op, out)[0] is out[0]
    assert all(np.array_equal(x, wanted) for x in out)
    assert pool.all_reduce(arrays, op)[0] is arrays[0]
    for x in arrays:
        assert np.array_equal(x, wanted)


def test_all_reduce_in_groups():
    with hocket.DevicePool(7) as pool:
        arrays = [np.full(3, i) for i in range(7)]
        pool.all_reduce(arrays, group=2)
        assert [x[0] for x in arrays] == [1, 1, 5, 5, 9, 9, 6]


def test_mean_weighs_entries_alike(pool):
    x = values(3, (13, 4), "float64")
    wanted = x.mean(axis=0, keepdims=True)
    assert np.allclose(pool.mean(pool.scatter(x)), wanted, rtol=1e-15)
    arrays = arrays_of(pool)
    assert np.allclose(pool.mean(arrays, axis=None), np.mean(arrays, axis=0), rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_halo_swap(pool, axis):
    n = pool.size
    shape = [2, 2, 2]
    shape[axis] = 4 * n
    arrays = arrays_of(pool, tuple(shape), "float32")
    before = [x.copy() for x in arrays]
    pool.exchange_halo(arrays, [4 * i for i in range(1, n)], 3, axis=axis)
    for i, x in enumerate(arrays):
        wanted = np.moveaxis(before[i].copy(), axis, 0)
        if i > 0:
            wanted[4 * i : 4 * i + 3] = np.moveaxis(before[i - 1], axis, 0)[4 * i : 4 * i + 3]
        if i + 1 < n:
            a = 4 * (i + 1)
            wanted[a : a + 3] = np.moveaxis(before[i + 1], axis, 0)[a : a + 3]
        assert np.array_equal(np.moveaxis(x, axis, 0), wanted)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "int32"])
def test_halo_blend(pool, dtype):
    n = pool.size
    arrays = arrays_of(pool, (2, 4 * n, 3), dtype)
    before = [x.copy() for x in arrays]
    pool.exchange_halo(arrays, [4 * i for i in range(1, n)], 3, mode="blend")
    up = np.linspace(0, 1, 5)[1:-1][:, None]
    down = np.linspace(1, 0, 5)[1:-1][:, None]
    for i in range(n - 1):
        a = 4 * (i + 1)
        mixed = down * before[i][:, a : a + 3] + up * before[i + 1][:, a : a + 3]
        for side in (i, i + 1):
            assert np.array_equal(arrays[side][:, a : a + 3], mixed.astype(dtype))


def test_an_error_comes_with_its_traceback():
    with hocket.DevicePool(3) as pool:
        ended = []

        def wrong(worker):
            if worker.index == 1:
                raise KeyError("the guilty one")
            try:
                worker.communicator.barrier()
            except hocket.Aborted:
                ended.append(worker.index)
                raise

        for _ in range(2):
            with pytest.raises(KeyError, match="the guilty one") as caught:
                pool.run(wrong)
            assert "in wrong" in "".join(traceback.format_tb(caught.value.__traceback__))
            if hasattr(caught.value, "__notes__"):
                assert "worker 1" in caught.value.__notes__[0]
        assert sorted(ended) == [0, 0, 2, 2]
        sums = pool.run(lambda worker: int(worker.communicator.all_reduce(np.array([1]))[0]))
        assert sums == [3, 3, 3]


def test_after_a_failure_no_more_items_are_begun():
    begun = []

    def step(i):
        begun.append(i)
        if i == 0:
            raise ValueError("the first")

    with hocket.DevicePool(1) as pool, pytest.raises(ValueError, match="the first"):
        pool.map(step, range(100))
    assert begun == [0]


def test_ctrl_c_ends_what_workers_wait_for(monkeypatch):
    monkeypatch.setenv("HOCKET_DEADLOCK_AFTER", "0")  # which would end it first
    with hocket.DevicePool(2) as pool:

        def wait(worker):
            worker.communicator.recv(np.zeros(1), source=1 - worker.index)

        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pool.run(wait)
        timer.join()
        assert pool.map(abs, [-1, -2]) == [1, 2]


FORKED = """
import os, sys, hocket
pool = hocket.DevicePool(2)
child = os.fork()
if child == 0:
    assert pool.is_closed
    try:
        pool.map(abs, [1])
    except hocket.InvalidArgument as error:
        assert "forked" in str(error)
    with hocket.DevicePool(2) as own:
        print(own.map(abs, [-1, -2]), flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(pool.map(abs, [-3, -4]))
"""


def test_forked_children_make_pools_of_their_own():
    job = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED],
        env=with_package(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50,
    )
    assert job.stdout.split("\n") == ["[1, 2]", "[3, 4]", ""] and job.returncode == 0, job.stdout


def test_close(pool):
    pool.close()
    pool.close()
    assert pool.is_closed
    with pytest.raises(hocket.InvalidArgument, match="the pool is closed"):
        pool.map(abs, [1])


def test_a_close_that_was_refused_can_be_made_later(pool):
    with pytest.raises(hocket.InvalidArgument, match="cannot call its own pool"):
        pool.map(lambda _: pool.close(), [0])
    assert not pool.is_closed
    pool.close()
    assert pool.is_closed


def test_bad_arguments():
    with pytest.raises(ValueError, match="workers is 0"):
        hocket.DevicePool(0)
    with pytest.raises(ValueError, match="either workers"):
        hocket.DevicePool()
    with pytest.raises(ValueError, match="devices is empty"):
        hocket.DevicePool(devices=[])
    with hocket.DevicePool(2) as pool:
        two = [np.ones(3), np.ones(3)]
        for message, call in {
            "for 2 workers": lambda: pool.all_reduce(two[:1]),
            r"arrays\[1\] has shape \(2,\)": lambda: pool.all_reduce([two[0], np.ones(2)]),
            r"in\[1\] is float32\[3\]": lambda: pool.all_reduce([two[0], np.ones(3, "float32")]),
            "op must be|op is|there is no op": lambda: pool.all_reduce(two, "mul"),
            "worker is 2": lambda: pool.reduce(two, worker=2),
            "arrays is empty": lambda: pool.reduce([]),
            r"source\[1\] is 4": lambda: pool.distribute(two, [0, 4]),
            r"arrays\[1\] has shape": lambda: pool.gather([np.ones((2, 3)), np.ones((2, 4))]),
            "axis is 1": lambda: pool.scatter(np.ones(3), axis=1),
            'expected "swap"': lambda: pool.exchange_halo(two, [1], 1, axis=0, mode="mix"),
            "a seam is -1": lambda: pool.exchange_halo(two, [-1], 1, axis=0),
            "overlap 9": lambda: pool.exchange_halo(two, [1], 9, axis=0),
            "expected floating": lambda: pool.mean([np.ones(3, int)] * 2),
            "its own pool": lambda: pool.map(lambda _: pool.map(abs, [1]), [0]),
            "worker 5": lambda: pool.map(abs, [1], workers=[5]),
        }.items():
            with pytest.raises(ValueError, match=message):
                call()


@pytest.mark.parametrize(
    "workers, message",
    [
        ([0, 0], "worker 0 is given twice"),
        ([1, 0, 1], "worker 1 is given twice"),
        ([0, 2], "worker 2 is not there; there are 0 to 1"),
        ([0, -1], "worker -1 is not there; there are 0 to 1"),
        ([], "workers is empty"),
    ],
)
def test_wrong_workers_are_refused_also_where_there_are_fewer_items(workers, message):
    with hocket.DevicePool(2) as pool:
        for count in (1, 2, 5):
            with pytest.raises(hocket.InvalidArgument, match=message):
                pool.map(abs, [-3] * count, workers=workers)
        if workers:
            with pytest.raises(hocket.InvalidArgument, match=message):
                pool.map(abs, [], workers=workers)
            with pytest.raises(hocket.InvalidArgument, match=message):
                pool.run(lambda _: 1, workers=workers)


def test_workers_take_items_in_the_order_in_which_they_are_given():
    with hocket.DevicePool(3) as pool:
        names = pool.map(threading.get_ident)
        taken = pool.map(lambda _: threading.get_ident(), range(5), workers=[2, 0])
        assert taken == [names[i] for i in (2, 0, 2, 0, 2)]


# --- With other processes ---------------------------------------------------------------------


def across(n, body):
    """`body(comm, pool)` on ranks with pools of 1, 2, ... workers."""

    def rank(comm):
        with hocket.DevicePool(comm.rank + 1) as pool:
            return body(comm, pool)

    return threads(n, rank)


def test_odd_arguments_are_named():
    with hocket.DevicePool(2) as pool:
        arrays = [np.zeros(2), np.zeros(2)]
        with pytest.raises(hocket.InvalidArgument, match="across is an int; give a Communicator"):
            pool.all_reduce(arrays, across=3)
        with pytest.raises(hocket.InvalidArgument, match="a list is no array"):
            pool.scatter([1, 2, 3])


def test_reductions_across():
    def body(comm, pool):
        first = sum(range(comm.rank + 1))
        arrays = [values(first + i, (40, 3)) for i in range(pool.size)]
        wanted = sum(values(i, (40, 3)) for i in range(6))
        assert np.array_equal(pool.reduce(arrays, across=comm), wanted)
        mean = pool.mean(arrays, axis=0, across=comm)
        everything = np.concatenate([values(i, (40, 3)) for i in range(6)])
        assert np.allclose(mean, everything.mean(axis=0, keepdims=True))
        pool.all_reduce(arrays, across=comm)
        assert all(np.array_equal(x, wanted) for x in arrays)

    across(3, body)


def test_a_refusal_reaches_the_other_processes():
    def body(comm, pool):
        for call in (
            lambda x: pool.all_reduce(x, across=comm),
            lambda x: pool.reduce(x, across=comm),
            lambda x: pool.mean(x, across=comm),
            lambda x: pool.exchange_halo(x, [1] * (pool.size - 1), 1, axis=0, across=comm),
        ):
            shapes = [3] * pool.size if comm.rank == 0 else [3] * (pool.size - 1) + [4]
            if comm.rank == 1:
                shapes.append(3)
            with pytest.raises(hocket.InvalidArgument):
                call([np.ones(k) if k == 3 else np.ones((k, 2)) for k in shapes])
        comm.barrier()

    across(2, body)


class NoList:
    def __iter__(self):
        raise RuntimeError("no list")


def in_fortran_order(pool):
    return [np.ones((4, 3), order="F") for _ in range(pool.size)]


def test_what_is_refused_while_arrays_are_read_reaches_the_other_processes():
    def body(comm, pool):
        good = [np.ones((4, 3)) for _ in range(pool.size)]
        seams = [1] * (pool.size - 1)
        halo = lambda x: pool.exchange_halo(x, seams, 1, axis=0, across=comm)  # noqa: E731
        for call, bad, error, words in (
            (halo, in_fortran_order(pool), ValueError, r"arrays\[0\]"),
            (lambda x: pool.all_reduce(x, across=comm), NoList(), RuntimeError, "no list"),
        ):
            if comm.rank == 0:
                with pytest.raises(error, match=words):
                    call(bad)
            else:
                with pytest.raises(hocket.InvalidArgument, match="rank 0 refused"):
                    call(good)
        comm.barrier()

    across(2, body)


class NoSum(np.ndarray):
    def sum(self, *_, **__):
        raise RuntimeError("no sum")


def test_an_error_of_a_worker_reaches_the_other_processes():
    def body(comm, pool):
        arrays = [np.ones((4, 3)) for _ in range(pool.size)]
        if comm.rank == 0:
            with pytest.raises(RuntimeError, match="no sum"):
                pool.mean([arrays[0].view(NoSum)], across=comm)
        else:
            with pytest.raises(hocket.InvalidArgument, match="rank 0 refused.*no sum"):
                pool.mean(arrays, across=comm)
        comm.barrier()

    across(2, body)


def test_outs_in_different_orders_are_refused():
    with hocket.DevicePool(2) as pool:
        x = [np.ones(6), np.ones(6)]
        out = [np.zeros((3, 2), order="F"), np.zeros((3, 2))]
        with pytest.raises(hocket.InvalidArgument, match=r"out\[1\]"):
            pool.all_reduce(x, out=out)


def test_the_array_that_has_no_mean_is_named():
    with hocket.DevicePool(2) as pool:
        with pytest.raises(hocket.InvalidArgument, match=r"arrays\[1\] is int64"):
            pool.mean([np.ones(3), np.ones(3, "int64")])


DEATH = """
import os, numpy as np, hocket
comm = hocket.init()
with hocket.DevicePool(2) as pool:
    arrays = [np.ones(5), np.ones(5)]
    pool.all_reduce(arrays, across=comm)
    if comm.rank == 1:
        os.kill(os.getpid(), 9)
    try:
        pool.all_reduce(arrays, across=comm)
    except hocket.PeerDied as error:
        assert error.rank == 1
    else:
        raise AssertionError("nothing was raised")
    arrays = [np.ones(5), np.ones(5)]
    assert pool.all_reduce(arrays)[1][4] == 2
print("survived", flush=True)
"""


def test_a_process_that_dies_is_named(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(DEATH)
    address = free_address()
    outputs = outputs_of([
        start(program, env=with_package(HOCKET_RANK=str(rank), HOCKET_SIZE="2", HOCKET_STORE=address,
                                        HOCKET_JOB="death"))
        for rank in range(2)
    ])
    assert outputs[0].strip() == "survived", outputs


PROGRAM = """
import sys, numpy as np, hocket
comm = hocket.init()
with hocket.DevicePool(2) as pool:
    first = 2 * comm.rank
    n = 2 * comm.size
    whole = np.arange(n * 8.0).reshape(1, n * 4, 2)
    arrays = [whole * 0 + first + i for i in range(2)]
    pool.exchange_halo(arrays, [4 * (first + 1)], 2, across=comm,
                       outer_seams=(4 * first, 4 * (first + 2)))
    for i, x in zip(range(first, first + 2), arrays):
        wanted = np.full(n * 4, float(i))
        if i > 0: wanted[4 * i : 4 * i + 2] = i - 1
        if i + 1 < n: wanted[4 * (i + 1) : 4 * (i + 1) + 2] = i + 1
        assert np.array_equal(x, np.stack([wanted, wanted], -1)[None]), (i, x)
"""


@pytest.mark.parametrize("n", [1, 3])
def test_halos_across(n, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    job = run_job(n, program)
    assert job.returncode == 0, job.stdout


def test_arrays_whose_elements_do_not_correspond():
    a = np.arange(6.0).reshape(3, 2)
    fortran, turned = np.asfortranarray(a), a.reshape(2, 3).copy()
    masked = np.ma.masked_array(a, mask=a > 4)
    with hocket.DevicePool(2) as pool:
        for words, call in {
            "differ in order": lambda: pool.all_reduce([a, fortran]),
            r"out\[1\] differ in order": lambda: pool.all_reduce([a, a], out=[a.copy(), fortran]),
            r"arrays\[1\] has shape \(2, 3\), expected \(3, 2\)":
                lambda: pool.all_reduce([a, turned]),
            r"has shape \(2, 3\), expected \(3, 2\) as": lambda: pool.reduce([a, turned]),
            "Fortran order": lambda: pool.exchange_halo([fortran, a], axis=0, seams=[1], overlap=1),
            r"arrays\[1\] has dtype float64, expected int64":
                lambda: pool.gather([np.array([1]), np.array([1.7])]),
            "dtype float32": lambda: pool.all_gather([a, a.astype("float32")]),
        }.items():
            with pytest.raises(hocket.InvalidArgument, match=words):
                call()
        for call in (pool.reduce, pool.gather, pool.all_gather, pool.mean):
            with pytest.raises(hocket.InvalidArgument, match="mask"):
                call([a, masked])
        for call in (pool.broadcast, pool.scatter):
            with pytest.raises(hocket.InvalidArgument, match="mask"):
                call(masked)
        assert np.array_equal(pool.reduce([a, fortran]), 2 * a)
        assert all(np.array_equal(x, 2 * a)
                   for x in pool.all_reduce([np.asfortranarray(a) for _ in range(2)]))


MORE_THREADS_THAN_THERE_IS_ROOM_FOR = """
import resource
import hocket
pages = int(open("/proc/self/statm").read().split()[0])
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (400 << 20), before[1]))
try:
    hocket.DevicePool(500)
except hocket.SystemError_ as error:
    # Whichever is short first: room for the team's segment, or for a thread's stack.
    told = "cannot start thread" in str(error) and "of 500" in str(error)
    assert told or "of address space for the job's shared memory" in str(error), error
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, before)
with hocket.DevicePool(2) as pool:
    print(pool.map(lambda x: x + 1, [1, 2]))
"""


def test_a_thread_that_cannot_be_started_is_an_error():
    done = subprocess.run(
        [sys.executable, "-c", MORE_THREADS_THAN_THERE_IS_ROOM_FOR],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50, check=False)
    assert done.stdout.splitlines() == ["refused", "[2, 3]"], done.stdout


def test_a_worker_that_exits_does_not_end_its_caller():
    with hocket.DevicePool(2) as pool:
        with pytest.raises(RuntimeError, match="worker [01] of .* ended before .*: SystemExit: 3"):
            pool.map(sys.exit, [3, 3])
        assert pool.map(abs, [-1, -2]) == [1, 2]
