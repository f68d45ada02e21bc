"""The face of tike.communicators: what programs of today's tike, and of 2021's, rely on."""

import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import threads, values
from processes import run_job

import hocket.compat
from hocket.compat.tike_communicators import (
    Comm,
    MPIComm,
    NoMPIComm,
    ThreadPool,
    _api_2021,
    combined_shape,
    stream_and_modify,
    stream_and_modify2,
    stream_and_modify_debug,
    stream_and_modify_debug2,
    stream_and_reduce,
)


@pytest.fixture(params=[1, 2, 4, 5])
def pool(request):
    with ThreadPool(request.param, xp=np) as made:
        yield made


def chunks(pool, shape=(2, 3)):
    return [values(i, shape) for i in range(pool.num_workers)]


def test_members(pool):
    n = pool.num_workers
    assert pool.workers == tuple(range(n)) and pool.xp is np
    assert len(pool.streams) == n and all(len(pair) == 2 for pair in pool.streams)
    assert pool.device_count >= n


def test_workers_are_chosen_and_checked():
    with pytest.raises(ValueError, match="Provide workers > 0, not 0"):
        ThreadPool(0, xp=np)
    with pytest.warns(UserWarning, match="Requested 5 of 2 devices"):
        assert ThreadPool(5, xp=np, device_count=2).num_workers == 2
    with pytest.raises(ValueError, match="7 is not a valid GPU device number"):
        ThreadPool((1, 7), xp=np, device_count=4)
    with ThreadPool((3, 1), xp=np) as pool:
        assert pool.workers == (3, 1)
        assert pool.map(lambda w: w, pool.workers) == [3, 1]
        assert [x[0] for x in pool.bcast([np.zeros(2), np.ones(2)], stride=2)] == [0, 1]
    with ThreadPool((1, 1), xp=np) as pool:  # two workers share a device
        assert pool.map(lambda x: x + 1, [1, 2]) == [2, 3]


