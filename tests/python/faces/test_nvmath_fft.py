"""The face of nvmath.distributed.fft, against NumPy. A process has one runtime."""

import itertools
import logging

import numpy as np
import pytest
from nvmath_ranks import on_processes

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed import fft as nf
from hocket.compat.nvmath_distributed.distribution import BindDistributionError, Box, Slab
from hocket.distribution import Slab as Cut


def package_of(name):
    if name == "torch":
        return pytest.importorskip("torch")
    return np


def inside(box):
    return tuple(slice(a, b) for a, b in zip(*box))


def numpy_of(array):
    return array.numpy() if hasattr(array, "numpy") else array


def address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.__array_interface__["data"][0]


def reference(whole, fft_type, direction, last):
    if fft_type == "R2C":
        return np.fft.rfftn(whole)
    if fft_type == "C2R":
        shape = (*whole.shape[:-1], last)
        return np.fft.irfftn(whole, shape, axes=range(whole.ndim)) * np.prod(shape)
    return np.fft.fftn(whole) if direction == "forward" else np.fft.ifftn(whole) * whole.size


def transforms(group, package, shape, fft_type, parity, reshape, direction):
    """Slabs, and boxes that are slabs: twice, the second time with another operand."""
    module = __import__(package)
    cut = 0 if direction == "forward" else 1
    real = shape if fft_type != "C2R" else (*shape[:-1], 2 * (shape[-1] - 1) + (parity == "odd"))
    out_shape = {"C2C": shape, "R2C": (*shape[:-1], shape[-1] // 2 + 1), "C2R": real}[fft_type]
    boxes = [Cut(a).box(s, group.rank, group.nranks)
             for a, s in ((cut, shape), (1 - cut, out_shape))]
    target = Cut(cut).box(out_shape, group.rank, group.nranks) if reshape is True else boxes[1]
    slab = Slab.X if cut == 0 else Slab.Y
    distribution = [Box(*b) for b in boxes] if reshape == "use_box" else slab
    dtype = "float64" if fft_type == "R2C" else "complex128"
    random = np.random.default_rng(5)
    transform = None
    for _ in range(2):
        whole = random.normal(size=real)
        if fft_type == "C2C":
            whole = whole + 1j * random.normal(size=real)
        if fft_type == "C2R":
            whole = np.fft.rfftn(whole)
        operand = nf.allocate_operand(boxes[0].shape, module, distribution=distribution,
                                      input_dtype=getattr(module, dtype), memory_space="cpu",
                                      fft_type=fft_type)
        numpy_of(operand)[...] = whole[inside(boxes[0])]
        if transform is None:
            transform = nf.FFT(operand, distribution=distribution,
                               options={"reshape": reshape is True, "fft_type": fft_type,
                                        "last_axis_parity": parity, "blocking": True})
            assert tuple(transform.global_extents) == tuple(shape)
            transform.plan()
        else:
            transform.reset_operand(operand, distribution=distribution)
        result = transform.execute(direction=direction, release_workspace=True)
        assert type(result) is type(operand) and address(result) == address(operand)
        assert fft_type != "C2C" or result.shape != operand.shape or result is operand
        want = reference(whole, fft_type, direction, real[-1])[inside(target)]
        assert numpy_of(result).shape == want.shape
        assert np.allclose(numpy_of(result), want, rtol=0, atol=1e-10 * np.abs(want).max())
    transform.free()
    with pytest.raises(nf.InvalidFFTState):
        transform.execute()


CASES = [("C2C", "even"), ("R2C", "even"), ("C2R", "even"), ("C2R", "odd")]


@pytest.mark.parametrize("package", ["numpy", "torch"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_transforms(n, package):
    package_of(package)
    on_processes(n, all_transforms, package)


def all_transforms(group, package):
    for shape, (fft_type, parity), reshape in itertools.product(
        [(10, 9), (8, 7, 6)], CASES, [True, False, "use_box"]
    ):
        for direction in {"C2C": ("forward", "inverse"), "R2C": ("forward",),
                          "C2R": ("inverse",)}[fft_type]:
            transforms(group, package, shape, fft_type, parity, reshape, direction)


def pencils(group):
    shape, rank = (8, 8, 8), group.rank
    a, b = divmod(rank, 2)
    source = Box((4 * a, 4 * b, 0), (4 * a + 4, 4 * b + 4, 8))
    target = Box((0, 4 * a, 4 * b), (8, 4 * a + 4, 4 * b + 4))
    whole = np.random.default_rng(2).normal(size=shape) + 0j
    x = whole[inside(source)].copy()
    at = address(x)
    with nf.FFT(x, distribution=[source, target]) as transform:
        with pytest.raises(RuntimeError, match=r"Execution cannot be performed before plan"):
            transform.execute()
        transform.plan()
        result = transform.execute()
        assert result.shape == (8, 4, 4) and address(result) == at
        assert np.allclose(result, np.fft.fftn(whole)[inside(target)])
        # The way back, with the boxes exchanged.
        transform.reset_operand(result, distribution=[target, source])
        back = transform.execute(direction=nf.FFTDirection.INVERSE)
        assert np.allclose(back, whole[inside(source)] * whole.size)
        with pytest.raises(ValueError, match="Use release_operand"):
            transform.reset_operand(None, distribution=[source, target])
        transform.release_operand()
        with pytest.raises(RuntimeError, match="after the operand has been released"):
            transform.execute()


def test_pencils():
    on_processes(4, pencils)


def once(group):
    whole = np.random.default_rng(3).normal(size=(4, 6, 5))
    rows = Cut(0).box(whole.shape, group.rank, group.nranks)
    x = whole[inside(rows)].astype(complex)
    y = nf.fft(x, distribution=Slab.X)
    assert y is x and np.allclose(y, np.fft.fftn(whole)[inside(rows)])
    assert np.allclose(nf.ifft(y, distribution=Slab.X), whole[inside(rows)] * whole.size)
    x = nf.allocate_operand(rows.shape, np, distribution=Slab.X)
    x[...] = whole[inside(rows)]
    y = nf.rfft(x, distribution=Slab.X)
    assert np.allclose(y, np.fft.rfftn(whole)[inside(Cut(0).box((4, 6, 3), group.rank, 2))])
    back = nf.irfft(y, distribution=Slab.X, options={"last_axis_parity": "odd"})
    assert np.allclose(back, whole[inside(rows)] * whole.size)


def test_once():
    on_processes(2, once)


def complaints(group):
    """All processes raise the same, whichever is wrong."""
    rank = group.rank

    def raises(kind, match, x, distribution=Slab.X, **options):
        with pytest.raises(kind, match=match):
            nf.FFT(x, distribution=distribution, options=options or None)

    c8 = np.complex64
    raises(ValueError, "2-D and 3-D tensors. The number of dimensions of the operand is 1.",
           np.ones(10, c8))
    raises(ValueError, "problem size is inconsistent", np.ones((32, 20 + rank), c8))
    raises(ValueError, "number of dimensions of the input operand is inconsistent",
           np.ones((8, 8) if rank else (8, 8, 2), c8))
    raises(ValueError, "operand dtype is inconsistent", np.ones((8, 8), c8 if rank else "c16"))
    raises(ValueError, "options are inconsistent", np.ones((4, 4), c8), reshape=bool(rank))
    raises(BindDistributionError if rank != 9 else None, "don't fit distribution Slab",
           np.ones((10 + 10 * rank, 64), c8))
    raises(ValueError, "not C on every process", np.ones((4, 6), c8, order="F" if rank else "C"))
    raises(ValueError, "mix of both", np.ones((4, 6), c8),
           [Box((0, 0), (4, 6))] * 2 if rank else Slab.X)
    raises(ValueError, "Must provide a Box pair", np.ones((4, 6), c8), [Box((0, 0), (4, 6))])
    raises(ValueError, "2D FFT R2C only supports X-slab input", np.ones((4, 4)), Slab.Y)
    raises(ValueError, "Incompatible dtype 'float64'", np.ones((4, 4)), fft_type="C2C")
    raises(RuntimeError, r"\[0\] the operand.*allocate_operand", np.ones((4, 6)))
    raises(ValueError, "'fft_type' must be one of", np.ones((4, 4), c8), Slab.X,
           **({"fft_type": "X2Y"} if rank else {"reshape": True}))
    with pytest.raises(ValueError, match="expects complex operand, found float64"):
        nf.fft(np.ones((4, 4), "float64" if rank else "complex64"), distribution=Slab.X)
    with pytest.raises(ValueError, match="You must provide memory_space|must be one of"):
        nf.allocate_operand((4, 4), logging, distribution=Slab.X)
    transform = nf.FFT(np.ones((4, 4), c8), distribution=Slab.X)
    transform.plan()
    for match, x, given in (
        ("data type of the new operand", np.ones((4, 4)), Slab.X),
        ("number of dimensions", np.ones((4, 4, 4), c8), Slab.X),
        ("Please specify the distribution", np.ones((4, 4), c8), None),
        ("using redistribute=True", np.ones((4, 4), c8), Slab.Y),
        ("uses slab distribution, but got box", np.ones((4, 4), c8), [Box((0, 0), (4, 4))] * 2),
    ):
        with pytest.raises(ValueError, match=match):
            transform.reset_operand(x, distribution=given)
    with pytest.raises(ValueError):
        transform.execute(direction="sideways")
    transform.execute(direction="inverse")


def test_complaints():
    on_processes(2, complaints)


def test_under_its_own_name(tmp_path):
    """A program as nvmath's examples are, without its package."""
    hocket.spawn(own_name, 2)


def own_name(comm):
    from hocket import compat

    compat.install("nvmath.distributed")
    import nvmath.distributed
    import nvmath.distributed.fft

    nvmath.distributed.initialize("cpu", nvd.HocketProcessGroup(comm), backends=["shm"])
    a = np.ones((16, 32), np.complex64)
    b = nvmath.distributed.fft.fft(a, distribution=nvmath.distributed.distribution.Slab.X)
    assert b is a and abs(b).sum() == (1024 if comm.rank == 0 else 0)
    nvmath.distributed.finalize()
