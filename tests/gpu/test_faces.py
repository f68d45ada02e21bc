"""The faces on arrays of CuPy and PyTorch on real GPUs: run by tools/check/gpu_check.sh."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch_ranks
from gpu_packages import count_gpus
from processes import free_port, outputs_of, run_job, start, with_package

HERE = Path(__file__).parent



GPUS = count_gpus("torch")
# "cpu": the programs of PyTorch and Bagua run on CPU tensors, without GPUs, to try them.
DEVICE = os.environ.get("HOCKET_TEST_DEVICE", "cuda")
pytestmark = pytest.mark.skipif(
    GPUS < 2 and DEVICE == "cuda", reason=f"two GPUs are wanted, and there are {GPUS}"
)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("HOCKET_TEST_DEVICE", DEVICE)
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")  # no NVLink multicast
    monkeypatch.setenv("HOCKET_DEADLINE", "30")


CUPY = """
import os, sys, cupy, cupy.testing
from cupyx.scipy import sparse
from hocket.compat.cupyx_distributed import NCCLBackend

rank = int(os.environ["HOCKET_RANK"])
cupy.cuda.Device(rank).use()
face = NCCLBackend(2, rank, port=int(sys.argv[1]))
z = cupy.zeros(5) + rank  # messages may be the first calls
if rank == 0:
    face.send(z + 7, 1)
else:
    face.recv(z, 0)
    assert (z == 7).all()
for dtype in "bBiIlLqQefdFD":
    x = (cupy.arange(1000) % 7 + rank).astype(dtype)
    out = cupy.zeros_like(x)
    face.all_reduce(x, out)
    cupy.testing.assert_array_equal(out, (2 * (cupy.arange(1000) % 7) + 1).astype(dtype))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        y = (cupy.arange(1000) % 5 + rank).astype(dtype)
        table = cupy.zeros((2, 1000), dtype)
        face.all_gather(y, table, 1000)
        stream.synchronize()
        theirs = (cupy.arange(1000) % 5 + 1 - rank).astype(dtype)
        cupy.testing.assert_array_equal(table[1 - rank], theirs)
for form in ("csr", "csc", "coo"):
    def make(r):
        dense = cupy.arange(20, dtype="d").reshape(4, 5) % (r + 3)
        return getattr(sparse, form + "_matrix")(sparse.csr_matrix(dense))
    empty = getattr(sparse, form + "_matrix")((1, 1), dtype="f")
    face.all_reduce(make(rank), empty)
    cupy.testing.assert_array_equal(empty.toarray(), make(0).toarray() + make(1).toarray())
    outs = []
    face.all_gather(make(rank), outs, 0)
    face.all_to_all([make(rank), make(rank + 1)], outs)
    for got, want in zip(outs, [make(0), make(1), make(rank), make(rank + 1)]):
        assert got.format == form
        cupy.testing.assert_array_equal(got.toarray(), want.toarray())
