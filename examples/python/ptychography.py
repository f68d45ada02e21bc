"""Ptychography in small: an object is found from diffraction patterns of overlapping patches.

The patches are shared out by rows: a stripe for each process, and in it one for each of the two
workers of its pool. Every worker improves its own copy of the object and of the probe (the light).
After each round the copies are mended: neighbours blend the rows that both have seen, within a
process and between processes, and the probe becomes the mean of all workers' probes. Written with
tike's interface; with CuPy and GPUs the workers are GPUs.

    hocket run -n 2 -- python examples/python/ptychography.py
"""

import numpy as np

from hocket.compat.tike_communicators import Comm, MPIComm

SIDE, PROBE, STEP, ROUNDS = 192, 16, 4, 40


def picture():
    """A photograph of scikit-image's, or handwriting of scikit-learn's; values from 0 to 1."""
    try:
        from skimage.data import camera

        image = camera()[96 : 96 + 2 * SIDE : 2, 128 : 128 + 2 * SIDE : 2] / 255
    except ImportError:
        from sklearn.datasets import load_digits

        rows = SIDE // 16
        digits = load_digits().images[: rows**2].reshape(rows, rows, 8, 8)
        image = np.kron(digits.swapaxes(1, 2).reshape(SIDE // 2, SIDE // 2) / 16, np.ones((2, 2)))
    return image


def patches(array, corners, xp):
    return xp.stack([array[i : i + PROBE, j : j + PROBE] for i, j in corners])


def patterns(psi, probe, corners, xp):
    return xp.abs(xp.fft.fft2(probe * patches(psi, corners, xp), norm="ortho"))


def improve(psi, probe, corners, measured, xp):
    """One step towards what was measured, in place for the object; the new probe, and the misfit."""
    seen = patches(psi, corners, xp)
    waves = xp.fft.fft2(probe * seen, norm="ortho")
    size = xp.abs(waves)
    misfit = xp.sum((size - measured) ** 2)
    error = xp.fft.ifft2(waves * (measured / xp.maximum(size, 1e-6) - 1), norm="ortho")
    push, light = xp.zeros_like(psi), xp.full(psi.shape, 1e-3)
    for (i, j), change in zip(corners, xp.conj(probe) * error):
        push[i : i + PROBE, j : j + PROBE] += change
        light[i : i + PROBE, j : j + PROBE] += xp.abs(probe) ** 2
    psi += push / light
    weight = xp.sum(xp.abs(seen) ** 2, axis=0) + 1e-3
    return probe + 0.5 * xp.sum(xp.conj(seen) * error, axis=0) / weight, misfit


def main():
    with Comm(2, mpi=MPIComm) as comm:
        pool, mpi, xp = comm.pool, comm.mpi, comm.pool.xp
        workers = pool.num_workers * mpi.size  # in all
        first = pool.num_workers * mpi.rank
        # Where the stripes begin: rows of corners, and one past the last.
        steps = np.arange(0, SIDE - PROBE + 1, STEP)
        begins = [part[0] for part in np.array_split(steps, workers)] + [SIDE]
        edges = begins[first : first + pool.num_workers + 1]

        truth = (1 - 0.5 * picture()) * np.exp(0.5j * picture())
        y, x = np.mgrid[:PROBE, :PROBE] - (PROBE - 1) / 2
        light = np.exp(-(x**2 + y**2) / (PROBE / 3) ** 2).astype("complex128")

        def corners_of(begin, end):
            return [(i, j) for i in steps if begin <= i < end for j in steps]

        corners = [corners_of(a, b) for a, b in zip(edges, edges[1:])]
        measured = pool.map(
            lambda *given: patterns(*given, xp), pool.bcast([truth]), pool.bcast([light]), corners
        )

        # Everybody begins with the same guesses, each with a copy of its own.
        psi = pool.bcast([np.ones((SIDE, SIDE), "complex128")])
        probe = pool.bcast([light * (0.9 + 0.2 * x / PROBE)])
        history = []
        for _ in range(ROUNDS):
            results = pool.map(
                lambda p, q, c, m: improve(p, q, c, m, xp), psi, probe, corners, measured
            )
            misfit = comm.Allreduce_reduce_cpu([xp.asarray(result[1]) for result in results])
            history.append(float(misfit))
            comm.swap_edges(psi, PROBE - STEP, edges, outer_edges=(edges[0], edges[-1]))
            mean = comm.Allreduce_mean([result[0][None] for result in results], axis=0)[0]
            probe = pool.bcast([mean])

        # The stripes together are the object, but for a factor that no pattern shows.
        stripes = [p[a:b] for p, a, b in zip(psi, edges, edges[1:])]
        whole = mpi.Allgather(pool.gather_host(stripes), axis=0)
        inside = (slice(PROBE, -PROBE),) * 2
        found, wanted = whole[inside], truth[inside]
        found = found * (np.vdot(found, wanted) / np.vdot(found, found))
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        if mpi.rank == 0:
            print(f"{workers} workers: misfit {history[0]:.3g} to {history[-1]:.3g}, "
                  f"error of the object {error:.3f}")
        assert history[-1] < 0.1 * history[0] and error < 0.2, (history[0], history[-1], error)


if __name__ == "__main__":
    main()
