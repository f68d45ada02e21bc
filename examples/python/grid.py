"""Heat that spreads over a plate: each rank has a block, and a border that its neighbours fill.

    hocket run -n 4 -- python examples/python/grid.py
"""

import math

import numpy as np

import hocket

CELLS, STEPS = 24, 200


def spread(x):
    """One step, of the cells within the border."""
    x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4


def alone():
    whole = np.zeros((CELLS + 2, CELLS + 2))
    whole[0] = 1
    for _ in range(STEPS):
        spread(whole)
    return whole[1:-1, 1:-1]


with hocket.init() as comm:
    rows = max(d for d in range(1, math.isqrt(comm.size) + 1) if comm.size % d == 0)
    grid = hocket.Grid(comm, (rows, -1))
    spans = [np.array_split(np.arange(CELLS), n)[at] for n, at in zip(grid.shape, grid.coordinates)]
    x = np.zeros([len(span) + 2 for span in spans])
    if grid.coordinates[0] == 0:
        x[0] = 1  # the hot side; there is no neighbour to overwrite it
    for _ in range(STEPS):
        grid.neighbour_exchange(x)
        spread(x)
    assert np.array_equal(x[1:-1, 1:-1], alone()[np.ix_(*spans)])
    if comm.rank == 0:
        print(f"a plate on {grid.shape[0]} times {grid.shape[1]} ranks: the same as on one")
