"""Symmetric memory from NVSHMEM's heap on real GPUs, a process each; with a user's own kernels.

``HOCKET_TEST_NVSHMEM_KERNELS``: a built nvshmem_kernels.cu, where there is no nvcc to build it.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gpu_packages import count_gpus

import hocket

HERE = Path(__file__).parent


def find_nvshmem():
    """The folder of Python's package, as hocket finds the library there."""
    folders = [Path(entry) / "nvidia" / "nvshmem" for entry in sys.path]
    return next((f for f in folders if (f / "lib" / "libnvshmem_host.so.3").exists()), None)


GPUS = count_gpus("torch")
NVSHMEM = find_nvshmem()
pytestmark = [
    pytest.mark.skipif(GPUS < 2, reason=f"two GPUs are wanted, and there are {GPUS}"),
    pytest.mark.skipif(NVSHMEM is None, reason="there is no package nvidia-nvshmem-cu12 or cu13"),
]
RANKS = [n for n in (2, 4) if n <= GPUS]


def use_gpu(comm):
    import cupy
    import torch

    cupy.cuda.Device(comm.rank).use()
    torch.cuda.set_device(comm.rank)
    return cupy, torch


def empty(comm, shape, dtype="int32"):
    return comm.symmetric.empty(shape, dtype, heap="nvshmem")


def is_used(comm, engines):
    cupy, torch = use_gpu(comm)
    n, r = comm.size, comm.rank
    before = time.monotonic()
    a = empty(comm, (n, 1000))
    first = time.monotonic() - before
    x, t = cupy.asarray(a), torch.as_tensor(a, device=f"cuda:{r}")
    assert x.data.ptr == t.data_ptr() == a.data_ptr and not x.any()
    t.copy_(torch.arange(n * 1000, device="cuda").reshape(n, 1000) + 10_000 * r)
    torch.cuda.synchronize()
    comm.barrier()
    for other in range(n):
        theirs = cupy.from_dlpack(comm.symmetric.peer(x, other))
        expected = np.arange(n * 1000).reshape(n, 1000) + 10_000 * other
        assert np.array_equal(cupy.asnumpy(theirs), expected), (other, theirs)
    comm.barrier()
    mine = comm.symmetric.empty(1000, "int32", memory="cuda")
    for array in (x[0], mine):  # of either heap
        cupy.from_dlpack(comm.symmetric.peer(array, (r + 1) % n))[...] = -r
        torch.from_dlpack(comm.symmetric.peer(array, (r + 1) % n))[7] = 1000 + r
        torch.cuda.synchronize()
        comm.barrier()
        expected = np.full(1000, -((r - 1) % n))
        expected[7] = 1000 + (r - 1) % n
        assert np.array_equal(cupy.asnumpy(cupy.from_dlpack(array)), expected), (array, expected)
        comm.barrier()
    for count in (1, 1000, 300_000, 5_000_000):
        y = cupy.asarray(empty(comm, (n, count)))
        z = cupy.arange(count, dtype="int32") % 1000 + 1000 * r
        comm.all_gather(z, out=y)
        mine = [np.arange(count) % 1000 + 1000 * q for q in range(n)]
        assert np.array_equal(cupy.asnumpy(y), np.stack(mine)), (count, "all_gather")
        comm.all_reduce(z, out=y[0])
        assert np.array_equal(cupy.asnumpy(y[0]), sum(mine)), (count, "all_reduce")
        comm.broadcast(y[1], root=1)
        assert np.array_equal(cupy.asnumpy(y[1]), mine[1]), (count, "broadcast")
        comm.barrier()
    before = time.monotonic()
    b = empty(comm, 1000)
    later = time.monotonic() - before
    comm.symmetric.free(b)
    with pytest.raises(hocket.InvalidArgument, match="not symmetric"):
        comm.symmetric.peer(b, 0)
    with pytest.raises(hocket.InvalidArgument, match="has .* free"):
        empty(comm, 1 << 40, "uint8")
    return first, later