def test_map(pool):
    n = pool.num_workers
    assert pool.map(lambda a, b, c=0: a + b + c, range(n), itertools.repeat(10), c=5) == [
        i + 15 for i in range(n)
    ]
    assert len(pool.map(threading.get_ident)) == n
    # A subset of the workers, each in its own thread.
    everybody = pool.map(threading.get_ident)
    assert pool.map(lambda _: threading.get_ident(), "x", workers=(n - 1,)) == everybody[-1:]
    with pytest.raises(ZeroDivisionError):
        pool.map(lambda x: 1 // x, [0] * n)
    x = [np.ones(2)] * n
    for call in (lambda: pool.map(len, x, workers=(n,)), lambda: pool.gather(x, worker=n),
                 lambda: pool.reduce_gpu(x, worker=n), lambda: pool.reduce_gpu(x, workers=(n,))):
        with pytest.raises(ValueError, match=f"worker is {n}, expected one of the pool's"):
            call()


def test_bcast_copies(pool):
    n = pool.num_workers
    for stride in (1, 2):
        x = [values(i, 6) for i in range(2)]
        result = pool.bcast(x, stride=stride)
        assert len({r.__array_interface__["data"][0] for r in [*x, *result]}) == n + 2
        for i, r in enumerate(result):
            assert np.array_equal(r, x[i % stride])
    assert all(np.array_equal(r, np.arange(3)) for r in pool.bcast(np.arange(3)))
    with pytest.raises(AssertionError, match="Stride"):
        pool.bcast([np.zeros(1)], stride=2)


def test_scatter(pool):
    x = chunks(pool)
    for call in (pool.scatter, pool.scatter_bcast):
        for stride in (1, 2, 3):
            for i, r in enumerate(call(x, stride)):
                assert np.array_equal(r, x[i // stride])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_gather(pool, axis):
    x = chunks(pool)
    wanted = np.stack(x) if axis is None else np.concatenate(x, axis=axis)
    last = pool.workers[-1]
    for whole in [pool.gather(x, axis=axis), pool.gather(x, worker=last, axis=axis),
                  pool.gather_host(x, axis=axis), *pool.all_gather(x, axis=axis)]:
        assert np.array_equal(whole, wanted)
    with pytest.raises(AssertionError, match="zero-dimensional"):
        pool.gather([np.float64(1)] * pool.num_workers)


def test_copies_lie_in_memory_as_the_arrays_do(pool):
    n = pool.num_workers
    x = [values(i, (6, 5, 40), "float32").transpose(2, 0, 1) / 3 for i in range(n)]
    for copies in (pool.bcast(x[:1]), pool.scatter(x)):
        assert all(copy.strides == x[0].strides for copy in copies)
    whole = np.concatenate(x, axis=0)
    assert not whole.flags.c_contiguous
    for gathered in (pool.gather(x), pool.gather(x, worker=pool.workers[-1]), *pool.all_gather(x)):
        assert np.array_equal(gathered, whole) and gathered.strides == whole.strides
    # So a mean has the bits that NumPy's has.
    mean = np.mean(whole, axis=0, keepdims=True)
    assert np.array_equal(pool.reduce_mean(x, axis=0), mean)
    assert not np.array_equal(np.mean(np.ascontiguousarray(whole), axis=0, keepdims=True), mean)


def test_means_over_a_communicator_have_the_bits_of_one_array(pool):
    with Comm(pool.num_workers, xp=np) as comm:
        assert comm.streams is comm.pool.streams
        x = [values(i, (6, 5, 40), "float32").transpose(2, 0, 1) / 3 for i in range(pool.num_workers)]
        mean = np.mean(np.concatenate(x, axis=0), axis=0, keepdims=True)
        assert np.array_equal(comm.Allreduce_mean(x, axis=0), mean)


def test_reduce_gpu(pool):
    n = pool.num_workers
    x = [values(i, (3, 4), "float32") for i in range(5)]
    for stride in range(1, min(n, 5) + 1):
        result = pool.reduce_gpu(x, stride=stride)
        assert len(result) == stride
        for i, r in enumerate(result):
            assert np.array_equal(r, sum(x[i::stride]))
    (on_last,) = pool.reduce_gpu(x, workers=(pool.workers[-1],))
    assert np.array_equal(on_last, sum(x))
    # Tike of 2021: one array.
    assert np.array_equal(pool.reduce_gpu(x, worker=pool.workers[0]), sum(x))


def test_submit(pool):
    assert isinstance(pool, ThreadPoolExecutor)
    futures = [pool.submit(pow, i, exp=2) for i in range(20)]
    assert [future.result() for future in futures] == [i**2 for i in range(20)]
    assert isinstance(pool.submit(int, "x").exception(), ValueError)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_the_calls_of_2021(pool):
    n = pool.num_workers
    x = [values(i, (3, 4), "float32") for i in range(n)]
    with _api_2021.ThreadPool(n, xp=np) as old:
        for worker in (None, *old.workers):
            assert np.array_equal(old.reduce_gpu(x, worker), sum(x))
        assert np.array_equal(old.reduce_gpu(x), sum(x))
        assert np.array_equal(old.reduce_mean(x, 0, worker=old.workers[-1]),
                              np.mean(np.concatenate(x), axis=0, keepdims=True))
        assert old.submit(len, x).result() == n
        with pytest.raises(ValueError, match=f"worker is {n}, expected one"):
            old.reduce_gpu(x, n)
    with _api_2021.Comm(n, mpi=NoMPIComm, xp=np) as comm:
        assert np.array_equal(comm.reduce(x, "gpu"), sum(x))
        assert np.array_equal(comm.reduce(x, "gpu", worker=comm.pool.workers[-1]), sum(x))
        assert np.array_equal(comm.reduce(x, "cpu"), sum(x))
        assert np.array_equal(comm.Allreduce_reduce_gpu(x)[0], sum(x))
        assert np.array_equal(comm.Allreduce_reduce_cpu(x), sum(x))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_reduce_cpu(pool, dtype):
    x = [values(i, 7, dtype) for i in range(pool.num_workers)]
    result, wanted = pool.reduce_cpu(x), np.sum(x, axis=0)
    assert np.array_equal(result, wanted) and result.dtype == wanted.dtype
    with pytest.raises(AssertionError, match="more than"):
        pool.reduce_cpu([*x, x[0]])


def test_reduce_mean(pool):
    x = chunks(pool)
    for axis in (0, 1, None):
        together = np.stack(x) if axis is None else np.concatenate(x, axis=axis)
        assert np.array_equal(
            pool.reduce_mean(x, axis=axis), np.mean(together, axis=axis, keepdims=True)
        )


def test_allreduce(pool):
    n = pool.num_workers
    x = chunks(pool, (50, 3))
    before = [part.copy() for part in x]
    for stride in [None, *range(1, n + 1)]:
        group = n if stride is None else stride
        for i, r in enumerate(pool.allreduce(x, stride)):
            assert np.array_equal(r, sum(before[i // group * group : i // group * group + group]))
    assert all(np.array_equal(a, b) for a, b in zip(x, before))


@pytest.mark.parametrize("mode", ["blend", "swap", None])
@pytest.mark.parametrize("order", ["C", "F"])
def test_swap_edges(pool, mode, order):
    n = pool.num_workers
    x = [np.asarray(values(i, (2, 4 * n, 3)) + 10 * i, order=order) for i in range(n)]
    before = [part.copy() for part in x]
    edges = np.arange(n + 1) * 4
    assert pool.swap_edges(x, 3, edges, mode=mode) is x
    up, down = (np.linspace(a, 1 - a, 5)[1:-1][:, None] for a in (0.0, 1.0))
    for i in range(n - 1):
        rows = slice(edges[i + 1], edges[i + 1] + 3)
        low, high = before[i][:, rows], before[i + 1][:, rows]
        mixed = down * low + up * high
        assert np.array_equal(x[i][:, rows], high if mode == "swap" else mixed)
        assert np.array_equal(x[i + 1][:, rows], low if mode == "swap" else mixed)
    with pytest.raises(ValueError, match="cannot be less than 1"):
        pool.swap_edges(x, 0, edges)


def test_shutdown():
    pool = ThreadPool(2, xp=np)
    pool.shutdown()
    pool.shutdown(wait=True)
    with pytest.raises(ValueError, match="closed"):
        pool.map(abs, [1, 2])


# --- Processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_mpi_comm(n):
    def body(comm):
        mpi = MPIComm(comm)
        rank = comm.rank
        assert (mpi.rank, mpi.size) == (rank, n)
        last = n - 1
        assert mpi.bcast({"a": [1, rank], "f": slice(3)}, root=last)["a"] == [1, last]
        x = values(rank, (2, rank + 1, 3))
        everything = [values(r, (2, r + 1, 3)) for r in range(n)]
        wanted = np.concatenate(everything, axis=1)
        assert np.array_equal(mpi.Allgather(x, axis=1), wanted)
        gathered = mpi.Gather(x, axis=1, root=last)
        assert np.array_equal(gathered, wanted) if rank == last else gathered is None
        y = values(rank, (4, 5))
        parts = [values(r, (4, 5)) for r in range(n)]
        assert np.array_equal(mpi.Bcast(y, root=last), parts[last])
        assert np.array_equal(mpi.Allgather(y, axis=None), np.stack(parts))
        assert np.array_equal(mpi.Allreduce(y), sum(parts))
        assert np.array_equal(mpi.Allreduce(y.T), sum(parts).T)
        assert np.array_equal(mpi.Allreduce(y, op="max"), np.max(parts, axis=0))
        z = values(rank, (2 * n, 3))
        whole = values(0, (2 * n, 3))
        assert np.array_equal(mpi.Scatter(z), whole[2 * rank : 2 * rank + 2])
        if n > 1:
            got = mpi.p2p(y, src=0, dest=1)
            assert np.array_equal(got, parts[0]) if rank == 1 else got is None
        for call in (mpi.Bcast, mpi.Gather, mpi.Allgather, mpi.Allreduce, mpi.Scatter):
            with pytest.raises(ValueError, match="can't be empty"):
                call(None)
            # The argument is empty on the last process alone. Processes that need its data get the
            # error. The others may finish their part of a broadcast or scatter before they learn of it.
            here = None if rank == last else np.ones((n, 2))
            if rank == last or call not in (mpi.Bcast, mpi.Scatter):
                with pytest.raises(ValueError, match="can't be empty"):
                    call(here)
            else:
                with contextlib.suppress(ValueError):
                    call(here)
        if n > 1:
            with pytest.raises(ValueError, match="must be equal"):
                mpi.Allgather(np.ones((2, 2 + (rank == 0))), axis=0)
        assert mpi.Allreduce(1.5).item() == 1.5 * n

    threads(n, body)


RAGGED = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    "call, wrong, error, message",
    [
        (lambda mpi, x: mpi.Scatter(x), np.ones((4, 2)), ValueError, "does not divide among 3"),
        (lambda mpi, x: mpi.Scatter(x), np.ones(()), ValueError, "does not divide among 3"),
        (lambda mpi, x: mpi.Gather(x, root=1), np.ones(()), AssertionError, "zero-dimensional"),
        (lambda mpi, x: mpi.Allgather(x), np.ones(()), AssertionError, "zero-dimensional"),
        (lambda mpi, x: mpi.Allgather(x), RAGGED, ValueError, "inhomogeneous"),
        (lambda mpi, x: mpi.Bcast(x), RAGGED, ValueError, "inhomogeneous"),
        (lambda mpi, x: mpi.Allreduce(x), RAGGED, ValueError, "inhomogeneous"),
        (lambda mpi, x: mpi.Allreduce(np.ones(3), op=x), 7, ValueError, "op is 7"),
    ],
    ids=["uneven", "no_axis", "gather", "all_gather", "ragged", "bcast", "reduced", "op"],
)
def test_an_error_of_one_process_ends_the_call_of_all(call, wrong, error, message):
    right = "sum" if isinstance(wrong, int) else np.ones((3, 2))

    def body(comm):
        mpi = MPIComm(comm)
        comm.deadline = 30
        for failing in range(3):
            if comm.rank == failing:
                with pytest.raises(error, match=message):
                    call(mpi, wrong)
            else:  # a rank whose part needs no other may finish it
                with contextlib.suppress(hocket.InvalidArgument):
                    call(mpi, right)
            assert mpi.Allreduce(np.array(comm.rank)) == 3

    threads(3, body)


def test_an_error_of_one_pool_ends_the_call_of_all_processes():
    calls = [
        lambda comm, x, s: comm.Allreduce(x, s),
        lambda comm, x, s: comm.Allreduce_reduce_gpu(x[: 2 * s]),
        lambda comm, x, s: comm.Allreduce_reduce_cpu(x if s else [np.ones(3)] * 9),
        lambda comm, x, s: comm.Allreduce_mean(x if s else [1]),
    ]

    def body(comm):
        comm.deadline = 30
        with Comm(2, lambda: MPIComm(comm)) as both:
            x = [np.ones(3), np.ones(3)]
            for call in calls:
                for failing in range(2):
                    kind = Exception if comm.rank == failing else hocket.InvalidArgument
                    with pytest.raises(kind) as caught:
                        call(both, x, 0 if comm.rank == failing else 1)
                    assert not isinstance(caught.value, (hocket.DeadlineExceeded, hocket.Mismatch))
                    assert both.mpi.Allreduce(np.array(comm.rank)) == 1

    threads(2, body)


def test_no_mpi_comm_is_its_twin():
    mpi = NoMPIComm()
    x = values(0, (2, 3))
    assert (mpi.rank, mpi.size) == (0, 1)
    assert mpi.bcast(x) is x and mpi.Bcast(x) is x and mpi.Allreduce(x) is x
    assert mpi.Allgather(x).shape == (2, 3) and mpi.Gather(x, axis=None).shape == (1, 2, 3)
    with pytest.raises(ValueError, match="can't be empty"):
        mpi.Allreduce(None)


def test_combined_shape():
    assert combined_shape([(5, 2, 3), (1, 2, 3)], axis=0) == [6, 2, 3]
    assert combined_shape([(1, 5, 3), (1, 5, 3)], axis=None) == [2, 1, 5, 3]
    for shapes, axis in (([(5, 2), (1, 3)], 0), ([(5, 2), (1, 2)], None), ([(5,), (5, 1)], 0)):
        with pytest.raises(ValueError, match="must"):
            combined_shape(shapes, axis)


def test_reading_in_parts():
    scan = np.random.default_rng(1).uniform(size=(100, 2))
    data = np.arange(100)

    def body(comm):
        mpi = MPIComm(comm)
        mine, entries = mpi.MPIio_ptycho(scan, data)
        assert np.array_equal(scan[entries], mine)
        rows, columns = mpi.MPIio_lamino(scan, scan.T[:, :1], axis=0)
        assert len(rows) in (33, 34)
        return entries

    parts = threads(3, body)
    assert np.array_equal(np.sort(np.concatenate(parts)), data)
    assert max(scan[parts[0], 0]) <= min(scan[parts[1], 0])


def test_comm_by_itself():
    with Comm(3) as comm:
        x = chunks(comm.pool)
        assert np.array_equal(comm.Allreduce_reduce_gpu(x)[0], sum(x))
        assert np.array_equal(comm.Allreduce_reduce_cpu(x), sum(x))
        assert np.allclose(comm.Allreduce_mean(x), np.concatenate(x).mean(axis=0, keepdims=True))
        assert all(np.array_equal(r, sum(x)) for r in comm.Allreduce(x))
        with pytest.warns(DeprecationWarning):
            assert np.array_equal(comm.reduce(x, "cpu"), sum(x))
        with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="gpu or cpu"):
            comm.reduce(x, "tpu")


PROGRAM = """
import numpy as np
from tike.communicators import Comm, MPIComm
with Comm(2, mpi=MPIComm) as comm:
    rank, size = comm.mpi.rank, comm.mpi.size
    x = [np.arange(6.0).reshape(2, 3) * (10 * rank + i + 1) for i in range(2)]
    every = [np.arange(6.0).reshape(2, 3) * (10 * r + i + 1) for r in range(size) for i in range(2)]
    def calls():
        return sum("all_reduce" in call.call for call in comm.mpi.comm.recent_calls())
    before = calls()
    assert all(np.array_equal(r, sum(every)) for r in comm.Allreduce(x))
    assert calls() - before == (size > 1)  # one array crosses, not one a worker
    for i, r in enumerate(comm.Allreduce(x, s=1)):
        assert np.array_equal(r, sum(every[i::2]))
    (total,) = comm.Allreduce_reduce_gpu(x)
    assert np.array_equal(total, sum(every))
    assert np.array_equal(comm.Allreduce_reduce_cpu(x), sum(every))
    mine = [np.full((rank + 1, 2), float(rank)) for _ in range(2)]
    wanted = sum(2 * (r + 1) * r for r in range(size)) / sum(2 * (r + 1) for r in range(size))
    mean = comm.Allreduce_mean(mine)
    assert mean.shape == (1, 2) and np.allclose(mean, wanted), mean
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_comm_of_processes(n, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    job = run_job(n, "-m", "hocket.compat", "tike.communicators", "--", program)
    assert job.returncode == 0, job.stdout


OF_EITHER_YEAR = """
import numpy as np
from tike.communicators import Comm, ThreadPool
from tike.communicators.pool import ThreadPool as TheSame
assert TheSame is ThreadPool
with Comm(2, xp=np) as comm:
    x = [np.full(3, 2.0 * comm.mpi.rank + i) for i in range(2)]
    here = comm.pool.reduce_gpu(x)
    print(comm.mpi.size, type(here).__name__, comm.Allreduce_reduce_gpu(x)[0].tolist())
"""


@pytest.mark.parametrize("face, said", [
    ("tike.communicators", "1 list [1.0, 1.0, 1.0]"),
    ("tike.communicators@2021", "2 ndarray [6.0, 6.0, 6.0]"),
])
def test_a_program_of_either_year_under_a_launcher(face, said, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(OF_EITHER_YEAR)
    job = run_job(2, "-m", "hocket.compat", face, "--", program)
    assert job.returncode == 0 and job.stdout.count(said) == 2, job.stdout


# --- Streaming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_size", [1, 2, 64])
def test_streams(chunk_size):
    a, b = np.arange(7.0), np.arange(7.0) + 2
    sums = stream_and_reduce(
        lambda x, y: (x.sum(keepdims=True), (x * y).sum(keepdims=True)), [a, b], [[1], [1]],
        [np.double] * 2, chunk_size=chunk_size,
    )
    assert [s.item() for s in sums] == [a.sum(), (a * b).sum()]
    for call in (stream_and_modify, stream_and_modify_debug):
        result = call(
            lambda parts, mod, which: (mod[0] + parts[0].sum(), mod[1] + which), (a,), (0.0, []),
            indices=[4, 0, 6], chunk_size=chunk_size,
        )
        assert result == (10.0, [4, 0, 6])
    for call in (stream_and_modify2, stream_and_modify_debug2):
        seen = []
        call(lambda parts, lo, hi: seen.append((lo, hi, parts[0].copy())), [a], lo=2, hi=6,
             chunk_size=chunk_size)
        assert [entry[:2] for entry in seen] == [
            (k, min(k + chunk_size, 6)) for k in range(2, 6, chunk_size)
        ]
        assert np.array_equal(np.concatenate([entry[2] for entry in seen]), a[2:6])
        # Tike's own preconditioners go through numbers alone.
        seen = []
        call(f=lambda parts, lo, hi: seen.append((parts, lo, hi)), ind_args=[], lo=1, hi=8,
             chunk_size=chunk_size)
        assert seen == [([], k, min(k + chunk_size, 8)) for k in range(1, 8, chunk_size)]


def test_the_modules_of_the_package():
    assert "tike.communicators" in hocket.compat.available()
