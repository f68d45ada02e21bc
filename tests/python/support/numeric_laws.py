"""Laws that transforms and products obey, on random shapes and distributions. All ranks draw alike.

As a program: ``numeric_laws.py SEED ROUNDS``, one rank a process.
"""

import os
import sys

import numpy as np

import hocket
from hocket.distribution import BlockCyclic, BlockNonCyclic, Box, ProcessGrid, Slab
from hocket.fft import FFT, spectrum_of
from hocket.linalg import Matmul, local_shape

BOUNDS = {"float32": 3e-5, "float64": 1e-12, "complex64": 3e-5, "complex128": 1e-12}


def cut(whole, box):
    return np.ascontiguousarray(whole[tuple(map(slice, box.lower, box.upper))])


def any_box(random, shape, rank, n):
    """Slabs, blocks, all on one rank, or unequal parts along an axis."""
    form, axis = random.integers(4), int(random.integers(len(shape)))
    if form == 0:
        return Slab(axis).box(shape, rank, n)
    places = [1] * len(shape)
    places[axis] = n
    if form == 1:
        return BlockNonCyclic(ProcessGrid(tuple(places))).box(shape, rank)
    if form == 2:
        holder = int(random.integers(n))
        return Box((0,) * len(shape), tuple(shape) if rank == holder else (0,) * len(shape))
    cuts = [0, *sorted(random.integers(0, shape[axis] + 1, n - 1).tolist()), shape[axis]]
    lower, upper = [0] * len(shape), list(shape)
    lower[axis], upper[axis] = cuts[rank], cuts[rank + 1]
    return Box(tuple(lower), tuple(upper))


