"""Arrays in GPUs' memory, on GPUs that are none: the host carries them, in the order of streams."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import BUILD, with_package

FAKE = BUILD / "fake_cuda"
FAKE_PEER = FAKE.parent / "fake_peer"
SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")

PRELUDE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver
driver = Driver()
def on(n, body):
    def rank(comm):
        driver.use(comm.rank)
        body(comm)
        driver.synchronize()
    hocket.run_threads(rank, n)
def refused(words, call):
    try:
        call()
    except hocket.InvalidArgument as error:
        assert words in str(error), error
    else:
        raise AssertionError("no error")
"""


def run(program, **settings):
    fakes = with_package(LD_LIBRARY_PATH=str(FAKE), HOCKET_NCCL_LIBRARY="none")
    done = subprocess.run([sys.executable, "-c", PRELUDE + program, str(SUPPORT)],
                          env={**fakes, **settings}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=50)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_calls_are_put_on_the_stream_and_return():
    run("""
def body(comm):
    x = Array(driver, np.arange(6.0) + comm.rank)
    assert comm.all_reduce(x) is x
    y = Array(driver, np.zeros((2, 6)))
    comm.all_gather(x, out=y)
    work = comm.broadcast_async(x, root=1)
    work.wait()
    assert work.synchronize(timeout=20) is x and work.done
    driver.synchronize()
    expected = 2 * np.arange(6.0) + 1
    assert np.array_equal(x.host, expected)
    assert np.array_equal(y.host, np.stack([expected, expected]))
on(2, body)
""")


def test_prefixes_go_by_the_host():
    run("""
def body(comm):
    x, y = Array(driver, np.arange(6.0) + comm.rank), Array(driver, np.full(6, -1.0))
    assert comm.exscan(x, out=y) is y
    assert comm.scan(x) is x
    driver.synchronize()
    ranks = np.arange(comm.rank + 1.0)
    assert np.array_equal(x.host, (ranks[:, None] + np.arange(6.0)).sum(0))
    before = (ranks[:-1, None] + np.arange(6.0)).sum(0) if comm.rank else np.full(6, -1.0)
    assert np.array_equal(y.host, before)
    assert comm.exscan_async(y, op="max").synchronize(timeout=20) is y
    assert np.array_equal(y.host, [before, np.full(6, -1.0), np.arange(6.0)][comm.rank])
on(3, body)
""")


def test_another_stream_s_capture_goes_on_beside_them():
    run("""
def body(comm):
    first, last, other = comm.duplicate(), comm.duplicate(), driver.stream()
    x, large = Array(driver, np.ones(5)), Array(driver, np.arange(300_000.0))
    comm.all_reduce(x)
    last.broadcast(x, root=0)
    driver.synchronize()
    comm.barrier()
    with driver.captures() as captured:
        comm.barrier()
        try:
            comm.all_reduce(x, stream=captured)
        except hocket.InvalidArgument as error:
            assert "cannot be captured" in str(error), error
        else:
            raise AssertionError("no error")
        comm.all_reduce(large, stream=other)  # what is kept for copies is too small
        first.all_reduce(x, stream=other)
        work = comm.all_reduce_async(x, stream=other)
        driver.synchronize(other)
        comm.barrier()
        last.close()
    comm.barrier()  # what follows frees, beside captures of all threads
    assert work.synchronize(timeout=20) is x
    assert np.array_equal(x.host, np.full(5, 8.0))
    assert np.array_equal(large.host, 2 * np.arange(300_000.0))
on(2, body)
""")


def test_a_stream_can_be_named():
    run("""
class LikeCuPy:
    def __init__(self, ptr): self.ptr = ptr
class LikeCudaCore:
    def __init__(self, ptr): self.value = ptr
    def __cuda_stream__(self): return (0, self.value)
def body(comm):
    x = Array(driver, np.ones(5, "int32"))
    for kind in (int, LikeCuPy, LikeCudaCore):
        stream = driver.stream()
        comm.all_reduce(x, stream=kind(stream))
        work = comm.all_reduce_async(x, op="max", stream=kind(stream))
        work.wait(stream=1)
        driver.synchronize(stream)
    driver.synchronize()
    assert np.array_equal(x.host, np.full(5, 8))
    comm.barrier(stream=driver.stream())
    try:
        comm.all_reduce(x, stream="the main one")
    except hocket.InvalidArgument as error:
        assert "stream is a str" in str(error)
    else:
        raise AssertionError("no error")
    comm.barrier()
on(2, body)
""")


