"""Arrays of CuPy, PyTorch, JAX and Numba on real GPUs, a process each: run by tools/check/gpu_check.sh."""

import os
import signal
import time

import numpy as np
import pytest
from gpu_packages import count_gpus

import hocket

GPUS = count_gpus("torch")
pytestmark = pytest.mark.skipif(GPUS < 2, reason=f"two GPUs are wanted, and there are {GPUS}")
RANKS = [n for n in (2, 3, 4, 8) if n <= GPUS]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
COUNTS = [1, 3, 1000, 70_001]


class CuPy:
    """CuPy arrays: makes them and reads them for the tests."""

    def __init__(self, rank):
        import cupy

        cupy.cuda.Device(rank).use()
        self.cupy = cupy

    def array(self, values):
        return self.cupy.asarray(values)

    def host(self, array):
        return self.cupy.asnumpy(array)

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()


class Torch:
    def __init__(self, rank):
        import torch

        torch.cuda.set_device(rank)
        self.torch = torch

    def array(self, values):
        return self.torch.from_numpy(np.array(values)).cuda()

    def host(self, array):
        return array.cpu().numpy()

    def stream(self):
        return self.torch.cuda.Stream()

    def synchronize(self):
        self.torch.cuda.synchronize()


FRAMEWORKS = {"cupy": CuPy, "torch": Torch}


def values(rank, count, dtype, seed):
    """Small whole numbers, the same for all who ask for that rank's."""
    numbers = np.random.default_rng([seed, rank, count]).integers(0, 4, count)
    if dtype == "bool":
        return numbers % 2 == 1
    if dtype in COMPLEX:
        numbers = numbers + 1j * (numbers % 3)
    return numbers.astype(dtype)


def same(found, expected, what):
    assert found.dtype == expected.dtype and found.shape == expected.shape, what
    assert np.array_equal(found, expected), f"{what}: {found.ravel()[:8]} {expected.ravel()[:8]}"


def in_new_array(frame, like):
    """Full of what no result holds."""
    return frame.array(np.full_like(like, 77 if like.dtype != bool else True))


OPS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
       "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}


def reduced(op, all_values):
    return OPS[op].reduce(np.stack(all_values), dtype=all_values[0].dtype)


def ops_of(dtype):
    if dtype == "bool":
        return ["band", "bor", "bxor"]
    if dtype in COMPLEX:
        return ["sum", "prod"]
    return list(OPS) if dtype in INTEGERS else ["sum", "prod", "min", "max"]


def dtypes_of(name):
    unsigned = ["uint16", "uint32", "uint64"]  # PyTorch has little for these
    return ["bool"] + [d for d in INTEGERS if name == "cupy" or d not in unsigned] + FLOATS + COMPLEX


def all_collectives(comm, name, engines):
    frame = FRAMEWORKS[name](comm.rank)
    n, r = comm.size, comm.rank
    for seed, dtype in enumerate(dtypes_of(name)):
        for count in COUNTS:
            every = [values(q, count, dtype, seed) for q in range(n)]
            wide = [values(q, count * n, dtype, seed) for q in range(n)]
            mine = frame.array(every[r])
            blocks = frame.array(wide[r].reshape(n, count))
            what = f"{name} {dtype}[{count}] of {n}, {engines}"

            for op in ops_of(dtype):
                y = in_new_array(frame, every[r])
                comm.all_reduce(mine, out=y, op=op)
                same(frame.host(y), reduced(op, every), f"all_reduce {op} {what}")
            op = ops_of(dtype)[0]
            x = frame.array(every[r])
            comm.all_reduce(x, op=op)
            same(frame.host(x), reduced(op, every), f"all_reduce in place {what}")
            y = in_new_array(frame, every[r])
            comm.reduce_scatter(blocks, out=y, op=op)
            same(frame.host(y), reduced(op, wide).reshape(n, count)[r], f"reduce_scatter {what}")
            y = in_new_array(frame, every[r])
            comm.reduce(mine, out=y if r == n - 1 else None, root=n - 1, op=op)
            if r == n - 1:
                same(frame.host(y), reduced(op, every), f"reduce {what}")

            x = frame.array(every[r])
            comm.broadcast(x, root=1)
            same(frame.host(x), every[1], f"broadcast {what}")
            same(frame.host(comm.all_gather(mine)), np.stack(every), f"all_gather {what}")
            y = in_new_array(frame, wide[r].reshape(n, count))
            comm.all_to_all(blocks, out=y)
            expected = np.stack([wide[q].reshape(n, count)[r] for q in range(n)])
            same(frame.host(y), expected, f"all_to_all {what}")
            y = in_new_array(frame, np.stack(every))
            comm.gather(mine, out=y if r == 0 else None, root=0)
            if r == 0:
                same(frame.host(y), np.stack(every), f"gather {what}")
            y = in_new_array(frame, every[r])
            comm.scatter(blocks if r == 0 else None, out=y, root=0)
            same(frame.host(y), wide[0].reshape(n, count)[r], f"scatter {what}")

            parts = [values(q, count + q, dtype, seed) for q in range(n)]
            y = in_new_array(frame, np.concatenate(parts))
            comm.all_gather_v(frame.array(parts[r]), out=y)
            same(frame.host(y), np.concatenate(parts), f"all_gather_v {what}")
            y = in_new_array(frame, every[r])
            comm.send_recv(mine, (r + 1) % n, out=y, source=(r - 1) % n)
            same(frame.host(y), every[(r - 1) % n], f"send_recv {what}")
            came = [in_new_array(frame, every[r]) for _ in range(2)]
            after, before = (r + 1) % n, (r - 1) % n
            comm.exchange([(mine, after), (x, after)], [(y, before) for y in came])
            same(frame.host(came[0]), every[before], f"exchange {what}")
            same(frame.host(came[1]), every[1], f"exchange, the second, {what}")
    return comm.rank


