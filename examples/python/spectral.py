"""Waves in a periodic box, solved on all ranks: each step finds the Laplacian in Fourier space. The
field is compared with the exact one, and its middle plane can be drawn.

hocket run -n 4 -- python examples/python/spectral.py [PICTURE.pgm]
"""

import sys

import numpy as np

import hocket
from hocket.distribution import Slab
from hocket.fft import FFT, spectrum_of

N, STEPS, DT = 48, 200, 0.01
WAVES = [((1, 2, 0), 1.0), ((3, -1, 2), 0.5), ((0, 0, 4), 0.25)]

comm = hocket.init()
shape, half = (N, N, N), spectrum_of((N, N, N))
here = Slab(0).box(shape, comm.rank, comm.size)  # planes of the field
there = Slab(1).box(half, comm.rank, comm.size)  # planes, the other way, of its spectrum
forward = FFT(comm, shape, here, there, "r2c")
back = FFT(comm, shape, there, here, "c2r")

points = np.meshgrid(
    *(2 * np.pi * np.arange(a, b) / N for a, b in zip(*here)), indexing="ij", sparse=True)
numbers = [np.fft.fftfreq(N, 1 / N)] * 2 + [np.fft.rfftfreq(N, 1 / N)]
waves = np.meshgrid(*(k[a:b] for k, a, b in zip(numbers, *there)), indexing="ij", sparse=True)
minus_k2 = -sum(k**2 for k in waves)


def exact(t):
    """A sum of travelling waves."""
    field = np.zeros(here.shape)
    for k, height in WAVES:
        phase = sum(ki * x for ki, x in zip(k, points))
        field += height * np.sin(phase - np.linalg.norm(k) * t)
    return field


# Two values in time give the next one: u'' is the Laplacian of u.
before, now = exact(-DT), exact(0)
spectrum, laplacian = np.empty(there.shape, complex), np.empty(here.shape)
for step in range(1, STEPS + 1):
    forward(now, spectrum)
    spectrum *= minus_k2
    back(spectrum, laplacian)
    before, now = now, 2 * now - before + DT**2 * laplacian
    if step % 50 == 0:
        error = np.array([abs(now - exact(step * DT)).max(initial=0)])
        comm.all_reduce(error, op="max")
        if comm.rank == 0:
            print(f"step {step} of {STEPS}: error {error[0]:.1e}", flush=True)
        assert error[0] < 1e-3, error  # of the steps in time: DT squared

if len(sys.argv) > 1:
    # The plane in the middle, from the rank that has it.
    owner = next(r for r in range(comm.size) if N // 2 < Slab(0).box(shape, r, comm.size).upper[0])
    plane = np.ascontiguousarray(now[N // 2 - here.lower[0]]) if comm.rank == owner else (
        np.empty((N, N)))
    comm.broadcast(plane, root=owner)
    if comm.rank == 0:
        grey = np.uint8(255 * (plane - plane.min()) / np.ptp(plane))
        with open(sys.argv[1], "wb") as picture:
            picture.write(b"P5 %d %d 255\n" % grey.shape[::-1] + grey.tobytes())
if comm.rank == 0:
    print(f"{comm.size} ranks: {len(WAVES)} waves in {N}^3 points agree with the exact ones")