def test_what_an_array_s_own_stream_has_yet_to_do_comes_first():
    """As `__cuda_array_interface__` says it; Numba's arrays do."""
    run("""
def one(comm, ask):
    mine, other = driver.stream(), driver.stream()
    x = Array(driver, np.zeros(5), stream=mine)
    y = Array(driver, np.zeros(5), stream=other)
    go = driver.fill_later(x.address, np.arange(5.0) + comm.rank, mine)
    work = comm.all_reduce_async(x, out=y, stream=driver.stream() if ask else None)
    assert not work.done
    go()
    work.synchronize(timeout=40)
    assert np.array_equal(y.host, 2 * np.arange(5.0) + 1), y.host
    gathered = Array(driver, np.zeros(10), stream=other)
    driver.kept += [x, y, gathered]
    go = driver.fill_later(x.address, np.arange(5.0) - comm.rank, mine)
    comm.all_gather_coalesced([x], [gathered])
    go()
    driver.synchronize(other)
    assert np.array_equal(gathered.host, np.concatenate([np.arange(5.0), np.arange(5.0) - 1]))
def body(comm):
    one(comm, False)
    one(comm, True)
on(2, body)
""")


def test_results_for_jax_come_after_its_own_work_and_are_there():
    """The part of JAX that hocket uses: arrays that never change, on streams that are not
    visible.
    """
    run("""
import threading, types
class jax_Array:
    def __init__(self, memory, stream):
        self.memory, self.stream, self.shape = memory, stream, memory.shape
        self.dtype, self.device = memory.dtype, "gpu"
    def __dlpack_device__(self):
        return self.memory.__dlpack_device__()
    def __dlpack__(self, stream=None, max_version=None):
        driver.order(self.stream, stream)
        return self.memory.__dlpack__()
    def block_until_ready(self):
        driver.synchronize(self.stream)
def empty(shape, dtype, device):
    assert device == "gpu"
    driver.kept.append(comm.symmetric.empty(shape, dtype, memory="cuda"))
    return jax_Array(driver.kept[-1], driver.stream())
jax, jax.numpy = (types.ModuleType(n) for n in ("jax", "jax.numpy"))
jax.numpy.empty = empty
sys.modules.update({m.__name__: m for m in (jax, jax.numpy)})

driver.use(0)
comm = hocket.init()
def result(memory):
    host, stream = Array(driver, np.zeros(memory.shape, memory.dtype)), driver.stream()
    driver.copy(host.address, memory.data_ptr, memory.nbytes, stream)
    driver.synchronize(stream)
    return host.host.copy()
for call in ("all_reduce", "all_gather", "all_reduce_async"):
    at_work = driver.stream()
    x = jax_Array(comm.symmetric.empty(5, memory="cuda"), at_work)
    driver.kept.append(x)
    go = driver.fill_later(x.memory.data_ptr, np.arange(5.0), at_work)
    threading.Timer(0.1, go).start()
    found = getattr(comm, call)(x)
    if call.endswith("async"):
        found = found.wait()
    read = result(found.memory)  # on a stream that knows of nothing
    assert np.array_equal(read.ravel(), np.arange(5.0)), (call, read)
try:
    comm.prepare_all_reduce(x)
except hocket.InvalidArgument as error:
    assert "give out=" in str(error), error
else:
    raise AssertionError("no error")
""")


def test_cupy_s_arrays_are_read_by_their_attributes():
    run("""
sys.path.insert(0, sys.argv[1] + "/stand_ins/gpu_cupy")
import cupy
class ndarray(cupy.ndarray):
    __cuda_array_interface__ = None  # too slow, and not asked for
ndarray.__module__ = "cupy"
def body(comm):
    x, y = ndarray(np.arange(6.0) + comm.rank), ndarray(np.zeros(6))
    with cupy.cuda.ExternalStream(driver.stream(), comm.rank) as stream:
        go = driver.fill_later(x.address, np.arange(6.0) - comm.rank, stream.ptr)
        comm.all_reduce(x, out=y)  # on the current stream
        go()
        stream.synchronize()
    assert np.array_equal(y.host, 2 * np.arange(6.0) - 1), y.host
    wide = ndarray(np.zeros((2, 3), order="F"))
    wide.host = np.asfortranarray(wide.host)
    refused("Fortran order", lambda: comm.all_gather(wide))
    y.host = y.host[::2]
    refused("x is not contiguous", lambda: comm.all_reduce(y))
    y.host = np.zeros(6, "datetime64[s]")
    refused("x has dtype datetime64", lambda: comm.all_reduce(y))
on(2, body)
""")


