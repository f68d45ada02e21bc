"""What nvmath 1.0 has and 0.9 has not, and 0.9's other names, in the face of nvmath.distributed."""

import dataclasses
import importlib
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers import values
from nvmath_ranks import on_processes
from processes import PACKAGE, run_job

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed import distribution as dn
from hocket.compat.nvmath_distributed import fft as nf
from hocket.compat.nvmath_distributed import linalg
from hocket.compat.nvmath_distributed._redistribute import InvalidRedistributeState
from hocket.compat.nvmath_distributed.process_group import MsgSizeError
from hocket.compat.nvmath_distributed.reshape import reshape

STAND_INS = Path(__file__).parents[1] / "support" / "stand_ins"


def raises(kind, match, call):
    with pytest.raises(kind, match=match):
        call()


# --- Redistribute -----------------------------------------------------------------------------------


def box_of(shape, axis, rank, n, base=0):
    """A slab as a box of an array that begins at `base` on each axis."""
    lower, upper = hocket.distribution.Slab(axis).box(shape, rank, n)
    return dn.Box([base + x for x in lower], [base + x for x in upper])


def ways(shape, group):
    """Distributions of a whole of `shape`, each with this process's part of the whole as slices."""
    rank, n = group.rank, group.nranks
    found = []
    for axis in range(len(shape)):
        box = hocket.distribution.Slab(axis).box(shape, rank, n)
        part = tuple(map(slice, *box))
        found.append((dn.Slab(axis), part))
        if box.size:
            found.append((dn.Box(*box), part))
    if len(shape) == 2:
        grid = dn.ProcessGrid(shape=(n, 1))
        blocks = hocket.distribution.BlockNonCyclic(grid.grid)
        found.append((dn.BlockNonCyclic(grid), tuple(map(slice, *blocks.box(shape, rank)))))
        turned = dn.BlockCyclic(dn.ProcessGrid(shape=(1, n)), (2, 4), first_process=(0, n - 1))
        at = 4 * ((rank + 1) % n)  # the last process has the first block
        found.append((turned, (slice(None), slice(at, at + 4))))
    return found


def all_ways(group):
    """From each distribution to each other, in both orders of elements by turns."""
    turns = itertools.cycle("CFF")
    for shape in ((7,), (6, 4 * group.nranks - 1), (5, 4, 6)):
        whole = values(0, shape, "complex64")
        for source, held in ways(shape, group):
            for target, wanted in ways(shape, group):
                order = next(turns)
                x = np.array(whole[held], order=order)
                y = dn.redistribute(x, source, target)
                assert np.array_equal(y, whole[wanted]), (shape, str(source), str(target))
                assert y.flags[f"{order}_CONTIGUOUS"]


@pytest.mark.parametrize("n", [1, 3])
def test_from_any_distribution_to_any(n):
    on_processes(n, all_ways)


def in_steps(group):
    rank, n = group.rank, group.nranks
    shape = (6, 8)
    whole = values(0, shape, "float32")
    held, wanted = (tuple(map(slice, *hocket.distribution.Slab(i).box(shape, rank, n))) for i in (0, 1))
    x = np.ascontiguousarray(whole[held])
    with dn.Redistribute(x, dn.Slab.X, dn.Slab.Y, options={"blocking": True}) as one:
        assert one.input_box == box_of(shape, 0, rank, n) and one.output_box == box_of(shape, 1, rank, n)
        raises(RuntimeError, "before plan", one.execute)
        one.plan()
        assert np.array_equal(one.execute(None, True, False), whole[wanted])
        one.reset_operand(x * 2)
        assert np.array_equal(one.execute(), whole[wanted] * 2)
        one.reset_operand_unchecked(x)
        assert np.array_equal(one.execute(), whole[wanted])
        one.release_operand()
        raises(RuntimeError, "after the operand has been released", one.execute)
        raises(ValueError, r"reset_operand\(\) requires a valid operand", lambda: one.reset_operand(None))
    raises(InvalidRedistributeState, "Redistribute object cannot be used after", one.plan)
    # Boxes count from where their hull begins, and distributions that are bound keep their shape.
    y = dn.redistribute(x, box_of(shape, 0, rank, n, base=3), dn.Slab.Y)
    assert np.array_equal(y, whole[wanted])
    z = dn.redistribute(y, dn.Slab.Y, box_of(shape, 0, rank, n, base=5))
    assert np.array_equal(z, x)
    assert np.array_equal(dn.redistribute(x, dn.Slab(0)._bind(shape), dn.Slab.Y), y)
    # A symmetric operand has a symmetric result.
    a = nvd.allocate_symmetric_memory(x.shape, np, dtype="float32", make_symmetric=True)
    a[...] = x
    b = dn.redistribute(a, dn.Slab.X, dn.Slab.Y)
    assert np.array_equal(b, y)
    nvd.free_symmetric_memory(a, b)


