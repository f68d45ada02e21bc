"""Distributions of large arrays, and redistribution."""

import itertools

import numpy as np
import pytest
from helpers import threads, values
from processes import run_job

import hocket
from hocket._arrays.redistribute_gpu import move
from hocket.distribution import (
    BlockCyclic,
    BlockNonCyclic,
    Box,
    ProcessGrid,
    Redistribution,
    Slab,
    redistribute,
)

SHAPES = [(13,), (7, 10), (8, 4), (5, 6, 7)]


def inside(box):
    return tuple(slice(a, b) for a, b in zip(box.lower, box.upper))


def kinds(shape, rank, n):
    boxes = [Slab(axis).box(shape, rank, n) for axis in range(len(shape))]
    boxes.append(BlockNonCyclic(ProcessGrid((*[1] * (len(shape) - 1), n))).box(shape, rank))
    nothing = Box((0,) * len(shape), (0,) * len(shape))
    boxes.append(Box((0,) * len(shape), shape) if rank == n - 1 else nothing)
    return boxes


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float64", "int16", "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_redistribute(n, dtype, order):
    def body(comm):
        for shape in SHAPES:
            whole = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
            for source, target in itertools.product(kinds(shape, comm.rank, n), repeat=2):
                x = np.array(whole[inside(source)], order=order)
                y = redistribute(comm, x, source, target, order=order)
                assert y.dtype == dtype and np.array_equal(y, whole[inside(target)])

    threads(n, body)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_gpus_do_is_the_same(n, order):
    """Its array operations, on arrays in host memory."""

    def body(comm):
        for shape in SHAPES:
            whole = values(0, shape)
            for source, target in itertools.product(kinds(shape, comm.rank, n), repeat=2):
                said = comm.all_gather_object([list(c) for box in (source, target) for c in box])
                boxes = [(Box(*map(tuple, s[:2])), Box(*map(tuple, s[2:]))) for s in said]
                x = np.array(whole[inside(source)], order=order)
                y = move(comm, x, None, source, target, boxes, order)
                assert np.array_equal(y, whole[inside(target)])

    threads(n, body)


def test_plans_are_used_again_and_results_go_where_they_are_wanted():
    def body(comm):
        rows = Slab(0).box((9, 6), comm.rank, comm.size)
        columns = Slab(1).box((9, 6), comm.rank, comm.size)
        plan = Redistribution(comm, rows, columns)
        assert plan.whole == Box((0, 0), (9, 6))
        out = np.empty(columns.shape)
        for i in range(3):
            whole = values(i, (9, 6))
            assert plan(whole[inside(rows)], out=out) is out
            assert np.array_equal(out, whole[inside(columns)])

    threads(3, body)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")

    def body(comm):
        whole = torch.arange(54).reshape(9, 6)
        rows = Slab(0).box((9, 6), comm.rank, comm.size)
        columns = Slab(1).box((9, 6), comm.rank, comm.size)
        y = redistribute(comm, whole[inside(rows)].contiguous(), rows, columns)
        assert torch.equal(y, whole[inside(columns)])

    threads(2, body)


def test_what_is_wrong_on_one_is_wrong_on_all():
    def body(comm):
        mine = Slab(0).box((4, 4), comm.rank, 2)
        whole = Box((0, 0), (4, 4))
        first = comm.rank == 0
        for message, call in {
            "both hold": lambda: Redistribution(comm, whole, mine),
            "other memory order": lambda: Redistribution(comm, mine, mine, "C" if first else "F"),
            "wanted reach over": lambda: Redistribution(comm, mine, Box((0, 0), (5, 4))),
            "boxes of 2 axes, and rank 0 of 1": lambda: Redistribution(
                comm, *([Box((0,), (4,)) if first else mine] * 2)
            ),
            "x has shape": lambda: Redistribution(comm, mine, mine)(
                np.ones((2, 4) if first else (2, 3))
            ),
            "not contiguous in C": lambda: Redistribution(comm, mine, mine)(
                np.ones((2, 4), order="F" if first else "C")
            ),
            "lower corner": lambda: Redistribution(
                comm, mine, Box((0, 0), (-1, 4)) if first else mine
            ),
        }.items():
            with pytest.raises(hocket.InvalidArgument, match=message):
                call()
        comm.barrier()

    threads(2, body)


