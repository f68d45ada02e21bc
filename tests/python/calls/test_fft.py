"""Fourier transforms of spread arrays, against NumPy's."""

import math

import numpy as np
import pytest
from helpers import threads
from processes import HOSTS, run_job, run_on_hosts

import hocket
from hocket.distribution import BlockNonCyclic, Box, ProcessGrid, Slab
from hocket.fft import FFT, fft, ifft, irfft, rfft, spectrum_of


def inside(box):
    return tuple(slice(a, b) for a, b in zip(box.lower, box.upper))


def grid_of(n, axes):
    """Places for `n` ranks, the axes in turn: 8 is (2, 2, 2) of three."""
    grid, left, at = [1] * axes, n, 0
    for prime in (2, 3, 5, 7):
        while left % prime == 0:
            grid[at % axes] *= prime
            left, at = left // prime, at + 1
    return tuple(grid)


def box_of(random, shape, rank, n):
    """One of the distributions that programs have; drawn alike on all ranks."""
    form = random.integers(4)
    if form == 0:
        axis = int(random.integers(len(shape)))
        return Slab(axis).box(shape, rank, n)
    if form == 1:
        return BlockNonCyclic(ProcessGrid(grid_of(n, len(shape)))).box(shape, rank)
    if form == 2:
        return BlockNonCyclic(ProcessGrid(grid_of(n, len(shape))[::-1], "column")).box(shape, rank)
    holder = int(random.integers(n))
    return Box((0,) * len(shape), shape if rank == holder else (0,) * len(shape))


def expected(x, kind, inverse, axes, norm, last):
    """NumPy's."""
    which = tuple(range(x.ndim - axes, x.ndim))
    n = math.prod((*x.shape[-axes:-1], last))
    norm, by = ("backward", n if inverse else 1) if norm == "none" else (norm, 1)
    if kind == "r2c":
        return np.fft.rfftn(x, axes=which, norm=norm)
    if kind == "c2r":
        return np.fft.irfftn(x, (*x.shape[-axes:-1], last), which, norm) * by
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=which, norm=norm) * by


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("library", ["eigen", ""])
def test_as_numpy_does(n, library, monkeypatch):
    monkeypatch.setenv("HOCKET_FFT_LIBRARY", library)

    def body(comm):
        random = np.random.default_rng(n)  # the same on all ranks
        for _ in range(60):
            shape = tuple(int(i) for i in random.integers(1, 14, random.integers(1, 5)))
            axes = int(random.integers(1, min(3, len(shape)) + 1))
            kind = ("c2c", "r2c", "c2r")[random.integers(3)]
            real = ("float32", "float64")[random.integers(2)]
            norm = ("backward", "ortho", "forward", "none")[random.integers(4)]
            x = random.normal(size=shape)
            inverse = kind == "c2r"
            if kind != "r2c":
                x = x + 1j * random.normal(size=shape)
            if kind == "c2r":
                x = np.fft.rfftn(x.real, axes=tuple(range(len(shape) - axes, len(shape))))
            if kind == "c2c":
                inverse = bool(random.integers(2))
            x = x.astype(real if kind == "r2c" else {"float32": "c8", "float64": "c16"}[real])
            want = expected(x, kind, inverse, axes, norm, shape[-1])
            source = box_of(random, x.shape, comm.rank, n)
            target = box_of(random, want.shape, comm.rank, n)
            plan = FFT(comm, shape, source, target, kind, real, axes, norm, "estimated")
            mine = np.ascontiguousarray(x[inside(source)])
            kept = mine.copy()
            direction = "inverse" if inverse else "forward"
            for _ in range(2):
                got = plan(mine, direction=direction)
                assert np.array_equal(mine, kept)
                scale = np.abs(want).max() + 1e-30
                assert got.dtype == (real if kind == "c2r" else np.result_type(real, "c8"))
                error = np.abs(got - want[inside(target)]).max(initial=0) / scale
                assert error < (2e-6 if real == "float32" else 2e-14), (shape, kind, error)

    threads(n, body)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_once_and_back(n):
    def body(comm):
        random = np.random.default_rng(3)
        whole = random.normal(size=(6, 5, 7))
        rows = Slab(0).box(whole.shape, comm.rank, n)
        x = whole[inside(rows)]
        got = fft(comm, x.astype(complex), rows)
        assert np.allclose(got, np.fft.fftn(whole)[inside(rows)])
        assert np.allclose(ifft(comm, got, rows), x)
        half = Slab(1).box(spectrum_of(whole.shape), comm.rank, n)
        got = rfft(comm, x, rows, half)
        assert np.allclose(got, np.fft.rfftn(whole)[inside(half)])
        assert np.allclose(irfft(comm, got, half, rows, 7), x)
        plan = FFT(comm, whole.shape, rows)
        z = x.astype(complex)
        assert plan(z, z) is z and np.allclose(z, np.fft.fftn(whole)[inside(rows)])

    threads(n, body)


