"""Pools of real GPUs with CuPy's arrays, and tike's face on them: run by tools/check/gpu_check.sh."""

import numpy as np
import pytest
from gpu_packages import count_gpus

import hocket
from hocket import stream

cupy = pytest.importorskip("cupy")


GPUS = count_gpus("cupy")
pytestmark = pytest.mark.skipif(GPUS < 2, reason=f"two GPUs are wanted, and there are {GPUS}")


@pytest.fixture(params=["rising", "falling"])
def pool(request):
    devices = list(range(GPUS))
    with hocket.DevicePool(devices=devices if request.param == "rising" else devices[::-1]) as made:
        yield made


def on_workers(pool, shape=(300, 500)):
    def make(i):
        return cupy.arange(np.prod(shape), dtype="float32").reshape(shape) % 1000 * 8 + i

    return pool.map(make, range(pool.size))


def as_numpy(arrays):
    return [cupy.asnumpy(x) for x in arrays]


def test_arrays_lie_on_their_workers_gpus(pool):
    x = on_workers(pool)
    assert tuple(a.device.id for a in x) == pool.devices
    assert tuple(a.device.id for a in pool.broadcast(np.arange(5))) == pool.devices
    assert [w.id for w in pool.map(lambda: cupy.cuda.Device())] == list(pool.devices)


def test_calls_follow_each_other_without_synchronizing(pool):
    for _ in range(20):
        x = on_workers(pool)
        n = pool.size
        base = np.arange(300 * 500, dtype="float32").reshape(300, 500) % 1000 * 8
        pool.all_reduce(x)
        doubled = pool.map(lambda a: a * 2, x)
        copies = pool.broadcast(doubled[-1])
        total = pool.reduce(copies, worker=1)
        wanted = base * n + n * (n - 1) / 2
        assert all(np.array_equal(a, wanted) for a in as_numpy(x))
        assert all(np.array_equal(a, 2 * wanted) for a in as_numpy(copies))
        assert np.array_equal(cupy.asnumpy(total), 2 * n * wanted)


def test_movement(pool):
    whole = np.arange(60.0).reshape(6, 10)
    for axis in (0, 1):
        parts = pool.scatter(whole, axis=axis)
        for part, wanted in zip(as_numpy(parts), np.array_split(whole, pool.size, axis=axis)):
            assert np.array_equal(part, wanted)
        assert np.array_equal(pool.gather(parts, worker=None, axis=axis), whole)
        for everything in pool.all_gather(parts, axis=axis):
            assert np.array_equal(cupy.asnumpy(everything), whole)
    mean = pool.mean(pool.scatter(whole), axis=0)
    assert np.allclose(cupy.asnumpy(mean), whole.mean(axis=0, keepdims=True))


@pytest.mark.parametrize("mode", ["swap", "blend"])
def test_halos(pool, mode):
    x = on_workers(pool, (2, 8 * pool.size, 3))
    host = as_numpy(x)
    seams = [8 * i for i in range(1, pool.size)]
    pool.exchange_halo(x, seams, 3, mode=mode)
    with hocket.DevicePool(pool.size) as on_host:
        on_host.exchange_halo(host, seams, 3, mode=mode)
    assert all(np.allclose(a, b, rtol=1e-6) for a, b in zip(as_numpy(x), host))


def test_workers_communicators(pool):
    def talk(worker):
        x = cupy.full(1000, worker.index + 1, "float64")
        return worker.communicator.all_reduce(x)

    wanted = pool.size * (pool.size + 1) / 2
    assert all((x == wanted).all() for x in as_numpy(pool.run(talk)))


def test_an_error_leaves_a_usable_pool(pool):
    with pytest.raises(ZeroDivisionError):
        pool.map(lambda i: 1 // i, [0] + [1] * (pool.size - 1))
    x = on_workers(pool)
    assert pool.all_reduce(x)[0] is x[0]
    cupy.asnumpy(x[0])


def test_streaming():
    frames = np.arange(1000.0 * 64).reshape(1000, 64)
    (total,) = stream.reduce(
        lambda x: [cupy.sqrt(x).sum(axis=0)], [frames], [(64,)], ["float64"], chunk_size=37,
        device="cuda",
    )
    assert np.allclose(cupy.asnumpy(total), np.sqrt(frames).sum(axis=0))
    chosen = [5, 999, 5, 0]
    (found,) = stream.modify(
        lambda parts, values, which: ([*values[0], *cupy.asnumpy(parts[0][:, 0])],),
        [frames], ([],), indices=chosen, chunk_size=3, device="cuda",
    )
    assert np.array_equal(found, frames[chosen, 0])


def test_the_face_of_tike():
    from hocket.compat.tike_communicators import Comm, ThreadPool

    with cupy.cuda.Device(0), ThreadPool(2) as pool:
        assert pool.xp is cupy and pool.workers == (0, 1) and len(pool.streams[1]) == 2
        x = pool.bcast([cupy.arange(6.0), cupy.ones(6)], stride=2)
        assert [a.device.id for a in x] == [0, 1]
        both = np.arange(6.0) + 1
        assert np.array_equal(cupy.asnumpy(pool.reduce_gpu(x)[0]), both)
        assert np.array_equal(pool.reduce_cpu(x), both)
        assert all(np.array_equal(a, both) for a in as_numpy(pool.allreduce(x)))
        sums = pool.allreduce([cupy.arange(6.0), cupy.ones(6)])  # both lie on one GPU
        assert [a.device.id for a in sums] == [0, 1]
        assert all(np.array_equal(a, both) for a in as_numpy(sums))
        assert pool.gather_host(x, axis=None).shape == (2, 6)
        assert np.allclose(cupy.asnumpy(pool.reduce_mean(x, axis=None)), both.sum() / 12)
        with cupy.cuda.Device(1), pytest.raises(ValueError, match="primary worker"):
            pool.__enter__()
    with cupy.cuda.Device(0), Comm(2) as comm:
        x = comm.pool.bcast([cupy.arange(6.0)])
        assert all(np.array_equal(a, 2 * np.arange(6.0)) for a in as_numpy(comm.Allreduce(x)))