@pytest.mark.parametrize("engines", ["peer", "nccl"])
@pytest.mark.parametrize("n", RANKS)
def test_arrays_peers_and_collectives(n, engines, monkeypatch):
    monkeypatch.setenv("HOCKET_ENGINES", engines)
    first, later = max(hocket.spawn(is_used, n, engines))
    print(f"{n} ranks: the first array after {first:.2f} s, another after {later * 1e6:.0f} us")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    built = os.environ.get("HOCKET_TEST_NVSHMEM_KERNELS")
    if built:
        return built
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc to build a user's kernels with")
    library = tmp_path_factory.mktemp("kernels") / "libkernels.so"
    command = [nvcc, "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-rdc=true", "-arch=native",
               f"-I{NVSHMEM}/include", str(HERE / "nvshmem_kernels.cu"), "-o", str(library),
               f"{NVSHMEM}/lib/libnvshmem_device.a",
               f"-Xlinker={NVSHMEM}/lib/libnvshmem_host.so.3", f"-Xlinker=-rpath={NVSHMEM}/lib"]
    subprocess.run(command, check=True)
    return str(library)


def with_kernels(comm, path):
    cupy, _ = use_gpu(comm)
    a, b = cupy.asarray(empty(comm, 5000)), cupy.asarray(empty(comm, 5000))
    word = cupy.asarray(empty(comm, 1, "uint64"))
    user = ctypes.CDLL(path)
    assert user.attach() == 0
    groups = [comm] if comm.size < 4 else [comm, comm.split(comm.rank % 2), comm.split(0, -comm.rank)]
    for turn, group in enumerate(groups, start=1):
        team = group.symmetric.nvshmem_team()
        before = (group.rank - 1) % group.size
        a[...] = cupy.arange(5000, dtype="int32") + 10_000 * group.rank + turn
        cupy.cuda.Device().synchronize()
        group.barrier()
        assert user.put(ctypes.c_void_p(b.data.ptr), ctypes.c_void_p(a.data.ptr), 5000,
                        ctypes.c_void_p(word.data.ptr), ctypes.c_uint64(turn), team) == 0
        assert np.array_equal(cupy.asnumpy(b), np.arange(5000) + 10_000 * before + turn), turn
        group.barrier()
        assert user.store(ctypes.c_void_p(a.data.ptr), 5000, team) == 0
        group.barrier()
        assert np.array_equal(cupy.asnumpy(a), np.arange(5000) + 100 * before), turn
        comm.all_reduce(a)  # between kernels of the user's
        assert int(a[1]) == sum(100 * g for g in range(group.size)) * comm.size // group.size + comm.size
        comm.barrier()
    return team


@pytest.mark.parametrize("n", RANKS)
def test_a_user_s_kernels_with_nvshmem_s_functions(n, kernels):
    teams = hocket.spawn(with_kernels, n, kernels)
    assert len(set(teams)) == 1 and (teams[0] == 0) == (n < 4)


def loses_one(comm, out):
    cupy, _ = use_gpu(comm)
    a = cupy.asarray(empty(comm, 1000))
    comm.all_reduce(a)
    cupy.cuda.Device().synchronize()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(hocket.PeerDied) as error:
        empty(comm, 1000)
    comm = comm.rebuild(timeout=60)
    with pytest.raises(hocket.InvalidArgument) as refused:
        empty(comm, 1000)
    b = cupy.asarray(comm.symmetric.empty(1000, "int32", memory="cuda"))
    b[...] = comm.rank + 1
    comm.all_reduce(b)
    assert (cupy.asnumpy(b) == comm.size * (comm.size + 1) // 2).all()
    Path(out, str(comm.rank)).write_text(f"{error.value.rank} {refused.value}")


def test_after_a_death_hocket_s_own_memory_goes_on(tmp_path):
    n = RANKS[-1]
    program = f"import sys, hocket; sys.path.insert(0, {str(HERE)!r}); import test_nvshmem\n"
    program += f"with hocket.init() as comm: test_nvshmem.loses_one(comm, {str(tmp_path)!r})"
    command = ["hocket", "run", "--keep-going", "-n", str(n), "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    for rank in range(n - 1):
        told = tmp_path / str(rank)
        assert told.exists(), done.stderr
        assert told.read_text().startswith("1 ") and "NVSHMEM runs in rank" in told.read_text()
