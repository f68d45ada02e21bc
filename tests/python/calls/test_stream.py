"""Chunks that are loaded ahead."""

import numpy as np
import pytest

import hocket
from hocket import stream

COUNTS = [1, 7, 64, 65, 1000]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("chunk_size", [1, 8, 64, 5000])
def test_chunks_are_all_there_in_order(count, chunk_size):
    x, y = np.arange(count * 3.0).reshape(count, 3), np.arange(count) * 7
    seen = []

    def use(parts, first, last):
        assert [len(part) for part in parts] == [last - first] * 2
        seen.append((first, last, parts[0].copy(), parts[1].copy()))

    stream.chunks(use, [x, y], chunk_size=chunk_size)
    assert [entry[0] for entry in seen] == list(range(0, count, chunk_size))
    assert np.array_equal(np.concatenate([entry[2] for entry in seen]), x)
    assert np.array_equal(np.concatenate([entry[3] for entry in seen]), y)


@pytest.mark.parametrize("count", [0, *COUNTS])
def test_numbers_alone(count):
    seen = []
    stream.chunks(lambda parts, a, b: seen.append((parts, a, b)), [], count=count, chunk_size=8)
    assert seen == [([], k, min(k + 8, count)) for k in range(0, count, 8)]
    chosen = []
    stream.chunks(lambda parts, a, b: chosen.append((a, b)), [], count=9, indices=[8, 0, 3],
                  chunk_size=2)
    assert chosen == [(0, 2), (2, 3)]


def test_indices_choose():
    x = np.arange(100.0)
    chosen = [5, 99, 5, 0, 17]
    seen = []
    stream.chunks(lambda parts, a, b: seen.extend(parts[0]), [x], indices=chosen, chunk_size=2)
    assert seen == chosen
    assert stream.modify(
        lambda parts, values, which: (values[0] + which,), [x], ([],), indices=chosen, chunk_size=2
    ) == (chosen,)


@pytest.mark.parametrize("count", COUNTS)
def test_reduce(count):
    a, b = np.arange(float(count)), np.arange(count * 2.0).reshape(count, 2)
    sums = stream.reduce(
        lambda p, q: (p.sum(), (p[:, None] * q).sum(axis=0)), [a, b], [(), (2,)],
        ["float64", "float64"], chunk_size=16,
    )
    assert np.allclose(sums[0], a.sum()) and np.allclose(sums[1], (a[:, None] * b).sum(axis=0))


def test_reduce_of_a_generator():
    def parts(a):
        yield a.sum()
        yield a.max()

    sums = stream.reduce(parts, [np.arange(10.0)], [(), ()], ["float64"] * 2, chunk_size=5)
    assert sums[0] == 45 and sums[1] == 4 + 9


def test_errors_come_through():
    def fails(parts, first, last):
        if first == 8:
            raise KeyError("eight")

    with pytest.raises(KeyError, match="eight"):
        stream.chunks(fails, [np.arange(100)], chunk_size=4)
    nothing = lambda *_: None  # noqa: E731
    with pytest.raises(ValueError, match="differ in length"):
        stream.chunks(nothing, [np.ones(3), np.ones(4)])
    with pytest.raises(ValueError, match="chunk_size is 0"):
        stream.chunks(nothing, [np.ones(3)], chunk_size=0)
    with pytest.raises(ValueError, match="arrays is empty; give count"):
        stream.chunks(nothing, [])
    with pytest.raises(ValueError, match="count is 4, and the arrays have 3 entries"):
        stream.chunks(nothing, [np.ones(3)], count=4)
    with pytest.raises(ValueError, match="count is -1, expected at least 0"):
        stream.chunks(nothing, [], count=-1)
    with pytest.raises(ValueError, match="count is 2.5, expected a whole number"):
        stream.chunks(nothing, [], count=2.5)
    with pytest.raises(hocket.InvalidArgument, match="device is"):
        stream.chunks(nothing, [np.ones(3)], device="tpu")
    stream.chunks(fails, [np.ones(0)])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"indices": [1, 10]}, "indices has 10, and the arrays have 10 entries"),
        ({"indices": [-11]}, "indices has -11"),
        ({"indices": np.array([2**64 - 1], "uint64")}, "indices has 18446744073709551615"),
        ({"indices": [1.7]}, "indices has dtype float64"),
        ({"indices": [True] * 10}, "indices has dtype bool"),
        ({"indices": [[1, 2]]}, r"shape \(1, 2\)"),
        ({"chunk_size": 1.5}, "chunk_size is 1.5, expected a whole number"),
    ],
)
def test_entries_that_are_not_there(settings, words):
    with pytest.raises(hocket.InvalidArgument, match=words):
        stream.chunks(lambda *_: None, [np.arange(10.0)], **settings)


def test_entries_from_the_end():
    seen = []
    stream.chunks(lambda p, *_: seen.extend(p[0]), [np.arange(10)], indices=[-1, 0, -10, 9])
    assert seen == [9, 0, 0, 9]
    stream.chunks(lambda *_: seen.clear(), [np.arange(10)], indices=[])
    assert seen == [9, 0, 0, 9]


def test_masks_are_not_lost():
    x = np.ma.masked_array(np.arange(3.0), mask=[True, False, False])
    with pytest.raises(hocket.InvalidArgument, match=r"arrays\[1\] has a mask"):
        stream.chunks(lambda *_: None, [np.arange(3.0), x])


def test_as_many_contributions_as_sums():
    def made(*parts):
        return [1.0, 2.0]

    with pytest.raises(hocket.InvalidArgument, match="f made 2 contributions, expected 1"):
        stream.reduce(made, [np.arange(3.0)], [()], ["float64"])
    with pytest.raises(hocket.InvalidArgument, match="f made 2 contributions, expected 3"):
        stream.reduce(made, [np.arange(3.0)], [(), (), ()], ["float64"] * 3)
    with pytest.raises(hocket.InvalidArgument, match="2 shapes and 1 dtypes"):
        stream.reduce(made, [np.arange(3.0)], [(), ()], ["float64"])
