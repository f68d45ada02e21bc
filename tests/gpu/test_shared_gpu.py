"""Ranks that share a GPU, as on a machine that has one: run by tools/check/gpu_check.sh."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import numpy as np
import pytest
import torch_ranks
from gpu_packages import count_gpus

import hocket

cupy = pytest.importorskip("cupy")


pytestmark = pytest.mark.skipif(count_gpus("cupy") < 1, reason="there is no GPU")


def values(rank, count):
    return np.random.default_rng([rank, count]).integers(0, 1000, count).astype("float32")


def check_all_reduce(comm, count, call):
    """Makes `call(x, out)` twice, as a graph that it was captured into may be replayed."""
    expected = sum(values(q, count) for q in range(comm.size))
    x, out = cupy.asarray(values(comm.rank, count)), cupy.full(count, np.nan, "float32")
    for _ in range(2):
        call(x, out)
        assert np.array_equal(out.get(), expected), (comm.rank, count)
        out.fill(np.nan)


def take_turns(comm):
    """Processes, whose kernels run one process at a time."""
    cupy.cuda.Device(0).use()
    for count in (1, 3001, 1 << 20):
        check_all_reduce(comm, count, comm.all_reduce)
        shares = cupy.full((comm.size, count), np.nan, "float32")
        comm.all_gather(cupy.asarray(values(comm.rank, count)), shares)
        assert np.array_equal(shares.get(), [values(q, count) for q in range(comm.size)])
    stream = cupy.cuda.Stream(non_blocking=True)
    made = {}

    def play(x, out):
        if not made:
            made["eager"] = comm.prepare_all_reduce(x, out=out, stream=stream)
            made["eager"]()
            stream.synchronize()
            stream.begin_capture()
            made["eager"]()
            made["graph"] = stream.end_capture()
            out.fill(np.nan)
            cupy.cuda.Device().synchronize()
        made["graph"].launch(stream)
        stream.synchronize()

    check_all_reduce(comm, 5000, play)
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    got = cupy.full(2000, np.nan, "float32")
    comm.send_recv(cupy.asarray(values(comm.rank, 2000)), to, got, source)
    assert np.array_equal(got.get(), values(source, 2000))
    return True


@pytest.mark.parametrize("n", [2, 3])
def test_processes_that_share_a_gpu_take_turns(n):
    assert hocket.spawn(take_turns, n) == [True] * n


def use_symmetric(comm):
    """The host carries them, on copies that no peer reaches."""
    cupy.cuda.Device(0).use()
    n, rank = comm.size, comm.rank
    for count in (1, 1000, 300_000):
        array = comm.symmetric.empty(n * count, "float32", memory="cuda")
        x = cupy.from_dlpack(array)
        x[:] = cupy.asarray(values(rank, n * count))
        comm.all_reduce(array)
        assert np.array_equal(x.get(), sum(values(q, n * count) for q in range(n))), (rank, count)
        x[:] = cupy.asarray(values(rank, n * count))
        comm.broadcast(array, root=1)
        assert np.array_equal(x.get(), values(1, n * count)), (rank, count)
        other = comm.symmetric.empty(n * count, "float32", memory="cuda")
        y = cupy.from_dlpack(other)
        comm.all_to_all(array, out=other)
        share = values(1, n * count)[rank * count:][:count]
        assert np.array_equal(y.get(), np.tile(share, n)), (rank, count)
        comm.all_gather(cupy.asarray(values(rank, count)), out=other)
        assert np.array_equal(y.get(), np.concatenate([values(q, count) for q in range(n)])), count
    comm = comm.rebuild(timeout=30)
    check_all_reduce(comm, 3001, comm.all_reduce)
    return True


@pytest.mark.parametrize("n", [2, 3])
def test_processes_that_share_a_gpu_have_symmetric_memory(n):
    assert hocket.spawn(use_symmetric, n) == [True] * n


def wait_for_nothing(comm):
    """More calls, and more work between them, than a stream's queue holds."""
    cupy.cuda.Device(0).use()
    comm.deadline = 60
    x, y = cupy.full(1000, comm.rank, "float32"), cupy.zeros(1000, "float32")
    for _ in range(2000):
        comm.all_reduce(x, op="max")
    assert np.array_equal(x.get(), np.full(1000, comm.size - 1)), comm.rank
    if comm.rank == 1:
        time.sleep(1)
    for _ in range(4):
        comm.all_reduce(x, op="min")
        for _ in range(3000):
            y += 1
    assert np.array_equal(y.get(), np.full(1000, 12000)), comm.rank
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for _ in range(1000):
        comm.send_recv(x, to, y, source)
    assert np.array_equal(y.get(), np.full(1000, comm.size - 1)), comm.rank
    return True