@pytest.mark.parametrize("n", [1, 3])
def test_redistribute_in_steps(n):
    on_processes(n, in_steps)


def refused(group):
    rank, n = group.rank, group.nranks
    x = np.ones((4, 4))
    grid = dn.ProcessGrid(shape=(n, 1))
    box = box_of((8, 4), 0, rank, n)
    last = rank == n - 1
    for kind, message, source, target in (
        (ValueError, "distribution types are inconsistent", dn.Slab.Y if last else dn.Slab.X, dn.Slab.X),
        (ValueError, "distribution types are inconsistent", dn.Slab.X, box if last else dn.Slab.X),
        (ValueError, "not a Distribution distribution", dn.Slab.X, "a slab" if last else dn.Slab.X),
        (ValueError, "partition_dim must be < ndim", dn.Slab.X, dn.Slab.Z),
        (ValueError, "dimensionality", dn.Slab.X, dn.Slab(0, ndim=3) if last else dn.Slab.X),
        (ValueError, "global shape derived from", dn.Slab.X, box_of((4, 4), 0, rank, n)),
        (ValueError, "does not match the box shape", dn.Box((0, 0), (2, 4)) if last else box, dn.Slab.X),
        (ValueError, "bound to another global shape", dn.Slab(0)._bind((2, 4)) if last else dn.Slab.X,
         dn.Slab.X),
        (TypeError, "compatible with Box", dn.BlockCyclic(grid, (2, 4)), dn.Slab.X),
        (TypeError, "compatible with Box", dn.Slab.X, dn.BlockCyclic(grid, (1, 1))),
    ):
        raises(kind, message, lambda s=source, t=target: dn.redistribute(x, s, t))
    raises(dn.BindDistributionError, "don't fit distribution Slab",
           lambda: dn.redistribute(x[: 1 if rank == 0 else 4], dn.Slab.X, dn.Slab.X))
    raises(ValueError, "problem size is inconsistent",
           lambda: dn.redistribute(x[:, : 4 - last].copy(), dn.Slab.X, dn.Slab.X))
    raises(ValueError, "problem size is inconsistent",
           lambda: dn.redistribute(x[:, : 4 - last].copy(), dn.BlockNonCyclic(grid), dn.Slab.X))
    raises(ValueError, "Redistribute currently only supports", lambda: dn.redistribute(
        x[None, None], dn.Slab.X, dn.Slab.X))
    raises(ValueError, "either True or 'auto'", lambda: dn.RedistributeOptions(blocking=3))
    # nvmath 0.9's Reshape takes boxes alone, of one and the same array.
    raises(ValueError, "not a Box", lambda: reshape(x, dn.Slab.X, dn.Slab.Y))
    raises(ValueError, "global box derived from", lambda: reshape(x, box, box_of((8, 4), 0, rank, n, 1)))
    hocket.Context.current().communicator.barrier()


def test_wrong_redistributions_are_those_of_all():
    on_processes(2, refused)


