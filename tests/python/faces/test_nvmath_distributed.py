"""The face of nvmath.distributed's runtime. A process has one runtime, so ranks are processes."""

import gc
import logging
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from helpers import values
from nvmath_ranks import on_processes
from processes import with_package

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed import distribution as dn
from hocket.compat.nvmath_distributed.process_group import ReductionOp
from hocket.compat.nvmath_distributed.reshape import InvalidReshapeState, Reshape, reshape

STAND_INS = str(Path(__file__).parents[1] / "support" / "stand_ins")


def raises(kind, match, call):
    with pytest.raises(kind, match=match):
        call()


class OwnGroup(nvd.ProcessGroup):
    """A program's own, over something that hocket knows nothing of: here, another communicator."""

    def __init__(self, comm):
        self.comm = comm

    @property
    def rank(self):
        return self.comm.size - 1 - self.comm.rank  # numbered its own way

    @property
    def nranks(self):
        return self.comm.size

    def broadcast_buffer(self, array, *, root=0):
        self.comm.broadcast(array, root=self.comm.size - 1 - root)

    def allreduce_buffer(self, array, *, op):
        self.comm.all_reduce(array, op=op.name.lower())

    def allreduce_object(self, obj, *, op):
        return nvd.HocketProcessGroup(self.comm).allreduce_object(obj, op=op)


# --- initialize -------------------------------------------------------------------------------------


def life(comm):
    assert nvd.get_context() is None
    group = OwnGroup(comm)
    for backends in (["nvshmem"], ["nvshmem", "nccl"], ["shm"]):
        nvd.initialize("cpu", group, backends=backends)
        context = nvd.get_context()
        assert (context.device_id, context.process_group) == ("cpu", group)
        assert context.nvshmem_available == ("nvshmem" in backends)
        assert (context.nccl_comm is not None) == ("nccl" in backends)
        here = hocket.Context.current().communicator
        assert (here.rank, here.size) == (group.rank, group.nranks)
        total = here.all_reduce(np.array([group.rank]))
        assert total[0] == sum(range(group.nranks))
        raises(RuntimeError, "already been initialized", lambda: nvd.initialize("cpu", group, ["shm"]))
        nvd.finalize()
        nvd.finalize()
        assert nvd.get_context() is None
    nvd.initialize("cpu", group, ["shm"])  # left to the end of the process


@pytest.mark.parametrize("n", [1, 3])
def test_initialize_and_finalize(n):
    hocket.spawn(life, n)


def test_arguments_are_checked_in_the_original_s_order():
    group = OwnGroup(None)
    for device in ("invalid_device", None, 1.5):
        raises(TypeError, f"must be an integer. The provided device ID is {device}",
               lambda d=device: nvd.initialize(d, None, ["what"]))
    raises(ValueError, r"backend must be one of \('nvshmem', 'nccl'\), got what",
           lambda: nvd.initialize(0, None, ["what"]))
    raises(ValueError, r"Need to specify at least one of \('nvshmem', 'nccl'\)",
           lambda: nvd.initialize(0, None, []))
    raises(ValueError, "process_group cannot be None", lambda: nvd.initialize(0, None, ["nccl"]))
    raises(TypeError, r"Unrecognized process group type \(a group\)",
           lambda: nvd.initialize(0, "a group", ["nccl"]))
    raises(TypeError, "abstract", lambda: nvd.ProcessGroup())
    raises(RuntimeError, "has not been initialized", lambda: nvd.allocate_symmetric_memory(1, np))
    raises(RuntimeError, "has not been initialized", lambda: nvd.free_symmetric_memory())
    raises(RuntimeError, "has not been initialized", lambda: reshape(np.ones(1), None, None))
    raises(RuntimeError, "has not been initialized", lambda: dn.Slab.X.shape(0, (4,)))
    assert nvd.get_context() is None and group is not None