def test_processes_that_share_a_gpu_need_not_wait():
    assert hocket.spawn(wait_for_nothing, 2) == [True] * 2


def run_children(program, n=2):
    """Runs each rank in a process of multiprocessing. Returns exit codes and standard errors."""
    code = """
import multiprocessing, os, signal, sys
import cupy, hocket
kept = []  # so that nothing waits for the GPU as it is freed
def main(rank, n):
    cupy.cuda.Device(0).use()
    comm = hocket.init(rank=rank, size=n, address=os.environ["MEET"])
    x = cupy.full(100_000, rank + 1, "float32")
    comm.all_reduce(x, op="min")
    comm.barrier()
    cupy.cuda.Device().synchronize()
    kept.extend([comm, x])
    run(comm, x)
if __name__ == "__main__":
    context = multiprocessing.get_context("METHOD")
    ranks = [context.Process(target=main, args=(r, COUNT)) for r in range(COUNT)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    print([process.exitcode for process in ranks])
""".replace("COUNT", str(n))
    environment = os.environ | {"MEET": f"unix:{uuid.uuid4()}", "HOCKET_DEADLINE": "30"}
    for method in ("spawn", "fork"):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(code.replace("METHOD", method).replace("def main", program + "def main"))
            file.flush()
            environment["MEET"] += method
            done = subprocess.run([sys.executable, file.name], env=environment, timeout=200,
                                  capture_output=True, text=True)
        yield done.stdout.strip(), done.stderr


def test_children_that_share_a_gpu_end_after_their_calls():
    for codes, said in run_children("""
def run(comm, x):
    for _ in range(20):
        comm.reduce(x, root=0)
        comm.broadcast(x, root=0)
    comm.reduce(x, root=0)
    if comm.rank == 0:
        assert float(x.min()) == float(x.max()) == 2**21, x
"""):
        assert codes == "[0, 0]", said


def test_a_last_call_that_fails_ends_a_child_with_an_error():
    for codes, said in run_children("""
def run(comm, x):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(x)
"""):
        # By the call, where the death was known before it, else by the end of the process.
        assert codes == "[1, -9]" and "was killed by signal 9" in said, (codes, said)


def leave_room():
    """Large arrays in two groups at once: all their kernels have to fit beside each other."""
    n, count = 8, 4 << 20
    barrier = threading.Barrier(n)

    def rank(comm):
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
            group = comm.split(comm.rank % 2)
            x = cupy.asarray(values(group.rank, count))
            out = cupy.full(count, np.nan, "float32")
            stream.synchronize()
            barrier.wait(60)  # no rank allocates beside a kernel that waits
            for _ in range(5):
                group.all_reduce(x, out)
                group.broadcast(x, root=1)  # from here on all add the same
            stream.synchronize()
            barrier.wait(60)
            assert np.array_equal(x.get(), values(1, count))
            assert np.array_equal(out.get(), group.size * values(1, count))
            barrier.wait(60)

    hocket.run_threads(rank, n)


def run_alone(call, **settings):
    """Runs in a process with that environment and one GPU; returns its standard error."""
    environment = os.environ | settings | {"CUDA_VISIBLE_DEVICES": "0", "HOCKET_DEADLINE": "20"}
    code = f"import sys; sys.path[:0] = {[os.path.dirname(__file__), *sys.path]!r}\n"
    code += f"import test_shared_gpu; test_shared_gpu.{call}()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=100,
                          capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def has_mps():
    """Returns true if NVIDIA's MPS runs here (cudaDevAttrMpsEnabled)."""
    try:
        return cupy.cuda.runtime.deviceGetAttribute(133, 0) != 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


@pytest.mark.parametrize("engine", ["peer", "local"])
def test_threads_that_share_a_gpu_leave_each_other_room(engine):
    said = run_alone("leave_room", CUDA_DEVICE_MAX_CONNECTIONS="32", HOCKET_ENGINES=engine)
    if engine == "peer" and has_mps():
        assert "InvalidArgument: threads share a GPU under NVIDIA's MPS" in said, said
    else:
        assert said == ""