def with_engines(comm, name, engines):
    """A separate world, because engines are chosen per world."""
    return all_collectives(comm, name, engines)


@pytest.mark.parametrize("engines", ["", "peer", "nccl"])
@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("n", RANKS)
def test_every_collective_and_dtype(n, name, engines, monkeypatch):
    monkeypatch.setenv("HOCKET_ENGINES", engines)
    assert hocket.spawn(with_engines, n, name, engines) == list(range(n))


def replays(comm):
    import torch

    torch.cuda.set_device(comm.rank)
    n, r = comm.size, comm.rank
    x = torch.zeros(50_000, device="cuda")
    y = torch.zeros(n, 50_000, device="cuda")
    comm.all_reduce(x)
    comm.all_gather(x, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        comm.all_reduce(x)
        comm.all_gather(x, out=y)
    for turn in range(5):
        x.fill_(float(r + turn))
        graph.replay()
        total = sum(q + turn + 1 for q in range(n))
        assert bool((x == total).all()) and bool((y == total).all()), (turn, x[:4], total)
        comm.all_reduce(x, op="max")  # between replays, on the same stream
        assert float(x[17]) == total
    return float(x[0])


@pytest.mark.parametrize("n", RANKS)
def test_graphs_are_replayed_without_the_host(n):
    assert len(set(hocket.spawn(replays, n))) == 1


def on_streams(comm, name):
    frame = FRAMEWORKS[name](comm.rank)
    n, r = comm.size, comm.rank
    for turn in range(20):
        side = frame.stream()
        x = frame.array(np.full(300_000, r + turn, "float32"))
        frame.synchronize()
        comm.all_reduce(x, stream=side)
        work = comm.all_reduce_async(x, op="max", stream=side)
        work.wait()  # the current stream goes on behind it
        y = x * 2
        total = sum(q + turn for q in range(n))
        same(frame.host(y), np.full(300_000, 2 * total, "float32"), f"turn {turn}")
        assert work.synchronize(timeout=20) is x
        handle = getattr(side, "ptr", None) or side.cuda_stream
        with side:
            comm.barrier(stream=handle)
    return True


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_streams(name):
    assert hocket.spawn(on_streams, RANKS[-1], name) == [True] * RANKS[-1]


def is_refused(comm):
    import torch

    torch.cuda.set_device(comm.rank)
    x = torch.ones(64, device="cuda")
    comm.all_reduce(x)
    for args, part in [((x, torch.ones(64)), "lies in a GPU's memory"),
                       ((x.reshape(8, 8).T[:3],), "not contiguous"),
                       ((x[:40], x[10:50]), "overlap"),
                       ((x.to(f"cuda:{(comm.rank + 1) % comm.size}"),), "a rank has one GPU")]:
        with pytest.raises(hocket.InvalidArgument, match=part):
            comm.all_reduce(args[0], out=args[1] if len(args) > 1 else None)
    comm.all_reduce(x)
    return float(x[5])


def test_bad_arrays_are_refused_and_nothing_is_lost():
    assert hocket.spawn(is_refused, 2) == [4.0, 4.0]


def differs(comm):
    import torch

    torch.cuda.set_device(comm.rank)
    x = torch.ones(64, device="cuda")
    comm.all_reduce(x)
    try:
        comm.all_reduce(x, op="sum" if comm.rank == 0 else "max", timeout=10)
        for _ in range(1000):
            comm.barrier(timeout=10)
    except hocket.Mismatch as error:
        return str(error)
    return "nothing was noticed"


def test_mismatched_calls_are_told_on_all_ranks():
    for text in hocket.spawn(differs, 2):
        assert "all_reduce" in text and "max" in text and "sum" in text, text


def is_alone(comm, engines):
    import torch

    torch.cuda.set_device(comm.rank)
    x = torch.ones(1000, device="cuda")
    comm.all_reduce(x)
    torch.cuda.synchronize()
    if comm.rank == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    before = time.monotonic()
    with pytest.raises(hocket.PeerDied) as caught:
        comm.all_reduce_async(x).synchronize(timeout=60)
    took = time.monotonic() - before - 0.5
    assert caught.value.status.peer == 1
    with pytest.raises(hocket.PeerDied):
        comm.all_reduce(x)
    # The GPU goes on.
    assert float((x.cpu() * 0 + 2).sum()) == 2000
    with open(os.environ["HOCKET_TEST_OUT"] + str(comm.rank), "w") as out:
        out.write(str(took))


@pytest.mark.parametrize("engines", ["peer", "nccl"])
def test_a_killed_rank_ends_the_others_kernels(engines, monkeypatch, tmp_path):
    monkeypatch.setenv("HOCKET_ENGINES", engines)
    monkeypatch.setenv("HOCKET_TEST_OUT", str(tmp_path / "took"))
    n = RANKS[-1]
    with pytest.raises(Exception):
        hocket.spawn(is_alone, n, engines)
    took = [float((tmp_path / f"took{r}").read_text()) for r in range(n) if r != 1]
    print(f"PeerDied by {engines} after {max(took) * 1000:.1f} ms at most")


def is_late(comm):
    import torch

    torch.cuda.set_device(comm.rank)
    x = torch.ones(1000, device="cuda")
    comm.all_reduce(x)
    torch.cuda.synchronize()
    before = time.monotonic()
    if comm.rank == 0:
        with pytest.raises(hocket.DeadlineExceeded):
            comm.all_reduce_async(x, timeout=0.3).synchronize()
    else:
        time.sleep(1.5)
        with pytest.raises(hocket.Error):
            comm.all_reduce(x)
            comm.barrier()
    return time.monotonic() - before


def test_a_rank_that_does_not_come_is_told():
    took = hocket.spawn(is_late, 2)
    assert took[0] >= 0.29
    print(f"DeadlineExceeded {(took[0] - 0.3) * 1000:.0f} ms past a deadline of 300")


def symmetric_memory(comm):
    import cupy
    import torch

    cupy.cuda.Device(comm.rank).use()
    torch.cuda.set_device(comm.rank)
    n, r = comm.size, comm.rank
    a = comm.symmetric.empty((n, 1000), "float32", memory="cuda")
    x = cupy.asarray(a)
    t = torch.as_tensor(a, device=f"cuda:{r}")
    assert x.data.ptr == t.data_ptr() == a.data_ptr and not x.any()
    t.copy_(torch.arange(n * 1000, device="cuda").reshape(n, 1000) + 10_000 * r)
    torch.cuda.synchronize()
    comm.barrier()
    other = (r + 1) % n
    theirs = cupy.from_dlpack(comm.symmetric.peer(x[1], other))
    same(cupy.asnumpy(theirs), np.arange(1000, 2000, dtype="float32") + 10_000 * other, "peer")
    comm.barrier()
    b = comm.symmetric.empty((n, n, 1000), "float32", memory="cuda")
    y = cupy.asarray(b)
    comm.all_gather(x, out=y)
    expected = np.stack([np.arange(n * 1000).reshape(n, 1000) + 10_000 * q for q in range(n)])
    same(cupy.asnumpy(y), expected.astype("float32"), "all_gather")
    comm.all_reduce(y)
    same(cupy.asnumpy(y), (n * expected).astype("float32"), "all_reduce")
    with pytest.raises(hocket.InvalidArgument, match="not symmetric"):
        comm.symmetric.peer(cupy.zeros(3), 0)
    assert type(comm.symmetric.empty(3)).__name__ == "GpuArray"  # as the calls so far
    comm.symmetric.free(x)
    with pytest.raises(hocket.InvalidArgument, match="not symmetric"):
        comm.symmetric.peer(x, 0)
    return True


def test_symmetric_memory():
    assert hocket.spawn(symmetric_memory, RANKS[-1]) == [True] * RANKS[-1]


def with_jax(comm):
    import jax

    n, r = comm.size, comm.rank
    device = jax.local_devices(backend="gpu")[r]
    base = jax.numpy.arange(30_000, dtype="float32").reshape(100, 300)
    grow = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda _, y: y + 1, x))
    for turn in range(20):
        x = grow(jax.device_put(base + 1000 * r + turn, device))  # not ready when it is given
        mine = [np.arange(30_000, dtype="float32").reshape(100, 300) + 1000 * q + turn + 200
                for q in range(n)]
        y = comm.all_reduce(x)
        assert isinstance(y, jax.Array) and y.devices() == {device}
        same(np.asarray(grow(y)), sum(mine) + 200, f"all_reduce {turn}")  # at once, on JAX's stream
        same(np.asarray(comm.all_gather(x)), np.stack(mine), f"all_gather {turn}")
        same(np.asarray(comm.broadcast(x, root=1)), mine[1], f"broadcast {turn}")
        work = comm.all_reduce_async(x, op="max")
        same(np.asarray(work.wait()), mine[-1], f"async {turn}")
        same(np.asarray(comm.send_recv(x, (r + 1) % n, source=(r - 1) % n)), mine[r - 1], "ring")
        same(np.asarray(x), mine[r], "what was given")
    with pytest.raises(hocket.InvalidArgument, match="array of JAX"):
        comm.all_reduce(y, out=x)
    return True