def test_tike_s_broadcast_sends_cupy_s_arrays():
    run("""
sys.path.insert(0, sys.argv[1] + "/stand_ins/gpu_cupy")
import cupy
from hocket.compat.tike_communicators import MPIComm
def body(comm):
    x = cupy.ndarray(np.arange(5.0) + comm.rank)
    y = MPIComm(comm).Bcast(x, root=1)
    driver.synchronize()
    assert (y is x) == (comm.rank == 1)
    assert np.array_equal(y.host, np.arange(5.0) + 1), y.host
on(2, body)
""")


def test_an_exchange_comes_after_the_work_on_each_of_its_arrays():
    run("""
import threading
def body(comm):
    peer, late = 1 - comm.rank, driver.stream()
    out = [Array(driver, np.full(3, comm.rank)), Array(driver, np.zeros(3), stream=late)]
    into = [Array(driver, np.zeros(3, "int64")), Array(driver, np.zeros(3), stream=late)]
    go = driver.fill_later(out[1].address, np.arange(3.0) + comm.rank, late)
    threading.Timer(0.2, go).start()
    comm.exchange([(x, peer) for x in out], [(x, peer) for x in into])
    driver.synchronize(1)
    assert np.array_equal(into[0].host, np.full(3, peer)), into[0].host
    assert np.array_equal(into[1].host, np.arange(3.0) + peer), into[1].host
on(2, body)
""")


def test_reductions_for_slow_networks_go_by_the_host():
    run("""
def body(comm):
    x = Array(driver, np.arange(3000, dtype="float32") + comm.rank)
    go = driver.fill_later(x.address, np.full(3000, 3 + comm.rank, "float32"), 1)
    go()
    assert comm.compressed_all_reduce(x) is x
    assert np.array_equal(x.host, np.full(3000, 7)), x.host
    y = Array(driver, np.arange(5.0) + comm.rank)
    assert comm.hierarchical_all_reduce(y, op="max") is y
    assert np.array_equal(y.host, np.arange(5.0) + 1)
    refused("float16, bfloat16", lambda: comm.compressed_all_reduce(Array(driver, np.ones(3, "int32"))))
    comm.barrier()
on(2, body)
""")


HOST_CALLS = """
def host_calls(comm, **how):
    x, out = Array(driver, np.arange(10.0) + comm.rank), Array(driver, np.zeros(5))
    yield lambda: comm.reproducible_sum(x, out=out, **how), lambda: (out.host == 2 * np.arange(10.0).reshape(2, 5).sum(0) + 2).all()
    y = Array(driver, np.full(3000, 3 + comm.rank, "float32"))
    yield lambda: comm.compressed_all_reduce(y), lambda: (y.host == 7).all()
    z = Array(driver, np.arange(5.0) + comm.rank)
    yield lambda: comm.hierarchical_all_reduce(z), lambda: (z.host == 2 * np.arange(5.0) + 1).all()
"""


def test_the_host_carries_calls_beside_a_pending_one():
    run(HOST_CALLS + """
def body(comm):
    got = np.zeros(3)
    work = comm.recv_async(got, 1 - comm.rank)
    for call, is_right in host_calls(comm):
        call()
        assert is_right()
    comm.send(np.arange(3.0) + comm.rank, 1 - comm.rank)
    work.wait()
    assert np.array_equal(got, np.arange(3.0) + 1 - comm.rank)
on(2, body)
""")


def test_a_call_that_the_host_cannot_carry_is_refused_for_all():
    run(HOST_CALLS + """
def body(comm):
    comm.deadline = 20
    x, out, stream = Array(driver, np.ones(10)), Array(driver, np.zeros(5)), driver.stream()
    mixed = comm.rank == 1
    refused("different kinds of memory", lambda: comm.reproducible_sum(x, out=np.zeros(5) if mixed else out))
    comm.barrier()  # captures forbid other threads to allocate
    with driver.captures() as captured:
        refused("no graph captures", lambda: comm.reproducible_sum(x, out=out, stream=captured if mixed else stream))
        comm.barrier()
    comm.barrier()
    for call, is_right in host_calls(comm):
        call()
        assert is_right()
on(2, body)
""")