def wider(group):
    rank, n = group.rank, group.nranks
    slab = dn.Slab(0, ndim=1)._bind((4 * n,))
    wide = slab.to(dn.Slab, ndim=3)
    assert wide.ndim == 3 and wide.shape(rank) == (4, 1, 1)
    box = slab.to(dn.Box, ndim=2)
    assert tuple(box) == ((4 * rank, 0), (4 * rank + 4, 1)) and box.box_shape == (4, 1)
    assert dn.Box([1], [3]).to(dn.Box, ndim=2) == dn.Box([1, 0], [3, 1])
    blocks = slab.to(dn.BlockNonCyclic, ndim=2)
    assert blocks.process_grid.shape == (n, 1) and blocks.shape(rank) == (4, 1)
    assert blocks.to(dn.BlockCyclic, ndim=3).block_sizes == (4, 1, 1)
    listed = dn.BlockCyclic(dn.ProcessGrid(process_array=np.arange(n)), (2,), first_process=(n - 1,))
    further = listed.to(dn.BlockCyclic, ndim=2)
    assert further.process_grid.shape == (n, 1) and further.first_process == (n - 1, 0)
    for one in (slab.to(dn.Slab, ndim=2), dn.Box((0, 0), (1, 1)), further):
        raises(ValueError, "must be >= the distribution's", lambda d=one: d.to(type(d), ndim=1))


@pytest.mark.parametrize("n", [1, 2])
def test_distributions_take_further_axes(n):
    on_processes(n, wider)


# --- The other release's names ------------------------------------------------------------------------


def test_options_of_fft_have_both_names():
    for options in (nf.FFTOptions(redistribute=False), nf.FFTOptions(reshape=False),
                    nf.FFTOptions(None, False), nf.FFTOptions(**{"reshape": False})):
        assert options.redistribute is False and options.reshape is False
        changed = dataclasses.replace(options, redistribute=True)
        assert changed.reshape is True and changed.fft_type == options.fft_type
        options.reshape = True
        assert options == nf.FFTOptions() and options.redistribute is True
    raises(TypeError, "redistribute and reshape, its older name",
           lambda: nf.FFTOptions(redistribute=True, reshape=True))
    raises(ValueError, "'redistribute' must be of type bool", lambda: nf.FFTOptions(reshape=1))


def transforms(group):
    whole = values(0, (4, 8), "complex128")
    held, turned = (tuple(map(slice, *hocket.distribution.Slab(i).box(whole.shape, group.rank, group.nranks)))
                    for i in (0, 1))
    spectrum = np.fft.fftn(whole)
    for options, wanted in (({"redistribute": False}, turned), ({"reshape": False}, turned),
                            ({"redistribute": True}, held), ({"reshape": True}, held)):
        x = nf.allocate_operand(whole[held].shape, np, input_dtype=complex, distribution=dn.Slab.X)
        x[...] = whole[held]
        got = nf.fft(x, distribution=dn.Slab.X, options=options)
        assert np.allclose(got, spectrum[wanted])


def test_both_names_do_what_they_say():
    on_processes(2, transforms)


def test_errors_of_message_sizes_are_nvmath_s():
    error = MsgSizeError(300)
    assert error.size == 300 and pickle.loads(pickle.dumps(error)).size == 300


def large_objects(comm, folder):
    import torch.distributed as dist

    dist.init_process_group("gloo", f"file://{folder}/meet", rank=comm.rank, world_size=comm.size)
    group = nvd.TorchProcessGroup(device_id="cpu")
    assert group.allreduce_obj_buffer_size == 2048
    for wrong in (127, 2048.0, None):
        raises(ValueError, "Buffer size must be >= 128",
               lambda size=wrong: setattr(group, "allreduce_obj_buffer_size", size))
    group.allreduce_obj_buffer_size = 128
    assert group.allreduce_obj_buffer_size == 128
    # A message that does not fit is sent all the same, and the size stays what the program set.
    long = group.allreduce_object("x" * 1000, op=lambda a, b: a + b)
    assert len(long) == 1000 * comm.size and group.allreduce_obj_buffer_size == 128
    dist.destroy_process_group()