def wrong_on_one(comm):
    group = nvd.HocketProcessGroup(comm)
    wrong = "invalid_device" if comm.rank == 1 else "cpu"
    with pytest.raises(TypeError if comm.rank == 1 else ValueError) as caught:
        nvd.initialize(wrong, group, ["shm"])
    assert nvd.get_context() is None
    nvd.initialize("cpu", group, ["shm"])
    nvd.finalize()
    return str(caught.value)


def test_arguments_that_are_wrong_on_one_are_heard_of_on_all():
    told = hocket.spawn(wrong_on_one, 2)
    assert "rank 1 was given wrong arguments" in told[0]
    assert "The provided device ID is invalid_device" in told[1]


def group_calls(comm, group):
    rank, n = group.rank, group.nranks
    x = np.full(3, rank, "float32")
    group.broadcast_buffer(x, root=n - 1)
    assert x.tolist() == [n - 1] * 3
    for op, wanted in ((ReductionOp.SUM, n * (n - 1) // 2), (ReductionOp.MIN, 0),
                       (ReductionOp.MAX, n - 1)):
        y = np.array([rank, -rank])
        group.allreduce_buffer(y, op=op)
        assert y[0] == wanted
    assert group.allreduce_object([rank], op=lambda a, b: a + b) == list(range(n))


def hocket_group(comm):
    group_calls(comm, nvd.HocketProcessGroup(comm))


def torch_group(comm, folder):
    import torch.distributed as dist

    raises(RuntimeError, "torch.distributed is not initialized",
           lambda: nvd.TorchProcessGroup(device_id="cpu"))
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=comm.rank, world_size=comm.size)
    raises(ValueError, "device_id must be int or 'cpu'", lambda: nvd.TorchProcessGroup(device_id=None))
    group = nvd.TorchProcessGroup(device_id="cpu")
    assert group.device_id == "cpu"
    group_calls(comm, group)
    turned = nvd.TorchProcessGroup(
        device_id="cpu", torch_process_group=dist.new_group(list(range(comm.size)))
    )
    nvd.initialize("cpu", turned, ["shm"])
    x = hocket.Context.current().communicator.all_gather(np.array([comm.rank]))
    assert x.ravel().tolist() == list(range(comm.size))
    nvd.finalize()
    dist.destroy_process_group()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_groups_of_hocket(n):
    hocket.spawn(hocket_group, n)


def test_groups_of_torch(tmp_path):
    pytest.importorskip("torch")
    hocket.spawn(torch_group, 2, str(tmp_path))


MPI = """
import numpy as np
from mpi4py import MPI
import nvmath.distributed as nvd
for group in (MPI.COMM_WORLD, nvd.MPIProcessGroup(MPI.COMM_WORLD)):
    nvd.initialize("cpu", group, ["nvshmem"])
    group = nvd.get_context().process_group
    assert (group.rank, group.nranks) == (MPI.COMM_WORLD.rank, 2)
    assert group.allreduce_object([group.rank], op=lambda a, b: a + b) == [0, 1]
    x = nvd.allocate_symmetric_memory(5, np)
    x[:] = group.rank
    nvd.free_symmetric_memory(x)
    nvd.finalize()
print("fine")
"""


def test_groups_of_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    program = tmp_path / "program.py"
    program.write_text(MPI)
    try:
        job = subprocess.run(
            ["mpiexec", "-n", "2", sys.executable, "-m", "hocket.compat", "nvmath.distributed",
             "--", str(program)],
            env=with_package(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                             OMPI_MCA_rmaps_base_oversubscribe="1"),
            capture_output=True, text=True, timeout=50,
        )
    except FileNotFoundError:
        pytest.skip("there is no mpiexec")
    assert job.stdout.split() == ["fine", "fine"], job.stdout + job.stderr


