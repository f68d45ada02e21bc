"""A table of kinds of values against pickle: each arrives as it was, or is refused by its name."""

import array
import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import pickle
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from helpers import threads

import hocket


class Unit(np.ndarray):
    """An array with a unit, as packages of physical quantities have it."""

    def __new__(cls, values, unit):
        made = np.asarray(values).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", None)

    def __reduce__(self):
        return Unit, (np.asarray(self), self.unit)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    A = "a"


class Pair(NamedTuple):
    x: int
    y: int


class Plain:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Plain and other.value == self.value

    __hash__ = None


def subclass(base, *arguments):
    """A value of a class derived from `base`, which pickle finds by its name here."""
    name = f"Own{base.__name__.capitalize()}"
    made = globals().setdefault(name, type(name, (base,), {"__module__": __name__}))
    return made(*arguments)


def twice(part):
    return [part, {"again": part}]


def cycle():
    made = [1]
    made.append((made,))
    return made


def nested(depth):
    made = []
    for _ in range(depth):
        made = [made]
    return made


# By name: the value, and the word of the refusal; None where it arrives without pickle.
PLAIN = {
    "none": None,
    "truth": True,
    "integer": -(2**100),
    "float": 0.1,
    "negative zero": -0.0,
    "complex": 1 - 2j,
    "text": "häß\0\U0001f600",
    "bytes": b"\0\xff",
    "byte array": bytearray(b"abc"),
    "list": [1, [2]],
    "tuple": (1, (), ((2,),)),
    "one tuple twice": twice((1, "a")),
    "dict": {"z": 1, "a": 2, (1, b"k"): 3, None: 4, 1.5: 5},
    "depth 60": nested(60),
    "array": np.arange(6, dtype="int16").reshape(2, 3),
    "fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "fortran order in three axes": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10)[::3],
    "reversed": np.arange(4)[::-1],
    "axes swapped": np.arange(24).reshape(2, 3, 4).swapaxes(0, 1),
    "broadcast": np.broadcast_to(np.float32(2), (2, 2)),
    "no elements": np.zeros((0, 5), "int8"),
    "no dimensions": np.array(5.5),
    "half": np.ones(3, ml_dtypes.bfloat16),
    "numpy scalar": np.float32(0.1),
    "numpy bool": np.True_,
    "numpy double, which is a float": np.float64(0.1),
    "key of numpy": {np.int64(3): np.uint8(4)},
}
REFUSED = {
    "array of a subclass": (Unit([1.0, 2.0], "m"), "Unit"),
    "matrix": (np.asmatrix([[1.0, 2.0]]), "matrix"),
    "masked": (np.ma.masked_array([1.0, 2.0], [True, False]), "MaskedArray"),
    "masked without a mask": (np.ma.masked_array([1.0, 2.0]), "MaskedArray"),
    "records": (np.rec.array([(1, 2.0)], "i4,f8"), "recarray"),
    "structured": (np.zeros(2, "i4,f8"), "f0"),
    "other byte order": (np.arange(3, dtype=">i4"), "dtype >i4"),
    "long doubles": (np.ones(2, np.longdouble), "float128"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "durations": (np.array([1], "m8[s]"), "timedelta64"),
    "array of text": (np.array(["a", "bc"]), "<U2"),
    "array of objects": (np.array([None, "a"], object), "dtype object"),
    "scalar of a date": (np.datetime64("2020-01-01"), "datetime64"),
    "scalar of text": (np.str_("a"), "numpy.str_"),
    "long double": (np.longdouble(1), "a numpy.longdouble"),
    "list of a subclass": (subclass(list, [1]), "an? .*OwnList"),
    "tuple of a subclass": (subclass(tuple, [1]), "OwnTuple"),
    "dict of a subclass": (subclass(dict, {1: 2}), "OwnDict"),
    "text of a subclass": (subclass(str, "a"), "OwnStr"),
    "bytes of a subclass": (subclass(bytes, b"a"), "OwnBytes"),
    "byte array of a subclass": (subclass(bytearray, b"a"), "OwnBytearray"),
    "integer of a subclass": (subclass(int, 3), "OwnInt"),
    "float of a subclass": (subclass(float, 3), "OwnFloat"),
    "complex of a subclass": (subclass(complex, 3), "OwnComplex"),
    "ordered dict": (collections.OrderedDict(a=1), "OrderedDict"),
    "default dict": (collections.defaultdict(list, a=[1]), "defaultdict"),
    "counter": (collections.Counter("aab"), "Counter"),
    "deque": (collections.deque([1, 2], 5), "deque"),
    "named tuple": (Pair(1, 2), "Pair"),
    "enum": (Color.RED, "Color"),
    "enum of integers": (Level.HIGH, "Level"),
    "enum of text": (Name.A, "Name"),
    "set": ({1, 2}, "a set"),
    "frozen set": (frozenset([1]), "frozenset"),
    "range": (range(3), "a range"),
    "slice": (slice(1, 2), "a slice"),
    "ellipsis": (..., "an ellipsis"),
    "class": (Plain, "a type"),
    "function": (nested, "a function"),
    "object": (Plain(3), "Plain"),
    "exception": (ValueError("no"), "a ValueError"),
    "decimal": (decimal.Decimal("0.1"), "decimal.Decimal"),
    "fraction": (fractions.Fraction(1, 3), "Fraction"),
    "date": (datetime.date(2020, 2, 3), "datetime.date"),
    "path": (pathlib.PurePosixPath("a/b"), "PurePosixPath"),
    "dtype": (np.dtype("f4"), "dtype"),
    "text that is no utf-8": ("\ud800", "surrogates"),
    "key that is no utf-8": ({"\udcff": 1}, "surrogates"),
    "one list twice": (twice([1]), "a list twice"),
    "one dict twice": (twice({}), "a dict twice"),
    "one byte array twice": (twice(bytearray(b"a")), "a bytearray twice"),
    "one array twice": (twice(np.ones(2)), "a numpy.ndarray twice"),
    "list within itself": (cycle(), "within itself"),
    "depth 70": (nested(70), "deeper than 64"),
}
# Arrays of other packages arrive as NumPy's if pickle is refused.
FOREIGN = {
    "array.array": array.array("d", [1.5]),
    "memory view": memoryview(b"abc"),
}


def described(value, seen=None):
    """The value as nested tuples in which nothing that differs is equal: types, order, identity."""
    seen = {} if seen is None else seen
    kind = type(value)
    changes = kind not in (int, float, complex, str, bytes, bool, type(None), tuple, type)
    if changes and id(value) in seen:
        return ("seen", seen[id(value)])
    if changes:
        seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray) and value.dtype != object:
        flags = value.flags.c_contiguous, value.flags.f_contiguous
        more = getattr(value, "unit", None), np.ma.getmaskarray(value).tobytes()
        return kind, value.dtype, value.shape, flags, np.asarray(value).tobytes("A"), more
    if isinstance(value, (list, tuple, collections.deque)):
        return (kind, *(described(item, seen) for item in value))
    if isinstance(value, dict):
        return (kind, *((described(key, seen), described(item, seen)) for key, item in value.items()))
    return kind, repr(value) if not isinstance(value, Plain) else value.value