def test_refusals_reach_all():
    def body(comm):
        rows = Slab(0).box((6, 4), comm.rank, 2)
        for wrong, say in (
            ({"kind": "c2d"}, "kind is 'c2d', expected one of c2c, r2c, c2r"),
            ({"dtype": "int32"}, "dtype is int32, expected one of float32"),
            ({"norm": "double"}, "norm is 'double'"),
            ({"axes": 7}, "7 axes of 2 are to be transformed"),
        ):
            with pytest.raises(hocket.InvalidArgument, match=say):
                FFT(comm, (6, 4), rows, **(wrong if comm.rank == 1 else {}))
        plan = FFT(comm, (6, 4), rows)
        x = np.ones((3, 4), "complex128")
        with pytest.raises(hocket.InvalidArgument, match=r"x has shape \(2, 4\) and dtype"):
            plan(x[:2] if comm.rank == 0 else x)
        with pytest.raises(hocket.InvalidArgument, match="contiguous|order"):
            plan(np.asfortranarray(x) if comm.rank == 0 else x)
        plan(x)

    threads(2, body)


PROGRAM = """
import sys, os, signal
if "HOCKET_TEST_HOSTS" in os.environ:
    hosts = int(os.environ["HOCKET_TEST_HOSTS"])
    os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import numpy as np
import hocket
from hocket.distribution import Slab
from hocket.fft import FFT

comm = hocket.init()
assert len(set(comm.hosts)) == int(os.environ.get("HOCKET_TEST_HOSTS", 1))
shape = (30, 20, 18)
rows, columns = (Slab(a).box(shape, comm.rank, comm.size) for a in (0, 1))
whole = np.random.default_rng(1).normal(size=shape) + 0j
cut = lambda a, box: np.ascontiguousarray(a[tuple(map(slice, *box))])
plan = FFT(comm, shape, rows, columns)
back = FFT(comm, shape, columns, rows)
for _ in range(3):
    y = plan(cut(whole, rows))
    assert np.allclose(y, cut(np.fft.fftn(whole), columns))
    assert np.allclose(back(y, direction="inverse"), cut(whole, rows))
if "die" in sys.argv:
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            plan(cut(whole, rows))
    except hocket.PeerDied as error:
        print("told of rank", error.rank, flush=True)
        del plan, back
        sys.exit(0)
print("right", comm.rank, flush=True)
"""


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("hosts", HOSTS)
def test_processes(n, hosts):
    run_on_hosts(n, hosts, "-c", PROGRAM)


def test_a_rank_dies():
    done = run_job(3, "-c", PROGRAM, "die", before=["--keep-going"])
    assert done.stdout.count("told of rank 1") == 2, done.stdout


class LikeOfAGpu:
    """Says that it is of a GPU, and not of which."""

    __cuda_array_interface__ = {}
    dtype = np.dtype("complex64")
    shape = (3,)


def test_what_is_of_no_known_gpu_is_refused_on_all_ranks():
    def body(comm):
        box = Box((0,), (3,)) if comm.rank == 0 else Box((3,), (3,))
        x = LikeOfAGpu() if comm.rank == 0 else np.zeros(0, "complex64")
        with pytest.raises(hocket.InvalidArgument, match="LikeOfAGpu says that it is of a GPU"):
            irfft(comm, x, box, Box((0,), (4 if comm.rank == 0 else 0,)))
        x = LikeOfAGpu()
        x.device = type("Device", (), {"id": 0})()
        with pytest.raises(hocket.InvalidArgument, match="out is missing"):
            hocket._arrays.kinds.empty_like(x, (3,), "complex64")
        return comm.all_gather_object(comm.rank)

    assert hocket.run_threads(body, 2) == [[0, 1]] * 2
