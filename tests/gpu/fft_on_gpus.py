"""Transforms of arrays of GPUs, the ranks' or a shared one: ``python fft_on_gpus.py PACKAGE``, under
hocket run. PACKAGE is cupy or torch."""

import importlib
import sys

import numpy as np

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.distribution import Slab
from hocket.fft import FFT, fft, irfft, rfft

xp = importlib.import_module(sys.argv[1])
IS_TORCH = sys.argv[1] == "torch"
world = hocket.init()
rank, n = world.rank, world.size
gpus = xp.cuda.device_count() if IS_TORCH else xp.cuda.runtime.getDeviceCount()
gpu = rank % gpus
xp.cuda.set_device(gpu) if IS_TORCH else xp.cuda.Device(gpu).use()


def put(x):
    return xp.from_numpy(np.ascontiguousarray(x)).cuda() if IS_TORCH else xp.asarray(x)


def as_numpy(x):
    return x.cpu().numpy() if IS_TORCH else xp.asnumpy(x)


def whole(shape, dtype="complex128"):
    random = np.random.default_rng(3)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def part(x, box):
    return np.ascontiguousarray(x[tuple(map(slice, *box))])


def close(got, wanted, tolerance=1e-12):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    assert abs(as_numpy(got) - wanted).max(initial=0) < tolerance * max(1, abs(wanted).max(initial=0))


def plans():
    for shape in [(16, 12), (8, 9, 10), (3, 8, 6, 7)]:
        rows, columns = (Slab(axis).box(shape, rank, n) for axis in (0, 1))
        x = whole(shape)
        axes = tuple(range(len(shape) - min(3, len(shape)), len(shape)))
        there = FFT(world, shape, rows, columns, axes=len(axes), gpu=gpu)
        assert there.library.startswith("cuFFT "), there.library
        back = FFT(world, shape, columns, rows, axes=len(axes), gpu=gpu)
        for times in (1, 2):
            y = there(put(part(times * x, rows)))
            close(y, part(times * np.fft.fftn(x, axes=axes), columns))
            close(back(y, direction="inverse"), part(times * x, rows))
        same = FFT(world, shape, rows, axes=len(axes), gpu=gpu)
        z = put(part(x, rows))
        assert same(z, z) is z
        close(z, part(np.fft.fftn(x, axes=axes), rows))


def once():
    shape = (12, 6, 10)
    rows = Slab(0).box(shape, rank, n)
    x = whole(shape)
    close(fft(world, put(part(x, rows)), rows, norm="ortho"), part(np.fft.fftn(x, norm="ortho"), rows))
    real = whole(shape, "float32")
    spectrum = np.fft.rfftn(real)
    half = Slab(0).box(spectrum.shape, rank, n)
    y = rfft(world, put(part(real, rows)), rows)
    close(y, part(spectrum, half), 1e-5)
    close(irfft(world, y, half, rows), part(real, rows), 1e-5)


def refusals():
    shape = (4, 4)
    rows = Slab(0).box(shape, rank, n)
    plan = FFT(world, shape, rows, gpu=gpu)
    x = put(part(whole(shape), rows))
    try:
        plan(as_numpy(x), x)
    except hocket.InvalidArgument as error:
        assert "host's memory" in str(error), error
    else:
        raise AssertionError("an array of the host was taken")
    plan(x, x)


def on_streams():
    shape = (64, 64, 64)
    rows = Slab(0).box(shape, rank, n)
    x = whole(shape)
    plan = FFT(world, shape, rows, gpu=gpu)
    stream = xp.cuda.Stream() if IS_TORCH else xp.cuda.Stream(non_blocking=True)
    array = put(part(x, rows))
    xp.cuda.synchronize() if IS_TORCH else xp.cuda.Device().synchronize()
    for _ in range(5):
        plan(array, array, stream=stream)
        plan(array, array, "inverse", stream=stream)
    stream.synchronize()
    close(array, part(x, rows), 1e-10)


def by_nvmath_s_names():
    nvd.initialize(gpu, nvd.HocketProcessGroup(world), ["nvshmem"])
    shape = (16, 8, 12)
    box = Slab(0).box(shape, rank, n)
    x = whole(shape, "complex64")
    a = nvd.fft.allocate_operand(
        part(x, box).shape, xp, input_dtype=xp.complex64, distribution=nvd.fft.Slab.X,
        memory_space="cuda",
    )
    a[...] = put(part(x, box))
    spectrum = np.fft.fftn(x)
    y = nvd.fft.fft(a, distribution=nvd.fft.Slab.X, options={"blocking": True})
    close(y, part(spectrum, box), 1e-5)  # spread as it was
    z = nvd.fft.ifft(y, distribution=nvd.fft.Slab.X, options={"blocking": True})
    close(z / np.prod(shape), part(x, box), 1e-5)
    options = {"blocking": True, "reshape": False}
    y = nvd.fft.fft(a, distribution=nvd.fft.Slab.X, options=options)
    close(y / np.prod(shape), part(spectrum, Slab(1).box(shape, rank, n)), 1e-5)
    nvd.free_symmetric_memory(a)
    nvd.finalize()


for step in (plans, once, refusals, on_streams, by_nvmath_s_names):
    step()
print("done")
