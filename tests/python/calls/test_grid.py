"""Ranks in a grid, and borders of arrays."""

import itertools

import numpy as np
import pytest

import hocket

SHAPES = {1: [(1,), (1, 1)], 2: [(2,), (2, 1)], 4: [(4,), (2, 2), (1, 4)], 6: [(3, 2), (1, 3, 2)]}
CASES = [(n, shape, periodic) for n, shapes in SHAPES.items() for shape in shapes
         for periodic in itertools.product([False, True], repeat=len(shape))]


@pytest.mark.ranks(6)
def test_places(comm):
    grid = comm.grid((2, -1), periodic=(False, True))
    assert isinstance(grid, hocket.Grid)
    assert grid.shape == (2, 3) and grid.periodic == (False, True)
    assert grid.coordinates == divmod(comm.rank, 3)
    assert [grid.coordinates_of(rank) for rank in range(6)] == list(itertools.product(range(2), range(3)))
    row, column = grid.coordinates
    assert grid.rank_of((row, column + 3)) == comm.rank
    assert grid.rank_of((2, 0)) == grid.rank_of((-1, 0)) == hocket.NULL_RANK
    assert grid.shift(1) == (row * 3 + (column - 1) % 3, row * 3 + (column + 1) % 3)
    assert grid.shift(0) == (
        hocket.NULL_RANK if row == 0 else column, hocket.NULL_RANK if row == 1 else 3 + column)
    assert grid.shift(0, -1) == grid.shift(0)[::-1]
    assert repr(grid).startswith("<hocket.Grid of (2, 3), rank ")


@pytest.mark.ranks(4)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (-1, -1), (0, 4), (), (8, -1)])
def test_grids_that_do_not_have_the_ranks(comm, shape):
    with pytest.raises(hocket.InvalidArgument, match="does not have the communicator's 4 ranks"):
        hocket.Grid(comm, shape)


@pytest.mark.ranks(2)
def test_arguments_that_are_wrong(comm):
    grid = hocket.Grid(comm, (2,))
    for wrong in (lambda: hocket.Grid(comm, (2,), periodic=[True, False]), lambda: grid.rank_of((0, 0)),
                  lambda: grid.coordinates_of(2), lambda: grid.shift(1),
                  lambda: grid.neighbour_exchange(np.ones(5), halo=2),
                  lambda: grid.neighbour_exchange(np.ones(5), halo=-1),
                  lambda: grid.neighbour_exchange(np.ones(5), halo=[1, 1])):
        with pytest.raises(hocket.InvalidArgument):
            wrong()


RUBBISH = [None, "x", b"", 1.5, {}, object(), len]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("rubbish", RUBBISH, ids=lambda each: type(each).__name__)
def test_what_is_no_number_is_named(comm, rubbish):
    grid = hocket.Grid(comm, (2,))
    for name, call in (("shape", lambda: comm.grid(rubbish)), ("shape", lambda: comm.grid([rubbish])),
                       ("periodic", lambda: comm.grid((2,), periodic=rubbish)),
                       ("coordinates", lambda: grid.rank_of(rubbish)),
                       ("rank", lambda: grid.coordinates_of(rubbish)),
                       ("axis", lambda: grid.shift(rubbish)),
                       ("distance", lambda: grid.shift(0, rubbish)),
                       ("halo", lambda: grid.neighbour_exchange(np.ones(5), rubbish)),
                       ("halo", lambda: grid.neighbour_exchange(np.ones(5), [rubbish])),
                       ("x", lambda: grid.neighbour_exchange(rubbish))):
        with pytest.raises(hocket.InvalidArgument, match=f"{name}|a grid of \\(\\)"):
            call()


@pytest.mark.ranks(2)
def test_a_negative_border_is_refused(comm):
    with pytest.raises(hocket.InvalidArgument, match="halo is 1 and -1 along axis 0, expected at least 0"):
        comm.grid((2,)).neighbour_exchange(np.ones(5), [(1, -1)])


@pytest.mark.ranks(2)
def test_numbers_of_numpy_are_numbers(comm):
    grid = comm.grid(np.array([2]), periodic=np.bool_(True))
    assert grid.shape == (2,) and grid.periodic == (True,)
    x = np.full(5, comm.rank)
    grid.neighbour_exchange(x, halo=np.int64(1))
    assert list(x) == [1 - comm.rank, *[comm.rank] * 3, 1 - comm.rank]
    assert grid.rank_of(np.array([1])) == 1 and grid.coordinates_of(np.int32(1)) == (1,)


@pytest.mark.ranks(2)
def test_a_border_that_cannot_be_written_is_refused_first(comm):
    x = np.ones(5)
    x.flags.writeable = False
    with pytest.raises(hocket.InvalidArgument, match="read-only"):
        comm.grid((2,)).neighbour_exchange(x)


def check(comm, shape, periodic, halo, more=(), order="C"):
    """Compares with the whole array, of which each rank takes its part."""
    grid = hocket.Grid(comm, shape, periodic)
    widths = [(h, h) if isinstance(h, int) else h for h in halo]
    # Parts of different sizes along each axis.
    edges = [np.cumsum([0, *(3 + place for place in range(extent))]) for extent in shape]
    whole_shape = tuple(int(edge[-1]) for edge in edges) + more
    whole = np.arange(np.prod(whole_shape), dtype="float64").reshape(whole_shape) + 1
    spans = [(edge[at], edge[at + 1]) for edge, at in zip(edges, grid.coordinates)]
    x = np.full([b - a + w + v for (a, b), (w, v) in zip(spans, widths)] + list(more), -1.0, order=order)
    inner = tuple(slice(w, w + b - a) for (a, b), (w, _) in zip(spans, widths))
    x[inner] = whole[tuple(slice(a, b) for a, b in spans)]
    assert grid.neighbour_exchange(x, halo, tag=3) is x
    places = [np.arange(a - w, b + v) for (a, b), (w, v) in zip(spans, widths)]
    there = [np.ones(len(p), bool) if wraps else (p >= 0) & (p < size)
             for p, wraps, size in zip(places, periodic, whole_shape)]
    wanted = whole[np.ix_(*(p % size for p, size in zip(places, whole_shape)))]
    mask = mask_of(there)
    wanted = np.where(mask.reshape(mask.shape + (1,) * len(more)), wanted, -1.0)
    assert np.array_equal(x, wanted)


def mask_of(there):
    mask = there[0]
    for one in there[1:]:
        mask = mask[..., None] & one
    return mask


@pytest.mark.parametrize(("n", "shape", "periodic"), CASES)
@pytest.mark.parametrize("kind", ["one", "wide", "uneven"])
def test_borders(n, shape, periodic, kind):
    halo = {"one": [1] * len(shape), "wide": [3] * len(shape),
            "uneven": [(2, 1), 0, (0, 3)][: len(shape)]}[kind]
    hocket.run_threads(check, n, shape, periodic, halo)


@pytest.mark.ranks(4)
@pytest.mark.parametrize("order", ["C", "F"])
def test_borders_of_arrays_with_more_axes(comm, order):
    check(comm, (2, 2), (True, False), [1, 2], more=(2,), order=order)