def load_programs():
    """One thread compiles and loads kernels, and allocates, while the other's call waits for it."""
    source = "extern \"C\" __global__ void add(float* x) { x[threadIdx.x] += %d; }"

    def rank(comm):
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
            x, kept = cupy.ones(32, "float32"), []
            comm.all_reduce(x)
            stream.synchronize()
            comm.barrier()
            for number in range(20):
                if number % 2 == comm.rank:
                    time.sleep(0.02)  # the other has called
                    kernel = cupy.RawKernel(source % (number + 1), "add")
                    kernel.compile()  # loads it
                    kept.append(cupy.cuda.runtime.malloc(1 << 20))
                    kernel((1,), (32,), (x,))
                if number % 4 == 1:
                    (comm.send if number % 2 == comm.rank else comm.recv)(x, 1 - comm.rank)
                elif number % 3 == 0:
                    comm.broadcast_async(x, root=number % 2)
                else:
                    comm.broadcast(x, root=number % 2)
            comm.all_reduce(x)
            stream.synchronize()
            expected = 2 * (2 + sum(range(1, 21)))
            assert (x.get() == expected).all(), (comm.rank, x.get(), expected)
            comm.barrier()
            for memory in kept:
                cupy.cuda.runtime.free(memory)

    hocket.run_threads(rank, 2)


def refuse_and_differ():
    """Both ranks hear of one rank's refusal, and a call that differs ends both."""
    def rank(comm):
        with cupy.cuda.Device(0):  # on the default stream, which the two share
            x = cupy.ones(1000, "float32")
            for number in range(20):
                root = 7 if number % 2 == comm.rank else 0
                with pytest.raises(hocket.InvalidArgument):
                    comm.broadcast(x, root=root)
                comm.all_reduce(x, op="max")
            assert (x.get() == 1).all()
            with pytest.raises(hocket.Mismatch):
                comm.all_reduce(x[: 1000 - comm.rank])

    hocket.run_threads(rank, 2)


def test_a_rank_s_refusal_on_a_shared_gpu_is_every_rank_s():
    assert run_alone("refuse_and_differ") == ""


@pytest.mark.parametrize("engines", ["", "local"])
def test_a_thread_may_load_programs_while_another_s_call_waits(engines):
    assert run_alone("load_programs", **({"HOCKET_ENGINES": engines} if engines else {})) == ""


def load_beside_calls():
    """A thread that is no rank loads kernels and allocates while two others call."""
    source = "extern \"C\" __global__ void add(float* x) { x[threadIdx.x] += %d; }"
    ended = threading.Event()

    def load():
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
            x, number = cupy.zeros(32, "float32"), 0
            while not ended.is_set():
                number += 1
                kernel = cupy.RawKernel(source % number, "add")
                kernel.compile()
                kernel((1,), (32,), (x,))
                cupy.cuda.runtime.free(cupy.cuda.runtime.malloc(1 << 20))
            stream.synchronize()
            print("loaded", number)

    def rank(comm):
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
            x = cupy.ones(1000, "float32")
            for _ in range(2000):
                comm.all_reduce(x, op="max")
            stream.synchronize()
            assert (x.get() == 1).all()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        hocket.run_threads(rank, 2)
    finally:
        ended.set()
        thread.join()


def test_a_thread_that_is_no_rank_may_load_programs_beside_calls():
    assert run_alone("load_beside_calls") == ""


def test_more_threads_than_a_gpu_serves_are_refused():
    assert run_alone("leave_room", CUDA_DEVICE_MAX_CONNECTIONS="8") == ""  # by the host
    if has_mps():
        pytest.skip("under NVIDIA's MPS threads have no peer at all")
    said = run_alone("leave_room", CUDA_DEVICE_MAX_CONNECTIONS="8", HOCKET_ENGINES="peer")
    assert "InvalidArgument: 8 ranks" in said and "CUDA_DEVICE_MAX_CONNECTIONS=16" in said, said


def test_pytorch_splits_a_group_that_is_bound_to_a_gpu(tmp_path, monkeypatch):
    """On one GPU, with whichever PyTorch there is."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no GPU")
    monkeypatch.setenv("HOCKET_TEST_DEVICE", "cuda")
    torch_ranks.run("torch_programs.py", "split_off", 1, tmp_path, "hocket")