class MpiComm:
    """The methods of an mpi4py communicator that the face uses, over one of hocket."""

    def __init__(self, comm):
        self._comm = comm

    def Get_rank(self):
        return self._comm.rank

    def Get_size(self):
        return self._comm.size

    def Bcast(self, array, root=0):
        self._comm.broadcast(array, root=root)

    def Allreduce(self, _, array, op):
        self._comm.all_reduce(array, op=op)


def names_of_nvmath_0_8(comm):
    mpi = types.SimpleNamespace(Comm=MpiComm, COMM_WORLD=MpiComm(comm), IN_PLACE=object(),
                                SUM="sum", MIN="min", MAX="max")
    sys.modules["mpi4py"] = types.SimpleNamespace(MPI=mpi)
    sys.modules["mpi4py.MPI"] = mpi
    own = MpiComm(comm)
    for given, wanted in ((own, own), (None, mpi.COMM_WORLD)):
        nvd.initialize("cpu", communicator=given, backends=["nvshmem"])
        assert nvd.get_context().communicator is wanted
        assert nvd.get_context().process_group.rank == comm.rank
        nvd.finalize()
    raises(ValueError, "process_group cannot be None", lambda: nvd.initialize(0, None, ["nccl"]))
    raises(TypeError, "exactly one", lambda: nvd.initialize(0, own, ["nccl"], communicator=own))
    raises(TypeError, "missing.*process_group", lambda: nvd.initialize(0, backends=["nccl"]))
    raises(TypeError, "missing.*backends", lambda: nvd.initialize("cpu", own))
    nvd.initialize("cpu", nvd.HocketProcessGroup(comm), ["nvshmem"])
    raises(AttributeError, "set up with a HocketProcessGroup", lambda: nvd.get_context().communicator)
    nvd.finalize()


@pytest.mark.parametrize("n", [1, 2])
def test_names_of_nvmath_0_8(n):
    hocket.spawn(names_of_nvmath_0_8, n)


# --- Symmetric memory ---------------------------------------------------------------------------------


