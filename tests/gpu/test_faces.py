"""The faces on arrays of CuPy and PyTorch on real GPUs: run by tools/gpu_check.sh."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import hocket
from hocket._command import find_command


def count_gpus():
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


GPUS = count_gpus()
pytestmark = pytest.mark.skipif(GPUS < 2, reason=f"two GPUs are wanted, and there are {GPUS}")


def run_job(n, *arguments):
    package = str(Path(hocket.__file__).parent.parent)
    return subprocess.run(
        [find_command(), "run", "-n", str(n), "--", sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": package},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
    )


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
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    job = run_job(2, program, port)
    assert job.returncode == 0, job.stdout


TORCH = """
import os, sys, torch
import torch.distributed as dist
import hocket.torch, hocket.compat
hocket.compat.install("bagua")
import bagua.torch_api as bagua

rank, size = int(os.environ["HOCKET_RANK"]), int(os.environ["HOCKET_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("hocket", init_method="file://" + sys.argv[1], rank=rank, world_size=size)
x = torch.full((5000,), float(rank + 1), device="cuda")
dist.all_reduce(x)
assert x.eq(3).all()
out = torch.empty(size, 7, device="cuda")
dist.all_gather_into_tensor(out, torch.full((7,), float(rank), device="cuda"))
assert out[1].eq(1).all() and out[0].eq(0).all()
work = dist.all_reduce(x, async_op=True)
assert work.get_future().wait()[0].eq(6).all()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10).cuda(), device_ids=[rank])
model(torch.full((4, 10), float(rank), device="cuda")).sum().backward()
gradient = model.module.weight.grad.clone()
dist.broadcast(gradient, 0)
assert torch.equal(gradient, model.module.weight.grad)
bagua.init_process_group()
y = torch.full((100,), float(rank), device="cuda", dtype=torch.bfloat16)
bagua.allreduce_inplace(y, bagua.ReduceOp.MAX)
assert y.eq(1).all()
assert bagua.broadcast_object({"w": y}, 0)["w"].float().sum() == 100
dist.destroy_process_group()
"""


def test_torch_and_bagua_with_cuda_tensors(tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(TORCH)
    job = run_job(2, program, tmp_path / "meeting")
    assert job.returncode == 0, job.stdout