face.barrier()
"""


def test_cupyx_with_cupy(tmp_path):
    pytest.importorskip("cupy")
    program = tmp_path / "program.py"
    program.write_text(CUPY)
    job = run_job(2, program, free_port(), timeout=150)
    assert job.returncode == 0, job.stdout


def by_hand(name):
    """The outputs of two processes that find each other by a port, and how they ended."""
    port = free_port()
    jobs = [start(HERE / "cupyx_on_gpus.py", name, rank, port) for rank in range(2)]
    outputs = outputs_of(jobs, timeout=100)
    return [(output, job.returncode) for output, job in zip(outputs, jobs)]


def require_cupy():
    if DEVICE == "cuda":
        pytest.importorskip("cupy")


DISTRIBUTED_ARRAY = """
import hocket.compat
hocket.compat.install("cupyx.distributed")
import cupy
import cupyx.distributed
from cupyx.distributed.array import distributed_array
assert cupyx.distributed.NCCLBackend.__module__.startswith("hocket.compat.")
n = min(cupy.cuda.runtime.getDeviceCount(), 2)
wanted = cupy.arange(12, dtype="float32").reshape(4, 3)
spread = distributed_array(wanted, {i: slice(i * 4 // n, (i + 1) * 4 // n) for i in range(n)})
assert (spread.get() == wanted.get()).all() and ((spread + spread).get() == 2 * wanted.get()).all()
print("done")
"""


def test_cupyx_s_distributed_array_is_the_original_s():
    require_cupy()
    job = subprocess.run([sys.executable, "-c", DISTRIBUTED_ARRAY], capture_output=True, text=True,
                         env=with_package(), timeout=100)
    assert job.stdout.split() == ["done"], job.stdout + job.stderr


def test_cupyx_every_call_dtype_op_and_root():
    require_cupy()
    for output, code in by_hand("every_call"):
        assert code == 0, output


def test_cupyx_names_who_died():
    require_cupy()
    (survivor, code), (_, killed) = by_hand("dead_peer")
    assert code == 0 and survivor == "rank 1 died\n", survivor
    assert killed == -9


def test_cupyx_meets_by_mpi():
    require_cupy()
    pytest.importorskip("mpi4py")
    if shutil.which("mpiexec") is None:
        pytest.skip("mpiexec is not there")
    program = HERE / "cupyx_on_gpus.py"
    environment = with_package(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                               OMPI_MCA_rmaps_base_oversubscribe="1")
    job = subprocess.run(
        ["mpiexec", "-n", "2", sys.executable, str(program), "by_mpi"],
        env=environment, capture_output=True, text=True, timeout=100,
    )
    assert job.stdout.split() == ["met", "met"], job.stdout + job.stderr


@pytest.mark.parametrize("package", ["cupy" if DEVICE == "cuda" else "numpy", "torch"])
def test_nvmath(package):
    pytest.importorskip(package)
    job = run_job(2, HERE / "nvmath_on_gpus.py", package, timeout=150)
    assert job.returncode == 0 and sorted(job.stdout.split("\n")) == ["", "[0] done", "[1] done"], job.stdout


def ranks(program, names, folder, *backend):
    """A job of two PyTorch processes on GPUs of their own."""
    return torch_ranks.run(program, names, 2, folder, *backend)


EVERYTHING = "cpu:hocket,cuda:hocket"


@pytest.mark.parametrize(
    "names",
    ["movement,layouts,asynchronous,groups", "reductions,coalesced,premultiplied", "sparse,split_off"],
)
def test_pytorch_s_calls_on_cuda_tensors(names, tmp_path):
    ranks("torch_programs.py", names, tmp_path, EVERYTHING)


def test_pytorch_s_messages_streams_and_groups(tmp_path):
    ranks(HERE / "torch_on_gpus.py", "batches,a_group_s_streams", tmp_path, EVERYTHING)


needs_gpus = pytest.mark.skipif(DEVICE != "cuda", reason="streams are the GPUs'")


@needs_gpus
@pytest.mark.parametrize(
    "name",
    [
        "waits_order_streams",
        "handles_are_honest",
        "backward_goes_on_beside_calls",
        "memory_is_kept",
        "graphs",
        "a_barrier_comes_after_async_calls",
        "split_and_monitored",
    ],
)
def test_pytorch_s_calls_on_the_group_s_stream(name, tmp_path):
    for output in ranks(HERE / "torch_on_gpus.py", name, tmp_path, EVERYTHING):
        print(output)


@needs_gpus
def test_pytorch_s_end_raises_what_the_last_call_found(tmp_path):
    outputs = ranks(HERE / "torch_on_gpus.py", "the_last_call_fails", tmp_path, EVERYTHING)
    assert outputs == ["raised Mismatch\n"] * 2


def test_training_goes_as_with_nccl(tmp_path):
    ranks(HERE / "torch_on_gpus.py", "training", tmp_path, "hocket")


@needs_gpus
def test_communication_hooks_train_as_with_nccl(tmp_path):
    program = HERE.parent / "python" / "support" / "torch_hooks.py"
    ours, theirs = (ranks(program, "many_buckets", tmp_path, backend)[0] for backend in ("hocket", "nccl"))
    for mine, wanted in zip(ours.splitlines(), theirs.splitlines()):
        (name, *mine), (same, *wanted) = mine.split(), wanted.split()
        assert name == same and (mine == wanted or [*map(float, mine)] == pytest.approx(
            [*map(float, wanted)], rel=1e-3
        )), name


def test_bagua_on_cuda_tensors(tmp_path):
    names = "the_documented,reductions,movement,parts,refusals,registered,aborts"
    ranks("bagua_programs.py", names, tmp_path)


def test_bagua_s_groups_and_objects(tmp_path):
    ranks(HERE / "torch_on_gpus.py", "bagua_groups_and_objects", tmp_path, "hocket")