def symmetric(group):
    rank, n = group.rank, group.nranks
    comm = hocket.Context.current().communicator
    a = nvd.allocate_symmetric_memory((2, 5), np, dtype=np.int32)
    assert a.shape == (2, 5) and a.dtype == np.int32 and a.flags.c_contiguous
    a[:] = rank
    comm.barrier()
    # It is: a peer's can be seen.
    peer = comm.symmetric.peer(a.base, (rank + 1) % n)
    assert peer.view(np.int32)[0] == (rank + 1) % n
    comm.barrier()
    f = nvd.allocate_symmetric_memory((3, 4, 5), np, axis_order="F")
    assert f.flags.f_contiguous and f.dtype == np.float64
    own = nvd.allocate_symmetric_memory((3, 4, 5), np, axis_order=(1, 0, 2), dtype="complex64")
    assert [s // 8 for s in own.strides] == [4, 1, 12]
    nvd.free_symmetric_memory(a, f)
    nvd.free_symmetric_memory(own)
    # Uneven sizes.
    if n > 1:
        raises(ValueError, "not the same on all processes",
               lambda: nvd.allocate_symmetric_memory(rank + 1, np))
    b = nvd.allocate_symmetric_memory(rank + 1, np, make_symmetric=True)
    assert b.shape == (rank + 1,)
    raises(ValueError, "skip_symmetric_check is incompatible",
           lambda: nvd.allocate_symmetric_memory(1, np, make_symmetric=True,
                                                 skip_symmetric_check=True))
    raises(ValueError, "package must be one of", lambda: nvd.allocate_symmetric_memory(1, os))
    c = nvd.allocate_symmetric_memory(4, np, skip_symmetric_check=True)
    # Wrong on the last process alone: the same error everywhere.
    last = rank == n - 1
    raises(ValueError, "axis_order is",
           lambda: nvd.allocate_symmetric_memory(4, np, axis_order="K" if last else "C"))
    raises(ValueError, "data type 'foo' not understood",
           lambda: nvd.allocate_symmetric_memory(4, np, dtype="foo" if last else None))
    raises(ValueError, "package must be one of",
           lambda: nvd.allocate_symmetric_memory(4, "numpy" if last else np))
    raises(TypeError, "not on symmetric memory|CPU array/tensor",
           lambda: nvd.free_symmetric_memory(np.ones(3) if last else c))
    raises(TypeError, "called on a list", lambda: nvd.free_symmetric_memory([1] if last else c))
    raises(RuntimeError, "Unknown pointer",
           lambda: nvd.free_symmetric_memory(c[1:] if last else c))
    if n > 1:
        raises(RuntimeError, "different symmetric arrays",
               lambda: nvd.free_symmetric_memory(*((b, c) if last else (c, b))))
    nvd.free_symmetric_memory(c, b)
    raises(RuntimeError, "Unknown pointer", lambda: nvd.free_symmetric_memory(b))


@pytest.mark.parametrize("n", [1, 3])
def test_symmetric_memory(n):
    on_processes(n, symmetric)


def symmetric_tensors(group):
    import torch

    t = nvd.allocate_symmetric_memory((2, 3), torch)
    assert t.shape == (2, 3) and t.dtype == torch.float32 and t.is_contiguous()
    t.fill_(group.rank)
    hocket.Context.current().communicator.all_reduce(t)
    assert t.sum() == 6 * sum(range(group.nranks))
    h = nvd.allocate_symmetric_memory((2, 3), torch, dtype=torch.bfloat16, axis_order="F")
    assert h.stride() == (1, 2) and h.dtype == torch.bfloat16
    raises(RuntimeError, "Unknown pointer", lambda: nvd.free_symmetric_memory(t[1:]))
    raises(RuntimeError, "Unknown pointer", lambda: nvd.free_symmetric_memory(t, t.view(-1)))
    nvd.free_symmetric_memory(t.view(torch.int32), h)
    raises(RuntimeError, "Unknown pointer", lambda: nvd.free_symmetric_memory(t))


def views(group, package):
    """A program that keeps a view alone has the array: ``a = a.T`` drops the array that was allocated."""
    xp = pytest.importorskip(package)
    logger = logging.getLogger("views")
    said = []
    logger.addHandler(logging.Handler())
    logger.handlers[0].emit = said.append
    for view_of in (lambda x: x.T, lambda x: x[:2], lambda x: x.reshape(-1), lambda x: x.T[:0]):
        array = nvd.allocate_symmetric_memory((3, 4), xp, dtype=xp.float32, logger=logger)
        number = hocket.compat.nvmath_distributed._symmetric._heap.count
        array = view_of(array)
        gc.collect()
        assert not said
        array[...] = group.rank
        nvd.free_symmetric_memory(array)
        lost = view_of(nvd.allocate_symmetric_memory((3, 4), xp, dtype=xp.float32, logger=logger))
        assert not said
        del lost
        gc.collect()
        heard = said.pop().getMessage()
        assert f"needs to be deallocated explicitly (allocation {number + 1}:" in heard and not said


@pytest.mark.parametrize("package", ["numpy", "torch"])
def test_a_view_keeps_what_was_allocated(package):
    pytest.importorskip(package)
    on_processes(2, views, package)


def test_symmetric_tensors():
    pytest.importorskip("torch")
    on_processes(2, symmetric_tensors)


def leaks(group):
    heard = []

    class Listener(logging.Handler):
        def emit(self, record):
            heard.append(record.getMessage())

    logging.getLogger().addHandler(Listener())
    a = nvd.allocate_symmetric_memory(7, np, dtype="int16")
    b = nvd.allocate_symmetric_memory(8, np)
    del a
    gc.collect()
    assert heard == ["Symmetric heap memory needs to be deallocated explicitly "
                     "(allocation 1: int16 (7,))"]
    nvd.finalize()
    assert heard[1:] == ["Symmetric heap memory was not deallocated explicitly "
                         "(allocation 2: float64 (8,))"] and len(b) == 8


def test_leaks_are_reported_by_name():
    on_processes(2, leaks)


# --- Distributions ------------------------------------------------------------------------------------


def distributions(group):
    rank, n = group.rank, group.nranks
    assert dn.Slab.X.name == "Slab.X" and dn.Slab.Y == dn.Slab(1, ndim=2) != dn.Slab.X
    shapes = [dn.Slab.X.shape(r, (10, 4)) for r in range(n)]
    assert [s[0] for s in shapes] == [10 // n + (r < 10 % n) for r in range(n)]
    bound = dn.Slab(0)._bind((4 * n, 3))
    assert bound.shape(rank) == (4, 3)
    raises(ValueError, "bound to a different", lambda: bound.shape(rank, (1, 1)))
    raises(dn.BindDistributionError, "already bound", lambda: bound._bind((1, 1)))
    raises(dn.BindDistributionError, "don't fit", lambda: dn.Slab(0)._bind((4 * n, 3), shape=(1, 1)))
    raises(RuntimeError, "unbound", lambda: dn.Slab.X.shape(0))
    raises(ValueError, "not a valid process rank", lambda: dn.Slab.X.shape(n, (4, 4)))
    box = bound.to(dn.Box)
    assert tuple(box) == ((4 * rank, 0), (4 * rank + 4, 3)) == (box[0], box[1])
    assert box.shape(rank, (4 * n, 3)) == (4, 3)
    blocks = bound.to(dn.BlockNonCyclic)
    assert blocks.block_sizes == (4, 3) and blocks.shape(rank) == (4, 3)
    assert blocks.to(dn.Slab) == bound and blocks.to(dn.Box) == box
    assert dn.Slab(1).to(dn.BlockCyclic, ndim=2).process_grid.shape == (1, n)
    raises(dn.ConvertDistributionError, "unknown dimensionality", lambda: dn.Slab.X.to(dn.BlockCyclic))
    raises(ValueError, "not a valid distribution", lambda: bound.to(dn.Distribution))

    layout = dn.ProcessGrid.Layout
    grid = dn.ProcessGrid(shape=(1, n))
    assert grid == dn.ProcessGrid(shape=(1, n), layout=layout.COL_MAJOR)
    raises(ValueError, "must equal the number of processes", lambda: dn.ProcessGrid(shape=(n, n + 1),
                                                                              layout=layout.ROW_MAJOR))
    cyclic = dn.BlockCyclic(grid, (2, 3), first_process=(0, n - 1))
    whole = (5, 3 * n + 2)
    assert sum(np.prod(cyclic.shape(r, whole)) for r in range(n)) == np.prod(whole)
    assert cyclic.shape(n - 1, whole) == (5, 5)  # the first block and the last one
    raises(ValueError, "Number of block sizes", lambda: dn.BlockCyclic(grid, (2,)))
    raises(ValueError, "not a valid index", lambda: dn.BlockCyclic(grid, (2, 2), first_process=(0, n)))
    if n == 4:
        raises(ValueError, "layout must be provided", lambda: dn.ProcessGrid(shape=(2, 2)))
        square = dn.BlockNonCyclic(dn.ProcessGrid(shape=(2, 2), layout=layout.COL_MAJOR))
        assert square._bind((8, 6)).to(dn.Box) == dn.Box(
            (4 * (rank % 2), 3 * (rank // 2)), (4 * (rank % 2) + 4, 3 * (rank // 2) + 3)
        )
        raises(dn.ConvertDistributionError, "single dimension", lambda: square.to(dn.Slab))
        listed = dn.ProcessGrid(process_array=np.array([[3, 1], [0, 2]]))
        assert listed.layout is None and listed.shape == (2, 2)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_distributions(n):
    on_processes(n, distributions)


# --- Reshape ------------------------------------------------------------------------------------------


def slab(shape, axis, group):
    box = hocket.distribution.Slab(axis).box(shape, group.rank, group.nranks)
    return dn.Box(*box), values(0, shape, "complex64")[tuple(map(slice, *box))]


def reshapes(group, package):
    if package == "torch":
        import torch
    for shape in [(16,), (12, 8), (4, 6, 8)]:
        for order in "CF":
            source, x = slab(shape, 0, group)
            target, wanted = slab(shape, len(shape) - 1, group)
            x = np.array(x, order=order)
            if package == "torch":
                strides = [s // x.itemsize for s in x.strides]
                x = torch.from_numpy(np.ravel(x, order="K")).as_strided(x.shape, strides)
            y = reshape(x, source, target)
            assert type(y) is type(x) and np.array_equal(np.asarray(y), wanted)
            with Reshape(x, source, target, options={"blocking": True}) as again:
                raises(RuntimeError, "before plan", again.execute)
                again.plan()
                for _ in range(2):
                    assert np.array_equal(np.asarray(again.execute()), wanted)
                before = sys.getrefcount(x)
                again.release_operand()
                assert sys.getrefcount(x) == before - 1
                raises(RuntimeError, "after the operand has been released", again.execute)
                again.reset_operand(x * 2)
                assert np.array_equal(np.asarray(again.execute()), wanted * 2)
            raises(InvalidReshapeState, "after resources are free'd", again.plan)


@pytest.mark.parametrize("package", ["numpy", "torch"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_reshape(n, package):
    pytest.importorskip(package)
    on_processes(n, reshapes, package)


def results_in_symmetric_memory(group, package):
    xp = pytest.importorskip(package)
    rank, n = group.rank, group.nranks
    for shape in [(16,), (12, 8), (4, 6, 8)]:
        for order in "CF":
            source, x = slab(shape, 0, group)
            target, wanted = slab(shape, len(shape) - 1, group)
            a = nvd.allocate_symmetric_memory(x.shape, xp, dtype=xp.complex64, axis_order=order,
                                              make_symmetric=True)
            np.asarray(a)[...] = x
            with Reshape(a, source, target) as one:
                one.plan()
                b, c = one.execute(), one.execute()
                one.reset_operand(a)
                d = one.execute()
            e = reshape(a, source, target)
            for result in (b, c, d, e):
                assert type(result) is type(a) and np.array_equal(np.asarray(result), wanted)
            nvd.free_symmetric_memory(a, b, c, d, e)
    # The sizes of the results differ, too.
    source, x = slab((8,), 0, group)
    rest = 9 - n  # the first process's; the others want one element each
    target = dn.Box([0], [rest]) if rank == 0 else dn.Box([rest + rank - 1], [rest + rank])
    a = nvd.allocate_symmetric_memory(x.shape, xp, dtype=xp.complex64, make_symmetric=True)
    np.asarray(a)[...] = x
    b = reshape(a, source, target)
    assert np.array_equal(np.asarray(b), values(0, (8,), "complex64")[target.lower[0] : target.upper[0]])
    nvd.free_symmetric_memory(b, a)
    # An ordinary operand on one process: then no result is in symmetric memory.
    if n > 1:
        a = nvd.allocate_symmetric_memory(x.shape, np, dtype="complex64", make_symmetric=True)
        a[...] = x
        b = reshape(a if rank > 0 else x, source, target)
        raises(TypeError, "not on symmetric memory|on symmetric memory",
               lambda: nvd.free_symmetric_memory(b))
        nvd.free_symmetric_memory(a)


@pytest.mark.parametrize("package", ["numpy", "torch"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_results_are_in_symmetric_memory_where_operands_are(n, package):
    pytest.importorskip(package)
    on_processes(n, results_in_symmetric_memory, package)


def uneven(group):
    rank, n = group.rank, group.nranks
    rest = 48 // (n - 1)
    source, x = slab((128,), 0, group)
    target = dn.Box([0], [80]) if rank == 0 else dn.Box([80 + rest * (rank - 1)], [80 + rest * rank])
    whole = values(0, (128,), "complex64")
    assert np.array_equal(reshape(x, source, target), whole[target.lower[0] : target.upper[0]])


@pytest.mark.parametrize("n", [2, 4])
def test_reshape_of_one_axis(n):
    on_processes(n, uneven)


def wrong_reshapes(group):
    last = group.rank == group.nranks - 1
    source, x = slab((8, 8), 0, group)
    box = dn.Box((0, 0), (2, 2))
    raises(ValueError, r"incompatible with the inferred global shape \(2, 2\)",
           lambda: reshape(np.ones((2, 2)), box, box))
    far = dn.Box((4, 4), (6, 6)) if last else box
    raises(ValueError, r"incompatible with the inferred global shape \(6, 6\)",
           lambda: reshape(np.ones((2, 2)), far, far))
    raises(ValueError, r"lower coordinates, but got lower=\(2, 2\) upper=\(0, 0\)",
           lambda: dn.Box((2, 2), (0, 0)))
    for message, call in {
        "layout is not C or Fortran": lambda: reshape(
            np.asfortranarray(x) if last else x, source, source),
        "dtype is inconsistent": lambda: reshape(x.astype("f4") if last else x, source, source),
        "not a Box": lambda: reshape(x, source, "a box" if last else source),
        "dimensionality of Box": lambda: reshape(x, source, dn.Box([0], [4]) if last else source),
        "operand is a list, expected an array": lambda: reshape(
            [1] if last else x, source, source),
        "unexpected keyword argument": lambda: reshape(
            x, source, source, options={"colour": 3} if last else {}),
        "only supports 1-D": lambda: reshape(x.reshape(1, 1, *x.shape) if last else x, source, source),
        "does not match the box shape": lambda: reshape(x[:1] if last else x, source, source),
        "doesn't match": lambda: reshape(x, source, dn.Box((0, 0), (8, 9)) if last else source),
        "options are inconsistent": lambda: reshape(
            x, source, source, options={"blocking": True if last else "auto"}),
    }.items():
        raises(ValueError, message, call)
    raises(ValueError, "either True or 'auto'", lambda: reshape(x, source, source,
                                                               options={"blocking": 3}))
    with Reshape(x, source, source) as one:
        raises(TypeError, "package mismatch", lambda: one.reset_operand(Other(x)))
        raises(ValueError, "shape of the new", lambda: one.reset_operand(x[:1]))
        raises(ValueError, "data type", lambda: one.reset_operand(x.astype("f8")))
        raises(ValueError, "valid operand", lambda: one.reset_operand(None))
    hocket.Context.current().communicator.barrier()


class Other:
    """An array of some other package."""

    def __init__(self, x):
        self.dtype, self.shape, self.flags = x.dtype, x.shape, x.flags


def test_what_is_wrong_with_a_reshape_on_one_is_wrong_on_all():
    on_processes(2, wrong_reshapes)


# --- nvmath-python's own way of starting ------------------------------------------------------------


def test_a_program_written_for_it_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np, hocket
import nvmath.distributed
from nvmath.distributed import HocketProcessGroup
from nvmath.distributed.distribution import Box, Slab
from nvmath.distributed.reshape import reshape
group = HocketProcessGroup(hocket.init())
nvmath.distributed.initialize("cpu", group, backends=["shm"])
x = np.full((2, 4), group.rank, "float32")
source = Box((2 * group.rank, 0), (2 * group.rank + 2, 4))
target = Box((0, 2 * group.rank), (4, 2 * group.rank + 2))
y = nvmath.distributed.reshape.reshape(x, source, target)
assert y.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
""")
    from processes import run_job

    job = run_job(2, "-m", "hocket.compat", "nvmath.distributed", "--", program)
    assert job.returncode == 0, job.stdout