def test_kinds_of_memory_do_not_mix():
    run("""
def body(comm):
    x = Array(driver, np.ones(5))
    refused("lies in a GPU's memory", lambda: comm.all_reduce(np.ones(5), out=x))
    class Sliced:
        __cuda_array_interface__ = {**x.__cuda_array_interface__, "strides": (16,), "shape": (3,)}
    refused("not contiguous", lambda: comm.all_reduce(Sliced()))
    refused("give out=", lambda: comm.all_gather(x))
    comm.all_reduce(x)
    driver.synchronize()
    assert np.array_equal(x.host, np.full(5, 2.0))
on(2, body)
""")


def test_what_works_on_the_host_alone_says_so():
    run("""
def body(comm):
    x = Array(driver, np.ones(5))
    only = x if comm.rank else np.ones(5)
    refused("CuPy, PyTorch or Numba", lambda: comm.argmin(x))
    refused("different kinds of memory" if comm.rank else "refused",
            lambda: comm.argmax(np.ones(5), index=only if comm.rank else np.arange(5)))
    refused("lies in a GPU's memory", lambda: comm.all_reduce(only, op=hocket.Operator(np.add)))
    refused("lies in a GPU's memory", lambda: comm.scan(only, op=hocket.Operator(np.add)))
    refused("lies in a GPU's memory", lambda: comm.scan_async(only, op=hocket.Operator(np.add)).wait())
    refused("lies in a GPU's memory", lambda: comm.prepare_scan(only, op=hocket.Operator(np.add))())
    class Sliced:
        __cuda_array_interface__ = {**x.__cuda_array_interface__, "strides": (16,), "shape": (3,)}
    refused("not contiguous", lambda: comm.send(Sliced(), comm.rank))
    refused("not contiguous", lambda: comm.recv(Sliced(), comm.rank))
    comm.all_reduce(x)
    driver.synchronize()
    assert np.array_equal(x.host, np.full(5, 2.0))
on(2, body)
""")


def test_all_forms():
    run("""
def body(comm):
    n, r = comm.size, comm.rank
    x = Array(driver, np.arange(2.0 * n) + r)
    y = Array(driver, np.zeros(2))
    comm.reduce_scatter(x, out=y)
    z = Array(driver, np.zeros(2 * n))
    comm.all_to_all(x, out=z)
    v = Array(driver, np.full(r + 1, r, "int64"))
    w = Array(driver, np.zeros(n * (n + 1) // 2, "int64"))
    comm.all_gather_v(v, out=w)
    comm.reduce(x, root=1)
    g = Array(driver, np.zeros((n, 2)))
    comm.gather(y, out=g, root=0)
    s = Array(driver, np.zeros(2))
    comm.scatter(g if r == 0 else None, out=s, root=0) if r == 0 else comm.scatter(None, out=s)
    driver.synchronize()
    part = n * np.arange(2.0 * r, 2.0 * r + 2) + n * (n - 1) / 2
    assert np.array_equal(y.host, part), (y.host, part)
    assert np.array_equal(s.host, part)
    assert np.array_equal(z.host.reshape(n, 2),
                          np.add.outer(np.arange(n), np.arange(2 * r, 2 * r + 2)))
    assert np.array_equal(w.host, np.repeat(np.arange(n), np.arange(n) + 1))
    if r == 1:
        assert np.array_equal(x.host, n * np.arange(2.0 * n) + n * (n - 1) / 2)
on(3, body)
""")


def test_who_calls_rebuild_is_not_waited_for_on_the_gpu():
    run("""
def body(comm):
    if comm.rank == 0:
        try:
            comm.all_reduce_async(Array(driver, np.ones(6))).synchronize(timeout=40)
            raise SystemExit("no error")
        except hocket.Aborted as error:
            assert "rank 1" in str(error) and "rebuild" in str(error), error
    comm = comm.rebuild(timeout=40)
    x = Array(driver, np.arange(6.0) + comm.rank)
    comm.all_reduce(x)
    driver.synchronize()
    assert comm.epoch == 1 and np.array_equal(x.host, 2 * np.arange(6.0) + 1), x.host
on(2, body)
""")