def everywhere(comm, value, **options):
    """Yields the value that each of the calls gives on this rank."""
    source = value if comm.rank == 1 else None
    yield comm.broadcast_object(source, 1, **options)
    yield from comm.all_gather_object(value, **options)
    yield from comm.gather_object(value, 1, **options) or []
    yield comm.scatter_object([value, value] if comm.rank == 1 else None, 1, **options)
    if comm.rank == 1:
        comm.send_object(value, 0, **options)
    else:
        yield comm.recv_object(1, **options).object


@pytest.mark.parametrize("allow_pickle", [False, True])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_arrive_as_pickle_would_bring_them(name, allow_pickle):
    value = PLAIN[name]
    wanted = described(pickle.loads(pickle.dumps(value)))
    sent = described(value)

    def body(comm):
        for found in everywhere(comm, value, allow_pickle=allow_pickle):
            assert described(found) == (sent if found is value else wanted)

    threads(2, body)


@pytest.mark.parametrize("name", REFUSED)
def test_other_values_are_refused_by_name_and_arrive_by_pickle(name):
    value, word = REFUSED[name]
    wanted = described(pickle.loads(pickle.dumps(value, -1)))

    def body(comm):
        for call in (
            lambda: comm.broadcast_object(value if comm.rank == 1 else None, 1),
            lambda: comm.all_gather_object([value]),
            lambda: comm.gather_object({"a": value}, 1),
            lambda: comm.scatter_object([value] * 2 if comm.rank == 1 else None, 1),
        ):
            with pytest.raises(hocket.InvalidArgument, match=word) as refusal:
                call()
            assert "allow_pickle=True" in str(refusal.value)
        if comm.rank == 1:
            with pytest.raises(hocket.InvalidArgument, match=word):
                comm.send_object(value, 0)
        for found in everywhere(comm, value, allow_pickle=True):
            assert described(found) == (described(value) if found is value else wanted)
        # Parts that are the same stay the same, of plain and of other kinds.
        plain = [1]
        for a, b, c, d in everywhere(comm, [plain, plain, value, value], allow_pickle=True):
            assert a is b
            assert c is d or described(c) == described(d)

    threads(2, body)


@pytest.mark.parametrize("name", FOREIGN)
def test_arrays_of_others_arrive_as_numpy_s(name):
    value = FOREIGN[name]

    def body(comm):
        for found in everywhere(comm, [value]):
            assert type(found[0]) is np.ndarray
            assert np.array_equal(found[0], np.asarray(value))
        if name == "memory view":
            with pytest.raises((TypeError, hocket.InvalidArgument), match="memoryview"):
                comm.all_gather_object([value], allow_pickle=True)
            return
        for found in everywhere(comm, [value], allow_pickle=True):
            assert type(found[0]) is type(value) and found[0] == value

    threads(2, body)