def any_spread(random, n):
    """A random distribution of a matrix."""
    high = [p for p in range(1, n + 1) if n % p == 0]
    high = high[random.integers(len(high))]
    grid = ProcessGrid((high, n // high), "row", random.permutation(n).reshape(high, n // high))
    blocks = BlockCyclic(grid, random.integers(1, 9, 2).tolist(), random.integers((high, n // high)).tolist())
    return [Slab(0), Slab(1), BlockNonCyclic(grid), blocks, "replicated"][random.integers(5)]


def part_of(whole, spread, rank, n):
    if isinstance(spread, str):
        return whole
    if isinstance(spread, Slab):
        return cut(whole, spread.box(whole.shape, rank, n))
    if isinstance(spread, BlockNonCyclic):
        spread = spread.bound(whole.shape)
    return np.ascontiguousarray(whole[np.ix_(*spread.indices(whole.shape, rank))])


def energy(comm, x):
    """The sum of squares of what all ranks have."""
    total = np.array([np.sum(np.abs(x.astype("complex128")) ** 2)])
    comm.all_reduce(total)
    return total[0]


def plan_of(*arguments):
    return FFT(*arguments, planning="estimated")


def close(got, want, bound, what):
    scale = np.abs(want).max(initial=0) + 1e-30
    error = np.abs(got - want).max(initial=0) / scale
    assert got.shape == want.shape and error < bound, (what, error)


def transforms(comm, random):
    n = comm.size
    axes = int(random.integers(1, 4))
    batches = int(random.integers(0, 2)) * int(random.integers(1, 4))
    shape = tuple(int(v) for v in random.choice([1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 17], axes))
    whole_shape = ((batches,) if batches else ()) + shape
    dtype = ("float32", "float64")[random.integers(2)]
    wide, bound = {"float32": "complex64", "float64": "complex128"}[dtype], BOUNDS[dtype]
    boxes = [any_box(random, whole_shape, comm.rank, n) for _ in range(2)]
    text = (n, whole_shape, axes, dtype, boxes)
    x, y = ((random.normal(size=whole_shape) + 1j * random.normal(size=whole_shape)).astype(wide)
            for _ in range(2))
    there = plan_of(comm, whole_shape, boxes[0], boxes[1], "c2c", dtype, axes)
    back = plan_of(comm, whole_shape, boxes[1], boxes[0], "c2c", dtype, axes)
    mine = cut(x, boxes[0])
    spectrum = there(mine)
    assert np.array_equal(mine, cut(x, boxes[0])), "the input was written to"
    close(back(spectrum, direction="inverse"), mine, bound, ("round trip", text))
    elements = float(np.prod(shape))
    ratio = energy(comm, spectrum) / (energy(comm, mine) * elements)
    assert abs(ratio - 1) < bound, ("Parseval", text, ratio)
    both = there((2 * mine - 3j * cut(y, boxes[0])).astype(wide))
    close(both, 2 * spectrum - 3j * there(cut(y, boxes[0])), 10 * bound, ("linear", text))
    # A shift along an axis multiplies the spectrum by a phase along that axis.
    axis, by = len(whole_shape) - axes + int(random.integers(axes)), int(random.integers(20))
    phase = np.exp(-2j * np.pi * by * np.arange(whole_shape[axis]) / whole_shape[axis])
    across = [1] * len(whole_shape)
    across[axis] = -1
    phases = cut(np.broadcast_to(phase.reshape(across), whole_shape), boxes[1])
    close(there(cut(np.roll(x, by, axis), boxes[0])), spectrum * phases, 20 * bound, ("shift", text))
    # In place, if source and target are the same box.
    same = plan_of(comm, whole_shape, boxes[0], boxes[0], "c2c", dtype, axes)
    inside = mine.copy()
    assert same(inside, inside) is inside
    assert same(inside, inside, direction="inverse") is inside
    close(inside, mine, bound, ("in place", text))
    # The spectrum of a real array is the first half of the complex one.
    halves = spectrum_of(whole_shape)
    half = any_box(random, halves, comm.rank, n)
    real = plan_of(comm, whole_shape, boxes[0], half, "r2c", dtype, axes)
    full = plan_of(comm, whole_shape, boxes[0], Box((0,) * len(whole_shape), whole_shape)
                   if comm.rank == 0 else Box((0,) * len(whole_shape), (0,) * len(whole_shape)), "c2c",
                   dtype, axes)
    all_of_it = comm.broadcast_object(full(cut(x.real.astype(wide), boxes[0])), 0)
    got = real(cut(x.real, boxes[0]))
    close(got, cut(all_of_it[..., : halves[-1]], half), 20 * bound, ("real", text))
    again = plan_of(comm, whole_shape, half, boxes[0], "c2r", dtype, axes)
    close(again(got, direction="inverse"), cut(x.real, boxes[0]), 20 * bound, ("real round trip", text))


def products(comm, random):
    n = comm.size
    m, k, l, p = (int(v) for v in random.choice([1, 2, 3, 5, 8, 13, 31, 64, 97], 4))
    dtype = list(BOUNDS)[random.integers(4)]
    spreads = {name: any_spread(random, n) for name in ("a", "b", "c", "ab", "bc", "abc")}
    forms = [("cheapest", "gathered", "reduced")[random.integers(3)] for _ in range(4)]
    text = (n, (m, k, l, p), dtype, spreads, forms)

    def numbers(shape):
        x = random.normal(size=shape)
        return (x + 1j * random.normal(size=shape) if "complex" in dtype else x).astype(dtype)

    whole = {"a": numbers((m, k)), "b": numbers((k, l)), "c": numbers((l, p))}
    a, b, c = (part_of(whole[name], spreads[name], comm.rank, n) for name in "abc")

    def times(size, names, x, y, form, **more):
        product = Matmul(comm, size, *(spreads[name] for name in names), dtype=dtype, form=form, **more)
        got = product(x, y)
        assert got.shape == local_shape(spreads[names[2]], size[:2], comm.rank, n)
        return got

    ab = times((m, l, k), ("a", "b", "ab"), a, b, forms[0])
    bc = times((k, p, l), ("b", "c", "bc"), b, c, forms[1])
    left = times((m, p, l), ("ab", "c", "abc"), ab, c, forms[2])
    right = times((m, p, k), ("a", "bc", "abc"), a, bc, forms[3])
    scale = energy(comm, left) ** 0.5 + 1e-30
    assert (np.abs(left - right).max(initial=0)) / scale < BOUNDS[dtype] * 10, ("associative", text)
    # (AB)' = B' A'. AB is distributed by columns, so its transpose is distributed by rows.
    turned = Matmul(comm, (l, m, k), spreads["b"], spreads["a"], Slab(0), "conjugate", "conjugate", dtype,
                    form=forms[1])
    rows = Matmul(comm, (m, l, k), spreads["a"], spreads["b"], Slab(1), dtype=dtype, form=forms[2])
    close(turned(b, a), rows(a, b).conj().T, BOUNDS[dtype] * 100, ("transposed", text))


def check(comm, seed, rounds):
    random = np.random.default_rng(seed)  # the same on all ranks
    for _ in range(rounds):
        transforms(comm, random)
        products(comm, random)


if __name__ == "__main__":
    if "HOCKET_TEST_HOSTS" in os.environ:
        hosts = int(os.environ["HOCKET_TEST_HOSTS"])
        os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
    world = hocket.init()
    assert len(set(world.hosts)) == int(os.environ.get("HOCKET_TEST_HOSTS", 1))
    check(world, *map(int, sys.argv[1:]))
    print("right", world.rank, flush=True)