def test_rebuild_comes_behind_calls_that_nobody_waited_for():
    run("""
import time
def body(comm):
    for round in range(8):
        stream = driver.stream()
        x = Array(driver, np.full(1000, comm.rank + 1.0))
        go = driver.fill_later(x.address, np.full(1000, 10.0 * (comm.rank + 1)), stream)
        comm.all_reduce(x, stream=stream)
        if comm.rank == round % 2:
            go()
        else:  # its part comes when the other rank has long called rebuild()
            import threading
            threading.Timer(0.05, go).start()
        comm = comm.rebuild(timeout=40)
        driver.synchronize(stream)
        assert np.array_equal(x.host, np.full(1000, 30.0)), (comm.rank, round, x.host)
        driver.kept.append(x)
on(2, body)
""")


def test_a_refusal_of_what_others_have_on_their_streams_is_heard_of():
    run("""
def body(comm):
    x = Array(driver, np.ones(5))
    comm.all_reduce(x)
    driver.synchronize()
    if comm.rank == 0:
        refused("expected a rank", lambda: comm.broadcast(x, root=7))
    else:
        work = comm.broadcast_async(x, root=1)
        refused("rank 0 refused broadcast", lambda: work.synchronize(timeout=20))
    comm.all_reduce(x)  # a Work has told of it: the communicator goes on
    driver.synchronize()
    assert x.host[0] == 4
    if comm.rank == 0:
        refused("expected a rank", lambda: comm.broadcast(x, root=7))
    else:
        comm.broadcast(x, root=1)  # nobody but the next call can tell
    driver.synchronize()
    try:
        while True:
            comm.all_reduce(x)
    except hocket.Aborted as error:
        assert "rank 0 refused a call that others had put on their GPUs" in str(error), error
        assert "expected a rank from 0 to 1; every call on world ends here" in str(error), error
on(2, body)
""")


def test_threads_that_share_a_gpu_may_share_its_default_stream():
    """Nothing stands on it that waits for another rank; what would is refused."""
    run("""
def body(comm):
    driver.use(0)
    other = 1 - comm.rank
    x, y = Array(driver, np.full(5, 1.0 + comm.rank)), Array(driver, np.zeros(5))
    for _ in range(2):  # before, and behind, a collective
        comm.send_recv(x, other, y, other)
        driver.synchronize()
        assert (y.host == 2 - comm.rank).all(), y.host
        if comm.rank == 0:
            comm.send(x, 1)
            comm.recv(y, 1)
        else:
            comm.recv(y, 0)
            comm.send(y, 0)
        driver.synchronize()
        assert (y.host == 1).all(), y.host
        comm.all_reduce(x, out=y)
        assert comm.all_reduce_async(y).synchronize(timeout=20) is y
        driver.synchronize()
        assert (y.host == 6).all(), y.host
    refused("a stream of its own", lambda: comm.recv_async(y, other))
    comm.barrier()
on(2, body)
""")


def test_threads_whose_kernels_gpus_do_not_run_side_by_side_have_the_host_or_nothing():
    program = """
def body(comm):
    driver.use(0)
    x, stream = Array(driver, np.ones(5)), driver.stream()
    if WORDS:
        refused(WORDS, lambda: comm.all_reduce(x, stream=stream))
        return
    comm.all_reduce(x, stream=stream)
    driver.synchronize(stream)
    assert x.host[0] == 2
    with driver.captures() as captured:
        refused("cannot be captured", lambda: comm.all_reduce(x, stream=captured))
on(2, body)
"""
    many = {"FAKE_CUDA_MPS": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}
    run("WORDS = ''" + program, **many)
    run("WORDS = ''" + program, FAKE_CUDA_MPS="1")
    few = {"CUDA_DEVICE_MAX_CONNECTIONS": "2"}
    run("WORDS = ''" + program, **few)
    run("WORDS = 'CUDA_DEVICE_MAX_CONNECTIONS=4'" + program, HOCKET_ENGINES="peer", **few)
    run("WORDS = 'have ranks be processes there'" + program, HOCKET_ENGINES="peer", **many)


