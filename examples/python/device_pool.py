"""Workers of one process: a picture in strips, which overlap where they meet.

Each process has a pool of three workers. Each worker smooths a strip of the picture; neighbours
blend the rows that they share, within a process and between processes.
"""

import numpy as np

import hocket

comm = hocket.init()
with hocket.DevicePool(3) as pool:
    n = comm.size * pool.size  # strips in all; each worker has the whole height, and fills its part
    first = comm.rank * pool.size
    height, overlap = 8, 2

    def strip(i):
        rows = np.zeros((n * height, 4))
        rows[i * height : (i + 1) * height + overlap] = i
        return rows

    strips = pool.map(strip, range(first, first + pool.size))
    pool.exchange_halo(
        strips,
        [(first + i) * height for i in (1, 2)],
        overlap,
        mode="blend",
        across=comm,
        outer_seams=(first * height, (first + 3) * height),
    )
    between = strips[0][height * (first + 1) : height * (first + 1) + overlap, 0]
    assert np.allclose(between, first + np.array([1 / 3, 2 / 3]))

    # The mean over all rows of all strips; one array of each process crosses.
    mean = pool.mean(strips, axis=0, across=comm)
    total = comm.size * pool.size
    assert mean.shape == (1, 4) and 0 < mean[0, 0] < total

    # What a worker's function raises is raised here.
    try:
        pool.map(lambda i: 1 / i, [1, 0, 2])
    except ZeroDivisionError as error:
        if comm.rank == 0:
            print(f"a worker failed: {error}")

if comm.rank == 0:
    print(f"{n} strips, mean {mean[0, 0]:.3f}")