@pytest.mark.parametrize("layout", ["row", "column"])
@pytest.mark.parametrize("first", [None, (1, 2)])
@pytest.mark.parametrize("block", [(1, 1), (2, 3), (5, 2)])
def test_blocks_tile_the_array(layout, first, block):
    grid = ProcessGrid((2, 3), layout)
    blocks = BlockCyclic(grid, block, first)
    for shape in [(1, 1), (7, 11), (12, 12)]:
        seen = np.zeros(shape, int)
        for rank in range(6):
            part = np.ix_(*blocks.indices(shape, rank))
            assert seen[part].shape == blocks.shape(shape, rank)
            seen[part] += 1
        assert np.array_equal(seen, np.ones(shape))


def test_bad_values():
    for message, call in {
        "axis is 2": lambda: Slab(2).box((3, 4), 0, 1),
        "rank is 4": lambda: Slab(0).box((3, 4), 4, 4),
        "no places": lambda: ProcessGrid((2, 0)),
        "expected each of": lambda: ProcessGrid((2,), ranks=[0, 0]),
        "layout is": lambda: ProcessGrid((2,), "diagonal"),
        "block is": lambda: BlockCyclic(ProcessGrid((2,)), [0]),
        "outside the grid": lambda: BlockCyclic(ProcessGrid((2,)), [1], [2]),
        "axes": lambda: BlockNonCyclic(ProcessGrid((2,))).box((3, 4), 0),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


CONTEXT = """
import numpy as np, hocket
class Own(hocket.Bootstrap):
    def __init__(self, comm): self.comm = comm
    @property
    def rank(self): return self.comm.size - 1 - self.comm.rank
    @property
    def size(self): return self.comm.size
    def broadcast(self, buffer, root):
        out = self.comm.broadcast_object(buffer.tobytes(), root=self.comm.size - 1 - root)
        buffer[:] = np.frombuffer(out, np.uint8)
    def all_reduce(self, values, op): self.comm.all_reduce(values, op=op)
comm = hocket.init()
assert hocket.Context.current() is None
for _ in range(2):
    context = hocket.Context.initialize(bootstrap=Own(comm), deadline=30)
    assert hocket.Context.current() is context and context.device is None
    assert (context.rank, context.size) == (comm.size - 1 - comm.rank, comm.size)
    x = context.communicator.all_gather(np.array([context.rank]))
    assert x.ravel().tolist() == list(range(comm.size)) and "shm" in context.engines
    try:
        hocket.Context.initialize()
    except hocket.InvalidArgument as error:
        assert "finalize it first" in str(error)
    else:
        raise AssertionError
    del context
    hocket.Context.finalize()
    hocket.Context.finalize()
    assert hocket.Context.current() is None
"""


def frozen(shape):
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


WRONG = {
    "source is": lambda box, x: (None, x, None),
    "two corners of whole numbers": lambda box, x: (Box((0.5, 0), (2, 4)), x, None),
    "lower corner below 0": lambda box, x: (Box((0, 0), (2**70, 4)), x, None),
    "above its upper one": lambda box, x: (Box((0, 0), (2,)), x, None),
    "x is a list": lambda box, x: (box, x.tolist(), None),
    "out is a list": lambda box, x: (box, x, x.tolist()),
    "dtype": lambda box, x: (box, x.astype("M8[s]"), None),
    "read-only": lambda box, x: (box, x, frozen((4, 2))),
    "contiguous in C": lambda box, x: (box, np.asfortranarray(x), None),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_one_rank_gets_wrong_all_are_told(words):
    def body(comm):
        rank = comm.rank
        box, target = Box((2 * rank, 0), (2 * rank + 2, 4)), Box((0, 2 * rank), (4, 2 * rank + 2))
        source, x, out = box, np.zeros((2, 4)), np.zeros((4, 2))
        if rank == 1:
            source, x, out = WRONG[words](box, x)
        with pytest.raises(hocket.InvalidArgument, match=words) as caught:
            redistribute(comm, x, source, target, out)
        assert rank == 1 or "rank 1 refused" in str(caught.value)
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


class OnlyDLPack:
    """No array to NumPy, and without what NumPy's and PyTorch's say of their memory."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [memoryview, OnlyDLPack])
def test_any_array(kind, order):
    def body(comm):
        whole = np.arange(24.0).reshape(4, 6)
        rows, columns = (Slab(axis).box((4, 6), comm.rank, 2) for axis in (0, 1))
        x, wanted = (np.array(whole[inside(box)], order=order) for box in (rows, columns))
        y = redistribute(comm, kind(x), rows, columns, order=order)
        assert np.array_equal(y, wanted) and y.dtype == x.dtype
        out = np.zeros_like(wanted)
        redistribute(comm, x, rows, columns, kind(out), order=order)
        assert np.array_equal(out, wanted)
        other = np.array(x, order="F" if order == "C" else "C")
        with pytest.raises(hocket.InvalidArgument, match="x is not contiguous in"):
            redistribute(comm, kind(other), rows, columns, order=order)

    threads(2, body)


class OnGPU:
    __cuda_array_interface__ = {}

    def __init__(self, shape, dtype="float64"):
        self.shape, self.dtype = shape, np.dtype(dtype)


@pytest.mark.parametrize(
    "words, out",
    [
        (r"out has shape \(5, 2\), expected \(4, 2\)", OnGPU((5, 2))),
        ("out is float32, expected float64", OnGPU((4, 2), "float32")),
        ("different kinds of memory", np.zeros((4, 2))),
    ],
)
def test_an_out_on_a_gpu_is_checked(words, out):
    def body(comm):
        rows, columns = (Slab(axis).box((4, 4), comm.rank, 2) for axis in (0, 1))
        with pytest.raises(hocket.InvalidArgument, match=words):
            redistribute(comm, OnGPU((2, 4)), rows, columns, out)
        comm.barrier()

    threads(2, body)


class Broken:
    def __init__(self, shape):
        self.of = shape

    @property
    def shape(self):
        if isinstance(self.of, Exception):
            raise self.of
        return self.of


@pytest.mark.parametrize("shape", [5, RuntimeError("no shape")])
def test_what_an_array_raises_the_others_are_told(shape):
    def body(comm):
        box = Slab(0).box((4, 4), comm.rank, 2)
        move = Redistribution(comm, box, box)
        if comm.rank == 1:
            with pytest.raises((TypeError, RuntimeError)):
                move(Broken(shape))
        else:
            with pytest.raises(hocket.InvalidArgument, match="rank 1 refused .*(Type|Runtime)Error"):
                move(np.zeros((2, 4)))
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


class Corner:
    def __init__(self, error):
        self.error = error

    def __iter__(self):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no corner"), KeyboardInterrupt("no corner")])
def test_what_a_box_raises_the_others_are_told(error):
    def body(comm):
        box = Slab(0).box((4, 4), comm.rank, 2)
        if comm.rank == 1:
            with pytest.raises(type(error)):
                Redistribution(comm, (Corner(error), (4, 4)), box)
        else:
            with pytest.raises(hocket.InvalidArgument, match="rank 1 refused .*no corner"):
                Redistribution(comm, box, box)
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


GRID = ProcessGrid((2, 2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ProcessGrid((2.5,)), r"shape is \(2.5,\), expected whole numbers"),
        (lambda: ProcessGrid(4), "shape is 4"),
        (lambda: ProcessGrid((2,), ranks=[0.0, 1.0]), "ranks is"),
        (lambda: GRID.rank_at((-1, 0)), r"place \(-1, 0\) is outside"),
        (lambda: GRID.rank_at((0,)), "is outside"),
        (lambda: GRID.place_of(0.5), "rank is 0.5, expected a whole number"),
        (lambda: BlockCyclic(GRID, (2.9, 1)), r"block is \(2.9, 1\)"),
        (lambda: BlockCyclic(GRID, (2, 1), (0.9, 0)), r"first is \(0.9, 0\)"),
        (lambda: BlockCyclic(GRID, (2, 1)).indices((4, -1), 0), "no extent is negative"),
        (lambda: BlockNonCyclic(GRID).box((4.5, 4), 0), "the array's shape is"),
        (lambda: Slab(0).box((-3, 4), 0, 2), "no extent is negative"),
        (lambda: Slab(0).box((3.5, 4), 0, 2), "the array's shape is"),
        (lambda: Slab(0.0).box((3, 4), 0, 2), "axis is 0.0"),
        (lambda: Slab(0).box((3, 4), 0.5, 2), "rank is 0.5"),
    ],
)
def test_what_is_no_whole_number_is_not_rounded(call, words):
    with pytest.raises(hocket.InvalidArgument, match=words):
        call()


@pytest.mark.parametrize("n", [1, 3])
def test_context(n, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(CONTEXT)
    job = run_job(n, program)
    assert job.returncode == 0, job.stdout