@pytest.mark.parametrize("settings", [{}, {"FAKE_CUDA_MPS": "1"}])
def test_threads_that_share_a_gpu_may_allocate_while_others_call(settings):
    """The driver allocates when all streams have ended, so that nothing may stand there meanwhile that
    waits for who allocates."""
    run("""
import time
kept = []  # to free waits, too
def body(comm):
    driver.use(0)
    stream = driver.stream()
    own = []
    kept.append(own)
    group = comm.split(comm.rank % 2)
    for number in range(6):
        if number % 2 == group.rank:
            time.sleep(0.1)  # the other has called
        arrays = [Array(driver, np.ones(10_000 << number)) for _ in range(2)]
        group.all_reduce(arrays[0], stream=stream)
        work = group.all_reduce_async(arrays[1], stream=stream)
        own.append(arrays + [work])
        token = Array(driver, np.full(3, float(number)))
        if number % 2 == group.rank:
            time.sleep(0.1)  # the other waits for the message
            kept.append(Array(driver, np.ones(10_000 << number)))
            group.send(token, 1 - group.rank, stream=stream)
        else:
            token.host[:] = -1
            group.recv(token, 1 - group.rank, stream=stream)
            driver.synchronize(stream)
            assert (token.host == number).all(), token.host
    driver.synchronize(stream)
    for *arrays, work in own:
        assert all((x.host == 2).all() for x in arrays)
    comm.barrier()
on(4, body)
""", FAKE_CUDA_STILL="1", CUDA_DEVICE_MAX_CONNECTIONS="32", HOCKET_DEADLINE="15", **settings)