def has_jax(_comm):
    try:
        import jax

        return len(jax.local_devices(backend="gpu")) >= RANKS[-1]
    except (ImportError, RuntimeError):
        return False


def test_jax(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if not hocket.spawn(has_jax, 1)[0]:  # in another process, so that this one keeps its GPUs free
        pytest.skip(f"JAX is not installed, or does not see {RANKS[-1]} GPUs")
    assert hocket.spawn(with_jax, RANKS[-1]) == [True] * RANKS[-1]


def with_numba(comm):
    from numba import cuda

    cuda.select_device(comm.rank)
    n, r = comm.size, comm.rank

    @cuda.jit
    def grow(x):
        i = cuda.grid(1)
        if i < x.size:
            for _ in range(2000):
                x[i] += 1

    numbers = np.arange(30_000, dtype="float64")
    for _ in range(10):
        mine, other = cuda.stream(), cuda.stream()
        x = cuda.to_device(numbers + r, stream=mine)
        y = cuda.device_array(30_000, stream=other)
        grow[118, 256, mine](x)
        comm.all_reduce(x, out=y)  # on y's stream, behind what x's has yet to do
        total = sum(numbers + q + 2000 for q in range(n))
        same(y.copy_to_host(stream=other), total, "all_reduce")
        grow[118, 256, mine](x)
        comm.all_reduce(x, stream=other)
        same(x.copy_to_host(stream=other), total + 2000 * n, "on another stream")
    plain = cuda.to_device(numbers + r)
    comm.all_reduce(plain)
    same(plain.copy_to_host(), sum(numbers + q for q in range(n)), "on the default stream")
    same(comm.all_gather(plain).copy_to_host(), np.stack([plain.copy_to_host()] * n), "a new one")
    return True


def why_no_numba(_comm):
    try:
        import numba.cuda.np.arrayobj  # noqa: F401: some versions want another NumPy than there is
    except (ImportError, AttributeError) as error:
        return f"Numba cannot be used: {error}"
    return ""


def test_numba():
    why_not = hocket.spawn(why_no_numba, 1)[0]
    if why_not:
        pytest.skip(why_not)
    assert hocket.spawn(with_numba, RANKS[-1]) == [True] * RANKS[-1]