def test_objects_larger_than_the_buffer_of_a_group_of_torch(tmp_path):
    pytest.importorskip("torch")
    hocket.spawn(large_objects, 2, str(tmp_path))


# --- What is refused, and what its message suggests --------------------------------------------------


@pytest.mark.parametrize("module", ["", ".generic"])
def test_the_direct_solver_is_refused_by_name(module):
    hocket.compat.install("nvmath.distributed", children=False)
    there = importlib.import_module(f"nvmath.distributed.linalg{module}")
    for name in ("DirectSolver", "DirectSolverOptions", "InvalidDirectSolverState", "direct_solver"):
        raises(AttributeError, f"no attribute '{name}': hocket has no distributed direct solver. Gather",
               lambda n=name: getattr(there, n))
        raises(ImportError, name, lambda n=name: exec(f"from nvmath.distributed.linalg{module} import {n}"))
    raises(AttributeError, "no attribute 'nothing'$", lambda: there.nothing)
    raises(AttributeError, "Use FP8 operands", lambda: linalg.advanced.helpers)


def solves(group):
    """As the message of the direct solver says."""
    rank, n = group.rank, group.nranks
    random = np.random.default_rng(3)
    whole, right = random.random((4 * n, 4 * n)) + 4 * n * np.eye(4 * n), random.random((4 * n, 2))
    rows = slice(4 * rank, 4 * rank + 4)
    comm = hocket.Context.current().communicator
    gathered = [comm.all_gather(x[rows].copy()).reshape(-1, x.shape[1]) for x in (whole, right)]
    assert np.allclose(whole @ np.linalg.solve(*gathered), right)


def test_what_it_says_instead_gives_the_solution():
    on_processes(2, solves)


# --- A program with symmetric operands ----------------------------------------------------------------

PRODUCT = """
import numpy as np
import cupy as cp
import nvmath.distributed as nvd
from nvmath.distributed.distribution import BlockNonCyclic, ProcessGrid
import hocket

group = nvd.HocketProcessGroup(hocket.init())
rank, n = group.rank, group.nranks
nvd.initialize(0, group, backends=["nvshmem", "nccl"])
rows, columns = BlockNonCyclic(ProcessGrid(shape=(n, 1))), BlockNonCyclic(ProcessGrid(shape=(1, n)))
whole_a, whole_b = np.arange(48.0).reshape(6, 8), np.arange(80.0).reshape(8, 10)
a = nvd.allocate_symmetric_memory(rows.shape(rank, (8, 6)), cp)
b = nvd.allocate_symmetric_memory(columns.shape(rank, (10, 8)), cp)
a[:] = whole_a.T[8 // n * rank : 8 // n * (rank + 1)]
b[:] = whole_b.T[:, 8 // n * rank : 8 // n * (rank + 1)]
a, b = a.T, b.T  # by columns; the arrays that were allocated are dropped
with nvd.linalg.advanced.Matmul(a, b, distributions=[columns, rows, columns]) as product:
    product.plan()
    result = product.execute()
mine = (whole_a @ whole_b)[:, 10 // n * rank : 10 // n * (rank + 1)]
assert isinstance(result, cp.ndarray) and np.allclose(result, mine)
result = result.T
nvd.free_symmetric_memory(a, b, result)
nvd.finalize()
"""


@pytest.mark.parametrize("n", [1, 2])
def test_transposed_operands_in_symmetric_memory_are_freed(tmp_path, n):
    program = tmp_path / "program.py"
    program.write_text(PRODUCT)
    job = run_job(n, "-m", "hocket.compat", "nvmath.distributed", "--", program,
                  env={"PYTHONPATH": f"{PACKAGE}:{STAND_INS}"})
    assert job.returncode == 0 and "deallocated" not in job.stdout, job.stdout