@pytest.mark.skipif(not FAKE_PEER.exists(), reason="this build has no kernels for GPUs")
def test_a_group_of_threads_on_one_gpu_is_made_while_the_kernels_of_another_wait():
    """The driver allocates when all streams have ended, and blocks launches meanwhile. A rank
    that has launched would wait for a rank that cannot.
    """
    run("""
def body(comm):
    driver.use(0)
    stream = driver.stream()
    x, y = Array(driver, np.ones(20_000)), Array(driver, np.ones(20_000))
    group = comm.split(comm.rank % 2)
    group.all_reduce(x, out=y, stream=stream)
    driver.synchronize(stream)
    comm.barrier()
    for number in range(300):
        if comm.rank % 2:
            group.all_reduce(x, out=y, stream=stream)
        elif number % 20 == 0:
            with group.duplicate() as other:
                other.all_reduce(x, out=y, stream=stream)
                driver.synchronize(stream)
        if number % 60 == 0:
            comm.barrier()
    driver.synchronize(stream)
    assert (y.host == 2).all()
    comm.barrier()
on(4, body)
""", LD_LIBRARY_PATH=str(FAKE_PEER), HOCKET_ENGINES="peer", FAKE_CUDA_STILL="1", FAKE_CUDA_BLOCKS="16",
        CUDA_DEVICE_MAX_CONNECTIONS="32", HOCKET_DEADLINE="20",
        GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384")  # that driver has hocket's sources, too


def test_a_call_on_a_shared_gpu_goes_on_when_its_stream_does():
    """No wake-up comes then: a call that slept until its deadline of an hour would not end here."""
    run("""
import threading
def body(comm):
    driver.use(0)
    stream = driver.stream()
    for _ in range(5):
        x, y = Array(driver, np.zeros(5)), Array(driver, np.zeros(5))
        threading.Timer(0.1, driver.fill_later(x.address, np.full(5, 1.0 + comm.rank), stream)).start()
        comm.all_reduce(x, out=y, stream=stream)
        comm.send_recv(x, 1 - comm.rank, x, 1 - comm.rank, stream=stream)
        driver.synchronize(stream)
        assert (y.host == 3).all() and (x.host == 2 - comm.rank).all(), (x.host, y.host)
on(2, body)
""", HOCKET_DEADLINE="3600")


def test_what_a_rank_refuses_on_a_shared_gpu_all_hear():
    run("""
def body(comm):
    driver.use(0)
    x = Array(driver, np.ones(5))
    for call in (comm.broadcast, comm.broadcast_async):
        for culprit in (0, 1):
            refused("expected a rank from 0 to 1", lambda: call(x, root=7 if comm.rank == culprit else 0))
    try:
        comm.all_reduce(x if comm.rank else Array(driver, np.ones(6)))
    except hocket.Mismatch as error:
        assert "5" in str(error) and "6" in str(error), error
        return
    raise AssertionError("no error")
on(2, body)
""")


def test_who_does_not_come_to_a_shared_gpu_is_named():
    run("""
import time
def body(comm):
    driver.use(0)
    x, stream = Array(driver, np.ones(5)), driver.stream()
    comm.all_reduce(x, stream=stream)
    comm.barrier()
    if comm.rank == 1:
        time.sleep(3)
    try:
        comm.all_reduce(x, stream=stream, **({"deadline": 1} if comm.rank == 0 else {}))
        comm.barrier()
    except hocket.DeadlineExceeded as error:
        assert "rank 1" in str(error) and "1 s" in str(error), error
    else:
        raise AssertionError("no error")
    driver.synchronize(stream)
on(2, body)
""")


def test_a_prepared_call_keeps_its_stream():
    run("""
import weakref
class Stream:
    def __init__(self):
        self.ptr = driver.stream()
def body(comm):
    x, stream = Array(driver, np.ones(5)), Stream()
    call = comm.prepare_all_reduce(x, stream=stream)
    there = weakref.ref(stream)
    del stream
    assert there() is not None
    call()
    driver.synchronize(there().ptr)
    assert x.host[0] == 2
    del call
    assert there() is None
on(2, body)
""")


def test_who_frees_alone_is_named():
    run("""
def body(comm):
    array = comm.symmetric.empty(4, "float32", memory="cuda")
    try:
        if comm.rank == 0:
            comm.symmetric.free(array)
        else:
            comm.all_reduce(Array(driver, np.ones(5)))
        comm.barrier()
    except hocket.Mismatch as error:
        assert "rank 0 called symmetric.free #" in str(error), error
        assert "sum float64[5] on GPUs" in str(error), error
    else:
        raise AssertionError("no error")
on(2, body)
""")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_extremes_in_the_order_of_the_stream(ranks):
    run("""
sys.path.insert(0, sys.argv[1] + "/stand_ins/gpu_cupy")
import threading
import cupy
def check(found, least, rank, place):
    assert np.array_equal(found[0].host, least), found[0].host
    assert found[1].host.dtype == np.int32 and (found[1].host == rank).all(), found[1].host
    assert np.array_equal(found[2].host, place), found[2].host
def body(comm):
    last = comm.size - 1
    x = cupy.ndarray(np.zeros(6))
    index = cupy.ndarray(np.arange(6) + 100 * comm.rank)
    stream = cupy.stream_on(comm.rank)
    with stream:
        go = driver.fill_later(x.address, np.arange(6.0) - comm.rank, stream.ptr)
        if comm.size > 1:  # of one process: the calls wait for the stream
            threading.Timer(0.2, go).start()
        found = comm.argmin(x, index=index)
        work = comm.argmax_async(x, index=index)
        if comm.size == 1:  # they have returned before their arrays are written
            assert not work.test()
            go()
        after = cupy.ndarray(np.ones(3))
        comm.all_reduce(after)
        stream.synchronize()
        check(found, np.arange(6.0) - last, last, np.arange(6) + 100 * last)
        check(work.synchronize(timeout=20), np.arange(6.0), 0, np.arange(6))
        assert (after.host == comm.size).all()
        prepared = comm.prepare_argmin(x, index=index)
        for step in (1, 2):
            x.host[:] = step * comm.rank
            found = prepared()
            stream.synchronize()
            check(found, np.zeros(6), 0, np.arange(6))
        check(prepared.start().synchronize(timeout=20), np.zeros(6), 0, np.arange(6))
        value, rank = comm.argmax(x)
        stream.synchronize()
        assert (value.host == 2 * last).all() and (rank.host == last).all()
    own = driver.stream()
    prepared = comm.prepare_argmin(x, stream=own)
    with driver.graph(own):
        refused("no graph captures", prepared)
    found = comm.all_reduce(np.ones(2))
    assert (found == comm.size).all()
on(RANKS, body)
""".replace("RANKS", str(ranks)))


def test_a_stream_is_marked_while_a_step_of_another_call_wants_the_gil():
    """Python combines in hocket's own thread, which is in the communicator meanwhile."""
    run("""
import faulthandler, time
faulthandler.dump_traceback_later(40, exit=True)
def add(a, b):
    time.sleep(0.002)
    return a + b
op = hocket.Operator(add, dtype="float64")
def body(comm):
    x, other = Array(driver, np.full(6, comm.rank + 5.0)), driver.stream()
    for _ in range(10):
        works = [comm.all_reduce_async(np.full(3, comm.rank + 1.0), op=op) for _ in range(10)]
        for _ in range(30):
            comm.broadcast(x, stream=other)
        for work in works:
            assert np.array_equal(work.wait(), np.full(3, 3.0))
    driver.synchronize(other)
    assert np.array_equal(x.host, np.full(6, 5.0))
on(2, body)
""")
